"""Placeholders as they stand in written leaves, and what they refer to.

`<get_order#1/id>` a place in the results of an operation, `<charge#1.args/key>` a place in its arguments, `<new:uuid>`,
`<unknown:uuid>`, `<now>`, `<secret:1>`. A leaf is one placeholder, or the digest of a template followed by
placeholders.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

_PLACEHOLDER: Final = re.compile(
    r"<(?:(?P<kind>new|unknown):(?P<shape>[^:<>#/]+)(?::(?P<nth>\d+))?"
    r"|(?P<clock>now|now[+-]\d+s|today[+-]\d+d)"
    r"|secret:(?P<secret>\d+)"
    r"|(?P<label>(?:[^<>/# ]+/)?[^<>/# ]+#\d+)(?P<args>\.args)?(?:@(?P<attempt>\d+))?(?P<place>[^<> ]*))>"
)


class Placeholder(msgspec.Struct, frozen=True):
    """One placeholder.

    kind: `result`, `args`, `new`, `unknown`, `clock` or `secret`; label, place: of the operation and the place in it,
    for `result` and `args`; attempt: from 1, of a result that was not the last or of arguments that were not the first;
    text: as written.
    """

    kind: str
    text: str
    label: str = ""
    place: str = ""
    shape: str = ""
    attempt: int | None = None


@lru_cache(maxsize=100_000)
def parse_leaf(written: str) -> tuple[str, tuple[Placeholder, ...]]:
    """Return what a written leaf holds besides placeholders (`` or the template's digest), and its placeholders."""
    if "<" not in written:
        return written, ()
    found = tuple(_placeholder(match) for match in _PLACEHOLDER.finditer(written))
    return _PLACEHOLDER.sub("<>", written), found


def _placeholder(match: re.Match[str]) -> Placeholder:
    text = match[0]
    if match["kind"]:
        return Placeholder(match["kind"], text, shape=match["shape"])
    if match["clock"]:
        return Placeholder("clock", text)
    if match["secret"]:
        return Placeholder("secret", text)
    attempt = int(match["attempt"]) if match["attempt"] else None
    kind = "args" if match["args"] else "result"
    return Placeholder(kind, text, match["label"], unescape_place(match["place"]), attempt=attempt)


def relabel(written: str, labels: dict[str, str]) -> str:
    """Return a written leaf with the labels in its placeholders replaced where the mapping names them."""
    if "#" not in written or "<" not in written:
        return written

    def renamed(match: re.Match[str]) -> str:
        label = match["label"]
        if label is None or label not in labels:
            return match[0]
        return f"<{labels[label]}{match[0][1 + len(label) :]}"

    return _PLACEHOLDER.sub(renamed, written)


def escape_place(place: str) -> str:
    """Return a place as it stands inside a placeholder: what could end one is percent-encoded."""
    if not any(char in place for char in "%<> ") and place.isprintable():
        return place
    return "".join(f"%{ord(c):02X}" if c in "%<> " or (not c.isprintable() and ord(c) < 256) else c for c in place)


def unescape_place(place: str) -> str:
    """Return the place that an escaped one stands for."""
    return re.sub(r"%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), place) if "%" in place else place
