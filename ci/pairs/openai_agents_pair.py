"""Two runs of the OpenAI Agents SDK, one with each of its models, since they write other spans.

Kept are what its trace processors get and the items of `to_input_list()`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_trace_processors,
)
from agents.tracing import Span, Trace, TracingProcessor
from openai import AsyncOpenAI
from scene import FAILURE, PROMPT, Ledger, Response, Script


class Keep(TracingProcessor):
    """Keeps what a processor is given, in the order in which it ends."""

    def __init__(self) -> None:
        self.exported: list[Any] = []

    def on_trace_start(self, trace: Trace) -> None:
        self.exported.append(trace.export())

    def on_span_end(self, span: Span[Any]) -> None:
        self.exported.append(span.export())

    def on_trace_end(self, trace: Trace) -> None: ...

    def on_span_start(self, span: Span[Any]) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


async def make_openai_agents(folder: Path) -> None:
    """Write the run with the model of the Responses API, whose spans name responses."""
    await _make(folder, OpenAIResponsesModel, _response)


async def make_openai_agents_chat(folder: Path) -> None:
    """Write the run with the model of Chat Completions, whose spans hold messages."""
    await _make(folder, OpenAIChatCompletionsModel, _completion)


async def _make(
    folder: Path, model: Callable[[str, AsyncOpenAI], Model], answer: Callable[[Response, int], dict[str, Any]]
) -> None:
    """Write trace.jsonl and input_list.json. The SDK's own model talks to a transport that is a function."""
    script, keep = Script(), Keep()
    set_trace_processors([keep])

    def respond(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=answer(script.next(), script.given))

    client = AsyncOpenAI(api_key="none", http_client=httpx.AsyncClient(transport=httpx.MockTransport(respond)))
    tools = [function_tool(tool) for tool in Ledger(ValueError(FAILURE)).tools]
    result = await Runner.run(Agent(name="Clerk", model=model("scripted", client), tools=tools), PROMPT)
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in keep.exported)
    (folder / "trace.jsonl").write_text(lines, encoding="utf-8")
    items = json.dumps(result.to_input_list(), ensure_ascii=False, indent=1)
    (folder / "input_list.json").write_text(items + "\n", encoding="utf-8")


def _response(given: Response, number: int) -> dict[str, Any]:
    """A response of the Responses API."""
    output: list[dict[str, Any]] = [
        {
            "type": "function_call", "id": f"fc_{call.call_id}", "call_id": call.call_id, "name": call.tool_name,
            "arguments": json.dumps(call.args, ensure_ascii=False), "status": "completed",
        }
        for call in given.calls
    ]  # fmt: skip
    if given.text:
        content = [{"type": "output_text", "text": given.text, "annotations": []}]
        output.append(
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
        )
    usage = {
        "input_tokens": 10 * number, "output_tokens": 5, "total_tokens": 10 * number + 5,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 0, "model": "scripted", "status": "completed",
        "output": output, "usage": usage, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True,
    }  # fmt: skip


def _completion(given: Response, number: int) -> dict[str, Any]:
    """A completion of the Chat Completions API."""
    calls = [
        {
            "id": call.call_id, "type": "function",
            "function": {"name": call.tool_name, "arguments": json.dumps(call.args, ensure_ascii=False)},
        }
        for call in given.calls
    ]  # fmt: skip
    message = {"role": "assistant", "content": given.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message, "logprobs": None}
    usage = {"prompt_tokens": 10 * number, "completion_tokens": 5, "total_tokens": 10 * number + 5}
    return {
        "id": f"chatcmpl_{number}", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [choice], "usage": usage,
    }  # fmt: skip
