"""What is known of a tool before it is called, and how its arguments are read off a call.

A registry may hold plain callables, dicts or objects; what they say about the tool (access, resource …) is taken from
them. This module must not call a tool.
"""

import inspect
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from goldentrace.errors import ConfigError, Where
from goldentrace.model.event import Access
from goldentrace.record.injected import injected_parameters


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is recorded. resource, idempotency_key: templates over its arguments, `order:{order_id}`; ignore:
    parameters that are no arguments of the call."""

    name: str
    access: Access | None = None
    resource: str | None = None
    idempotency_key: str | None = None
    is_destructive: bool = False
    ignore: frozenset[str] = frozenset()


def name_of(source: Any) -> str | None:
    """Return the name that a tool gives itself: `name` of a dict or object, `__name__` of a function; None where it
    has none."""
    if isinstance(source, Mapping):
        return _text(source.get("name"))
    function = getattr(source, "__func__", source)
    return _text(getattr(function, "name", None)) or _text(getattr(function, "__name__", None))


def describe_tool(name: str, source: Any, ignore: Collection[str] = (), **said: Any) -> Tool:
    """Return what an entry of a registry says of its tool, by its keys or attributes. Raises: ConfigError.

    said: what was said beside it, which counts first: access, resource, idempotency_key, destructive. MCP's annotations
    count where nothing else is said: readOnlyHint, destructiveHint.
    """

    def stated(key: str) -> Any:
        if said.get(key) is not None:
            return said[key]
        return source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)

    access = stated("access")
    is_destructive = stated("destructive")
    annotations = stated("annotations")
    if annotations is not None and not isinstance(annotations, Mapping):
        annotations = {key: getattr(annotations, key, None) for key in ("readOnlyHint", "destructiveHint")}
    if isinstance(annotations, Mapping):
        if access is None and isinstance(annotations.get("readOnlyHint"), bool):
            access = "read" if annotations["readOnlyHint"] else "write"
        if is_destructive is None and access != "read":
            is_destructive = annotations.get("destructiveHint")
    return make_tool(
        name,
        access=access if access is None or isinstance(access, str) else None,
        resource=_text(stated("resource")),
        idempotency_key=_text(stated("idempotency_key")),
        is_destructive=is_destructive is True,
        ignore=ignore,
    )


def make_tool(
    name: str,
    *,
    access: str | None = None,
    resource: str | None = None,
    idempotency_key: str | None = None,
    is_destructive: bool = False,
    ignore: Collection[str] = (),
) -> Tool:
    """Return a Tool. Raises: ConfigError for another access than read or write, for a template that is none, and for a
    text in place of the names to ignore."""
    if isinstance(ignore, str):
        raise ConfigError(f"ignore of tool {name!r} is a text", next_step=f"write ignore=({ignore!r},)")
    if access not in (None, "read", "write"):
        raise ConfigError(f"access of tool {name!r} is {access!r}", next_step="it is read or write, or left out")
    for template in (resource, idempotency_key):
        if template is not None:
            _parse(template, name)
    return Tool(name, access, resource, idempotency_key, is_destructive, frozenset(ignore))  # type: ignore[arg-type] # checked above


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class Binder:
    """Reads the arguments of calls to one function by its parameters' names.

    Only what was passed counts as an argument (a default is the tool's matter); templates see the defaults too.
    """

    def __init__(self, function: Callable[..., Any], tool: Tool) -> None:
        self._tool = tool
        self._left_out = tool.ignore | injected_parameters(function)
        self._signature: inspect.Signature | None
        try:
            self._signature = inspect.signature(function)
            parameters = list(self._signature.parameters.values())
        except (TypeError, ValueError):  # a builtin that does not say
            self._signature, parameters = None, []
        kinds = {parameter.kind for parameter in parameters}
        self._names = [parameter.name for parameter in parameters]
        self._is_plain = self._signature is not None and kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._known = frozenset(self._names)
        self._is_method = self._names[:1] in (["self"], ["cls"])
        self._defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.default is not inspect.Parameter.empty
        }
        self._resource = self._template(tool.resource, kinds)
        self._key = self._template(tool.idempotency_key, kinds)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name; of one that does not fit the function, what was passed."""
        if self._is_plain and len(args) <= len(self._names) and kwargs.keys() <= self._known:
            bound = dict(zip(self._names, args, strict=False))
            if bound.keys().isdisjoint(kwargs):
                bound.update(kwargs)
                return self._without_self(bound)
        elif self._signature is not None:
            try:
                return self._without_self(self._flat(self._signature.bind(*args, **kwargs).arguments))
            except TypeError:
                pass  # the call itself will fail of it, and that is recorded
        return {"args": list(args), **kwargs} if args else dict(kwargs)

    def recorded(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments without those that the framework or the author's own code filled in."""
        if self._left_out.isdisjoint(arguments):
            return arguments
        return {name: value for name, value in arguments.items() if name not in self._left_out}

    def resource(self, arguments: Mapping[str, Any]) -> str | None:
        """Return what the call touches, None where the tool does not say or an argument is missing."""
        return None if self._resource is None else _fill(self._resource, {**self._defaults, **arguments})

    def idempotency_key(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the call's idempotency key, None where it has none."""
        return None if self._key is None else _fill(self._key, {**self._defaults, **arguments})

    def _flat(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with what went into **kwargs beside the others."""
        assert self._signature is not None
        flat: dict[str, Any] = {}
        for name, value in arguments.items():
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            else:
                flat[name] = value
        return flat

    def _without_self(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._is_method:
            arguments.pop(self._names[0], None)
        return arguments

    def _template(self, text: str | None, kinds: set[Any]) -> list[tuple[str, str | None]] | None:
        if text is None:
            return None
        parts = _parse(text, self._tool.name)
        for _, field in parts:
            name = None if field is None else _head(field)
            is_open = self._signature is None or inspect.Parameter.VAR_KEYWORD in kinds
            if name is not None and name not in self._known and not is_open:
                raise ConfigError(
                    f"tool {self._tool.name!r} has no argument {name!r}",
                    where=Where(text),
                    next_step=f"its arguments are {', '.join(self._names) or 'none'}",
                )
        return parts


def _parse(template: str, tool_name: str) -> list[tuple[str, str | None]]:
    """A template as (literal text, field or None) pairs."""
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise _bad_template(template, tool_name, str(error)) from None
    for _, field, spec, conversion in parsed:
        if spec or conversion or field == "" or (field is not None and not _head(field).isidentifier()):
            raise _bad_template(template, tool_name, "a field is the name of an argument, with .name or [key] below it")
    return [(literal, field) for literal, field, _, _ in parsed]


def _bad_template(template: str, tool_name: str, what: str) -> ConfigError:
    return ConfigError(
        f"not a template of tool {tool_name!r}: {what}",
        where=Where(template),
        next_step="write it like order:{order_id}; a literal brace is doubled",
    )


def _head(field: str) -> str:
    return field.replace("[", ".").partition(".")[0]


def _fill(parts: list[tuple[str, str | None]], arguments: Mapping[str, Any]) -> str | None:
    text = []
    for literal, field in parts:
        text.append(literal)
        if field is not None:
            value = _look_up(arguments, field)
            if value is None:
                return None
            text.append(str(value))
    return "".join(text)


def _look_up(arguments: Mapping[str, Any], field: str) -> Any:
    """`a`, `a.b` or `a[b]`: in a mapping by key, in a list by index, else by attribute; None where there is none."""
    value: Any = arguments
    for part in field.replace("]", "").replace("[", ".").split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list | tuple):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
        else:
            value = getattr(value, part, None) if not part.startswith("_") else None
        if value is None:
            return None
    return value
