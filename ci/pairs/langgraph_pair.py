"""One run of LangGraph: the messages of its last state, and the runs that the client of LangSmith posts."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.tracers import LangChainTracer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langsmith import Client
from scene import FAILURE, PROMPT, Ledger, Script

BATCHES: Final = {
    "use_multipart_endpoint": False, "size_limit": 100, "size_limit_bytes": 20_000_000, "scale_up_nthreads_limit": 1,
    "scale_up_qsize_trigger": 1000, "scale_down_nempty_trigger": 4,
}  # fmt: skip
"""What the service says about itself; without the multipart form, a batch is one JSON object."""


class ScriptedModel(BaseChatModel):
    """A chat model that gives the responses of the script; tools may be bound to it."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_settings: Any) -> Any:
        """Take note of the tools as a real model does."""
        return self.bind(tools=[tool.name for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_settings: Any) -> ChatResult:
        given = self.script.next()
        calls = [{"name": call.tool_name, "args": call.args, "id": call.call_id} for call in given.calls]
        usage = {"input_tokens": 10 * len(messages), "output_tokens": 5, "total_tokens": 10 * len(messages) + 5}
        about = {"model_name": "scripted", "finish_reason": "tool_calls" if calls else "stop"}
        said = AIMessage(given.text, tool_calls=calls, usage_metadata=usage, response_metadata=about)
        return ChatResult(generations=[ChatGeneration(message=said)])


async def make_langgraph(folder: Path) -> None:
    """Write messages.json and runs.jsonl, one posted batch a line."""
    tools = [StructuredTool.from_function(coroutine=tool) for tool in Ledger(ValueError(FAILURE)).tools]
    model = ScriptedModel(script=Script()).bind_tools(tools)

    async def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    with _collector() as (address, posted):
        client = Client(api_url=address, api_key="none", auto_batch_tracing=True)
        tracer = LangChainTracer(client=client, project_name="pairs")
        state = await graph.compile().ainvoke(
            {"messages": [{"role": "user", "content": PROMPT}]}, config={"callbacks": [tracer]}
        )
        tracer.wait_for_futures()
        client.flush()
        client.cleanup()
    lines = "".join(json.dumps(batch, ensure_ascii=False) + "\n" for batch in posted)
    (folder / "runs.jsonl").write_text(lines, encoding="utf-8")
    messages = json.dumps(messages_to_dict(state["messages"]), ensure_ascii=False, indent=1)
    (folder / "messages.json").write_text(messages + "\n", encoding="utf-8")


@contextmanager
def _collector() -> Iterator[tuple[str, list[Any]]]:
    """A server on the loopback address that keeps the batches of runs it is posted; gives its address and the list."""
    posted: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"version": "0", "batch_ingest_config": BATCHES})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append(json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body))
            self._answer({})

        def _answer(self, value: dict[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_message: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", posted
    finally:
        server.shutdown()
        server.server_close()
