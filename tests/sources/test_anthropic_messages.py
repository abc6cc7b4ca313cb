"""Anthropic Messages: blocks, results in user messages, tools that Anthropic runs, streams."""

import json
from typing import Any

import pytest

from goldentrace.sources.coverage import coverage_table
from tests.sources.reading import calls, read_one, results, said, shape, turns

USER = {"role": "user", "content": "where is A1?"}


def use(call_id: str, tool: str = "lookup", given: Any = None, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": tool, "input": {} if given is None else given}


def answer(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | more


def model(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def reply(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 7}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": list(blocks), "stop_reason": "tool_use", "usage": usage} | more


def test_results_of_a_batch_stand_in_one_user_message() -> None:
    trace = read_one([USER, model(words("let me see"), use("a", given={"id": "A1"}), use("b")), user(answer("b", "B"), answer("a", [words("A")]), words("and?")), model(words("done"))])
    assert shape(trace) == [
        "message", "model_turn", "message", "tool_call a", "tool_call b", "tool_result b", "tool_result a", "message",
        "model_turn", "message",
    ]  # fmt: skip
    assert results(trace) == [("b", "ok", "B"), ("a", "ok", "A")]
    assert said(trace)[-2:] == [("user", "and?"), ("assistant", "done")]
    assert coverage_table(trace).batches == 1
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


def test_is_error_states_failure() -> None:
    trace = read_one([USER, model(use("a"), use("b"), use("c")), user(answer("a", "x", is_error=True), answer("b", "Error: x", is_error=False), answer("c", "Error: x"))])
    assert [(name, status) for name, status, _ in results(trace)] == [("a", "error"), ("b", "ok"), ("c", "ok")]


def test_thinking_never_enters() -> None:
    thought = {"type": "thinking", "thinking": "SECRET", "signature": "SECRET"}
    trace = read_one([USER, model(thought, {"type": "redacted_thinking", "data": "SECRET"}, use("a")), user(answer("a"))])
    assert "SECRET" not in repr(trace.events)


def test_tools_that_anthropic_runs_answer_in_the_same_message() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]}
    refused = {"type": "web_search_tool_result", "tool_use_id": "s2", "content": {"type": "web_search_tool_result_error", "error_code": "too_many_requests"}}
    ran = {"type": "code_execution_tool_result", "tool_use_id": "s3", "content": {"type": "code_execution_result", "stdout": "", "stderr": "e", "return_code": 1}}
    remote = {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": [words("down")]}
    trace = read_one([USER, model(
        use("s1", "web_search", kind="server_tool_use"), found, use("s2", "web_search", kind="server_tool_use"), refused,
        use("s3", "code_execution", kind="server_tool_use"), ran, use("m", "ask", kind="mcp_tool_use"), remote, words("so"),
    )])  # fmt: skip
    assert [(result.call_id, result.status, result.error_class) for result in trace.results()] == [
        ("s1", "ok", None), ("s2", "error", "rate_limited"), ("s3", "error", "tool_error"), ("m", "error", "tool_error"),
    ]  # fmt: skip
    assert len(turns(trace)) == 1
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


def test_a_remote_call_in_flight_is_answered_by_a_later_response() -> None:
    trace = read_one([USER, model(use("m", "ask", kind="mcp_tool_use"), use("a", "add")), user(answer("a", "4")), model({"type": "mcp_tool_result", "tool_use_id": "m", "content": [words("yes")], "is_error": False}, words("both"))])
    assert shape(trace)[-4:] == ["tool_result a", "model_turn", "tool_result m", "message"]
    assert [result.turn for result in trace.results()] == [1, 1]


def test_usage_counts_what_came_from_the_cache() -> None:
    trace = read_one([{"request": {"model": "m", "system": "be kind", "messages": [USER]}, "response": reply(use("a"))}])
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (105, 7, 90)
    assert said(trace)[0] == ("system", "be kind")


def test_a_history_that_is_sent_again_is_counted_once() -> None:
    history = [USER, model(words("let me "), words("see"), use("a")), user(answer("a"))]
    log = [
        {"request": {"model": "m", "system": [words("be kind")], "messages": [USER]}, "response": reply(words("let me "), words("see"), use("a", given={}))},
        {"request": {"model": "m", "system": [words("be kind")], "messages": history}, "response": reply(words("there"), stop_reason="end_turn")},
    ]
    trace = read_one(log)
    assert shape(trace) == ["message", "message", "model_turn", "message", "tool_call a", "tool_result a", "model_turn", "message"]
    assert [turn.finish_reason for turn in turns(trace)] == ["tool_use", "end_turn"]


def test_http_messages_are_read_by_their_bodies() -> None:
    request = {"method": "POST", "url": "https://api/v1/messages", "headers": {}, "body": {"model": "m", "messages": [USER]}}
    for body in (reply(use("a")), json.dumps(reply(use("a")))):
        trace = read_one([{"request": request, "response": {"status_code": 200, "headers": {}, "body": body}}])
        assert [name for name, _ in calls(trace)] == ["lookup"]


def delta(index: int, **inner: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": inner}


EVENTS = [
    {"type": "message_start", "message": reply(stop_reason=None, usage={"input_tokens": 10, "output_tokens": 1})},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    delta(0, type="text_delta", text="let "),
    delta(0, type="text_delta", text="me"),
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": use("a")},
    delta(1, type="input_json_delta", partial_json=""),
    delta(1, type="input_json_delta", partial_json='{"id": '),
    delta(1, type="input_json_delta", partial_json='"A1"}'),
    {"type": "content_block_start", "index": 2, "content_block": use("b")},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


def test_streamed_blocks_are_put_together() -> None:
    trace = read_one(tuple(EVENTS))
    assert said(trace) == [("assistant", "let me")]
    assert calls(trace) == [("lookup", {"id": "A1"}), ("lookup", {})]
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (10, 9)


def test_a_stream_that_was_cut_keeps_the_arguments_as_they_were() -> None:
    trace = read_one(tuple(EVENTS[:9]))
    assert calls(trace) == [("lookup", None)]
    assert trace.calls()[0].args_raw == '{"id": '


@pytest.mark.parametrize(("reason", "expected"), [("max_tokens", "token_limit"), ("model_context_window_exceeded", "context_limit"), ("end_turn", "final_answer")])
def test_the_last_stop_reason_is_taken(reason: str, expected: str) -> None:
    trace = read_one([{"request": {"model": "m", "messages": [USER]}, "response": reply(words("so"), stop_reason=reason)}])
    assert trace.end is not None
    assert trace.end.stop_reason == expected


def test_content_without_text_is_told() -> None:
    trace = read_one([user({"type": "image", "source": {}}, words("see?")), model(use("a")), user(answer("a", [{"type": "image", "source": {}}]))])
    assert [note.text for note in trace.notes] == ["content of type image has no text and was left out"]
    assert results(trace) == [("a", "ok", [{"type": "image", "source": {}}])]


@pytest.mark.parametrize("tools", [None, [{"name": "lookup", "input_schema": {}}]])
def test_the_tools_of_a_remote_server_are_offered_as_a_set(tools: list[dict[str, Any]] | None) -> None:
    request = {"model": "claude-x", "messages": [USER], "mcp_servers": [{"type": "url", "name": "shop", "url": "x"}]}
    record = {"request": request if tools is None else request | {"tools": tools}, "response": reply(use("a", kind="mcp_tool_use"))}
    assert read_one(record).start.attributes == {
        "tools": [*(tools or []), {"type": "mcp_toolset", "mcp_server_name": "shop"}]
    }
