"""OpenAI Responses: two ids per call, tools that OpenAI runs, approvals, streams, histories that the provider keeps."""

from typing import Any

import pytest

from goldentrace.model.event import Approval
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.registry import detect
from tests.sources.reading import calls, document_of, read_all, read_one, results, said, shape, turns

USER = {"role": "user", "content": "where is A1?"}


def call(call_id: str, tool: str = "lookup", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": tool, "arguments": arguments} | more


def output(call_id: str, value: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def text(words: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}


def response(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 20, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 8}}
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-x", "created_at": 1757687080, "usage": usage, "output": list(items)} | more


def test_a_call_and_its_output_are_paired_on_call_id() -> None:
    trace = read_one([USER, call("c1", arguments='{"id":"A1"}'), call("c2"), output("c2", "B"), output("c1", [{"type": "input_text", "text": "A"}]), text("done")])
    assert shape(trace) == [
        "message", "model_turn", "tool_call c1", "tool_call c2", "tool_result c2", "tool_result c1", "model_turn", "message",
    ]  # fmt: skip
    assert results(trace) == [("c2", "ok", "B"), ("c1", "ok", "A")]
    assert trace.calls()[0].extra == {"item_id": "fc_c1", "message_index": 1}
    assert coverage_table(trace).batches == 1
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


def test_an_output_that_python_wrote_with_str_is_its_value() -> None:
    outputs = ["{'paid': True}", '{"paid": true}', '{"paid": 1}', "{}", "{", "(1, 2)"]
    items = [each for n, value in enumerate(outputs) for each in (call(f"c{n}"), output(f"c{n}", value))]
    assert [value for _, _, value in results(read_one(items))] == [{"paid": True}, *outputs[1:]]


def test_items_that_name_one_response_are_one_turn_of_its_model() -> None:
    first, second = ({"provider_data": {"model": "m-1", "response_id": f"r{n}"}} for n in (1, 2))
    items = [call("a", **first), call("b", **first), output("a"), output("b"), text("done") | second, text("and more") | second]
    trace = read_one(items)
    assert [(turn.model, (turn.extra or {})["response_id"]) for turn in turns(trace)] == [("m-1", "r1"), ("m-1", "r2")]
    assert coverage_table(trace).batches == 1


def test_reasoning_is_dropped_and_opens_no_turn() -> None:
    hidden = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "SECRET"}], "encrypted_content": "SECRET"}
    trace = read_one([USER, hidden, call("c1"), output("c1"), hidden, text("done")])
    assert "SECRET" not in repr(trace.events)
    assert len(turns(trace)) == 2


def test_a_custom_tool_takes_text() -> None:
    items = [USER, {"type": "custom_tool_call", "call_id": "k", "name": "sql", "input": "SELECT 1"}, {"type": "custom_tool_call_output", "call_id": "k", "output": "1"}]
    trace = read_one(items)
    assert calls(trace) == [("sql", "SELECT 1")]
    assert results(trace) == [("k", "ok", "1")]


def test_tools_that_openai_runs_are_call_and_result_in_one_item() -> None:
    mcp = {"type": "mcp_call", "id": "m1", "name": "ask", "server_label": "wiki", "arguments": '{"q":1}', "output": "yes", "error": None}
    failed = {"type": "mcp_call", "id": "m2", "name": "ask", "server_label": "wiki", "arguments": "{}", "error": {"type": "http_error", "code": 503}}
    search = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}}
    broken = {"type": "code_interpreter_call", "id": "i", "status": "failed", "code": "1/0", "container_id": "k"}
    running = {"type": "web_search_call", "id": "r", "status": "in_progress", "action": {}}
    trace = read_one([USER, mcp, failed, search, broken, running, text("done")])
    assert calls(trace) == [
        ("ask", {"q": 1}), ("ask", {}), ("web_search", {"action": {"type": "search", "query": "x"}}),
        ("code_interpreter", {"code": "1/0", "container_id": "k"}), ("web_search", {"action": {}}),
    ]  # fmt: skip
    assert [(name, status) for name, status, _ in results(trace)] == [("m1", "ok"), ("m2", "error"), ("w", "ok"), ("i", "error"), ("r", "unfinished")]
    assert len(turns(trace)) == 1


def test_an_approved_call_is_one_call_and_a_denied_one_is_denied() -> None:
    trace = read_one([
        USER,
        {"type": "mcp_approval_request", "id": "ap1", "name": "pay", "server_label": "s", "arguments": '{"n":1}'},
        {"type": "mcp_approval_request", "id": "ap2", "name": "drop", "server_label": "s", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "ap1", "approve": True},
        {"type": "mcp_approval_response", "approval_request_id": "ap2", "approve": False, "reason": "no"},
        {"type": "mcp_call", "id": "m1", "approval_request_id": "ap1", "name": "pay", "server_label": "s", "arguments": '{"n":1}', "output": "paid"},
    ])  # fmt: skip
    assert [name for name, _ in calls(trace)] == ["pay", "drop"]
    assert results(trace) == [("ap2", "denied", "no"), ("ap1", "ok", "paid")]
    assert [(event.call_id, event.verdict) for event in trace.events if isinstance(event, Approval)] == [("ap1", "approved"), ("ap2", "denied")]


@pytest.mark.parametrize(
    ("outcome", "status"), [({"type": "exit", "exit_code": 0}, "ok"), ({"type": "exit", "exit_code": 2}, "error"), ({"type": "timeout"}, "timeout")]
)  # fmt: skip
def test_a_shell_states_how_its_command_ended(outcome: dict[str, Any], status: str) -> None:
    trace = read_one([USER, {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}}, {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "", "stderr": "", "outcome": outcome}]}])
    assert [found for _, found, _ in results(trace)] == [status]


def test_items_of_other_types_are_told() -> None:
    trace = read_one([USER, {"type": "mcp_list_tools", "server_label": "s", "tools": []}, call("c"), {"type": "item_reference", "id": "x"}])
    assert [note.text for note in trace.notes] == ["an item of type mcp_list_tools was left out", "an item of type item_reference was left out"]


def test_a_log_of_requests_and_responses_is_one_run() -> None:
    history = [USER, call("c1"), output("c1")]
    log = [
        {"request": {"model": "m", "instructions": "be kind", "input": "where is A1?"}, "response": response(call("c1"))},
        {"request": {"model": "m", "instructions": "be kind", "input": history}, "response": response(text("there"))},
    ]
    for file in (log, tuple(log)):
        trace = read_one(file)
        assert shape(trace) == ["message", "message", "model_turn", "tool_call c1", "tool_result c1", "model_turn", "message"]
        usage = turns(trace)[0].usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (20, 5, 8)
        assert turns(trace)[1].input_call_ids == ["c1"]


def test_a_history_that_the_provider_keeps_is_followed_by_id() -> None:
    log = [
        {"request": {"model": "m", "instructions": "be kind", "input": [USER]}, "response": response(call("c1"), id="resp_a")},
        {"request": {"model": "m", "instructions": "be kind", "previous_response_id": "resp_a", "input": [output("c1")]}, "response": response(text("ok"), id="resp_b")},
        {"request": {"model": "m", "instructions": "be kind", "previous_response_id": "resp_b", "input": "thanks"}, "response": response(text("bye"), id="resp_c")},
    ]
    trace = read_one(log)
    assert said(trace) == [("system", "be kind"), ("user", "where is A1?"), ("assistant", "ok"), ("user", "thanks"), ("assistant", "bye")]
    assert results(trace) == [("c1", "ok", "ok")]


def events(*, is_complete: bool) -> list[dict[str, Any]]:
    whole = response(call("c1", arguments='{"id":"A1"}'))
    streamed = [
        {"type": "response.created", "response": whole | {"output": [], "status": "in_progress", "usage": None}},
        {"type": "response.output_item.added", "item": call("c1", arguments="")},
        {"type": "response.function_call_arguments.delta", "delta": '{"id"'},
        {"type": "response.output_item.done", "item": call("c1", arguments='{"id":"A1"}')},
    ]
    return [*streamed, {"type": "response.completed", "response": whole}] if is_complete else streamed


@pytest.mark.parametrize("is_complete", [True, False])
def test_of_a_stream_only_whole_items_count(is_complete: bool) -> None:
    trace = read_one(tuple(events(is_complete=is_complete)))
    assert calls(trace) == [("lookup", {"id": "A1"})]
    assert (turns(trace)[0].usage is not None) == is_complete


def test_a_response_that_was_cut_off_says_why() -> None:
    cut = response(text("I wan"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    trace = read_one([{"request": {"model": "m", "input": "hi"}, "response": cut}])
    assert trace.end is not None
    assert trace.end.stop_reason == "token_limit"
    failed = response(status="failed", error={"code": "server_error", "message": "x"})
    assert [each.end.stop_reason for each in read_all([{"request": {"model": "m", "input": "hi"}, "response": failed}]) if each.end] == ["provider_error"]


def test_a_file_with_other_records_is_none_of_it() -> None:
    legacy = ({"id": "s", "timestamp": "t", "instructions": None}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}, call("c"))
    assert detect(document_of(legacy)).name == "codex", "its first versions kept bare items below a first record of their own"
    with pytest.raises(Exception, match="no known format"):
        detect(document_of(({"id": "s", "kind": "t"}, *legacy[1:])))
