"""LangChain, pydantic-ai and the Vercel AI SDK: one run in each encoding, and what their fields mean."""

import json
from typing import Any

import pytest

from goldentrace.model.event import Approval
from goldentrace.sources.coverage import coverage_table
from tests.sources.reading import calls, read_one, results, said, shape, turns

USAGE = {"input_tokens": 10, "output_tokens": 5, "input_token_details": {"cache_read": 2}}
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "human", "content": "where?"},
    {
        "type": "ai", "content": "checking", "usage_metadata": USAGE,
        "response_metadata": {"finish_reason": "tool_calls", "model_name": "gpt-x"},
        "tool_calls": [{"name": "lookup", "args": {"id": n}, "id": f"c{n}", "type": "tool_call"} for n in (1, 2)],
        "invalid_tool_calls": [{"name": "ship", "args": '{"n": ', "id": "c3", "error": "cut off"}],
    },
    {"type": "tool", "content": "A", "tool_call_id": "c1", "name": "lookup", "status": "success"},
    {"type": "tool", "content": "no such order", "tool_call_id": "c2", "name": "lookup", "status": "error"},
    {"type": "ai", "content": "done"},
]  # fmt: skip


def dumped(message: dict[str, Any]) -> dict[str, Any]:
    name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[message["type"]]
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": message}


@pytest.mark.parametrize(
    "file",
    [LANGCHAIN, [{"type": each["type"], "data": each} for each in LANGCHAIN], [dumped(each) for each in LANGCHAIN], {"messages": LANGCHAIN}, tuple(LANGCHAIN), [{k: v for k, v in dumped(each).items() if k != "lc"} for each in LANGCHAIN]],
    ids=["model_dump", "messages_to_dict", "dumpd", "state", "lines", "without lc"],
)
def test_the_encodings_of_langchain_are_one_run(file: Any) -> None:
    trace = read_one(file)
    assert trace.format == "langchain"
    assert shape(trace) == [
        "message", "model_turn", "message", "tool_call c1", "tool_call c2", "tool_call c3", "tool_result c1", "tool_result c2",
        "model_turn", "message", "tool_result c3",
    ]  # fmt: skip
    assert calls(trace) == [("lookup", {"id": 1}), ("lookup", {"id": 2}), ("ship", None)]
    assert [(status, value) for _, status, value in results(trace)] == [("ok", "A"), ("error", "no such order"), ("unfinished", None)]
    first = turns(trace)[0]
    assert first.usage is not None
    assert (first.model, first.finish_reason, first.usage.cached_tokens) == ("gpt-x", "tool_calls", 2)


def test_older_langchain_dumps_have_the_providers_list_only() -> None:
    raw = {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"a":1}'}}]}
    trace = read_one([{"type": "human", "content": "hi"}, {"type": "ai", "content": "", "additional_kwargs": raw}])
    assert calls(trace) == [("t", {"a": 1})]


def test_blocks_in_langchain_content_are_not_counted_twice() -> None:
    content = [{"type": "thinking", "thinking": "SECRET"}, {"type": "text", "text": "ok"}, {"type": "tool_use", "id": "c", "name": "t", "input": {}}]
    trace = read_one([{"type": "ai", "content": content, "tool_calls": [{"name": "t", "args": {}, "id": "c"}]}])
    assert calls(trace) == [("t", {})]
    assert "SECRET" not in repr(trace.events)


PYDANTIC = [
    {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "be kind"}, {"part_kind": "user-prompt", "content": "where?", "timestamp": "2026-01-01T10:00:00Z"}]},
    {
        "kind": "response", "model_name": "m", "timestamp": "2026-01-01T10:00:01Z", "usage": {"input_tokens": 51, "output_tokens": 11, "cache_read_tokens": 0},
        "parts": [
            {"part_kind": "thinking", "content": "SECRET"}, {"part_kind": "text", "content": "checking"},
            {"part_kind": "tool-call", "tool_name": "lookup", "args": {"id": 1}, "tool_call_id": "c1"},
            {"part_kind": "tool-call", "tool_name": "lookup", "args": '{"id": 2}', "tool_call_id": "c2"},
            {"part_kind": "tool-call", "tool_name": "now", "args": None, "tool_call_id": "c3"},
        ],
    },
    {"kind": "request", "parts": [
        {"part_kind": "tool-return", "tool_name": "lookup", "content": {"ok": True}, "tool_call_id": "c1", "timestamp": "2026-01-01T10:00:02Z", "outcome": "success"},
        {"part_kind": "tool-return", "tool_name": "lookup", "content": "503", "tool_call_id": "c2", "outcome": "retried", "retry": {"cause": "model_retry", "attempt": 1}},
        {"part_kind": "retry-prompt", "tool_name": "now", "content": [{"type": "missing", "loc": ["zone"]}], "tool_call_id": "c3"},
    ]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "done"}]},
]  # fmt: skip


def test_pydantic_ai_parts_become_calls_and_results_with_times() -> None:
    trace = read_one(PYDANTIC)
    assert trace.format == "pydantic-ai"
    assert calls(trace) == [("lookup", {"id": 1}), ("lookup", {"id": 2}), ("now", {})]
    assert [(result.status, result.error_class) for result in trace.results()] == [("ok", None), ("error", "tool_error"), ("error", "schema")]
    assert trace.calls()[0].ts == "2026-01-01T10:00:01.000000Z"
    assert trace.results()[0].ts == "2026-01-01T10:00:02.000000Z"
    assert "times" not in trace.coverage
    assert trace.results()[1].extra == {"retry": {"cause": "model_retry", "attempt": 1}, "message_index": 2}
    assert "SECRET" not in repr(trace.events)
    assert coverage_table(trace).batches == 1


def test_a_retry_prompt_without_a_tool_is_a_word_of_the_user() -> None:
    trace = read_one([*PYDANTIC[:1], {"kind": "request", "parts": [{"part_kind": "retry-prompt", "content": "answer in JSON"}]}])
    assert said(trace)[-1] == ("user", "answer in JSON")


def test_a_denied_pydantic_call_is_denied() -> None:
    denied = {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "now", "content": "no", "tool_call_id": "c3", "outcome": "denied"}]}
    assert results(read_one([*PYDANTIC[:2], denied]))[0] == ("c3", "denied", "no")


def ui(kind: str, call_id: str, state: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "toolCallId": call_id, "state": state, "input": {"n": call_id}} | more


def test_the_states_of_a_ui_part_say_what_there_is() -> None:
    parts = [
        {"type": "step-start"}, {"type": "reasoning", "text": "SECRET"}, {"type": "text", "text": "checking"},
        ui("tool-lookup", "a", "output-available", output={"ok": 1}), ui("dynamic-tool", "b", "output-error", toolName="ship", errorText="down"),
        ui("tool-pay", "c", "output-denied", approval={"id": "p", "approved": False, "reason": "no"}),
        {"type": "step-start"}, ui("tool-x", "d", "input-available"), ui("tool-x", "e", "input-streaming"), ui("tool-x", "f", "approval-requested"),
        ui("tool-x", "g", "output-available", output="half", preliminary=True), ui("tool-s", "h", "output-available", output=1, providerExecuted=True),
    ]  # fmt: skip
    trace = read_one([{"id": "1", "role": "user", "parts": [{"type": "text", "text": "go"}]}, {"id": "2", "role": "assistant", "parts": parts}])
    assert trace.format == "vercel-ui"
    assert [name for name, _ in calls(trace)] == ["lookup", "ship", "pay", "x", "x", "x", "x", "s"]
    assert results(trace) == [
        ("a", "ok", {"ok": 1}), ("b", "error", "down"), ("c", "denied", "no"), ("h", "ok", 1),
        ("d", "unfinished", None), ("e", "unfinished", None), ("f", "unfinished", None), ("g", "unfinished", None),
    ]  # fmt: skip
    assert [call.turn for call in trace.calls()] == [1, 1, 1, 2, 2, 2, 2, 2]
    assert [event.verdict for event in trace.events if isinstance(event, Approval)] == ["denied"]
    assert coverage_table(trace).batches == 2
    assert "SECRET" not in repr(trace.events)


def test_ai_sdk_4_kept_invocations_beside_the_text() -> None:
    old = {"toolCallId": "a", "toolName": "lookup", "args": {"id": 1}, "state": "result", "result": "A"}
    for message in ({"toolInvocations": [old]}, {"parts": [{"type": "tool-invocation", "toolInvocation": old}]}):
        trace = read_one([{"role": "user", "content": "go", "parts": []}, {"role": "assistant", "content": "", **message}], "vercel-ui")
        assert calls(trace) == [("lookup", {"id": 1})]
        assert results(trace) == [("a", "ok", "A")]


def test_model_messages_of_the_ai_sdk() -> None:
    def asked(call_id: str, **more: Any) -> dict[str, Any]:
        return {"type": "tool-call", "toolCallId": call_id, "toolName": "t", "input": {}} | more

    def told(call_id: str, **more: Any) -> dict[str, Any]:
        return {"type": "tool-result", "toolCallId": call_id, "toolName": "t"} | more

    trace = read_one([
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}, *(asked(c) for c in "abcd"), asked("s", providerExecuted=True), told("s", output={"type": "json", "value": [1]})]},
        {"role": "tool", "content": [
            told("a", output={"type": "text", "value": "A"}), told("b", output={"type": "error-text", "value": "B"}),
            told("c", output={"type": "execution-denied", "reason": "no"}), told("d", result="old", isError=True),
        ]},
    ])  # fmt: skip
    assert trace.format == "ai-sdk"
    assert results(trace) == [("s", "ok", [1]), ("a", "ok", "A"), ("b", "error", "B"), ("c", "denied", "no"), ("d", "error", "old")]


STREAM = [
    {"type": "start"}, {"type": "start-step"}, {"type": "text-delta", "id": "1", "text": "let "}, {"type": "text-delta", "id": "1", "text": "me"},
    {"type": "tool-call", "toolCallId": "a", "toolName": "t", "input": {"n": 1}}, {"type": "tool-call", "toolCallId": "b", "toolName": "t", "input": {"n": 2}},
    {"type": "tool-error", "toolCallId": "b", "toolName": "t", "error": "boom"}, {"type": "tool-result", "toolCallId": "a", "toolName": "t", "output": "A"},
    {"type": "finish-step", "finishReason": "tool-calls", "usage": {"inputTokens": 3, "outputTokens": 4}},
    {"type": "start-step"}, {"type": "text-delta", "text": "done"}, {"type": "finish-step", "finishReason": "stop"}, {"type": "finish"},
]  # fmt: skip
UI_STREAM = [
    {"type": "start-step"}, {"type": "tool-input-start", "toolCallId": "a", "toolName": "t"}, {"type": "tool-input-delta", "toolCallId": "a", "inputTextDelta": "{"},
    {"type": "tool-input-available", "toolCallId": "a", "toolName": "t", "input": {"n": 1}}, {"type": "tool-input-available", "toolCallId": "b", "toolName": "t", "input": {"n": 2}},
    {"type": "tool-output-error", "toolCallId": "b", "errorText": "boom"}, {"type": "tool-output-available", "toolCallId": "a", "output": "A"}, {"type": "finish-step"},
]  # fmt: skip


@pytest.mark.parametrize(
    "file", [STREAM, tuple(STREAM), UI_STREAM, "".join(f"data: {json.dumps(part)}\n\n" for part in UI_STREAM) + "data: [DONE]\n\n"], ids=["list", "lines", "ui", "sse"]
)
def test_the_parts_of_a_stream_are_put_together_by_step(file: Any) -> None:
    trace = read_one(file)
    assert trace.format == "ai-sdk"
    assert calls(trace) == [("t", {"n": 1}), ("t", {"n": 2})]
    assert results(trace) == [("b", "error", "boom"), ("a", "ok", "A")]
    assert coverage_table(trace).batches == 1


def test_a_step_of_a_stream_has_its_reason_and_usage() -> None:
    trace = read_one(STREAM)
    assert [turn.finish_reason for turn in turns(trace)] == ["tool-calls", "stop"]
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3, 4)
    assert said(trace) == [("assistant", "let me"), ("assistant", "done")]
