"""The native files of other tools, so that their users can move over: tracelint, Clew, offtrack."""

import json
from pathlib import Path
from typing import Any

from goldentrace.sources.coverage import coverage_table
from tests.sources.reading import calls, read_all, read_one, results, said, shape, turns

FIXTURES = Path(__file__).with_name("fixtures")


def fixture(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


def test_tracelints_steps_become_turns_calls_and_results() -> None:
    trace = read_one(fixture("tracelint/run.json"))
    assert shape(trace) == [
        "message", "model_turn", "message", "tool_call c1", "tool_result c1", "model_turn", "tool_call c2", "tool_result c2",
        "model_turn", "message",
    ]  # fmt: skip
    assert calls(trace) == [("find_parcel", {"parcel": "P1"}), ("find_parcel", None)]
    failed, unsure = trace.results()
    assert (failed.status, failed.http_status, results(trace)[0][2]) == ("error", 503, "unavailable")
    assert (unsure.status, (unsure.extra or {})["status"]) == ("ok", "unknown")
    assert trace.calls()[0].ts == "2026-01-01T10:00:01.000000Z"
    assert (trace.calls()[1].extra or {})["args_unavailable"] == "not captured"
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (9, 3)
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


def test_a_clew_span_is_a_call_and_its_result_by_time() -> None:
    trace = read_one(fixture("clew/trace.json"))
    assert shape(trace) == [
        "model_turn", "tool_call s2", "tool_call s1", "tool_result s1", "tool_result s2", "model_turn", "tool_call s3", "tool_result s3",
    ]  # fmt: skip
    assert calls(trace)[2] == ("notify", None)
    assert trace.calls()[2].args_raw == "{'to': 'ann'}"
    assert coverage_table(trace).batches == 1
    assert trace.start.scenario_id == "parcels"


def test_times_that_clew_made_up_are_not_taken() -> None:
    file = fixture("clew/trace.json")
    file["metadata"]["source"] = "toolathlon_jsonl"
    trace = read_one(file)
    assert all(event.ts is None for event in trace.events)
    assert "made up" in trace.coverage["times"]
    assert shape(trace) == shape(read_one(fixture("clew/trace.json")))


def test_a_baseline_of_offtrack_holds_several_runs() -> None:
    first, second = read_all(fixture("offtrack/baseline.json"))
    assert shape(first) == [
        "model_turn", "tool_call call:1", "tool_call call:2", "tool_result call:1", "tool_result call:2", "model_turn", "message",
    ]  # fmt: skip
    assert [call.batch for call in first.calls()] == ["g-1", "g-1"]
    assert results(first) == [("call:1", "error", "none"), ("call:2", "ok", None)]
    assert first.results()[1].extra == {"result_cut": {"size_bytes": 40000, "sha256": "ab12"}}
    assert said(first) == [("assistant", "In Graz.")]
    assert first.end is not None
    assert first.end.stop_reason == "final_answer"
    assert (second.start.trace_id, second.start.scenario_id) == ("01J1", "parcels/find")


def test_a_capture_of_offtrack_is_one_run() -> None:
    trace = read_one((FIXTURES / "offtrack" / "capture.jsonl").read_text())
    assert calls(trace) == [("notify", {"to": "ann"})]
    (answer,) = trace.results()
    assert (answer.status, answer.error_class, answer.ts) == ("timeout", "timeout", "2026-01-01T10:00:02.000000Z")
    assert trace.coverage == {"call_ids": "calls without an id were numbered"}
