"""Tools wrapped so that an equal call is answered from the cache: functions, coroutines, registries of them.

A wrapped tool returns an equal value and raises what the tool raises; nobody shares a mutable result with the cache.
This module must not decide what is kept.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from goldentrace.cache.results import ToolResultCache

CALLABLE_NAMES: Final = ("callable", "func", "function", "fn", "handler", "coroutine")
"""Where objects and dicts of a registry keep the function, as the recorder looks for it."""
_STATED: Final = ("access", "resource", "polling", "idempotent", "destructive")


def describe(entry: Any) -> dict[str, Any]:
    """Return what a registry's entry says of its tool, by its keys or attributes; MCP's annotations count where nothing
    else is said (readOnlyHint, destructiveHint)."""

    def stated(key: str) -> Any:
        return entry.get(key) if isinstance(entry, Mapping) else getattr(entry, key, None)

    found = {name: value for name in _STATED if isinstance(value := stated(name), str | bool)}
    hints = stated("annotations")
    if hints is not None and not isinstance(hints, Mapping):
        hints = {name: getattr(hints, name, None) for name in ("readOnlyHint", "destructiveHint")}
    if isinstance(hints, Mapping):
        if "access" not in found and isinstance(hints.get("readOnlyHint"), bool):
            found["access"] = "read" if hints["readOnlyHint"] else "write"
        if found.get("access") != "read" and isinstance(hints.get("destructiveHint"), bool):
            found.setdefault("destructive", hints["destructiveHint"])
    return found


def wrap_registry(cache: "ToolResultCache", tools: Mapping[str, Any]) -> dict[str, Any]:
    """Return the registry with every tool wrapped; of dicts and objects a shallow copy with the callable replaced.
    Raises: TypeError for an entry without a callable."""
    return {name: _wrap_entry(cache, name, entry) for name, entry in tools.items()}


def _wrap_entry(cache: "ToolResultCache", name: str, entry: Any) -> Any:
    if isinstance(entry, Mapping):
        held = {key: entry[key] for key in CALLABLE_NAMES if callable(entry.get(key))}
        if held:
            return {**entry, **{key: wrap_function(cache, name, function) for key, function in held.items()}}
    elif not inspect.isroutine(entry) and not isinstance(entry, functools.partial | type):
        held = {key: value for key in CALLABLE_NAMES if callable(value := getattr(entry, key, None))}
        if held:
            copied = copy.copy(entry)
            for key, function in held.items():
                object.__setattr__(copied, key, wrap_function(cache, name, function))
            return copied
    if callable(entry):
        return wrap_function(cache, name, entry)
    raise TypeError(f"tool {name!r} is no callable and holds none ({', '.join(CALLABLE_NAMES)})")


def wrap_function(cache: "ToolResultCache", tool_name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the same kind that asks the cache first. Generators are passed on, and never kept."""
    is_plain = inspect.isroutine(function) or isinstance(function, functools.partial | type)
    target: Any = function if is_plain else type(function).__call__  # an object that can be called
    bind = _binder(function)
    if inspect.iscoroutinefunction(target):
        return functools.update_wrapper(_coroutine(cache, tool_name, function, bind), function)
    return functools.update_wrapper(_function(cache, tool_name, function, bind), function)


_Bind = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]


def _function(
    cache: "ToolResultCache", tool_name: str, function: Callable[..., Any], bind: _Bind
) -> Callable[..., Any]:
    def cached(*args: Any, **kwargs: Any) -> Any:
        look = cache.look_up(tool_name, bind(args, kwargs))
        if look.entry is not None:
            return copy_of(look.entry.value)[0]
        try:
            result = function(*args, **kwargs)
        except BaseException:
            cache.drop(look)
            raise
        cache.keep(look, result)
        return result

    return cached


def _coroutine(
    cache: "ToolResultCache", tool_name: str, function: Callable[..., Any], bind: _Bind
) -> Callable[..., Any]:
    async def cached(*args: Any, **kwargs: Any) -> Any:
        look = cache.look_up(tool_name, bind(args, kwargs))
        if look.entry is not None:
            return copy_of(look.entry.value)[0]
        try:
            result = await function(*args, **kwargs)
        except BaseException:
            cache.drop(look)
            raise
        cache.keep(look, result)
        return result

    return cached


def copy_of(value: Any) -> tuple[Any, bool]:
    """Return a deep copy, and whether there is one: a stream, a connection or a coroutine cannot be given twice."""
    if inspect.isawaitable(value) or hasattr(value, "__next__") or hasattr(value, "__anext__"):
        return value, False
    try:
        return copy.deepcopy(value), True
    except (TypeError, ValueError, AttributeError, RecursionError, copy.Error):
        return value, False


def says_error(value: Any) -> bool:
    """Does an answer say that it is an error (`isError` of MCP's CallToolResult, `is_error` of Anthropic's
    tool_result)?"""
    for name in ("isError", "is_error"):
        if (value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)) is True:
            return True
    return False


def _binder(function: Callable[..., Any]) -> _Bind:
    """How the arguments of a call are read: by the names of the parameters, so that f(1) and f(x=1) are one call."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not say
        return _unnamed
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return _unnamed(args, kwargs)  # the call itself will fail of it
        flat: dict[str, Any] = {}
        for name, value in bound.items():
            if kinds[name] is inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            else:
                flat[name] = value
        return flat

    return bind


def _unnamed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"args": list(args), **kwargs} if args else dict(kwargs)
