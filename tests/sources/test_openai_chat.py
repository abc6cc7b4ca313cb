"""OpenAI Chat Completions: every way of keeping them, and what real files do that the reference does not say."""

import json
from typing import Any

import pytest

from goldentrace.errors import InputError
from goldentrace.model.operation import DecisionStep
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.registry import detect, trace_name
from tests.sources.reading import calls, document_of, read_all, read_one, results, said, shape, turns


def asks(*wanted: tuple[str | None, str, Any], text: str | None = None) -> dict[str, Any]:
    """An assistant's message that asks for calls (id, tool, arguments as text)."""
    listed = [
        {"type": "function", "function": {"name": tool, "arguments": args}} | ({"id": call_id} if call_id else {})
        for call_id, tool, args in wanted
    ]
    return {"role": "assistant", "content": text, "tool_calls": listed}


def tool(call_id: str | None, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content} | ({"tool_call_id": call_id} if call_id else {}) | more


USER = {"role": "user", "content": "where is order A1?"}
DONE = {"role": "assistant", "content": "shipped"}
RUN = [USER, asks(("c1", "lookup", '{"id":"A1"}'), ("c2", "lookup", '{"id":"B2"}')), tool("c1", "A1"), tool("c2", "B2"), DONE]


def reply(message: dict[str, Any], reason: str, **more: Any) -> dict[str, Any]:
    """A chat.completion."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    return {"id": "r", "object": "chat.completion", "created": 1755847546, "model": "gpt-x", "usage": usage, "choices": [{"index": 0, "message": message, "finish_reason": reason}]} | more


def test_a_list_becomes_turns_calls_and_results() -> None:
    trace = read_one(RUN)
    assert shape(trace) == [
        "message", "model_turn", "tool_call c1", "tool_call c2", "tool_result c1", "tool_result c2", "model_turn", "message",
    ]  # fmt: skip
    assert calls(trace) == [("lookup", {"id": "A1"}), ("lookup", {"id": "B2"})]
    assert results(trace) == [("c1", "ok", "A1"), ("c2", "ok", "B2")]
    assert coverage_table(trace).batches == 1
    assert trace.start.states == []
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("unknown", "final_answer")


@pytest.mark.parametrize(
    "file",
    [RUN, {"messages": RUN}, tuple(RUN), {"id": "x", "messages": RUN, "metadata": {"k": 1}}, json.dumps(RUN, indent=2)],
    ids=["list", "object", "lines", "record", "indented"],
)
def test_every_envelope_holds_the_same_run(file: Any) -> None:
    assert shape(read_one(file)) == shape(read_one(RUN))


@pytest.mark.parametrize(
    "file",
    [({"id": "a", "messages": RUN}, {"id": "b", "messages": RUN}), [{"messages": RUN}, {"messages": RUN}], [RUN, RUN], (RUN, RUN)],
    ids=["records by line", "records", "lists", "lists by line"],
)
def test_a_file_of_many_conversations_is_many_traces(file: Any) -> None:
    traces = read_all(file)
    assert [shape(trace) for trace in traces] == [shape(read_one(RUN))] * 2
    assert len({trace_name(trace) for trace in traces}) == 2


def test_what_stands_beside_the_messages_is_kept() -> None:
    trace = read_one({"id": "r-1", "task_id": "t-9", "messages": RUN, "labels": ["a"], "prompt": "p" * 5000})
    assert (trace.start.trace_id, trace.start.scenario_id) == ("r-1", "t-9")
    assert trace.start.attributes == {"name": "r-1", "task_id": "t-9", "labels": ["a"], "prompt": "(5000 characters)"}


def test_each_event_knows_its_message_and_its_line() -> None:
    trace = read_one(tuple(RUN))
    assert [call.extra for call in trace.calls()] == [{"message_index": 1}] * 2
    assert [result.extra for result in trace.results()] == [{"message_index": 2}, {"message_index": 3}]
    assert trace.lines == [1, 1, 2, 2, 2, 3, 4, 5, 5, 0]


def test_a_failure_told_in_text_is_ok_and_one_told_by_a_flag_is_an_error() -> None:
    trace = read_one([USER, asks(("a", "t", "{}"), ("b", "t", "{}"), ("c", "t", "{}")), tool("a", "Error: boom"), tool("b", "boom", is_error=True), tool("c", "boom", status="error")])
    assert [status for _, status, _ in results(trace)] == ["ok", "error", "error"]


def test_a_call_that_is_repeated_after_its_error_is_a_retry_of_the_model() -> None:
    asked = [asks((call_id, "lookup", '{"id":"A1"}')) for call_id in ("c1", "c2")]
    trace = read_one([USER, asked[0], tool("c1", "503", error=True), asked[1], tool("c2", "A1"), DONE])
    assert [(call.turn, call.attempt, call.origin) for call in trace.calls()] == [(1, 1, "model"), (2, 1, "model")]
    assert trace.start.states == []
    (operation,) = normalize(trace, Profile(name="default@1"), "h:test").operations
    assert [step.by for step in operation.steps if isinstance(step, DecisionStep)] == ["model"]
    assert [attempt.origin for attempt in operation.attempts] == ["model", "model"]


def test_calls_without_ids_are_paired_in_their_order() -> None:
    trace = read_one([USER, asks((None, "first", "{}"), (None, "second", "{}")), tool(None, 1), tool(None, 2), asks((None, "third", "{}")), tool("", 3)])
    assert [(result.call_id, status, value) for result, (_, status, value) in zip(trace.results(), results(trace), strict=True)] == [
        ("call:1", "ok", 1), ("call:2", "ok", 2), ("call:3", "ok", 3),
    ]  # fmt: skip
    assert trace.coverage["call_ids"] == "calls without an id were numbered"


def test_a_reused_id_pairs_with_its_own_turn() -> None:
    trace = read_one([USER, asks(("x", "t", "{}")), tool("x", 1), asks(("x", "t", "{}")), tool("x", 2)])
    assert [(result.turn, value) for result, (_, _, value) in zip(trace.results(), results(trace), strict=True)] == [(1, 1), (2, 2)]


def test_a_result_before_its_call_is_put_after_it() -> None:
    trace = read_one([USER, tool("x", "early"), asks(("x", "t", "{}"))])
    assert shape(trace) == ["message", "model_turn", "tool_call x", "tool_result x"]


def test_an_unanswered_tail_is_unfinished() -> None:
    trace = read_one([USER, asks(("a", "t", "{}"), ("b", "t", "{}")), tool("a")])
    assert results(trace) == [("a", "ok", "ok"), ("b", "unfinished", None)]
    assert coverage_table(trace).unanswered == 1
    assert trace.end is not None
    assert trace.end.stop_reason == "unknown"


def test_truncated_arguments_are_kept_as_text() -> None:
    trace = read_one([USER, asks(("a", "write", '{"path": "/app/x.py", "content": "imp'))])
    assert calls(trace) == [("write", None)]
    assert trace.calls()[0].args_raw == '{"path": "/app/x.py", "content": "imp'


def test_empty_arguments_are_no_arguments() -> None:
    assert calls(read_one([USER, asks(("a", "now", ""), ("b", "now", None))])) == [("now", {}), ("now", {})]


def test_arguments_that_are_an_object_already_are_taken() -> None:
    assert calls(read_one([USER, asks(("a", "t", {"n": 1}))])) == [("t", {"n": 1})]


def test_the_older_function_call_pairs_by_name() -> None:
    trace = read_one([USER, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}, {"role": "function", "name": "f", "content": "r"}])
    assert calls(trace) == [("f", {"a": 1})]
    assert results(trace) == [("call:1", "ok", "r")]


def test_a_custom_tool_takes_text() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "k", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}]}
    assert calls(read_one([USER, message, tool("k")])) == [("sql", "SELECT 1")]


def test_reasoning_never_enters() -> None:
    hidden = "SECRET-THOUGHT"
    message = asks(("a", "t", "{}"), text=f"<think>{hidden}</think>on it") | {"reasoning_content": hidden, "reasoning": hidden, "reasoning_details": [{"text": hidden}]}
    parts = {"role": "assistant", "content": [{"type": "thinking", "text": hidden}, {"type": "text", "text": f"{hidden}</think>done"}]}
    trace = read_one([USER, message, tool("a"), parts, {"role": "assistant", "content": f"<think>{hidden}"}])
    assert hidden not in repr(trace.events)
    assert [text for role, text in said(trace) if role == "assistant"] == ["on it", "done"]


def test_content_parts_are_read_as_text() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]}
    trace = read_one([message, asks(("a", "t", "{}")), tool("a", [{"type": "text", "text": "seen"}])])
    assert said(trace) == [("user", "look")]
    assert results(trace) == [("a", "ok", "seen")]


def test_times_are_absent_and_said_to_be() -> None:
    trace = read_one(RUN)
    assert all(event.ts is None for event in trace.events)
    assert trace.coverage["times"] == "Chat Completions messages carry no clock"
    timed = read_one([USER, asks(("a", "t", "{}")) | {"timestamp": "2026-01-01T10:00:00+01:00"}, tool("a")])
    assert timed.calls()[0].ts == "2026-01-01T09:00:00.000000Z"
    assert "times" not in timed.coverage


def test_a_history_that_is_sent_again_is_counted_once() -> None:
    exchanges = [
        {"request": {"model": "m", "messages": RUN[:1], "tools": [{"type": "function"}]}, "response": reply(RUN[1], "tool_calls")},
        {"request": {"model": "m", "messages": RUN[:4]}, "response": reply(asks(("c3", "ship", "{}")), "tool_calls")},
        {"request": {"model": "m", "messages": [*RUN[:4], asks(("c3", "ship", "{}")), tool("c3", "sent")]}, "response": reply(DONE, "stop")},
    ]
    for file in (exchanges, tuple(exchanges)):
        trace = read_one(file)
        assert shape(trace) == [
            "message", "model_turn", "tool_call c1", "tool_call c2", "tool_result c1", "tool_result c2",
            "model_turn", "tool_call c3", "tool_result c3", "model_turn", "message",
        ]  # fmt: skip
        assert [(turn.finish_reason, turn.input_call_ids) for turn in turns(trace)] == [("tool_calls", None), ("tool_calls", ["c1", "c2"]), ("stop", ["c3"])]
        assert trace.start.attributes == {"tools": [{"type": "function"}]}
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (10, 3, 4)


def test_the_last_request_of_a_log_without_responses_is_the_run() -> None:
    trace = read_one(tuple({"model": "m", "messages": RUN[:count]} for count in (1, 4, 5)))
    assert shape(trace) == shape(read_one(RUN))


def test_ids_that_the_client_made_up_find_their_call() -> None:
    made = asks(("client_7", "now", "{}"))
    trace = read_one([
        {"request": {"model": "m", "messages": [USER]}, "response": reply(asks((None, "now", "{ }")), "tool_calls")},
        {"request": {"model": "m", "messages": [USER, made, tool("client_7", "noon")]}, "response": reply(DONE, "stop")},
    ])  # fmt: skip
    assert results(trace) == [("call:1", "ok", "noon")]
    assert len(trace.calls()) == 1


def test_two_runs_of_one_prompt_are_two_traces() -> None:
    log = [
        {"request": {"model": "m", "messages": RUN[:1]}, "response": reply(asks((call_id, "lookup", "{}")), "tool_calls")}
        for call_id in ("a", "b")
    ]
    log.append({"request": {"model": "m", "messages": [USER, asks(("b", "lookup", "{}")), tool("b")]}, "response": reply(DONE, "stop")})
    first, second = read_all(log)
    assert [call.call_id for call in first.calls()] == ["a"]
    assert results(second) == [("b", "ok", "ok")]


def test_an_edited_history_goes_on_in_the_same_trace() -> None:
    compacted = [{"role": "user", "content": "summary so far"}, asks(("c2", "lookup", '{"id":"B2"}')), tool("c2", "B2"), {"role": "user", "content": "go on"}]
    trace = read_one([
        {"request": {"model": "m", "messages": RUN[:1]}, "response": reply(RUN[1], "tool_calls")},
        {"request": {"model": "m", "messages": compacted}, "response": reply(DONE, "stop")},
    ])  # fmt: skip
    assert [call.call_id for call in trace.calls()] == ["c1", "c2"]
    assert results(trace) == [("c2", "ok", "B2"), ("c1", "unfinished", None)]


def test_a_failed_request_is_told_and_a_repeated_one_counts_once() -> None:
    request = {"model": "m", "messages": RUN[:1]}
    trace = read_one([
        {"request": request, "response": {"error": {"message": "slow down"}}, "status": 429},
        {"request": request, "response": reply(DONE, "stop"), "status": 200},
    ])  # fmt: skip
    assert [turn.extra for turn in turns(trace)] == [{"failed_requests": [429]}]
    assert [note.text for note in trace.notes] == ["a request to the model failed with HTTP 429"]
    ended = read_one([{"request": request, "response": {"error": {}}, "status": 500}])
    assert ended.end is not None
    assert ended.end.stop_reason == "provider_error"


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "s", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} | more


def part(index: int | None, arguments: str, **more: Any) -> dict[str, Any]:
    numbered = {} if index is None else {"index": index}
    return {"tool_calls": [{**numbered, "function": {"arguments": arguments} | ({"name": more.pop("name")} if "name" in more else {}), **more}]}


def test_deltas_are_joined_by_their_index() -> None:
    chunks = [
        chunk({"role": "assistant", "content": "let "}), chunk({"content": "me"}),
        chunk(part(0, "", id="a", name="lookup")), chunk(part(1, "", id="b", name="ship")),
        chunk(part(0, '{"id":')), chunk(part(1, '{"n":')), chunk(part(0, '"A1"}')), chunk(part(1, "2}")),
        chunk({}, "tool_calls"), {"id": "s", "object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 5}},
    ]  # fmt: skip
    for file in (chunks, tuple(chunks)):
        trace = read_one(file)
        assert calls(trace) == [("lookup", {"id": "A1"}), ("ship", {"n": 2})]
        assert said(trace) == [("assistant", "let me")]
        assert turns(trace)[0].finish_reason == "tool_calls"
        assert turns(trace)[0].usage is not None


def test_deltas_without_index_are_told_by_new_ids() -> None:
    chunks = [chunk(part(None, "", id="a", name="f")), chunk(part(None, '{"x":')), chunk(part(None, "1}")), chunk(part(None, "{}", id="b", name="g"), "tool_calls")]
    assert calls(read_one(chunks)) == [("f", {"x": 1}), ("g", {})]


def test_a_request_and_its_stream_are_one_exchange() -> None:
    chunks = [chunk(part(0, "{}", id="a", name="f"), "tool_calls")]
    log = ({"model": "m", "messages": RUN[:1]}, *chunks, {"model": "m", "messages": [USER, asks(("a", "f", "{}")), tool("a")]}, chunk({"content": "ok"}, "stop", id="t"))
    trace = read_one(log)
    assert results(trace) == [("a", "ok", "ok")]
    assert [turn.finish_reason for turn in turns(trace)] == ["tool_calls", "stop"]


@pytest.mark.parametrize(("reason", "expected"), [("stop", "final_answer"), ("length", "token_limit"), ("content_filter", "final_answer")])
def test_the_last_finish_reason_gives_the_stop_reason(reason: str, expected: str) -> None:
    trace = read_one([{"request": {"model": "m", "messages": [USER]}, "response": reply(DONE, reason)}])
    assert trace.end is not None
    assert trace.end.stop_reason == expected


def test_further_choices_are_told() -> None:
    answer = reply(DONE, "stop")
    answer["choices"].append({"index": 1, "message": DONE, "finish_reason": "stop"})
    assert turns(read_one([{"request": {"model": "m", "messages": [USER]}, "response": answer}]))[0].extra == {"other_choices": 1}


def test_a_conversation_that_ends_with_the_user_has_no_stop_reason() -> None:
    trace = read_one([*RUN, {"role": "user", "content": "and B2?"}])
    assert trace.end is not None
    assert trace.end.stop_reason == "unknown"


def test_blocks_of_another_provider_are_never_lost_in_silence() -> None:
    foreign = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    with pytest.raises(InputError, match="Anthropic") as caught:
        read_all([USER, DONE, foreign], "openai-chat")
    assert "message 3" in caught.value.what
    assert "--format" in caught.value.next_step


def test_a_response_of_another_api_is_told() -> None:
    trace = read_one([{"request": {"model": "m", "messages": [USER]}, "response": {"odd": 1}}])
    assert [note.text for note in trace.notes] == ["a response that is none of openai-chat was left out"]


def test_plain_text_is_read_as_this_format() -> None:
    assert detect(document_of([USER, DONE])).name == "openai-chat"


def test_records_that_are_no_messages_are_told() -> None:
    trace = read_one(({"session": "s"}, *RUN, {"type": "metrics", "n": 1}))
    assert [(note.text, note.line) for note in trace.notes] == [
        ("a record that is no message was left out", 1), ("a record of type 'metrics' that is no message was left out", 7),
    ]  # fmt: skip
