"""Values that can name their source: what a result supplied, what a call used.

A value counts if it is unlikely to be shared by chance: a number from 100 on, a text of at least four characters with a
digit in it, or an id. Must not judge.
"""

import re
from collections.abc import Iterator
from typing import Any

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.event import Message
from goldentrace.normalize.ids import find_ids
from goldentrace.normalize.payloads import telling_scalars

_WORD = re.compile(r"[\w.@:/#-]*\w")
_HAS_DIGIT = re.compile(r"\d")
_LEAST_NUMBER = 100
_LEAST_CHARACTERS = 4
_LONGEST = 200
"""A text longer than this is prose, no name of anything."""


def values_in(raw: Any) -> set[Any]:
    """Return the values in a JSON document (as bytes or Raw) that can name their source; empty for no document."""
    data = bytes(raw)
    if not data:
        return set()
    try:
        value = decode(data)
    except JsonError:
        return set()
    return set(_values(value))


def _values(value: Any) -> Iterator[Any]:
    for kind, scalar in telling_scalars(value):
        if kind is str:
            if _LEAST_CHARACTERS <= len(scalar) <= _LONGEST and _HAS_DIGIT.search(scalar):
                yield scalar
            for _, _, token in find_ids(scalar):
                yield token.text
        elif abs(scalar) >= _LEAST_NUMBER:
            yield str(scalar)


def words_in(message: Message) -> set[str]:
    """Return the words of a message, as values are compared."""
    return set(_WORD.findall(message.text or ""))
