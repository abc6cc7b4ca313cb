"""Which parameters of a tool its framework fills: what the model did not pass is no argument of its call.

LangChain and LangGraph hand a tool the run's configuration, state, store, call id and callbacks by the type of a
parameter. Such a type is known by its name and its package's, so that neither is imported. This module must not call a
tool.
"""

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Union, get_args, get_origin

_PACKAGES: Final = ("langchain", "langgraph")
_TYPES: Final = frozenset({
    "BaseCallbackManager", "BaseRunManager", "InjectedToolArg", "RunnableConfig", "Runtime", "ToolRuntime",
    "_DirectlyInjectedToolArg",
})  # fmt: skip
"""Bases of what `langchain_core.tools` and `langgraph.prebuilt` inject: InjectedState, InjectedStore and
InjectedToolCallId are InjectedToolArg."""


def injected_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters that a framework fills; none where the annotations cannot be resolved."""
    try:
        parameters = inspect.signature(function).parameters.values()
        if any(isinstance(parameter.annotation, str) for parameter in parameters):
            parameters = inspect.signature(function, eval_str=True).parameters.values()
    except Exception:  # noqa: BLE001 - whatever an annotation's text does when it is evaluated
        return frozenset()
    return frozenset(
        parameter.name for parameter in parameters if any(map(_is_injected, _types_in(parameter.annotation)))
    )


def _types_in(annotation: Any) -> Iterator[type]:
    """The classes that an annotation names: of a union each, of Annotated also what stands beside the type."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        yield from _types_in(inner)
        yield from (mark if isinstance(mark, type) else type(mark) for mark in marks)
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _types_in(member)
    elif isinstance(kind := origin or annotation, type):
        yield kind


def _is_injected(kind: type) -> bool:
    return any(base.__name__ in _TYPES and base.__module__.startswith(_PACKAGES) for base in kind.__mro__)
