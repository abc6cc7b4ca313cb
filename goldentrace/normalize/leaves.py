"""A JSON value as its leaves: JSON Pointer -> what stands there, written as type, length and short digest.

Most leaves are plain and are written at once. A leaf that holds a secret, a folder, an id or a value that may be the
clock's stays `Mixed` or `Moment`, because what it becomes depends on the trace around it. Containers have no line of
their own, except empty ones. A string that holds a JSON object or array is walked as that value and marked by
`pointer#json`. This module must not know of events.
"""

import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from goldentrace.codec.canonical import LEAF_DIGITS, MAX_DEPTH, JsonError, canonical, decode, digest
from goldentrace.model import pointer as pointers
from goldentrace.model.operation import WrittenLeaf
from goldentrace.model.profile import Profile, Tool
from goldentrace.normalize.ids import MIN_LENGTH, IdStep, erase_ids, key_token
from goldentrace.normalize.paths import PathStep
from goldentrace.normalize.redact import Redactor, is_secret_key
from goldentrace.normalize.text import Segments, Token

MAX_CACHED_DIGESTS: Final = 200_000
"""Entries kept of value -> written leaf; beyond it the cache starts anew, so that memory stays bounded."""

_CLOCK_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_DATE_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH_S: Final = (1_000_000_000, 10_000_000_000)
_NUMERIC: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class Mixed(NamedTuple):
    """A string with tokens in it."""

    segments: Segments


class Moment(NamedTuple):
    """A date-time, date or epoch that may be the event's own clock: its instant in ms since 1970, and the plain leaf
    that it is otherwise. is_relative: the profile says that it follows the clock; is_date: a day without a time."""

    at_ms: float
    written: WrittenLeaf
    is_relative: bool
    is_date: bool


Leaf: TypeAlias = WrittenLeaf | Mixed | Moment


class Flat(msgspec.Struct):
    """The leaves of one value.

    specials: pointers of the leaves that are not written yet; unordered: pointers of the elements of each container
    that has no order but that of its ids, so that what they are named by decides, outer containers first.
    """

    leaves: dict[str, Leaf] = msgspec.field(default_factory=dict)
    specials: list[str] = msgspec.field(default_factory=list)
    unordered: list[list[str]] = msgspec.field(default_factory=list)


class LeafReader:
    """Flattens values the way a profile asks for. One per trace; pure but for its cache of digests."""

    def __init__(self, profile: Profile, paths: PathStep, key: bytes | None) -> None:
        self.redactor = Redactor(profile.redact)
        self.paths = paths
        self.ids = IdStep(profile.ids)
        self._key = key
        self._is_semantic = profile.arguments.equivalence == "semantic"
        self._relative = pointers.compile_globs(tuple(profile.time.relative))
        self._arguments = profile.arguments
        self._has_rules = bool(
            profile.ids.keys
            or profile.redact.rules
            or profile.time.relative
            or self._is_semantic
            or any(len(folder) < MIN_LENGTH for folder in paths.folders)
        )
        self._has_own_secrets = bool(profile.redact.rules)
        self._scopes: dict[int, _Scope] = {}
        self._telling: dict[str, bool] = {}
        self._strings: dict[str, str] = {}
        self._integers: dict[int, str] = {}

    def flatten(self, value: Any, tool: Tool | None = None) -> Flat:
        """Return the leaves of a value. tool: its ignore, keep and order_free add to the profile's; None for a
        result."""
        flat = Flat()
        scope = self._scopes.get(id(tool))
        if scope is None:
            scope = self._scopes[id(tool)] = _Scope(self._arguments, tool)
        self._walk(value, "", None, flat, scope)
        return flat

    def text(self, text: str, pointer: str = "", key: str | None = None) -> Segments:
        """Return the segments of a string after redact, paths and ids."""
        segments: Segments = (text,)
        if self._has_own_secrets or key is not None or PLAIN_ENOUGH.fullmatch(text) is None:
            segments = self.redactor.split(segments, key)
            segments = self.paths.split(segments)
        return self.ids.split(segments, pointer)

    def words(self, text: str | None) -> str | None:
        """Return a text that is shown and written in clear, such as the reason of a decision, without its secrets."""
        return text if text is None else self.redactor.redact_text(text, {})

    def _walk(self, value: Any, pointer: str, name: str | None, flat: Flat, scope: "_Scope") -> None:
        if scope.ignore is not None and pointer and pointers.is_matched(scope.ignore, pointer):
            return
        kind = type(value)
        if kind is str:
            self._add_text(value, pointer, name, flat, scope)
        elif kind is dict:
            self._walk_object(value, pointer, flat, scope)
        elif kind is list:
            if not value:
                flat.leaves[pointer] = "[]"
                return
            items = value
            if scope.order_free is not None and pointers.is_matched(scope.order_free, pointer):
                items = sorted(value, key=_without_ids)
                flat.unordered.append([f"{pointer}/{n}" for n in range(len(items))])
            for n, item in enumerate(items):
                self._walk(item, f"{pointer}/{n}", name, flat, scope)
        else:
            self._add_scalar(value, pointer, flat, scope)

    def _walk_object(self, value: dict[str, Any], pointer: str, flat: Flat, scope: "_Scope") -> None:
        if not value:
            flat.leaves[pointer] = "{}"
            return
        if "0" in value and all(key == str(n) for n, key in enumerate(value)):
            flat.leaves[pointer + "#object"] = "object"  # else it could not be told from an array
        named: set[str] = set()
        if max(map(len, value)) >= MIN_LENGTH:
            named = {key for key in value if len(key) >= MIN_LENGTH and self._has_id(key)}
            if named:
                self._walk_named(value, named, pointer, flat, scope)
        for key, item in value.items():
            if key not in named:
                self._walk(item, f"{pointer}/{pointers.escape(key)}", key, flat, scope)

    def _has_id(self, key: str) -> bool:
        return any(isinstance(part, Token) and part.is_id for part in self.text(key))

    def _walk_named(self, value: dict[str, Any], keys: set[str], pointer: str, flat: Flat, scope: "_Scope") -> None:
        """What stands under keys that are ids, or hold some: `/{0}`, `/{1}` …, and the key as the leaf `/{0}#key`."""
        ordered = sorted(keys, key=lambda key: (_without_ids(value[key]), key))
        places = [f"{pointer}/{{{n}}}" for n in range(len(ordered))]
        flat.unordered.append(places)
        for key, place in zip(ordered, places, strict=True):
            self._put(Mixed(self.text(key)), place + "#key", flat)
            self._walk(value[key], place, None, flat, scope)

    def _add_text(self, text: str, pointer: str, name: str | None, flat: Flat, scope: "_Scope") -> None:
        key = name if name is not None and self._is_telling(name) else None
        if (
            len(text) < MIN_LENGTH
            and key is None
            and scope.keep is None
            and _SIMPLE.fullmatch(text)
            and not self._has_rules
        ):
            flat.leaves[pointer] = self._strings.get(text) or self.describe(text)
            return
        if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
            try:
                inner = decode(text, MAX_DEPTH - pointer.count("/"))
            except JsonError:
                inner = None
            if isinstance(inner, dict | list):
                flat.leaves[pointer + "#json"] = "json"
                self._walk(inner, pointer, name, flat, scope)
                return
        segments = self.text(text, pointer, key)
        if len(segments) > 1 or (segments and not isinstance(segments[0], str)):
            flat.leaves[pointer] = Mixed(segments)
            flat.specials.append(pointer)
            return
        written = self.describe(text) if not scope.keeps(pointer) else {"value": text}
        moment = self._moment_of_text(text, pointer, written)
        self._put(moment if moment is not None else written, pointer, flat)

    def _is_telling(self, name: str) -> bool:
        found = self._telling.get(name)
        if found is None:
            found = self._telling[name] = is_secret_key(name)
        return found

    def _add_scalar(self, value: Any, pointer: str, flat: Flat, scope: "_Scope") -> None:
        if self.ids.has_keys and type(value) in (int, float) and self.ids.is_key(pointer):
            self._put(Mixed((key_token(value),)), pointer, flat)
            return
        written: WrittenLeaf = {"value": value} if scope.keeps(pointer) else self.describe(value)
        if type(value) in (int, float) and abs(value) >= _EPOCH_S[0]:
            at_ms = _epoch_ms(value)
            if at_ms is not None:
                self._put(Moment(at_ms, written, pointers.is_matched(self._relative, pointer), False), pointer, flat)
                return
        flat.leaves[pointer] = written

    def _put(self, leaf: Leaf, pointer: str, flat: Flat) -> None:
        flat.leaves[pointer] = leaf
        if isinstance(leaf, Mixed | Moment):
            flat.specials.append(pointer)

    def _moment_of_text(self, text: str, pointer: str, written: WrittenLeaf) -> Moment | None:
        if not 10 <= len(text) <= 35:
            return None
        is_relative = pointers.is_matched(self._relative, pointer)
        is_date = _DATE_TEXT.fullmatch(text) is not None
        if (is_date and not is_relative) or (not is_date and not _CLOCK_TEXT.fullmatch(text)):
            return None
        at_ms = instant_ms(text)
        return None if at_ms is None else Moment(at_ms, written, is_relative, is_date)

    def describe(self, value: Any) -> str:
        """Return a scalar as type, length and digest: `str[9] h:…`, `int h:…`, `float h:…`, `bool h:…`, `null`."""
        kind = type(value)
        if self._is_semantic and kind in (str, int, float):
            return self._describe_semantic(value)
        if kind is str:
            found = self._strings.get(value)
            if found is None:
                found = f"str[{len(value)}] {self.digest(value)}"
                _remember(self._strings, value, found)
            return found
        if kind is int:
            found = self._integers.get(value)
            if found is None:
                found = f"int {self.digest(value)}"
                _remember(self._integers, value, found)
            return found
        if value is None:
            return "null"
        if kind is bool:
            return f"bool {self.digest(value)}"
        is_integral = value.is_integer() and abs(value) < 1e21
        return f"{'int' if is_integral else 'float'} {self.digest(value)}"

    def _describe_semantic(self, value: str | float) -> str:
        """Numbers and numeric strings are equal, strings are trimmed; case is not folded."""
        if isinstance(value, str):
            value = value.strip()
            if not _NUMERIC.fullmatch(value):
                return f"str[{len(value)}] {self.digest(value)}"
            try:
                value = int(value)
            except ValueError:
                value = float(value)
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return f"number {self.digest(str(value))}"
        return f"number {self.digest(value)}"

    def digest(self, value: Any) -> str:
        """Return the digest of a leaf or of a canonical structure, keyed where the profile says so."""
        return digest(canonical(value), LEAF_DIGITS, self._key)


class _Scope:
    """The globs that hold for one value."""

    __slots__ = ("ignore", "keep", "order_free")

    def __init__(self, arguments: Any, tool: Tool | None) -> None:
        extra = tool if tool is not None else Tool()
        self.ignore = pointers.compile_globs((*arguments.ignore, *extra.ignore))
        self.keep = pointers.compile_globs((*arguments.keep, *extra.keep))
        self.order_free = pointers.compile_globs((*arguments.order_free, *extra.order_free))

    def keeps(self, pointer: str) -> bool:
        return self.keep is not None and pointers.is_matched(self.keep, pointer)


_SIMPLE: Final = re.compile(r"[0-9A-Za-z_ .,;!?@=+*#%&()-]*")
"""With fewer characters than the shortest id, a text of these needs no step of the pipeline."""
PLAIN_ENOUGH: Final = re.compile(r"[0-9A-Za-z_ .,-]{0,15}")
"""A text that can hold neither a built-in secret nor a folder: too short for the one, no slash or colon for the
other."""


def _without_ids(value: Any) -> tuple[bytes, bytes]:
    """What orders values whose order says nothing: what they hold besides ids, which are others in every run."""
    raw = canonical(value)
    return erase_ids(raw), raw


def _remember(cache: dict[Any, str], value: Any, written: str) -> None:
    if len(cache) >= MAX_CACHED_DIGESTS:
        cache.clear()
    cache[value] = written


def instant_ms(text: str) -> float | None:
    """Return the instant of an ISO date or date-time in ms since 1970; one without a zone counts as UTC; None if
    none."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp() * 1000


def _epoch_ms(value: float) -> float | None:
    """The instant of a number that may be an epoch in s, ms, us or ns; None outside the years 2001 to 2286."""
    low, high = _EPOCH_S
    for scale in (1, 1_000, 1_000_000, 1_000_000_000):
        if low * scale <= value < high * scale:
            return value * 1000 / scale
    return None
