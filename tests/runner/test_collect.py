"""What is made of the events of a run: where a limit cuts it, how it ends, what the servers add."""

import json
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError
from goldentrace.model.config import Limits
from goldentrace.model.event import AnyEvent, Limit, ModelTurn, ToolCall, ToolResult, TraceEnd
from goldentrace.model.trace import Trace
from goldentrace.runner.collect import Ending, check_recorded, encode_trace, finish, join, read_run
from goldentrace.runner.job import Breach, Job
from goldentrace.store.clock import Moment
from tests.cli.traces import call, dump, end, searches, start

SECOND = 1_000_000_000


def job(**fields: Any) -> Job:
    return Job("orders", ("true",), Path("/"), Path("t.jsonl"), Path("t.log"), **fields)


def trace(events: list[dict[str, Any]]) -> Trace:
    return read_trace(dump(events).encode(), "t.jsonl")


def test_a_limit_cuts_behind_the_event_that_passes_it() -> None:
    kept, breach = finish(trace(searches(39)), job(limits=Limits(max_tool_calls=5)), Ending(0))
    assert breach is not None
    assert [type(event) for event in kept.events[-3:]] == [ToolCall, Limit, TraceEnd]
    limit = kept.events[-2]
    assert isinstance(limit, Limit)
    assert (limit.limit, limit.value, limit.max, limit.extra) == ("max_tool_calls", 6, 5, {"events_left_out": 67})
    assert kept.incomplete is None


def test_what_came_after_the_clock_ran_out_is_left_out() -> None:
    events = [{**event, "mono_ns": n * SECOND} for n, event in enumerate(searches(3))]
    stopped = Moment(mono_ns=3 * SECOND, time_ns=0)
    wall = Breach("max_wall_ms", 3000, 2999, "wall_clock_limit")
    kept, _ = finish(trace(events), job(), Ending(-15, wall, stopped))
    assert [event.mono_ns for event in kept.events] == [0, SECOND, 2 * SECOND, 3 * SECOND, 3 * SECOND, 3 * SECOND]
    assert kept.end is not None
    assert (kept.end.outcome, kept.end.stop_reason, kept.end.extra) == ("aborted", "wall_clock_limit", None)


def test_a_limit_that_the_agent_states_is_its_own() -> None:
    own = {"type": "limit", "limit": "max_tool_calls", "value": 3, "max": 2}
    events = [*searches(2)[:-1], own, end("aborted", "call_limit")]
    kept, breach = finish(trace(events), job(limits=Limits(max_tool_calls=2)), Ending(0))
    assert breach is None
    assert sum(isinstance(event, Limit) for event in kept.events) == 1


@pytest.mark.parametrize(
    ("ending", "complete", "extra"),
    [
        (Ending(0), True, None),
        (Ending(3), True, {"exit_code": 3}),
        (Ending(-9), False, None),
        (Ending(0, lacking="shard: torn"), False, None),
    ],
)
def test_how_a_trace_without_its_end_ends(ending: Ending, complete: bool, extra: dict[str, int] | None) -> None:
    kept, _ = finish(trace(searches(1)[:-1]), job(), ending)
    again = read_trace(encode_trace(kept), "t.jsonl")
    assert (again.incomplete is None) == complete
    if complete:
        assert again.end is not None
        assert (again.end.outcome, again.end.extra) == ("unknown", extra)


def test_a_signal_after_the_end_is_noted() -> None:
    kept, _ = finish(trace(searches(1)), job(), Ending(-11))
    assert kept.end is not None
    assert (kept.end.outcome, kept.end.extra) == ("success", {"signal": 11})


def test_what_is_written_can_be_read() -> None:
    """Counts and checksums of what the agent wrote no longer hold; `seq` is numbered anew."""
    events = [{**event, "seq": n * 1} for n, event in enumerate(searches(2))]
    kept, _ = finish(trace([*events[:-1], {**events[-1], "events": 5}]), job(), Ending(0))
    again = read_trace(encode_trace(kept), "t.jsonl")
    assert [event.seq for event in again.events] == [1, 2, 3, 4, 5, 6]
    assert again.end is not None
    assert again.end.events == 5


def model_side(*, is_answered: bool = True) -> list[AnyEvent]:
    events: list[AnyEvent] = [
        ModelTurn(turn=1, mono_ns=2),
        ToolCall(call_id="wire", tool_name="look", turn=1, mono_ns=3),
        ToolResult(call_id="wire", status="ok", turn=1, mono_ns=5),
    ]
    return [*events, ModelTurn(turn=2, mono_ns=6, input_call_ids=["wire"])] if is_answered else events


def test_a_silent_agent_is_what_the_model_saw() -> None:
    silent = trace([start()])
    found = join(silent, model_side(), [], 0)
    assert found.start.states == []
    assert found.end is not None
    assert found.end.stop_reason == "final_answer"
    assert join(silent, model_side(), [], 1).end is None
    assert join(silent, model_side(is_answered=False), [], 0).end is None
    assert join(trace([start(), end()]), model_side(), [], 0).end == TraceEnd(
        outcome="success", stop_reason="final_answer"
    )


def test_an_agent_s_own_calls_get_the_model_s_turns() -> None:
    own = [{**event, "mono_ns": 3 + n} for n, event in enumerate(call(1, "look"))]
    for event in own:
        del event["turn"]
    found = join(trace([{**start(), "mono_ns": 1}, *own, {**end(), "mono_ns": 9}]), model_side(), [], 0)
    assert [type(event).__name__ for event in found.events] == [
        "TraceStart", "ModelTurn", "ToolCall", "ToolResult", "ModelTurn", "TraceEnd",
    ]  # fmt: skip
    turn = found.events[4]
    assert isinstance(turn, ModelTurn)
    assert turn.input_call_ids is None  # the wire's id, which no call of the agent's has


def test_an_agent_s_own_turns_stay_alone() -> None:
    whole = trace([start(), {"type": "model_turn", "turn": 1}, *call(1, "look"), end()])
    assert join(whole, model_side(), [], 0).events == whole.events


def test_nothing_recorded_is_no_run() -> None:
    with pytest.raises(InfrastructureError, match="recorded nothing"):
        check_recorded(trace([start(), end()]), job(), Ending(0))
    check_recorded(trace([start(), {"type": "message", "role": "assistant", "text": "hi"}]), job(), Ending(0))


def test_what_is_not_whole_of_several_files(tmp_path: Path) -> None:
    head = {**start(), "trace_id": "t"}
    file = tmp_path / "t.jsonl"
    file.write_text(dump([head, *call(1, "a")]))
    assert read_run(file, "t.jsonl")[1] is None  # an agent that writes by itself need not write an end
    shard = tmp_path / "t.jsonl.12-0"
    shard.write_text(dump([head, *call(2, "b"), end()]))
    assert read_run(file, "t.jsonl")[1] is None
    shard.write_text(dump([head, *call(2, "b")]))
    assert (
        read_run(file, "t.jsonl")[1] == "t.jsonl.12-0: there is no trace_end: the run was cut off while it was recorded"
    )
    shard.write_text("")  # its process could not write, or was ended before it did
    assert read_run(file, "t.jsonl")[1] == "t.jsonl.12-0: a process of the run wrote nothing"
    file.write_text(dump([head, *call(1, "a")])[:-9])
    assert "torn" in str(read_run(file, "t.jsonl")[1])
    numbered = [{**event, "seq": n, "mono_ns": n} for n, event in enumerate([head, *call(1, "a")], start=1)]
    file.write_text("".join(json.dumps(event) + "\n" for event in numbered))
    assert "no trace_end" in str(read_run(file, "t.jsonl")[1])  # a recorder's, which writes its end always
    shard.unlink()
    file.write_text(dump([head, *call(1, "a"), {**end(), "incomplete": "the disk is full"}]))
    assert read_run(file, "t.jsonl")[1] == "the disk is full", "whoever wrote it"
