"""Objects of the shape of LangChain's and LangGraph's, which are too heavy for the tests: names, packages, attributes."""

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Context = TypeVar("Context")


def of(package: str) -> Callable[[type], type]:
    """Let a class say that it comes from a package."""

    def place(kind: type) -> type:
        kind.__module__ = package
        return kind

    return place


@of("langchain_core.tools.base")
class BaseTool:
    """Has a name, is not callable; `ainvoke` of one without `_arun` runs `_run`."""

    name: str
    response_format = "content"

    def invoke(self, args: dict[str, Any]) -> Any:
        return self._run(**args)

    async def ainvoke(self, args: dict[str, Any]) -> Any:
        return await self._arun(**args)

    def _run(self, **args: Any) -> Any:
        raise NotImplementedError

    async def _arun(self, **args: Any) -> Any:
        return self._run(**args)


BaseTool._arun.__module__ = BaseTool._run.__module__ = BaseTool.__module__


@of("langchain_core.tools.structured")
class StructuredTool(BaseTool):
    """What `@tool` makes of a function; the signature that it shows the model is the function's."""

    def __init__(self, func: Callable[..., Any]) -> None:
        is_async = inspect.iscoroutinefunction(func)
        self.func, self.coroutine = (None, func) if is_async else (func, None)
        self.name = func.__name__
        self.parameters = list(inspect.signature(func).parameters)

    def _run(self, **args: Any) -> Any:
        assert self.func is not None
        return self.func(**args)

    async def _arun(self, **args: Any) -> Any:
        return self._run(**args) if self.coroutine is None else await self.coroutine(**args)


tool = StructuredTool


@of("langchain_core.runnables.config")
class RunnableConfig(dict[str, Any]):
    pass


@of("langchain_core.callbacks.manager")
class BaseRunManager:
    pass


@of("langchain_core.callbacks.manager")
class CallbackManagerForToolRun(BaseRunManager):
    pass


@of("langchain_core.tools.base")
class InjectedToolArg:
    pass


@of("langchain_core.tools.base")
class InjectedToolCallId(InjectedToolArg):
    pass


@of("langgraph.prebuilt.tool_node")
class InjectedState(InjectedToolArg):
    pass


@of("langgraph.prebuilt.tool_node")
class ToolRuntime(Generic[Context]):
    pass
