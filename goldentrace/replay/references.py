"""References in scripted arguments and texts: `<get_order#1/id>` is a value of the first get_order's result.

The notation is that of placeholders in goldens. A text that is one reference becomes the value itself, whatever its
type; inside a longer text it becomes the value's text. This module must not know where results come from."""

import re
from collections.abc import Callable
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode, encode
from goldentrace.model.pointer import segments

REFERENCE: Final = re.compile(r"<(?P<tool>[^<>#/\s]+)#(?P<number>[1-9][0-9]{0,5})(?P<pointer>(?:/[^<>]*)?)>")
Lookup = Callable[[str, int], str]
"""The text of the n-th result of a tool, n from 1. Raises: ReferenceMissingError."""


class ReferenceMissingError(LookupError):
    """A reference has nothing to stand for. The message is one clause."""


def holds_reference(value: Any) -> bool:
    """Whether any text in a JSON value looks like a reference."""
    if isinstance(value, str):
        return REFERENCE.search(value) is not None
    if isinstance(value, dict):
        return any(holds_reference(key) or holds_reference(item) for key, item in value.items())
    return isinstance(value, list) and any(holds_reference(item) for item in value)


def resolve(value: Any, lookup: Lookup) -> Any:
    """Return a JSON value with its references replaced; keys are left as they are.

    Raises: ReferenceMissingError where a result or a place in it is not there.
    """
    if isinstance(value, str):
        return _resolve_text(value, lookup)
    if isinstance(value, dict):
        return {key: resolve(item, lookup) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, lookup) for item in value]
    return value


def resolve_text(text: str, lookup: Lookup) -> str:
    """Return a text with its references replaced by the text of their values. Raises: as resolve."""
    return REFERENCE.sub(lambda found: _as_text(_value_of(found, lookup)), text)


def _resolve_text(text: str, lookup: Lookup) -> Any:
    whole = REFERENCE.fullmatch(text)
    return _value_of(whole, lookup) if whole else resolve_text(text, lookup)


def _value_of(found: re.Match[str], lookup: Lookup) -> Any:
    text = lookup(found["tool"], int(found["number"]))
    if not found["pointer"]:
        return text
    try:
        value = decode(text)
    except JsonError:
        raise ReferenceMissingError(f"{found[0]}: the result is no JSON") from None
    for key in segments(found["pointer"]):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise ReferenceMissingError(f"{found[0]}: the result has no such place")
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode("utf-8", "surrogatepass")
