"""What is random by shape: the list `ids/1`, and how two spellings of one id are compared.

The list is exhaustive and versioned: UUIDs, ULIDs, listed prefixes, long hex. Numbers, dates and epochs are never ids
by shape, because masking them hid a wrong date, account and card number. Where an id came from is `provenance.py`'s to
say.
"""

import re
from collections.abc import Sequence
from typing import Final

from goldentrace.model import pointer as pointers
from goldentrace.model.profile import Ids
from goldentrace.normalize.text import Segments, Token, split_by

MIN_LENGTH: Final = 11
"""The shortest id: `fc_` or `rs_` and eight characters. No shorter string is searched."""

CONTENT_ADDRESS_DIGITS: Final = frozenset({40, 56, 64, 96, 128})
"""Lengths of SHA-1, SHA-224, SHA-256, SHA-384 and SHA-512 in hex: a content address is the same in every run, so hex of
these lengths is an id only where a result supplied it."""

_PREFIXES: Final = ("call", "toolu", "req", "run", "msg", "resp", "fc", "thread", "rs", "srvtoolu")

_SHAPES: Final = (
    r"(?P<uuid>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})",
    rf"(?P<prefixed>(?:{'|'.join(_PREFIXES)})_[0-9A-Za-z]{{8,}}|chatcmpl-[0-9A-Za-z]{{8,}})",
    r"(?P<hex>[0-9a-fA-F]{16,})",
    r"(?P<ulid>[0-7][0-9A-HJKMNP-TV-Z]{25})",
)
_PATTERN: Final = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(_SHAPES)})(?![0-9A-Za-z])")
_BYTES_PATTERN: Final = re.compile(_PATTERN.pattern.encode())
_WORDS: Final = bytes(ord("x") if bytes([byte]).isalnum() else byte for byte in range(256))
"""bytes.translate: ASCII letters and digits to x, so that how they stand can be found as a literal."""
_LONG_WORD: Final = b"x" * 16
_UUID: Final = b"-".join(b"x" * length for length in (8, 4, 4, 4, 12))
_BEHIND_PREFIX: Final = re.compile(f"_(?:{'|'.join(f'(?<={prefix}_)' for prefix in _PREFIXES)})".encode())

_DIGIT: Final = re.compile(r"[0-9]")
_LETTER: Final = re.compile(r"[A-Za-z]")


class IdStep:
    """Makes tokens of ids in text, by shape and by the profile's key names and pointers."""

    def __init__(self, settings: Ids) -> None:
        self._is_by_shape = settings.kinds != "none"
        self._keys = pointers.compile_globs(tuple(settings.keys))
        self._ignored = pointers.compile_globs(tuple(settings.ignore_keys))
        self.has_keys = self._keys is not None

    def is_key(self, pointer: str) -> bool:
        """Is the value at this pointer an id whatever its shape?"""
        return pointers.is_matched(self._keys, pointer)

    def split(self, segments: Segments, pointer: str) -> Segments:
        """Return the segments with ids made tokens."""
        if pointers.is_matched(self._ignored, pointer):
            return segments
        if self.is_key(pointer) and len(segments) == 1 and isinstance(segments[0], str):
            return (key_token(segments[0]),)
        return split_by(segments, find_ids) if self._is_by_shape else segments


def erase_ids(document: bytes) -> bytes:
    """Return a document with what is an id by shape taken out."""
    return _BYTES_PATTERN.sub(b"", document)


def key_token(value: str | float) -> Token:
    """Return the token of a value that is an id because the profile names its key."""
    token = find_ids(value)[0][2] if isinstance(value, str) and _is_whole(value) else None
    return Token("key", token.value if token else f"key:{value}", str(value), "ids.keys")


def _is_whole(text: str) -> bool:
    found = find_ids(text)
    return len(found) == 1 and found[0][:2] == (0, len(text))


def find_ids(text: str) -> list[tuple[int, int, Token]]:
    """Return the ids in a text as spans, ascending."""
    if len(text) < MIN_LENGTH:
        return []
    found: list[tuple[int, int, Token]] = []
    if not _may_hold(text.encode("utf-8", "surrogatepass")):
        return found
    for match in _PATTERN.finditer(text):
        token = _token(match.lastgroup or "", match[0])
        if token is not None:
            found.append((match.start(), match.end(), token))
    return found


def _may_hold(document: bytes) -> bool:
    """May an id stand in this text? False is certain, and told at a fifth of the cost of the pattern."""
    words = document.translate(_WORDS)
    return (
        _LONG_WORD in words or _UUID in words or b"chatcmpl-" in document or _BEHIND_PREFIX.search(document) is not None
    )


def id_values(document: bytes) -> set[str]:
    """Return the comparable form of every id in a JSON document, read as bytes: quick, and blind to escapes, which no
    id needs."""
    values: set[str] = set()
    if not _may_hold(document):
        return values
    for match in _BYTES_PATTERN.finditer(document):
        token = _token(match.lastgroup or "", match[0].decode("ascii"))
        if token is not None:
            values.add(token.value)
    return values


def values_of(segments: Sequence[str | Token]) -> tuple[str, ...]:
    """Return the comparable form of the ids among the segments, in order."""
    return tuple(segment.value for segment in segments if isinstance(segment, Token) and segment.is_id)


def _token(shape: str, text: str) -> Token | None:
    if shape == "uuid":
        return Token("uuid", "hex:" + text.replace("-", "").lower(), text, "ids/1 uuid")
    if not _DIGIT.search(text):
        return None
    if shape == "prefixed":
        prefix, _, rest = text.replace("-", "_", 1).partition("_")
        is_random = _DIGIT.search(rest) is not None and _LETTER.search(rest) is not None
        return Token(prefix, text, text, f"ids/1 {prefix}") if is_random else None
    if not _LETTER.search(text):
        return None
    if shape == "hex":
        return Token("hex", "hex:" + text.lower(), text, "ids/1 hex")
    return Token("ulid", text, text, "ids/1 ulid")


def is_content_address(token: Token) -> bool:
    """Is this hex of the length of a common digest, so that only a result can make it an id?"""
    return token.kind == "hex" and len(token.text) in CONTENT_ADDRESS_DIGITS
