"""SWE-agent: steps with and without the history that tells their calls."""

import json
from pathlib import Path

import pytest

from tests.sources.reading import calls, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "swe_agent"
FULL = json.loads((FIXTURES / "full.traj").read_text())


def test_calls_are_those_of_the_history_and_durations_those_of_the_steps() -> None:
    trace = read_one(FULL)
    assert calls(trace) == [("bash", {"command": "ls -F"}), ("submit", {})]
    assert results(trace) == [("c1", "ok", "a.py"), ("c2", "ok", "diff")]
    assert [(result.extra or {})["duration_ms"] for result in trace.results()] == [250.0, 500.0]


def test_demonstrations_are_no_activity() -> None:
    trace = read_one(FULL)
    assert said(trace)[:2] == [("system", "Fix it."), ("user", "Issue: x")]
    assert "demo" not in [call.call_id for call in trace.calls()]


def test_without_calls_an_action_is_a_line_for_the_shell() -> None:
    trace = read_one((FIXTURES / "steps.traj").read_bytes())
    assert calls(trace) == [("shell", {"command": "ls"}), ("shell", {"command": "cat a"})]
    assert [status for _, status, _ in results(trace)] == ["ok", "ok"], "there is no flag for failure"
    assert trace.start.scenario_id == "demo-1"


def test_a_history_alone_is_a_run() -> None:
    trace = read_one((FIXTURES / "history.json").read_bytes())
    assert [(call_id, status) for call_id, status, _ in results(trace)] == [("c1", "ok"), ("c2", "unfinished")]
    assert len(turns(trace)) == 2


def test_a_history_that_does_not_fit_the_steps_is_not_guessed_from() -> None:
    odd = FULL | {"history": FULL["history"][:4]}
    assert calls(read_one(odd)) == [("shell", {"command": "ls -F"}), ("shell", {"command": "submit"})]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("submitted", "final_answer"), ("submitted (exit_cost)", "cost_limit"), ("exit_context", "context_limit"), ("exit_api", "provider_error"), ("exit_forfeit", "unknown"), (None, "unknown")],
)
def test_the_exit_status_is_the_stop_reason(status: str | None, expected: str) -> None:
    trace = read_one(FULL | {"info": {"exit_status": status}})
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("unknown", expected)


def test_there_is_no_clock_and_says_so() -> None:
    trace = read_one(FULL)
    assert all(call.ts is None for call in trace.calls())
    assert set(trace.coverage) == {"times", "usage", "status"}
