"""Finds, in the arguments of a recorded run, the values that an earlier result gave, and writes references in their
place.

A replay meets new ids: a call that repeats the recorded ones would name orders that do not exist. What the user or
the system prompt named stays as it is. Only ids are looked for (by shape, or under a key that says so): a currency or
a flag that stands in a result as well is no sign of where it came from. This module must not know traces."""

import re
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.pointer import escape
from goldentrace.normalize.ids import find_ids

ID_KEY: Final = re.compile(
    r"(?:^|_)(?:ids?|keys?|refs?|tokens?|cursors?|uuids?|handles?)$|[a-z](?:Ids?|Keys?|Refs?|Tokens?|Cursors?)$"
)
"""Key names that say that their value is an id, in snake and in camel case."""
_PLACE: Final = re.compile(r"/[^<>]*")


class Provenance:
    """The ids of the results so far, each with the reference to the first result that held it."""

    def __init__(self) -> None:
        self._references: dict[str | int, str] = {}
        self._said = ""

    def add_text(self, text: str) -> None:
        """Take a text of the user or the system: what it names is nobody's result."""
        self._said += "\n" + text

    def add_result(self, label: str, result: Any) -> None:
        """Take a result. label: `tool#n`; result: its JSON value, or a text that may hold JSON."""
        value = result
        if isinstance(result, str):
            try:
                value = decode(result)
            except JsonError:
                return
        found: dict[str | int, str] = {}
        for pointer, key, leaf in sorted(_leaves(value, "", ""), key=lambda leaf: (len(leaf[0]), leaf[0])):
            if _PLACE.fullmatch(pointer) and _is_id(leaf, key):
                found.setdefault(leaf, f"<{label}{pointer}>")
        for leaf, reference in found.items():
            self._references.setdefault(leaf, reference)

    def refer(self, value: Any, key: str = "") -> Any:
        """Return a JSON value with the known ids in it replaced by references."""
        if isinstance(value, dict):
            return {name: self.refer(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.refer(item, key) for item in value]
        if isinstance(value, str):
            return self._refer_text(value, key)
        if isinstance(value, int) and not isinstance(value, bool) and ID_KEY.search(key):
            return self._references.get(value, value) if str(value) not in self._said else value
        return value

    def _refer_text(self, text: str, key: str) -> str:
        if _is_id(text, key) and (known := self._known(text)):
            return known
        parts: list[str] = []
        done = 0
        for start, end, _ in find_ids(text):
            parts += [text[done:start], self._known(text[start:end]) or text[start:end]]
            done = end
        return "".join([*parts, text[done:]])

    def _known(self, text: str) -> str | None:
        return None if text in self._said else self._references.get(text)


def _leaves(value: Any, pointer: str, key: str) -> list[tuple[str, str, Any]]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in _leaves(item, f"{pointer}/{escape(name)}", name)]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, f"{pointer}/{index}", key)]
    return [(pointer, key, value)]


def _is_id(leaf: Any, key: str) -> bool:
    if isinstance(leaf, str):
        spans = find_ids(leaf)
        is_whole = len(spans) == 1 and spans[0][:2] == (0, len(leaf))
        return is_whole or (len(leaf) >= 3 and ID_KEY.search(key) is not None)
    return isinstance(leaf, int) and not isinstance(leaf, bool) and ID_KEY.search(key) is not None
