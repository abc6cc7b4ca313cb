"""stream-json and recordings of the Agent SDK: what the last row says of earlier ones, and who allowed a call."""

import json
from pathlib import Path
from typing import Any

import pytest

from goldentrace.model.event import Approval, Decision
from tests.sources.reading import calls, read_all, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "claude_stream"
STREAM = tuple(json.loads(line) for line in (FIXTURES / "stream.jsonl").read_text().splitlines())
RECORDING = json.loads((FIXTURES / "recording.json").read_text())


def test_usage_of_a_response_counts_once_and_is_that_of_its_last_row() -> None:
    assert [turn.usage and turn.usage.output_tokens for turn in turns(read_one(STREAM))] == [9, 3, 3]


def test_a_subagent_is_told_by_the_call_that_its_rows_name() -> None:
    trace = read_one(STREAM)
    assert [(call.call_id, call.agent, call.parent) for call in trace.calls()] == [("t1", "main", None), ("t2", "main", None), ("t3", "Explore", "t1")]


def test_the_result_row_names_the_calls_that_were_refused() -> None:
    trace = read_one(STREAM)
    assert [(call_id, status) for call_id, status, _ in results(trace)] == [("t3", "ok"), ("t1", "ok"), ("t2", "denied")]
    assert [(event.call_id, event.verdict) for event in trace.events if isinstance(event, Approval)] == [("t2", "denied")]


def test_a_wait_for_the_provider_is_a_stated_retry() -> None:
    (decision,) = [event for event in read_one(STREAM).events if isinstance(event, Decision)]
    assert (decision.decision, decision.delay_ms, decision.extra) == ("retry", 700.0, {"attempt": 1, "max_attempts": 10, "http_status": 529})


def test_reasoning_and_partial_rows_are_no_events() -> None:
    partial = {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": "Do"}}, "session_id": "s1"}
    trace = read_one((*STREAM[:-1], partial, STREAM[-1]))
    assert "hidden" not in repr(trace.events)
    assert said(trace) == [("assistant", "Done.")]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ("success", "final_answer")),
        ({"subtype": "error_max_turns"}, ("failed", "turn_limit")),
        ({"subtype": "error_max_budget_usd"}, ("failed", "cost_limit")),
        ({"is_error": True}, ("failed", "provider_error")),
    ],
)
def test_the_result_row_says_how_the_run_ended(changed: dict[str, Any], expected: tuple[str, str]) -> None:
    trace = read_one((*STREAM[:-1], STREAM[-1] | changed))
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == expected
    assert trace.end.extra is not None
    assert trace.end.extra["total_cost_usd"] == 0.02


def test_without_a_result_row_nothing_is_known_of_the_end() -> None:
    trace = read_one(STREAM[:4])
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("unknown", "unknown")
    assert [status for _, status, _ in results(trace)] == ["unfinished", "unfinished"]


def test_rows_without_a_time_have_none_and_say_why() -> None:
    assert read_one(STREAM).coverage["times"] == "rows carry no time"
    timed = tuple(each | {"timestamp": "2026-01-01T10:00:00.5Z"} for each in STREAM)
    trace = read_one(timed)
    assert trace.calls()[0].ts == "2026-01-01T10:00:00.500000Z"
    assert "times" not in trace.coverage


def test_a_recording_of_the_sdk_says_who_allowed_a_call() -> None:
    trace = read_one(RECORDING)
    assert calls(trace) == [("Bash", {"command": "ls"})]
    assert [(event.verdict, event.by) for event in trace.events if isinstance(event, Approval)] == [("approved", "user")]
    assert trace.start.cwd == "/repo", "the opening row comes after the prompt"
    lines = tuple(RECORDING["messages"])
    assert results(read_one(lines)) == results(trace)


def test_a_call_that_the_sdk_refused_is_denied() -> None:
    recording = json.loads(json.dumps(RECORDING).replace('"allow"', '"deny"').replace('"content": "a.txt"', '"content": "no", "is_error": true'))
    trace = read_one(recording)
    assert results(trace)[0][1] == "denied"
    assert [event.verdict for event in trace.events if isinstance(event, Approval)] == ["denied"], "said once"


def test_two_sessions_in_a_stream_are_two_traces() -> None:
    second = json.loads(json.dumps(STREAM).replace('"s1"', '"s2"'))
    traces = read_all((*STREAM, *second))
    assert [trace.start.trace_id for trace in traces] == ["s1", "s2"]
    assert [len(trace.calls()) for trace in traces] == [3, 3]
    assert len(read_all((*STREAM, *STREAM))) == 1, "a session goes on after a result"
