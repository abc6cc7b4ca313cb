"""codex exec --json: items that begin and end, and what can be known without a clock."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import calls, read_all, read_one, results, said, shape, turns

STREAM = tuple(json.loads(line) for line in (Path(__file__).with_name("fixtures") / "codex_exec" / "stream.jsonl").read_text().splitlines())


def done(**item: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "item_1", **item}}


def test_an_item_that_began_is_one_call() -> None:
    trace = read_one(STREAM)
    assert calls(trace) == [("command_execution", {"command": "ls"}), ("find", {"q": "x"}), ("file_change", {"changes": [{"path": "a", "kind": "add"}]}), ("command_execution", {"command": "rm x"})]
    assert [(call_id, status) for call_id, status, _ in results(trace)] == [("item_2", "ok"), ("item_1", "error"), ("item_3", "ok"), ("item_4", "denied")]


def test_items_that_run_at_once_are_of_one_turn() -> None:
    trace = read_one(STREAM)
    assert shape(trace)[:5] == ["model_turn", "tool_call item_1", "tool_call item_2", "tool_result item_2", "tool_result item_1"]
    assert len(turns(trace)) == 4


def test_there_is_no_clock_and_usage_is_not_of_a_turn_of_the_model() -> None:
    trace = read_one(STREAM)
    assert set(trace.coverage) == {"times", "usage"}
    assert trace.end is not None
    assert trace.end.extra == {"usage_of_turns": [{"input_tokens": 9, "cached_input_tokens": 1, "output_tokens": 2}]}
    assert (trace.end.outcome, trace.end.stop_reason) == ("unknown", "final_answer")


@pytest.mark.parametrize(
    ("item", "status"),
    [
        ({"type": "command_execution", "command": "x", "exit_code": 1, "status": "completed"}, "error"),
        ({"type": "command_execution", "command": "x", "exit_code": 0, "status": "completed"}, "ok"),
        ({"type": "mcp_tool_call", "tool": "t", "result": {"isError": True}, "status": "completed"}, "error"),
        ({"type": "mcp_tool_call", "tool": "t", "error": {"message": "no server"}, "status": "failed"}, "error"),
        ({"type": "file_change", "changes": [], "status": "failed"}, "error"),
        ({"type": "web_search", "query": "q"}, "ok"),
    ],
)
def test_what_an_item_says_of_failure(item: dict[str, Any], status: str) -> None:
    assert results(read_one((STREAM[0], done(**item))))[0][1] == status


def test_reasoning_and_plans_are_dropped_and_unknown_items_told() -> None:
    trace = read_one((*STREAM, done(type="todo_list", items=[{"text": "hidden"}]), done(type="hologram")))
    assert "hidden" not in repr(trace.events)
    assert [note.text for note in trace.notes] == ["an item of type 'hologram' was left out"]
    assert said(trace) == [("assistant", "Done.")]


def test_a_failed_turn_is_an_error_of_the_provider_and_an_open_item_unfinished() -> None:
    trace = read_one((*STREAM[:4], {"type": "turn.failed", "error": {"message": "overloaded"}}))
    assert results(trace)[0][1] == "unfinished"
    assert trace.end is not None
    assert trace.end.stop_reason == "provider_error"


def test_ids_begin_again_when_a_thread_goes_on_and_another_thread_is_another_trace() -> None:
    again = read_all((*STREAM, *STREAM))
    assert [len(trace.calls()) for trace in again] == [8]
    assert all(status != "unfinished" for _, status, _ in results(again[0]))
    other = json.loads(json.dumps(STREAM).replace("th-1", "th-2"))
    assert [trace.start.trace_id for trace in read_all((*STREAM, *other))] == ["th-1", "th-2"]
