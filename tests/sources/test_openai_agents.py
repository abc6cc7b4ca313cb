"""OpenAI Agents SDK: each trap of its spans and of its saved states."""

import json
from typing import Any

from goldentrace.model.event import Approval, Limit
from goldentrace.sources.coverage import coverage_table
from tests.sources.reading import calls, read_one, results, turns
from tests.sources.reading import said as messages
from tests.sources.spanning import FIXTURES, duration_ms, one, order, statuses


def span(span_id: str, parent: str | None, start: str, end: str | None, data: Any, error: Any = None) -> dict[str, Any]:
    return {
        "object": "trace.span", "id": span_id, "trace_id": "trace_1", "parent_id": parent, "started_at": f"2026-01-01T10:00:{start}+00:00",
        "ended_at": end and f"2026-01-01T10:00:{end}+00:00", "span_data": data, "error": error,
    }  # fmt: skip


def test_spans_without_call_ids_in_the_order_of_their_ends() -> None:
    trace = one("openai_agents", "spans.jsonl")
    assert order(trace)[:4] == ["+call:1", "+call:2", "-call:1", "-call:2"]
    assert coverage_table(trace).batches == 1
    assert trace.coverage["call_ids"] == "calls without an id were numbered"
    assert duration_ms(trace, "call:2") == 12
    assert (trace.start.attributes or {})["workflow_name"] == "Shop"
    assert (trace.start.attributes or {})["group_id"] == "chat-7"


def test_a_failed_tool_has_an_error_and_an_output_like_any_other() -> None:
    trace = one("openai_agents", "spans.jsonl")
    assert statuses(trace)[2] == ("call:3", "error", "tool_error")
    assert results(trace)[2][2] == "An error occurred while running the tool."
    assert (trace.results()[2].extra or {})["error"] == "Error running tool (non-fatal)"


def test_an_error_whose_text_was_redacted_still_failed() -> None:
    """Without `trace_include_sensitive_data` the SDK writes neither arguments, results nor the text of an error."""
    data = {"type": "function", "name": "pay", "input": None, "output": None}
    error = {"message": "Error running tool (non-fatal)", "data": {"tool_name": "pay", "error": "Tool execution failed. Error details are redacted."}}
    trace = read_one((span("f1", None, "01", "02", data, error), span("f2", None, "03", "04", data)))
    assert [(status, error_class) for _, status, error_class in statuses(trace)] == [("error", "tool_error"), ("ok", None)]
    assert {"arguments", "results"} <= trace.coverage.keys()


def test_a_result_that_the_sdk_wrote_with_str_is_its_value() -> None:
    outputs = ["{'paid': True, 'note': None, 'of': ['Zoë']}", "{'a': set()}", "{no literal}", "plain"]
    spans = [span(f"f{n}", None, f"0{n}", f"0{n + 1}", {"type": "function", "name": "f", "input": "{}", "output": output}) for n, output in enumerate(outputs)]
    assert [value for _, _, value in results(read_one(tuple(spans)))] == [{"paid": True, "note": None, "of": ["Zoë"]}, *outputs[1:]]


def test_a_handoff_and_the_agent_after_it() -> None:
    trace = one("openai_agents", "spans.jsonl")
    assert [(call.tool_name, call.agent) for call in trace.calls()][-1] == ("transfer_to_refund_desk", "main")
    assert [(turn.agent, turn.usage and turn.usage.cached_tokens) for turn in turns(trace)] == [("main", 1)] * 3 + [("Refund Desk", 1)]
    assert trace.end is not None
    assert (trace.end.extra or {})["guardrails"] == [{"name": "no secrets", "triggered": False}]


def test_a_batch_of_the_exporter_and_a_tool_that_had_not_ended() -> None:
    trace = one("openai_agents", "batch.json")
    assert messages(trace) == [("user", "Ping.")]
    assert results(trace) == [("call_p", "unfinished", None)]
    assert bytes(trace.calls()[0].args) == b"{}"


def test_a_response_within_a_turn_is_the_turn() -> None:
    turn = span("t", None, "01", "09", {"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "turn": 1, "agent_name": "A", "usage": {"input_tokens": 5}}})
    response = span("r", "t", "02", "03", {"type": "response", "response_id": "resp_1", "usage": None})
    (found,) = turns(read_one((response, turn)))
    assert found.usage is not None
    assert found.usage.input_tokens == 5
    assert (found.extra or {})["response_id"] == "resp_1"


def test_a_run_that_was_stopped_by_its_limit_of_turns() -> None:
    agent = span("a", None, "00", "09", {"type": "agent", "name": "A"}, {"message": "Max turns exceeded", "data": {"max_turns": 3}})
    trace = read_one((span("f", "a", "01", "02", {"type": "function", "name": "f", "input": "{}", "output": "x"}), agent))
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("failed", "turn_limit")
    assert [(event.limit, event.max) for event in trace.events if isinstance(event, Limit)] == [("max_turns", 3.0)]


def test_a_state_has_call_ids_agents_usage_and_approvals() -> None:
    trace = one("openai_agents", "state.json")
    assert messages(trace) == [("user", "Refund A1 and B2.")]
    assert [(call.call_id, call.tool_name, call.agent, call.turn) for call in trace.calls()] == [
        ("c1", "transfer_to_refund_desk", "main", 1), ("c2", "refund", "Refund Desk", 2), ("c3", "refund", "Refund Desk", 2), ("c4", "refund", "Refund Desk", 2),
    ]  # fmt: skip
    assert statuses(trace) == [("c1", "ok", None), ("c2", "ok", None), ("c3", "denied", "denied"), ("c4", "unfinished", None)]
    assert [(event.call_id, event.verdict) for event in trace.events if isinstance(event, Approval)] == [("c2", "approved"), ("c3", "denied")]
    first, second = turns(trace)
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.cached_tokens) == (10, 4)
    assert (first.extra or {}, second.extra or {}) == ({"response_id": "r1"}, {"response_id": "r2"})


def test_a_state_that_waits_for_an_approval_needs_a_human() -> None:
    trace = one("openai_agents", "state.json")
    assert trace.end is not None
    assert trace.end.outcome == "needs_human"
    assert "times" in trace.coverage


def test_hidden_reasoning_is_dropped() -> None:
    assert all("hidden words" not in str(event) for event in one("openai_agents", "state.json").events)


def test_a_state_without_generated_items_is_read_from_its_responses() -> None:
    state = json.loads((FIXTURES / "openai_agents" / "state.json").read_text())
    trace = read_one({**state, "generated_items": []})
    assert [call.call_id for call in trace.calls()] == ["c1", "c2", "c3", "c4"]
    assert len(turns(trace)) == 2


def test_a_state_of_a_conversation_given_as_items() -> None:
    state = json.loads((FIXTURES / "openai_agents" / "state.json").read_text())
    trace = read_one({**state, "original_input": [{"role": "user", "content": "Hi."}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "There."}]}], "generated_items": [], "model_responses": []})
    assert messages(trace) == [("user", "Hi."), ("user", "There.")]
    assert calls(trace) == []
