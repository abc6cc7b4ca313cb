"""Lone surrogates: halves of a character that JSON can escape and UTF-8 has no form for.

Arguments, results and effects keep theirs, as escapes; in every other text, which is shown and written, they are
replaced. This module must not know what an event is.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.codec.yaml_document import show_pointer
from goldentrace.model.pointer import escape

_LISTED: Final = 3
"""Places that one note names."""


def readable(value: Any) -> Any:
    """Return a JSON value with its lone surrogates replaced, in keys too."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {readable(key): readable(item) for key, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, list) else value


def listed_places(value: Any) -> str:
    """Return where in a JSON value lone surrogates stand, for a note (`$.text, $.extra.a[0]`); empty for nowhere."""
    places = list(_places(value, ""))
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return ", ".join(map(show_pointer, places[:_LISTED])) + more


def _places(value: Any, pointer: str) -> Iterator[str]:
    """Yield the pointer of every text with a lone surrogate in it, in order; of a key, the one that it names."""
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{pointer}/{escape(readable(key))}"
            if readable(key) != key:
                yield place
            yield from _places(item, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places(item, f"{pointer}/{number}")
    elif isinstance(value, str) and readable(value) != value:
        yield pointer
