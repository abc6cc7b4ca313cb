"""Values that Python wrote with `str()` where JSON was meant: `{'paid': True}`.

Traceloop writes arguments so, the OpenAI Agents SDK every result of a tool that is no text. Nothing is ever executed.
"""

import ast
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode

MAX_CHARACTERS: Final = 100_000
"""A longer text stays a text: the parser takes some 200 bytes for each character."""


def literal(text: str) -> Any:
    """Return the value of a Python literal that is an object or an array (`{'a': 1}`), None where the text is none.

    A text that is JSON is none: `{"a": 1}` is either, and stays what it was sent as.
    """
    if text[:1] not in ("{", "[") or len(text) > MAX_CHARACTERS:
        return None
    if _is_json_text(text):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return value if isinstance(value, (dict, list)) and _is_json(value) else None


def _is_json_text(text: str) -> bool:
    try:
        decode(text)
    except JsonError:
        return False
    return True


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return value is None or isinstance(value, (str, int, float, bool))
