"""Literals: random-looking values that the run was given, so that they are ordinary values and no ids.

An id in a user or system message, or in the scenario's inputs, is a literal unless a result held it before: an
invented id in place of the one in the prompt must be a change. This module must not look at arguments.
"""

from typing import Any

from goldentrace.model.event import Message
from goldentrace.model.trace import Trace
from goldentrace.normalize.ids import find_ids, id_values

_GIVEN_BY = ("user", "system", "developer")
"""Roles whose text the run was given; what the model itself says proves nothing."""


def given_ids(trace: Trace) -> dict[str, int]:
    """Return the ids in messages and in the scenario's inputs -> the index of the event where each first stood
    (-1: input)."""
    first: dict[str, int] = {}
    for text in _strings((trace.start.attributes or {}).get("inputs")):
        for _, _, token in find_ids(text):
            first.setdefault(token.value, -1)
    for index, event in enumerate(trace.events):
        if type(event) is Message and event.role in _GIVEN_BY and event.text is not None:
            for _, _, token in find_ids(event.text):
                first.setdefault(token.value, index)
    return first


def literal_ids(trace: Trace, given: dict[str, int], wanted: set[str]) -> frozenset[str]:
    """Return those of the given ids among `wanted` that no result held before they were given."""
    candidates = wanted & given.keys()
    if not candidates:
        return frozenset()
    held: dict[str, int] = {}
    for index, event in enumerate(trace.events):
        result = getattr(event, "result", None)
        if result is not None and bytes(result):
            for value in id_values(bytes(result)) & candidates:
                held.setdefault(value, index)
    return frozenset(value for value in candidates if given[value] < held.get(value, len(trace.events)))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []
