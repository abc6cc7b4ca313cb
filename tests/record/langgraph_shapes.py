"""Modules of the shape of LangGraph's and LangChain's, for the agents of docs/record-python.md; `install` puts them in place.

What counts for a recorder is alike: each node and each tool runs in a copy of the context, the calls of one answer run in
threads, and a retry policy runs the whole node again.
"""

import contextvars
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.record.langchain_shapes import tool

START = "start"
State = dict[str, Any]
Node = Callable[[State], State]


def answer(*calls: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(tool_calls=list(calls))


class ChatModel:
    """Asks for two orders, then is done."""

    def __init__(self) -> None:
        self.script = [answer(*({"name": "get_order", "args": {"ref": ref}} for ref in ("A-100", "A-200"))), answer()]

    def bind_tools(self, tools: list[Any]) -> "ChatModel":
        return self

    def invoke(self, messages: list[Any]) -> Any:
        return self.script.pop(0)


class ToolNode:
    def __init__(self, tools: list[Any]) -> None:
        self.tools = {one.name: one for one in tools}

    def __call__(self, state: State) -> State:
        calls = state["messages"][-1].tool_calls
        contexts = [contextvars.copy_context() for _ in calls]
        with ThreadPoolExecutor() as pool:
            return {"messages": list(pool.map(self._run, contexts, calls))}

    def _run(self, context: contextvars.Context, call: dict[str, Any]) -> Any:
        return context.run(self.tools[call["name"]].invoke, call["args"])


class RetryPolicy:
    def __init__(self, retry_on: Callable[[Exception], bool]) -> None:
        self.retry_on = retry_on


class StateGraph:
    """The model's node, then the tools' while it asks for any."""

    def __init__(self, schema: type) -> None:
        self.nodes: dict[str, tuple[Node, RetryPolicy | None]] = {}

    def add_node(self, name: str, node: Node, retry_policy: RetryPolicy | None = None) -> None:
        self.nodes[name] = node, retry_policy

    def add_edge(self, start: str, end: str) -> None:
        pass

    def add_conditional_edges(self, start: str, path: Any) -> None:
        pass

    def compile(self) -> "StateGraph":
        return self

    def invoke(self, state: State) -> State:
        messages = list(state["messages"])
        while True:
            messages += self._run("model", messages)
            if not messages[-1].tool_calls:
                return {"messages": messages}
            messages += self._run("tools", messages)

    def _run(self, name: str, messages: list[Any]) -> list[Any]:
        node, policy = self.nodes[name]
        while True:
            try:
                return list(contextvars.copy_context().run(node, {"messages": messages})["messages"])
            except Exception as error:
                if policy is None or not policy.retry_on(error):
                    raise


def create_agent(model: ChatModel, tools: list[Any], middleware: list[Any]) -> StateGraph:
    (around,) = middleware
    graph = StateGraph(dict)

    def ask(state: State) -> State:
        return {"messages": [around(state, lambda request: model.invoke(request["messages"]))]}

    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    return graph


def get_order(ref: str) -> dict[str, str]:
    return {"id": ref}


def install() -> None:
    """Let the names that the agents import be those of this module."""
    held: dict[str, dict[str, Any]] = {
        "langchain": {}, "langchain.agents": {"create_agent": create_agent},
        "langchain.agents.middleware": {"wrap_model_call": lambda function: function},
        "langchain_core": {}, "langchain_core.tools": {"tool": tool},
        "langgraph": {}, "langgraph.graph": {"START": START, "MessagesState": dict, "StateGraph": StateGraph},
        "langgraph.prebuilt": {"ToolNode": ToolNode, "tools_condition": None},
        "langgraph.types": {"RetryPolicy": RetryPolicy},
        "model": {"llm": ChatModel(), "TOOLS": [tool(get_order)]},
    }  # fmt: skip
    for name, content in held.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module


if __name__ == "__main__":  # python -m tests.record.langgraph_shapes AGENT
    import runpy

    install()
    runpy.run_path(sys.argv[1], run_name="__main__")
