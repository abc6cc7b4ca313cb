"""OpenHands: pairs by cause, several actions of one response, and four ways to fail."""

import json
from pathlib import Path

from tests.sources.reading import calls, read_all, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "openhands"
LINES = tuple(json.loads(line) for line in (FIXTURES / "output.jsonl").read_text().splitlines())
EVENTS = json.loads((FIXTURES / "events.json").read_text())


def test_an_observation_answers_the_action_that_caused_it() -> None:
    swapped = [*EVENTS[:4], EVENTS[4], EVENTS[6], EVENTS[7], EVENTS[5], *EVENTS[8:]]
    assert [(call_id, value) for call_id, _, value in results(read_one(swapped))][:2] == [("t2", "no such file"), ("t1", "a")]


def test_arguments_are_those_that_the_model_wrote() -> None:
    trace = read_one(EVENTS)
    assert calls(trace)[:3] == [("execute_bash", {"command": "ls"}), ("str_replace_editor", {"command": "view", "path": "a"}), ("run", {"command": "make"})]


def test_actions_of_one_response_are_one_turn_and_one_batch() -> None:
    trace = read_one(EVENTS)
    assert [(call.turn, call.batch) for call in trace.calls()][:2] == [(1, "r1"), (1, "r1")]
    assert [turn.usage and turn.usage.output_tokens for turn in turns(trace)] == [2, None, None, None, 2]


def test_what_failed_timed_out_or_was_refused() -> None:
    assert [status for _, status, _ in results(read_one(EVENTS))] == ["ok", "error", "error", "timeout", "denied"]


def test_an_error_without_an_action_answers_no_call() -> None:
    assert ("environment", "Parameter 'command' is missing") in said(read_one(EVENTS))


def test_times_without_a_zone_are_told() -> None:
    trace = read_one(EVENTS)
    assert trace.calls()[0].ts == "2026-01-01T10:00:05.500000Z"
    assert [note.text for note in trace.notes] == ["clock times without a zone were read as UTC"]


def test_finish_is_the_end_and_no_call() -> None:
    trace = read_one(EVENTS)
    assert "finish" not in [name for name, _ in calls(trace)]
    assert said(trace)[-1] == ("assistant", "Done.")
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


def test_a_line_of_a_benchmark_is_a_run_also_with_pairs_in_its_history() -> None:
    first, second = read_all(LINES)
    assert [trace.start.scenario_id for trace in (first, second)] == ["demo-1", "demo-2"]
    assert [status for _, status, _ in results(second)] == ["error", "timeout"]
    assert second.end is not None
    assert (second.end.outcome, second.end.stop_reason) == ("failed", "turn_limit")


def test_events_one_per_line_are_a_run() -> None:
    assert results(read_one(tuple(EVENTS))) == results(read_one(EVENTS))
