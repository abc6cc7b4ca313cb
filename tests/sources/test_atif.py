"""ATIF: copied steps, results without ids, subagents, and steps without a model."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import read_all, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "atif"
RUN = json.loads((FIXTURES / "trajectory.json").read_text())


def trajectory(*steps: dict[str, Any], version: str = "ATIF-v1.7", **more: Any) -> dict[str, Any]:
    return {"schema_version": version, "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": list(steps), **more}


def acts(*calls: str, results: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    asked = [{"tool_call_id": each, "function_name": "t", "arguments": {}} for each in calls]
    return {"step_id": 1, "source": "agent", "message": "", "tool_calls": asked, "observation": {"results": results or []}, **more}


def test_copied_steps_are_no_new_activity() -> None:
    first, second = read_all((FIXTURES / "two.jsonl").read_text())
    assert [call.call_id for call in first.calls()] == ["z"]
    assert [note.text for note in first.notes] == ["2 steps copied from an earlier trajectory were left out"]
    assert said(second) == [("user", "hi"), ("assistant", "hello")]


def test_results_without_a_source_call_pair_in_order() -> None:
    trace = read_one(trajectory(acts("a", "b", results=[{"content": "A"}, {"content": "B"}])))
    assert results(trace) == [("a", "ok", "A"), ("b", "ok", "B")]


def test_an_observation_of_what_no_call_tells_is_no_result() -> None:
    assert ("environment", "a.txt") in said(read_one(RUN))
    assert len(read_one(RUN).results()) == 4


def test_a_subagent_runs_within_its_call() -> None:
    trace = read_one(RUN)
    assert [(call.call_id, call.agent, call.parent) for call in trace.calls()] == [("a", "main", None), ("b", "main", None), ("s", "helper", "b"), ("c", "main", None)]


def test_a_step_without_a_model_is_the_harness() -> None:
    trace = read_one(RUN)
    assert [call.origin for call in trace.calls()] == ["model", "model", "model", "harness"]
    assert [turn.model for turn in turns(trace)] == ["model-x", "model-z", "model-y", "model-x"]


def test_there_is_one_time_per_step_and_no_status() -> None:
    trace = read_one(RUN)
    assert trace.calls()[0].ts == "2026-01-01T10:00:01.000000Z"
    assert [result.ts for result in trace.results()] == [None] * 4
    assert [status for _, status, _ in results(trace)] == ["ok"] * 4, "an error in a text is for the profile to see"
    assert set(trace.coverage) == {"status", "result_times"}


def test_usage_is_that_of_the_step_and_reasoning_is_dropped() -> None:
    trace = read_one(RUN)
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd) == (9, 3, 1, 0.5)
    assert "hidden" not in repr(trace.events)


@pytest.mark.parametrize("minor", range(2, 9))
def test_every_version_is_read_without_a_word(minor: int) -> None:
    assert read_one(trajectory(acts("a"), version=f"ATIF-v1.{minor}")).notes == ()


def test_a_later_version_is_read_and_told() -> None:
    assert "not one that is known" in read_one(trajectory(acts("a"), version="ATIF-v2.0")).notes[0].text


def test_a_subagent_that_holds_itself_ends() -> None:
    reference = [{"content": "x", "source_call_id": "a", "subagent_trajectory_ref": [{"trajectory_id": "me"}]}]
    inner = trajectory(acts("a", results=reference)) | {"trajectory_id": "me"}
    assert len(read_one(trajectory(acts("a", results=reference), subagent_trajectories=[inner])).calls()) == 2


def test_a_continuation_is_named() -> None:
    trace = read_one(trajectory(acts("a"), continued_trajectory_ref="next.json"))
    assert trace.start.attributes is not None
    assert trace.start.attributes["continued_by"] == "next.json"
