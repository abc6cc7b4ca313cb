"""Names of places inside a result, and how to find the place again in another run.

An element of an array of objects, or of rows, is named `{index:digest}`, the digest over its leaves that are not ids,
where that digest is unique in the array; else by its index. Indexes alone missed the wrong entity and alarmed on a
re-sorted listing; digests alone alarmed on a stock counter: so both are written, and the digest decides where the other
array has it. An object key that holds an id is named the same way. `pointer~n` is the n-th id inside one string.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from goldentrace.codec.canonical import ELEMENT_DIGITS, MAX_DEPTH, JsonError, canonical, decode, digest
from goldentrace.model import pointer as pointers
from goldentrace.normalize.ids import find_ids
from goldentrace.normalize.leaves import LeafReader, Mixed, Moment

_ELEMENT: Final = re.compile(r"\{(\d+)(?::([0-9a-f]+))?\}")
_NTH: Final = re.compile(r"~([1-9]\d*)$")


class ResultDocument:
    """One decoded result and the ids in it."""

    def __init__(self, value: Any, reader: LeafReader) -> None:
        self._value = value
        self._reader = reader
        self._digests: dict[str, list[str]] = {}

    def places(self, wanted: set[str]) -> dict[str, str]:
        """Return id value -> name of its place, for those of `wanted` that the result holds: the shortest, then
        lexically first pointer of each."""
        best: dict[str, tuple[int, str, str]] = {}
        for value, raw, name in self._ids(self._value, "", lambda: ""):
            if value in wanted:
                rank = (len(raw), raw)
                if value not in best or rank < best[value][:2]:
                    best[value] = (*rank, name())
        return {value: found[2] for value, found in best.items()}

    def _ids(self, value: Any, raw: str, name: Callable[[], str]) -> Iterator[tuple[str, str, Callable[[], str]]]:
        """Yield (id value, plain pointer, its name on demand)."""
        if isinstance(value, dict):
            keys = [key for key in value if _id_of_key(key)]
            for key, item in value.items():
                here = f"{raw}/{pointers.escape(key)}"
                key_id = _id_of_key(key)
                if key_id is not None:
                    inner = self._named(name, raw + "#keys", keys.index(key), [value[k] for k in keys])
                    yield key_id, here + "#key", lambda inner=inner: inner() + "#key"  # type: ignore[misc]
                else:
                    inner = _joined(name, pointers.escape(key))
                yield from self._ids(item, here, inner)
        elif isinstance(value, list):
            for n, item in enumerate(value):
                has_parts = isinstance(item, dict | list)
                inner = self._named(name, raw, n, value) if has_parts else _joined(name, str(n))
                yield from self._ids(item, f"{raw}/{n}", inner)
        elif isinstance(value, str):
            yield from self._ids_of_text(value, raw, name)
        elif self._reader.ids.has_keys and isinstance(value, int | float) and self._reader.ids.is_key(raw):
            yield f"key:{value}", raw, name

    def _ids_of_text(
        self, text: str, raw: str, name: Callable[[], str]
    ) -> Iterator[tuple[str, str, Callable[[], str]]]:
        inner = _json_in(text, MAX_DEPTH - raw.count("/"))
        if inner is not None:
            yield from self._ids(inner, raw, name)
            return
        tokens = [token for token in self._reader.text(text, raw) if not isinstance(token, str) and token.is_id]
        is_whole = len(tokens) == 1 and tokens[0].text == text
        for n, token in enumerate(tokens, start=1):
            suffix = "" if is_whole else f"~{n}"
            yield token.value, raw + suffix, lambda suffix=suffix: name() + suffix  # type: ignore[misc]

    def _named(self, name: Callable[[], str], place: str, n: int, items: list[Any]) -> Callable[[], str]:
        def named() -> str:
            digests = self._element_digests(place, items)
            unique = digests.count(digests[n]) == 1
            return f"{name()}/{{{n}:{digests[n]}}}" if unique else f"{name()}/{n}"

        return named

    def _element_digests(self, place: str, items: list[Any]) -> list[str]:
        found = self._digests.get(place)
        if found is None:
            found = self._digests[place] = [element_digest(item, self._reader) for item in items]
        return found

    def ids_at(self, name: str) -> tuple[str, ...]:
        """Return the ids at a named place of this result, none where the place is gone."""
        is_key = name.endswith("#key")
        plain = name.removesuffix("#key")
        is_pointer = not plain or plain.startswith("/")  # `~2` is the second id of a result that is one string
        found = self._at(plain, is_key=is_key) if is_pointer else ()
        if found:
            return found
        nth = _NTH.search(plain)
        if nth is None:
            return ()
        whole = self._at(plain[: nth.start()], is_key=False)
        return whole[int(nth[1]) - 1 : int(nth[1])]

    def _at(self, name: str, *, is_key: bool) -> tuple[str, ...]:
        value, raw = self._value, ""
        key_id: str | None = None
        for segment in name.split("/")[1:]:
            if isinstance(value, str):
                value = _json_in(value)
            element = _ELEMENT.fullmatch(segment)
            key: str | int
            if element is not None and isinstance(value, list | dict):
                found = self._element(value, raw, int(element[1]), element[2])
                if found is None:
                    return ()
                key = found
            else:
                key = pointers.unescape(segment)
            if isinstance(value, list) and str(key).isdigit() and int(key) < len(value):
                value = value[int(key)]
            elif isinstance(value, dict) and key in value:
                key_id = _id_of_key(str(key))
                value = value[str(key)]
            else:
                return ()
            raw += f"/{key}"
        if is_key:
            return (key_id,) if key_id is not None else ()
        if isinstance(value, str):
            return tuple(
                token.value for token in self._reader.text(value, raw) if not isinstance(token, str) and token.is_id
            )
        if self._reader.ids.has_keys and isinstance(value, int | float) and self._reader.ids.is_key(raw):
            return (f"key:{value}",)
        return ()

    def _element(self, value: Any, raw: str, index: int, wanted: str | None) -> str | int | None:
        keys: list[Any] = (
            list(range(len(value))) if isinstance(value, list) else [key for key in value if _id_of_key(key)]
        )
        items = [value[key] for key in keys]
        if wanted is not None:
            digests = self._element_digests(raw if isinstance(value, list) else raw + "#keys", items)
            if digests.count(wanted) == 1:
                return keys[digests.index(wanted)]  # type: ignore[no-any-return]
        return keys[index] if index < len(keys) else None


def element_digest(item: Any, reader: LeafReader) -> str:
    """Return the digest of an element over its leaves that are neither ids nor times of the run, without `h:`."""
    flat = reader.flatten(item)
    stable = {p: leaf for p, leaf in flat.leaves.items() if not isinstance(leaf, Mixed | Moment)}
    return digest(canonical(stable), ELEMENT_DIGITS)[2:]


def reduce_name(name: str) -> str:
    """Return the name of a place as the alignment key holds it: by digest only where there is one."""
    return _ELEMENT.sub(lambda match: f"{{{match[2]}}}" if match[2] else match[1], name) if "{" in name else name


def _joined(name: Callable[[], str], segment: str) -> Callable[[], str]:
    return lambda: f"{name()}/{segment}"


def _id_of_key(key: str) -> str | None:
    found = find_ids(key)
    return found[0][2].value if len(found) == 1 and found[0][:2] == (0, len(key)) else None


def _json_in(text: str, max_depth: int = MAX_DEPTH) -> Any:
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        try:
            value = decode(text, max_depth)
        except JsonError:
            return None
        return value if isinstance(value, dict | list) else None
    return None
