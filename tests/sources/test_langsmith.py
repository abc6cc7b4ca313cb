"""LangSmith runs: each trap of the format."""

import json
from typing import Any

import pytest

from goldentrace.errors import InputError
from tests.sources.reading import calls, read_all, read_one, results, turns
from tests.sources.reading import said as messages
from tests.sources.spanning import FIXTURES, duration_ms, one, statuses


def runs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / "langsmith" / "runs.jsonl").read_text().splitlines()]


def test_a_failed_tool_gets_its_message_from_the_node_around_it() -> None:
    trace = one("langsmith", "runs.jsonl")
    assert results(trace) == [("c1", "error", "Error: RuntimeError('503')\n Please fix."), ("c2", "ok", "shipped")]
    assert "Traceback" in (trace.results()[0].extra or {})["error"]


def test_arguments_written_by_python() -> None:
    assert calls(one("langsmith", "runs.jsonl")) == [("lookup", {"id": "A1"})] * 2


def test_runs_are_ordered_by_time_whatever_their_order_in_the_file() -> None:
    trace = one("langsmith", "runs.jsonl")
    assert [call.turn for call in trace.calls()] == [1, 2]
    assert messages(trace) == [("user", "Where is A1?"), ("assistant", "It was shipped.")]
    first = turns(trace)[0]
    assert (first.model, first.finish_reason) == ("m", "tool_calls")
    assert first.usage is not None
    assert first.usage.input_tokens == 10
    assert duration_ms(trace, "c1") == 8


def test_the_call_id_may_stand_in_the_result_alone() -> None:
    assert [call.call_id for call in one("langsmith", "runs.jsonl").calls()] == ["c1", "c2"]


def test_child_runs_that_are_loaded() -> None:
    trace = one("langsmith", "nested.json")
    assert (calls(trace), results(trace)) == ([("lookup", "T-1")], [("call:1", "ok", "open")])


def test_child_runs_that_are_not_loaded_are_told() -> None:
    """An export holds them only where it was asked to; a root alone has the conversation, but neither times nor failures of it."""
    (root,) = [run for run in runs() if run.get("parent_run_id") is None]
    with pytest.raises(InputError, match="no run of a tool or of a model") as refused:
        read_one({**root, "child_runs": None})
    assert "load_child_runs=True" in (refused.value.next_step or "")
    named = tuple({**run, "child_run_ids": [run["id"], "not-here"]} if run["id"] == root["id"] else run for run in runs())
    told = "child runs that are named but not in the file: 1"
    assert told in [note.text for note in read_one(named).notes]
    assert told not in [note.text for note in read_one(tuple(runs())).notes]


def test_posts_and_patches_are_merged_by_id_or_dotted_order() -> None:
    trace = one("langsmith", "sdk_log.json")
    assert (calls(trace), results(trace)) == ([("wave", {"to": "you"})], [("call_w", "ok", "waved")])
    (turn,) = turns(trace)
    assert (turn.model, turn.finish_reason) == ("m-2026", "tool_calls")
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.cached_tokens) == (9, 3)
    assert trace.start.ts == "2026-01-01T10:00:00.000000Z"
    assert duration_ms(trace, "call_w") == 3


def test_a_run_that_had_not_ended_is_a_call_without_a_result() -> None:
    given = runs()
    for run in given:
        if run["run_type"] == "tool" and not run["error"]:
            run |= {"end_time": None, "outputs": None}
    assert statuses(read_one(tuple(given))) == [("c1", "error", "tool_error"), ("c2", "unfinished", None)]


@pytest.mark.parametrize(("error", "expected"), [
    ("TimeoutError('slow')Traceback (most recent call last):", ("timeout", "timeout")), ("openai.RateLimitError: 429", ("error", "rate_limited")), ("it broke", ("error", "tool_error")),
])  # fmt: skip
def test_the_exception_in_an_error_tells_its_class(error: str, expected: tuple[str, str]) -> None:
    given = runs()
    for run in given:
        if run["error"]:
            run["error"] = error
    assert statuses(read_one(tuple(given)))[0][1:] == expected


def test_several_traces_in_one_file() -> None:
    given = runs()
    moved = [{**run, "trace_id": "t2", "id": run["id"].replace("0000", "9999", 1), "parent_run_id": None} for run in given if run["run_type"] == "tool"]
    assert [len(trace.calls()) for trace in read_all((*given, *moved))] == [2, 2]
