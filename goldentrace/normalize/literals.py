"""Literals: random-looking values that the run was given, so that they are ordinary values and no ids.

An id in a user or system message, or in the scenario's inputs, is a literal unless a result or a call held it before:
an invented id in place of the one in the prompt must be a change. That goes too for what is an id by its key, or by the
folder that it stands in: then it is looked for as a word. This module must not look at arguments.
"""

import re
from collections.abc import Iterator
from typing import Any

from goldentrace.model.event import Message
from goldentrace.model.trace import Trace
from goldentrace.normalize.ids import find_ids, id_values

BY_PLACE = ("key:", "tmp:")
"""Prefixes of the comparable form of what is an id by its key, and of what stands right below the temporary folder."""
_GIVEN_BY = ("user", "system", "developer")
"""Roles whose text the run was given; what the model itself says proves nothing."""


def given_ids(trace: Trace) -> dict[str, int]:
    """Return the ids in messages and in the scenario's inputs -> the index of the event where each first stood
    (-1: input)."""
    first: dict[str, int] = {}
    for index, text in given_texts(trace):
        for _, _, token in find_ids(text):
            first.setdefault(token.value, index)
    return first


def given_texts(trace: Trace) -> Iterator[tuple[int, str]]:
    """Yield what the run was given, each with the index of its event (-1: input)."""
    for text in _strings((trace.start.attributes or {}).get("inputs")):
        yield -1, text
    for index, event in enumerate(trace.events):
        if type(event) is Message and event.role in _GIVEN_BY and event.text is not None:
            yield index, event.text


def literal_ids(trace: Trace, given: dict[str, int], wanted: set[str]) -> frozenset[str]:
    """Return those of the given ids among `wanted` that no result and no call held before they were given."""
    given = given | _given_words(trace, wanted)
    candidates = wanted & given.keys()
    if not candidates:
        return frozenset()
    words = {value: value.partition(":")[2].encode() for value in candidates if value.startswith(BY_PLACE)}
    held: dict[str, int] = {}
    for index, event in enumerate(trace.events):
        raw = bytes(getattr(event, "result", b"") or getattr(event, "args", b""))
        if raw:
            for value in id_values(raw) & candidates:
                held.setdefault(value, index)
            for value, word in words.items():
                if word in raw:
                    held.setdefault(value, index)
    return frozenset(value for value in candidates if given[value] < held.get(value, len(trace.events)))


def _given_words(trace: Trace, wanted: set[str]) -> dict[str, int]:
    """The same of values that are ids by where they stand, not by shape."""
    values = [value for value in wanted if value.startswith(BY_PLACE)]
    if not values:
        return {}
    first: dict[str, int] = {}
    for index, text in given_texts(trace):
        for value in values:
            word = value.partition(":")[2]
            if value not in first and word in text and _is_word(word, text):
                first[value] = index
    return first


def _is_word(word: str, text: str) -> bool:
    return re.search(rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])", text) is not None


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []
