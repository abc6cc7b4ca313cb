"""Secrets: found in any text or under a telling key, replaced by `<secret:n>`, equal ones by equal numbers.

The list `secrets/1` is small on purpose: what the known providers issue, tokens and keys of standard form, credentials
in URLs and headers. No kept detector library fits: those that exist scan files, cost milliseconds a value and need
entropy thresholds that mask ids. A literal prefilter comes first, because a record-time pattern run costs 17 us an
event and the prefilter under 1 us. This module must not decide what is compared.

Source of the shapes: each provider's own documentation of its key prefixes; RFC 7519 (JWT), RFC 7468 (PEM), RFC 6750
(Bearer), RFC 3986 section 3.2.1 (userinfo).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from goldentrace.codec.canonical import JsonError, decode, encode_raw
from goldentrace.codec.patterns import compile_pattern
from goldentrace.model.profile import Redact
from goldentrace.normalize.marks import Marks
from goldentrace.normalize.text import Segments, Token, split_by

PLACEHOLDER: Final = re.compile(r"<secret:\d+>")


class _Shape(NamedTuple):
    """What one kind of secret looks like. name: of its detector; marks: literals of which a text with such a secret
    holds at least one; pattern: its group `secret`, where it has one, is the secret within it; is_folded: the marks
    are lower-case and the text may be of any case."""

    name: str
    marks: tuple[str, ...]
    pattern: str
    is_folded: bool = False

    def find(self, text: str, start: int) -> "tuple[int, re.Match[str], _Shape] | None":
        """Return the first match from a place on, behind where it begins."""
        match = re.compile(self.pattern).search(text, start)  # compiled when first needed, and kept by `re`
        return None if match is None else (match.start(), match, self)


def _key(marks: str, pattern: str) -> _Shape:
    """The shape of a key that a provider issues; nothing of its alphabet stands before it."""
    return _Shape("provider-key", tuple(marks.split()), rf"(?<![A-Za-z0-9]){pattern}")


_SHAPES: Final = (
    _Shape(
        "private-key",
        ("-----BEGIN",),
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
    ),
    _key("sk-", r"sk-[A-Za-z0-9_-]{20,}"),
    _key("_live_ _test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _key("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _key("github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _key("glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _key("AKIA ASIA", r"A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])"),
    _key("AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _key("xox", r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    _key("hf_ gsk_ npm_", r"(?:hf|gsk|npm)_[A-Za-z0-9]{30,}"),
    _key("lsv2_", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}"),
    _key("SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _key("pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _Shape(
        "jwt",
        ("eyJ",),
        r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    ),
    _Shape(
        "bearer",
        ("bearer", "basic"),
        r"(?ai:\b(?:bearer|basic))\s+(?P<secret>(?=[A-Za-z._~+/-]*[0-9=])[A-Za-z0-9._~+/-]{16,}=*)",
        is_folded=True,
    ),
    _Shape("cookie", ("cookie",), r"(?ai:\b(?:set-)?cookie):\s*(?P<secret>[^\r\n\"]+)", is_folded=True),
    _Shape(
        "auth-header",
        ("authorization", "api-key"),
        r"(?ai:\b(?:authorization|x-api-key|api-key)):\s*(?P<secret>[^\s\"]{8,}(?: [^\s\"]{8,})?)",
        is_folded=True,
    ),
    _Shape("url-password", ("://",), r"(?<=://)[^/\s:@\"]*:(?P<secret>[^/\s@\"]+)(?=@)"),
)

_SECRET_KEYS: Final = frozenset(
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "api_key",
        "apikey",
        "x_api_key",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "session_token",
        "bearer_token",
        "api_token",
        "accessjwt",
        "refreshjwt",
        "authorization",
        "proxy_authorization",
        "cookie",
        "set_cookie",
        "private_key",
        "secret_key",
        "access_key",
        "secret_access_key",
    ]
)
"""Names under which any string is a secret, dashes as underscores, case folded."""

KEY_MARKS: Final = ("key", "passw", "passphrase", "secret", "token", "jwt")
"""Lower-case literals that only such a name makes the mark of a secret. Each name holds one of them, or a mark of a
shape."""
_MARKS: Final = tuple(dict.fromkeys([*(mark.lower() for shape in _SHAPES for mark in shape.marks), *KEY_MARKS]))
"""Lower-case literals of which a text, or a JSON document as text, with a secret holds at least one."""
_FINDER: Final = Marks(_MARKS)
_FOLLOWED: Final = {
    mark: re.compile(mark.encode() + rb"[\s\\\x1c-\x1f\x80-\xff]+[a-z0-9._~+/\\-]{16}") for mark in ("basic", "bearer")
}
"""Both words are common; what makes them a mark is what follows, in JSON behind white space that may be escaped."""


class Redactor:
    """Finds secrets, by the built-in list and the user's rules.

    Numbers are given by the caller's `numbers` (secret text -> n), so that one run or one recorder keeps identity.
    """

    def __init__(self, settings: Redact | None = None) -> None:
        settings = settings or Redact()
        self._is_builtin = settings.builtin
        self._own = [(rule.name, compile_pattern(rule.pattern)) for rule in settings.rules if rule.pattern]
        self._allowed = [compile_pattern(rule.allow) for rule in settings.rules if rule.allow]

    def is_suspect(self, text: str) -> bool:
        """May this text, or a JSON document as text, hold a secret? False is certain."""
        if self._own:
            return True
        return bool(self.marks_in(text.encode("utf-8", "surrogatepass")))

    def marks_in(self, document: bytes) -> tuple[str, ...]:
        """Return the literals in a text, or a JSON document as text, of which a built-in secret holds at least one: a
        string of that document whose lower() holds none of them holds no secret, unless its key says so."""
        if not self._is_builtin:
            return ()
        low = document.lower()
        found = _FINDER.found_in(low)
        return tuple([mark for mark in found if mark not in _FOLLOWED or _FOLLOWED[mark].search(low)])

    def find(self, text: str, key: str | None = None) -> list[tuple[int, int, Token]]:
        """Return the secrets in a text as spans, ascending. key: the name under which the text stands, if any."""
        whole = PLACEHOLDER.fullmatch(text)
        if whole is None and key is not None and self._is_builtin and text and is_secret_key(key):
            spans = [(0, len(text), "secret-key")]
        else:
            spans = sorted(self._spans(text))
        found: list[tuple[int, int, Token]] = []
        done = 0
        for start, end, rule in spans:
            secret = text[start:end]
            if start < done or any(allowed.is_whole(secret) for allowed in self._allowed):
                continue
            found.append((start, end, Token("secret", secret, secret, f"redact/{rule}")))
            done = end
        return found

    def _spans(self, text: str) -> Iterable[tuple[int, int, str]]:
        for match in PLACEHOLDER.finditer(text):
            yield match.start(), match.end(), "already"
        for name, pattern in self._own:
            for start, end in pattern.spans(text):
                yield start, end, name
        if self._is_builtin:
            for name, match in _matches(text):
                group = match.re.groups  # the one group there may be, or the whole match
                if not group or not PLACEHOLDER.match(match[group]):
                    yield match.start(group), match.end(group), name

    def split(self, segments: Segments, key: str | None = None) -> Segments:
        """Return the segments with secrets made tokens."""
        return split_by(segments, lambda text: self.find(text, key))

    def redact_text(self, text: str, numbers: dict[str, int], key: str | None = None) -> str:
        """Return the text with each secret as `<secret:n>`."""
        spans = self.find(text, key)
        if not spans:
            return text
        parts: list[str] = []
        done = 0
        for start, end, token in spans:
            parts.append(text[done:start])
            is_done = PLACEHOLDER.fullmatch(token.value) is not None
            parts.append(token.value if is_done else f"<secret:{numbers.setdefault(token.value, len(numbers) + 1)}>")
            done = end
        return "".join((*parts, text[done:]))

    def redact_value(self, value: Any, numbers: dict[str, int], key: str | None = None) -> Any:
        """Return a JSON value with each secret in its strings and keys as `<secret:n>`; the same object where none
        is. A string that is a JSON document itself is looked into: its keys tell of secrets too."""
        if isinstance(value, str):
            return self._redacted_document(self.redact_text(value, numbers, key), numbers)
        if isinstance(value, dict):
            return {
                self.redact_text(name, numbers): self.redact_value(item, numbers, name) for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.redact_value(item, numbers, key) for item in value]
        return value

    def _redacted_document(self, text: str, numbers: dict[str, int]) -> str:
        """A text, without the secrets under the keys of the JSON document that it may be."""
        if text[:1] + text[-1:] not in ("{}", "[]") or not self.is_suspect(text):
            return text
        try:
            value = decode(text)
            clean = self.redact_value(value, numbers)
            return text if clean == value else bytes(encode_raw(clean)).decode("utf-8", "surrogatepass")
        except JsonError:
            return text


def _matches(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the built-in secrets as one alternation of all shapes finds them: leftmost first, of two at one place the
    shape that stands first, none within another. Only shapes of which a mark is there are searched for: the alternation
    itself takes 30 ns a character."""
    low = text.lower()
    marked = [shape for shape in _SHAPES if _has_mark(shape, low if shape.is_folded else text)]
    found = [match for shape in marked if (match := shape.find(text, 0)) is not None]
    while found:
        _, first, shape = min(found, key=itemgetter(0))
        yield shape.name, first
        found = [
            match
            for old in found
            if (match := old if old[0] >= first.end() else old[2].find(text, first.end())) is not None
        ]


def _has_mark(shape: _Shape, text: str) -> bool:
    for mark in shape.marks:  # noqa: SIM110 - any() with a generator takes four times as long
        if mark in text:
            return True
    return False


@lru_cache(maxsize=4096)
def is_secret_key(key: str) -> bool:
    """Is any string under this name a secret?"""
    folded = key.replace("-", "_").lower()
    return folded in _SECRET_KEYS
