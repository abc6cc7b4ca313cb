"""OpenTelemetry GenAI spans: each trap of the format, and each dialect of it."""

import json
import sys
from typing import Any

import pytest

from goldentrace.errors import InputError
from goldentrace.model.event import Limit, ModelTurn
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.registry import detect, document_traces
from tests.sources.reading import calls, read_all, read_one, results, turns
from tests.sources.reading import said as messages
from tests.sources.spanning import (
    FIXTURES,
    asks,
    chat,
    duration_ms,
    fixture,
    one,
    order,
    otlp,
    said,
    span,
    statuses,
    tells,
    tool,
)


def absent(trace: Any) -> dict[str, str]:
    return dict(coverage_table(trace).rows())


@pytest.mark.parametrize("status", [None, {}, {"code": 0}, {"code": 1}, {"code": "STATUS_CODE_UNSET"}, {"code": "STATUS_CODE_OK"}])
def test_a_status_that_is_not_set_is_ok(status: Any) -> None:
    trace = read_one(otlp(tool("01", 1, 2, status=status)))
    assert statuses(trace) == [("call:1", "ok", None)]


@pytest.mark.parametrize("status", [{"code": 2}, {"code": "STATUS_CODE_ERROR", "message": "no"}])
def test_a_status_of_error_is_an_error(status: Any) -> None:
    assert statuses(read_one(otlp(tool("01", 1, 2, status=status)))) == [("call:1", "error", "tool_error")]


def test_ids_are_hex_and_stay_as_they_stand() -> None:
    trace = read_one(otlp(tool("00f067aa0ba902b7", 1, 2, trace="4bf92f3577b34da6a3ce929d0e0e4736")))
    assert trace.start.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (trace.calls()[0].extra or {})["span_id"] == "00f067aa0ba902b7"


@pytest.mark.parametrize("value", [{"intValue": "735"}, {"intValue": 735}, {"doubleValue": 735.0}, {"stringValue": "735"}])
def test_integers_may_be_text(value: Any) -> None:
    made = chat("01", 1, 2)
    made["attributes"].append({"key": "gen_ai.usage.input_tokens", "value": value})
    (turn,) = turns(read_one(otlp(made)))
    assert turn.usage is not None
    assert turn.usage.input_tokens == 735


def test_spans_are_put_in_order_by_start_then_id() -> None:
    spans = [tool("0c", 5, 6, "c"), tool("0b", 1, 9, "b"), tool("0a", 1, 8, "a")]
    assert [name for name, _ in calls(read_one(otlp(*spans)))] == ["a", "b", "c"]
    assert order(read_one(otlp(*spans))) == order(read_one(otlp(*reversed(spans))))


def test_a_history_that_is_sent_again_makes_no_calls() -> None:
    history = [said("user", "Go."), said("assistant", asks("c1", "find", {"q": 1})), said("tool", tells("c1", "x"))]
    trace = read_one(otlp(
        chat("01", 1, 2, history[:1], said("assistant", asks("c1", "find", {"q": 1}))), tool("02", 3, 4, args={"q": 1}, call_id="c1"),
        chat("03", 5, 6, history, said("assistant", "Done.")), chat("04", 7, 8, [*history, said("user", "More.")], said("assistant", "No.")),
    ))  # fmt: skip
    assert calls(trace) == [("find", {"q": 1})]
    assert messages(trace) == [("user", "Go."), ("assistant", "Done."), ("user", "More."), ("assistant", "No.")]
    assert [turn.input_call_ids for turn in turns(trace)] == [None, ["c1"], None]


def test_a_request_that_begins_with_an_earlier_run_makes_none_of_its_calls() -> None:
    history = [said("user", "Go."), said("assistant", asks("old", "find", {})), said("tool", tells("old", "x")), said("user", "Again.")]
    trace = read_one(otlp(chat("01", 1, 2, history, said("assistant", "No."))))
    assert calls(trace) == []
    assert any("earlier conversation" in note.text for note in trace.notes)


def test_several_traces_in_one_file_come_out_as_several() -> None:
    traces = read_all(otlp(tool("01", 1, 2, "a", trace="aa"), tool("01", 3, 4, "b", trace="bb"), span("GET", "09", 1, 2, {"http.route": "/"}, trace="cc")))
    assert [(trace.start.trace_id, calls(trace)[0][0]) for trace in traces] == [("aa", "a"), ("bb", "b")]
    assert any("1 traces" in note.text for note in traces[0].notes)


def test_where_content_is_not_recorded_names_ids_and_times_are_left() -> None:
    trace = read_one(otlp(chat("01", 1, 2), tool("02", 3, 4.5, result=None, call_id="c1")))
    assert (calls(trace), results(trace)) == ([("find", None)], [("c1", "ok", None)])
    assert duration_ms(trace, "c1") == 1.5
    assert trace.coverage["arguments"] == trace.coverage["results"] == "recording of content is off"


def test_the_whole_of_the_conventions() -> None:
    trace = one("otel_genai", "otlp.json")
    assert messages(trace) == [("system", "Be brief."), ("user", "Cancel order A-1 and B-2."), ("assistant", "Looking."), ("assistant", "A-1 is open; B-2 is unknown.")]
    assert calls(trace) == [("get_order", {"id": "A-1"}), ("get_order", {"id": "B-2"})]
    assert sorted(results(trace)) == [("call_1", "ok", {"id": "A-1", "open": True}), ("call_2", "timeout", "no such order")]
    first, last = turns(trace)
    assert (first.model, first.finish_reason, last.finish_reason) == ("small-2026", "tool_call", "stop")
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.cached_tokens) == (40, 12, 8)
    assert last.input_call_ids == ["call_1", "call_2"]
    assert {call.batch for call in trace.calls()} == {1}
    assert (trace.start.attributes or {})["conversation_id"] == "conv-7"
    assert trace.start.states == []
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


def test_hidden_reasoning_is_dropped() -> None:
    for name in ("otlp.json", "vercel.json"):
        written = b"".join(str(event).encode() for event in one("otel_genai", name).events)
        assert b"secret plan" not in written
        assert b"hidden words" not in written


def test_a_result_part_may_be_called_response_or_result() -> None:
    """The schema says the one, the example beside it the other."""
    trace = read_one(otlp(
        chat("01", 1, 2, [said("user", "x")], said("assistant", asks("c1", "f", {}), asks("c2", "f", {"a": 1}))),
        chat("02", 3, 4, [said("tool", {"type": "tool_call_response", "id": "c1", "response": "r1"}, {"type": "tool_call_response", "id": "c2", "result": "r2"})], said("assistant", "Done.")),
    ))  # fmt: skip
    assert results(trace) == [("c1", "ok", "r1"), ("c2", "ok", "r2")]


def test_without_spans_of_tools_the_responses_hold_the_calls() -> None:
    trace = read_one(otlp(
        chat("01", 1, 2, [said("user", "x")], said("assistant", asks("c1", "f", {"a": 1}))),
        chat("02", 3, 4, [said("user", "x"), said("assistant", asks("c1", "f", {"a": 1})), said("tool", tells("c1", "r"))], said("assistant", asks("c2", "g", {}))),
    ))  # fmt: skip
    assert (calls(trace), results(trace)) == ([("f", {"a": 1}), ("g", {})], [("c1", "ok", "r"), ("c2", "unfinished", None)])
    assert all((call.extra or {})["has_span"] is False for call in trace.calls())


def test_old_attribute_names_and_indexed_attributes() -> None:
    attributes: dict[str, Any] = {"gen_ai.system": "x", "llm.request.type": "chat", "gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 2}
    attributes |= {f"gen_ai.prompt.{n}.role": "user" for n in range(12)} | {f"gen_ai.prompt.{n}.content": f"m{n}" for n in range(12)}
    attributes |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls"}
    for n in range(11):
        attributes |= {f"gen_ai.completion.0.tool_calls.{n}.id": f"c{n}", f"gen_ai.completion.0.tool_calls.{n}.name": f"t{n}", f"gen_ai.completion.0.tool_calls.{n}.arguments": "{}"}
    trace = read_one(otlp(span("x.chat", "01", 1, 2, dict(sorted(attributes.items())))))
    assert [text for _, text in messages(trace)] == [f"m{n}" for n in range(12)]
    assert [name for name, _ in calls(trace)] == [f"t{n}" for n in range(11)]
    (turn,) = turns(trace)
    assert turn.finish_reason == "tool_calls"
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (7, 2)


def test_one_event_per_message() -> None:
    events = [
        ("gen_ai.system.message", {"content": "Be kind."}), ("gen_ai.user.message", {"content": "Hi."}),
        ("gen_ai.choice", {"finish_reason": "tool_calls", "message": json.dumps({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]})}),
    ]  # fmt: skip
    later = [("gen_ai.tool.message", {"id": "c1", "content": "done"}), ("gen_ai.choice", {"message": "Bye."})]
    trace = read_one(otlp(chat("01", 1, 2, events=events), chat("02", 3, 4, events=later)))
    assert messages(trace) == [("system", "Be kind."), ("user", "Hi."), ("assistant", "Bye.")]
    assert (calls(trace), results(trace)) == ([("f", {})], [("c1", "ok", "done")])


def test_traceloop_takes_arguments_and_results_out_of_what_langchain_puts_around_them() -> None:
    trace = one("otel_genai", "traceloop.jsonl")
    assert calls(trace) == [("ship", {"parcel": "S-9"})]
    assert results(trace) == [("call_a", "ok", "shipped")]
    assert trace.calls()[0].turn == 1
    assert trace.line_of(trace.events.index(trace.calls()[0])) == 2


def test_strands_keeps_arguments_and_results_in_events_and_states_failure() -> None:
    trace = one("otel_genai", "strands.json")
    assert calls(trace) == [("delete_file", {"file": "F-1"})]
    assert results(trace) == [("tooluse_1", "error", "not yours")]
    assert turns(trace)[0].finish_reason == "tool_use"


def test_pydantic_ai_before_it_followed_the_conventions() -> None:
    trace = one("otel_genai", "pydantic_ai_old.json")
    assert messages(trace) == [("system", "Be kind."), ("user", "Look up aspirin.")]
    assert (calls(trace), results(trace)) == ([("lookup", {"drug": "aspirin"})], [("t1", "ok", "found")])


def test_a_console_dump_with_a_retry() -> None:
    trace = one("otel_genai", "console.txt")
    assert results(trace) == [("c1", "error", "503, try again"), ("c2", "ok", "ok")]
    assert (trace.calls()[0].extra or {})["attributes"]["pydantic_ai.tool.retry.attempt"] == 1
    assert trace.start.trace_id == "0000000000000000000000000000c0de"
    assert duration_ms(trace, "c1") == 3


def test_the_ai_sdks_outer_span_is_no_response_of_its_own() -> None:
    trace = one("otel_genai", "vercel.json")
    (turn,) = turns(trace)
    assert (turn.model, turn.finish_reason) == ("m", "tool-calls")
    assert (calls(trace), results(trace)) == ([("weather", {"city": "Graz"})], [("call-1", "ok", {"c": 3})])
    assert absent(trace)["times"] == "no: the spans carry no times"


def test_a_span_of_a_client_of_mcp_below_a_tool_is_the_same_call() -> None:
    trace = one("otel_genai", "mcp.json")
    assert [(call.tool_name, call.attempt, call.op_id, call.origin) for call in trace.calls()] == [("fetch", 1, None, "model"), ("fetch", 2, "m1", "harness"), ("store", 1, None, "model")]
    assert [(each.call_id, each.attempt, each.status, each.error_class) for each in trace.results()] == [("m1", None, "error", "server_error"), ("m1", 2, "ok", None), ("call:3", None, "error", "tool_error")]
    assert results(trace)[2][2] == "full"


def test_an_exception_that_was_recorded_is_a_failure_unless_the_span_calls_itself_ok() -> None:
    events = [("exception", {"exception.type": "httpx.ReadTimeout", "exception.message": "slow"})]
    assert statuses(read_one(otlp(tool("01", 1, 2, events=events)))) == [("call:1", "timeout", "timeout")]
    assert statuses(read_one(otlp(tool("01", 1, 2, events=events, status={"code": 1})))) == [("call:1", "ok", None)]


@pytest.mark.parametrize(("attributes", "expected"), [
    ({"error.type": "429"}, ("error", "rate_limited")), ({"error.type": "tool_error"}, ("error", "tool_error")),
    ({"error.type": "asyncio.CancelledError"}, ("cancelled", "cancelled")), ({"error.type": "x", "http.response.status_code": 503}, ("error", "server_error")),
    ({"error.type": "pydantic.ValidationError"}, ("error", "schema")), ({"error.type": "ConnectionResetError"}, ("error", "reset")),
])  # fmt: skip
def test_the_type_of_an_error_tells_its_class(attributes: Any, expected: tuple[str, str]) -> None:
    assert [each[1:] for each in statuses(read_one(otlp(tool("01", 1, 2, attributes=attributes))))] == [expected]


def test_an_error_in_the_text_of_a_result_is_no_error() -> None:
    assert statuses(read_one(otlp(tool("01", 1, 2, result="Error: no such file")))) == [("call:1", "ok", None)]


def test_a_result_of_mcp_states_failure() -> None:
    value = json.dumps({"content": [{"type": "text", "text": "full"}], "isError": True})
    assert results(read_one(otlp(tool("01", 1, 2, result=value)))) == [("call:1", "error", "full")]


def test_a_span_without_an_end_is_a_call_without_a_result() -> None:
    trace = read_one(otlp(tool("01", 1, 2), tool("02", 3, None, result=None)))
    assert [status for _, status, _ in results(trace)] == ["ok", "unfinished"]


def test_calls_that_ran_at_the_same_time_are_a_batch_also_without_a_response() -> None:
    model = chat("01", 1, 2, [said("user", "x")])
    both = read_one(otlp(model, tool("02", 3, 9, call_id="a"), tool("03", 4, 5, call_id="b")))
    assert (order(both), coverage_table(both).batches) == (["+a", "+b", "-b", "-a"], 1)
    serial = read_one(otlp(model, tool("02", 3, 4, call_id="a"), tool("03", 5, 6, call_id="b")))
    assert (order(serial), coverage_table(serial).batches) == (["+a", "-a", "+b", "-b"], 0)


def test_calls_of_one_response_are_a_batch_whatever_their_times() -> None:
    got = said("assistant", asks("a", "find", {"q": 1}), asks("b", "find", {"q": 2}))
    trace = read_one(otlp(chat("01", 1, 2, [said("user", "x")], got), tool("02", 3, 4, call_id="a"), tool("03", 5, 6, call_id="b")))
    assert order(trace) == ["+a", "-a", "+b", "-b"]
    assert coverage_table(trace).batches == 1


def test_calls_without_an_id_are_matched_to_the_response_by_name_arguments_and_order() -> None:
    got = said("assistant", asks("a", "find", {"q": 1}), asks("b", "find", {"q": 2}), asks("c", "find", {"q": 2}), asks("d", "other", {}))
    trace = read_one(otlp(
        chat("01", 1, 2, [said("user", "x")], got), tool("05", 3, 9, args={"q": 2}), tool("06", 4, 9, args={"q": 1}), tool("07", 5, 9, args={"q": 2}), tool("08", 6, 9, name="other"),
        chat("0a", 10, 11, [said("user", "x")], said("assistant", asks("e", "find", {"q": 2}))), tool("0b", 12, 13, args={"q": 2}),
    ))  # fmt: skip
    assert [call.call_id for call in trace.calls()] == ["b", "a", "c", "d", "e"]
    assert [call.turn for call in trace.calls()] == [1, 1, 1, 1, 2]


def test_a_response_without_ids_is_matched_too() -> None:
    trace = read_one(otlp(chat("01", 1, 2, [said("user", "x")], said("assistant", asks(None, "find", {"q": 1}))), tool("02", 3, 4, args={"q": 1}, call_id="adk-1")))
    assert [call.call_id for call in trace.calls()] == ["adk-1"]


def test_arguments_and_results_that_a_span_leaves_out_come_from_the_messages() -> None:
    trace = read_one(otlp(
        chat("01", 1, 2, [said("user", "x")], said("assistant", asks("a", "find", {"q": 1}))), tool("02", 3, 4, result=None, call_id="a"),
        chat("03", 5, 6, [said("tool", tells("a", "found"))], said("assistant", "Done.")),
    ))  # fmt: skip
    assert (calls(trace), results(trace)) == ([("find", {"q": 1})], [("a", "ok", "found")])
    assert (trace.results()[0].extra or {})["value_from"] == "request"


def test_agents_within_a_call_have_it_as_parent_and_a_number_where_they_run_beside_each_other() -> None:
    trace = one("otel_genai", "subagents.json")
    assert [(call.agent, call.tool_name, call.parent) for call in trace.calls()] == [("main", "ask", None), ("main", "ask", None), ("helper", "search", "k1"), ("helper-2", "search", "k2")]
    assert (trace.start.attributes or {})["agent_name"] == "lead"
    assert [turn.agent for turn in turns(trace)] == ["main", "helper", "helper-2"]
    assert order(trace)[-2:] == ["-k1", "-k2"]


def test_a_span_of_a_model_within_another_is_one_response() -> None:
    outer = chat("01", 1, 9, [said("user", "x")], said("assistant", asks("c", "f", {})))
    inner = chat("02", 2, 8, [said("user", "x")], said("assistant", asks("c", "f", {})), parent="01")
    trace = read_one(otlp(outer, inner, tool("03", 10, 11, "f", call_id="c")))
    assert (len(turns(trace)), len(calls(trace))) == (1, 1)


def test_a_tool_that_starts_while_the_response_streams_does_not_move_the_turn_behind_it() -> None:
    trace = read_one(otlp(chat("01", 1, 100, [said("user", "x")], said("assistant", asks("c", "find", {}))), tool("02", 50, 60, call_id="c")))
    (turn,) = turns(trace)
    assert (turn.ts or "") <= (trace.calls()[0].ts or "")


def test_a_request_that_failed_is_no_turn_and_stays_with_the_next_one() -> None:
    failed = chat("01", 1, 2, [said("user", "x")], status={"code": 2, "message": "overloaded"})
    trace = read_one(otlp(failed, chat("02", 3, 4, [said("user", "x")], said("assistant", "Done."))))
    (turn,) = turns(trace)
    assert (turn.extra or {})["failed_requests"][0]["error"] == "overloaded"
    alone = read_one(otlp(failed))
    assert alone.end is not None
    assert (alone.end.outcome, alone.end.stop_reason) == ("failed", "provider_error")
    assert (alone.end.extra or {})["failed_requests"][0]["error"] == "overloaded"


def test_a_span_that_an_exporter_sent_twice_counts_once() -> None:
    trace = read_one((otlp(tool("01", 1, 2)), otlp(tool("01", 1, 2)), otlp(tool("02", 3, 4))))
    assert len(calls(trace)) == 2
    assert any("twice" in note.text for note in trace.notes)


def test_spans_that_belong_to_each_other_in_a_circle_are_read() -> None:
    trace = read_one(otlp(tool("01", 1, 2, parent="02"), span("x", "02", 1, 2, {}, parent="03"), span("y", "03", 1, 2, {}, parent="02"), tool("04", 3, 4, parent="04")))
    assert len(calls(trace)) == 2


def test_protobuf_reads_as_json_does() -> None:
    (as_json,) = fixture("otel_genai", "otlp.json")
    for name in ("request.pb", "framed.pb"):
        (as_protobuf,) = fixture("otel_genai", name)
        assert (calls(as_protobuf), results(as_protobuf), messages(as_protobuf)) == (calls(as_json), results(as_json), messages(as_json))
        assert as_protobuf.start.trace_id == as_json.start.trace_id == "5b8efff798038103d269b633813fc60c"
        assert [event.ts for event in as_protobuf.calls()] == [event.ts for event in as_json.calls()]


def test_protobuf_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1.trace_pb2", None)
    with pytest.raises(InputError, match=r"goldentrace\[otlp\]"):
        fixture("otel_genai", "request.pb")


@pytest.mark.parametrize("name", ["request.pb", "framed.pb"])
def test_damaged_protobuf_is_an_input_error_or_a_trace(name: str) -> None:
    data = (FIXTURES / "otel_genai" / name).read_bytes()
    for cut in range(8, len(data), 13):
        for damaged in (data[:cut], data[:cut] + b"\xff\xff\xff" + data[cut + 3 :]):
            try:
                list(document_traces(Document.of(damaged, name), "otel-genai"))
            except InputError:
                continue


def test_a_json_file_that_begins_with_an_empty_line_is_no_protobuf() -> None:
    data = b"\n" + json.dumps(otlp(tool("01", 1, 2))).encode()
    assert calls(read_one(data)) == [("find", None)]


def test_spans_of_no_agent_are_recognised_and_hold_no_trace() -> None:
    value = otlp(span("GET /", "01", 1, 2, {"http.route": "/"}))
    assert detect(Document.of(json.dumps(value).encode())).name == "otel-genai"
    with pytest.raises(InputError, match="no trace in it"):
        read_one(value)


def test_no_limit_is_invented() -> None:
    assert not any(isinstance(event, Limit) for event in one("otel_genai", "otlp.json").events)


def test_a_reason_of_length_is_a_limit_of_tokens() -> None:
    trace = read_one(otlp(chat("01", 1, 2, [said("user", "x")], {**said("assistant", "And so"), "finish_reason": "length"})))
    assert trace.end is not None
    assert trace.end.stop_reason == "token_limit"
    assert isinstance(trace.events[2], ModelTurn)
