"""Reading values of a foreign file whose types nobody promised: a wrong type reads as absent, never as an exception."""

from typing import Any, Final

REASONING_PARTS: Final = ("reasoning", "thinking", "redacted_thinking", "thought")
"""Types of content parts that hold hidden reasoning, in any provider's words."""


def as_object(value: Any) -> dict[str, Any]:
    """Return the value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """Return the elements that are objects."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_text(value: Any) -> str | None:
    """Return the value where it is a string that is not empty."""
    return value if isinstance(value, str) and value else None


def as_word(value: Any) -> str:
    """Return a value that is to be looked up (a type, a role, a state): itself where it is a string, else empty."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int | None:
    """Return the value where it is a whole number of at least 0 that a counter can hold (64 bits); 12.0 is 12."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def as_number(value: Any) -> float | None:
    """Return the value where it is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_name(value: Any) -> str | None:
    """Return an id or name: a string as it is, a whole number in decimal, else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value)


def text_of_parts(content: Any) -> str:
    """Return the text of a message's content: a string, or the `text` of its parts, one per line, without reasoning."""
    if isinstance(content, str):
        return content
    pieces = [part if isinstance(part, str) else _text_of(as_object(part)) for part in as_list(content)]
    return "\n".join(piece for piece in pieces if isinstance(piece, str))


def _text_of(part: dict[str, Any]) -> Any:
    return None if part.get("type") in REASONING_PARTS else part.get("text")
