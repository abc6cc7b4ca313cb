"""When two calls ask for the same, and what a template over arguments stands for. Must not know what follows."""

import re
from functools import lru_cache
from typing import Any, Final

from goldentrace.model import pointer as pointers
from goldentrace.model.profile import Profile

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number as JSON writes it (RFC 8259, section 6): `007` is a code, not seven."""
_NUMBER_BEGINS: Final = "-0123456789"
_MAX_NUMERIC: Final = 300
_KEY_NAME: Final = re.compile(r"(?:x[-_])?(?:idempotency|idempotent|idem)[-_]?(?:key|token|id)", re.IGNORECASE)
_FIELD: Final = re.compile(r"\{([^{}]*)\}")


def semantic(value: Any) -> Any:
    """Return a value in which numeric strings are numbers and strings are trimmed; case is not folded."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] not in _NUMBER_BEGINS or len(text) > _MAX_NUMERIC or _NUMBER.fullmatch(text) is None:
            return text
        try:
            return int(text)
        except ValueError:
            number = float(text)
            return text if number in (float("inf"), float("-inf")) else number
    if isinstance(value, dict):
        return {key: semantic(item) for key, item in value.items()}
    if isinstance(value, list):
        return [semantic(item) for item in value]
    return value


def without_ignored(value: Any, profile: Profile, tool_name: str) -> Any:
    """Return arguments without the leaves that the profile ignores for a tool."""
    globs = (*profile.arguments.ignore, *profile.tool(tool_name).ignore)
    return value if not globs else _kept(value, "", pointers.compile_globs(globs))


def _kept(value: Any, pointer: str, ignored: re.Pattern[str] | None) -> Any:
    if isinstance(value, dict):
        places = {key: f"{pointer}/{pointers.escape(key)}" for key in value}
        return {
            key: _kept(item, places[key], ignored)
            for key, item in value.items()
            if not pointers.is_matched(ignored, places[key])
        }
    if isinstance(value, list):
        return [_kept(item, f"{pointer}/{n}", ignored) for n, item in enumerate(value)]
    return value


@lru_cache(maxsize=4096)
def is_key_name(name: str) -> bool:
    """Does an argument of this name hold an idempotency key?"""
    return _KEY_NAME.fullmatch(name) is not None


def fill(template: str, arguments: Any) -> str | None:
    """Return a template such as `order:{order_id}` with the arguments put in; a field is a name or a JSON Pointer. None
    where one of them is missing."""
    parts: list[str] = []
    done = 0
    for match in _FIELD.finditer(template):
        value = value_at(arguments, match[1])
        if value is None or isinstance(value, dict | list):
            return None
        parts += (template[done : match.start()], str(value).strip())
        done = match.end()
    return "".join((*parts, template[done:]))


def value_at(value: Any, place: str) -> Any:
    """Return what stands at a name or JSON Pointer of a value, None where nothing does."""
    for key in pointers.segments(place) if place.startswith("/") else (place,):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
