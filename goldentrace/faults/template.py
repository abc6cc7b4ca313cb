"""Templates of results and effects: JSON with placeholders in its strings.

`{/pointer}` is a value of the arguments; `{new_id}`, `{new_uuid}`, `{n}`, `{key}`, `{now}` are made for the call; `{{`
and `}}` are braces. A string that is one placeholder takes the value with its type. This module must not draw random
numbers or read a clock: what is made is given to it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from goldentrace.model.pointer import segments

_PART: Final = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|[{}]")
MADE: Final = frozenset(("new_id", "new_uuid", "n", "key", "now"))
MISSING: Final = object()


class TemplateError(ValueError):
    """A placeholder that means nothing. at: the path inside the template."""

    def __init__(self, what: str, at: tuple[str | int, ...]) -> None:
        super().__init__(what)
        self.at = at


def check_template(template: Any, at: tuple[str | int, ...] = ()) -> None:
    """Raise TemplateError for the first placeholder that is not known."""
    if isinstance(template, dict):
        for key, value in template.items():
            check_template(value, (*at, key))
    elif isinstance(template, list):
        for number, value in enumerate(template):
            check_template(value, (*at, number))
    elif isinstance(template, str):
        for part in _PART.finditer(template):
            name = part["name"]
            if name is None and part[0] in "{}":
                raise TemplateError(f"a brace by itself in {template!r}", at)
            if name is not None and name not in MADE and not (name == "" or name.startswith("/")):
                raise TemplateError(f"the placeholder {{{name}}} is not known", at)


def fill(template: Any, arguments: Any, made: Mapping[str, Callable[[], Any]]) -> Any:
    """Return the template with every placeholder replaced. made: name (MADE) -> the call's value.

    An argument that is not there is null where it is the whole string, empty text inside one.
    """
    if isinstance(template, dict):
        return {key: fill(value, arguments, made) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, arguments, made) for value in template]
    if not isinstance(template, str) or ("{" not in template and "}" not in template):
        return template
    whole = _PART.fullmatch(template)
    if whole is not None and whole["name"] is not None:
        value = _value(whole["name"], arguments, made)
        return None if value is MISSING else value
    return _PART.sub(lambda part: _text(part, arguments, made), template)


def _text(part: re.Match[str], arguments: Any, made: Mapping[str, Callable[[], Any]]) -> str:
    if part["name"] is None:
        return part[0][0]
    value = _value(part["name"], arguments, made)
    return "" if value is MISSING or value is None else str(value)


def _value(name: str, arguments: Any, made: Mapping[str, Callable[[], Any]]) -> Any:
    return made[name]() if name in made else look_up(arguments, name)


def look_up(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer, MISSING where there is none."""
    for segment in segments(pointer):
        if isinstance(value, dict):
            value = value.get(segment, MISSING)
        elif isinstance(value, list) and segment.isdecimal() and len(segment) < 10 and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return MISSING
    return value


def put(value: Any, pointer: str, item: Any) -> Any:
    """Return a copy of the value with `item` at a JSON Pointer (MISSING removes it); unchanged where the way is
    blocked."""
    parts = segments(pointer)
    if not parts:
        return None if item is MISSING else item
    return _put(value, list(parts), item)


def _put(value: Any, parts: list[str], item: Any) -> Any:
    head, rest = parts[0], parts[1:]
    if isinstance(value, dict):
        if rest:
            return {**value, head: _put(value[head], rest, item)} if head in value else value
        if item is MISSING:
            return {key: kept for key, kept in value.items() if key != head}
        return {**value, head: item}
    if isinstance(value, list) and head.isdecimal() and len(head) < 10 and int(head) < len(value):
        number = int(head)
        if rest:
            return [*value[:number], _put(value[number], rest, item), *value[number + 1 :]]
        return [*value[:number], *([] if item is MISSING else [item]), *value[number + 1 :]]
    return value
