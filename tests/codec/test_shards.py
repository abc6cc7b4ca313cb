"""Shards become one trace: in time, each in its own order, with one start, one end, and what is missing said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.shards import merge
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.errors import InputError
from goldentrace.model.event import AnyEvent, Message, ModelTurn, ToolCall, TraceEnd, TraceStart
from goldentrace.model.trace import Note, Trace

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
BOOT_NS = 500_000_000_000
"""What the monotonic clock showed at noon."""


def at(ms: float, *, clock_ms: float | None = None) -> dict[str, Any]:
    """Both clocks, ms after noon; clock_ms: of the wall clock, where it was set to something else."""
    wall = NOON + timedelta(milliseconds=ms if clock_ms is None else clock_ms)
    return {"ts": wall.isoformat(timespec="microseconds"), "mono_ns": BOOT_NS + int(ms * 1e6)}


def start(**fields: Any) -> TraceStart:
    return TraceStart(format="goldentrace/1", **fields)


def said(text: str, **fields: Any) -> Message:
    return Message(role="user", text=text, **fields)


def end(outcome: str = "success", **fields: Any) -> TraceEnd:
    return TraceEnd(outcome=outcome, stop_reason="final_answer", **fields)  # type: ignore[arg-type]


def trace(*events: AnyEvent, path: str = "run.jsonl", **fields: Any) -> Trace:
    return Trace(list(events), path, **fields)


def texts(merged: Trace) -> list[str | None]:
    return [event.text for event in merged.events if isinstance(event, Message)]


def test_one_shard_is_the_trace() -> None:
    only = trace(start(), said("a"), end())
    assert merge([only]) is only


def test_events_stand_in_time_between_one_start_and_one_end() -> None:
    first = trace(start(**at(0)), said("a", **at(1)), said("d", **at(4)), end(**at(9)))
    second = trace(
        start(**at(1)), said("b", **at(2)), said("c", **at(3)), end("unknown", **at(5)), path="run.jsonl.7-0"
    )
    merged = merge([first, second])
    assert texts(merged) == ["a", "b", "c", "d"]
    assert [type(event) for event in merged.events] == [TraceStart, *[Message] * 4, TraceEnd]
    assert [event.seq for event in merged.events] == [1, 2, 3, 4, 5, 6]
    assert merged.end is not None
    assert merged.end.outcome == "success"
    assert merged.incomplete is None
    assert merged.path == "run.jsonl"


def test_equal_times_go_by_shard_then_by_place() -> None:
    first = trace(start(**at(0)), said("a1", **at(1)), said("a2", **at(1)), end(**at(2)))
    second = trace(start(**at(0)), said("b1", **at(1)), said("b2", **at(1)), end(**at(2)))
    assert texts(merge([first, second])) == ["a1", "a2", "b1", "b2"]
    assert texts(merge([second, first])) == ["b1", "b2", "a1", "a2"]


def test_the_order_within_a_shard_holds_against_its_times() -> None:
    first = trace(start(**at(0)), said("a", **at(1)), end(**at(9)))
    second = trace(start(**at(0)), said("late", **at(5)), said("early", **at(0.5)), end(**at(9)))
    assert texts(merge([first, second])) == ["a", "late", "early"]


def test_a_wall_clock_that_was_set_does_not_matter_on_one_machine() -> None:
    first = trace(start(**at(0)), said("a", **at(10)), said("c", **at(30)), end(**at(40)))
    second = trace(start(**at(5, clock_ms=-300)), said("b", **at(20, clock_ms=-285)), end(**at(25, clock_ms=-280)))
    merged = merge([first, second])
    assert texts(merged) == ["a", "b", "c"]
    assert [event.mono_ns for event in merged.events[1:-1]] == [BOOT_NS + ms * 1_000_000 for ms in (10, 20, 30)]


def test_another_machines_monotonic_clock_is_moved_onto_the_first_ones() -> None:
    def elsewhere(ms: float) -> dict[str, Any]:
        return {**at(ms), "mono_ns": 7_000_000 + int(ms * 1e6)}

    first = trace(start(**at(0)), said("a", **at(10)), said("c", **at(30)), end(**at(40)))
    second = trace(start(**elsewhere(5)), said("b", **elsewhere(20)), end(**elsewhere(25)))
    merged = merge([first, second])
    assert texts(merged) == ["a", "b", "c"]
    assert merged.events[2].mono_ns == BOOT_NS + 20_000_000


def test_a_shard_with_wall_times_only_is_placed_by_them() -> None:
    first = trace(start(**at(0)), said("a", **at(10)), said("c", **at(30)), end(**at(40)))
    second = trace(start(), said("b", ts=at(20)["ts"]), end())
    assert texts(merge([first, second])) == ["a", "b", "c"]


def test_a_shard_with_monotonic_times_only_shares_the_first_clock() -> None:
    first = trace(start(**at(0)), said("a", **at(10)), said("c", **at(30)), end(**at(40)))
    second = trace(start(), said("b", mono_ns=BOOT_NS + 20_000_000), end())
    assert texts(merge([first, second])) == ["a", "b", "c"]


def test_an_event_without_a_time_follows_the_one_before_it() -> None:
    first = trace(start(**at(0)), said("a", **at(10)), said("after a"), said("c", **at(30)), end(**at(40)))
    second = trace(start(), said("before b"), said("b", **at(20)), end())
    assert texts(merge([first, second])) == ["a", "after a", "before b", "b", "c"]


@pytest.mark.parametrize("ts", [None, "yesterday", "2026-01-02T12:00:00", ""])
def test_a_shard_without_times_goes_as_a_whole_and_it_is_said(ts: str | None) -> None:
    timed = trace(start(**at(0)), said("a", **at(10)), said("b", **at(30)), end(**at(40)), path="timed")
    untimed = trace(start(), said("x", ts=ts), said("y", ts=ts), end("unknown"), path="untimed")
    behind, before = merge([timed, untimed]), merge([untimed, timed])
    assert texts(behind) == ["a", "b", "x", "y"]
    assert texts(before) == ["x", "y", "a", "b"]
    assert [note.text for note in behind.notes] == ["untimed: has no times; its events stand behind all others"]
    assert [note.text for note in before.notes] == ["untimed: has no times; its events stand in front of all others"]


@pytest.mark.parametrize(
    ("ends", "chosen"),
    [
        ((("success", 1), ("failed", 2)), "success"),
        ((("unknown", 1), ("failed", 2)), "failed"),
        ((("unknown", 1), ("failed", 3), ("partial", 2)), "failed"),
        ((("unknown", 1), ("unknown", 2)), "unknown"),
        ((None, ("partial", 2)), "partial"),
        ((None, None), None),
    ],
)
def test_which_end_is_the_runs(ends: tuple[tuple[str, int] | None, ...], chosen: str | None) -> None:
    traces = [
        trace(start(**at(0)), said("x", **at(0.5)), *([end(stated[0], **at(stated[1]))] if stated else []), path=str(n))
        for n, stated in enumerate(ends)
    ]
    merged = merge(traces)
    assert (merged.end.outcome if merged.end else None) == chosen
    assert sum(isinstance(event, TraceEnd) for event in merged.events) == (chosen is not None)


def test_count_and_checksum_of_a_shard_do_not_speak_for_the_whole() -> None:
    first = trace(start(**at(0)), end(events=1, sha256="0" * 64, **at(1)))
    merged = merge([first, trace(start(**at(0)), said("a", **at(0.5)), end("unknown", **at(1)))])
    assert merged.end is not None
    assert (merged.end.events, merged.end.sha256) == (None, None)


def test_an_incomplete_shard_makes_the_whole_incomplete() -> None:
    first = trace(start(**at(0)), end(**at(9)))
    torn = trace(start(**at(0)), said("a", **at(1)), path="run.jsonl.7-0", incomplete="the last line is torn")
    killed = trace(start(**at(0)), path="run.jsonl.8-0", incomplete="there is no trace_end")
    merged = merge([first, torn, killed])
    assert merged.incomplete == "run.jsonl.7-0: the last line is torn; run.jsonl.8-0: there is no trace_end"


def test_notes_say_which_shard_they_are_about() -> None:
    first = trace(start(**at(0)), end(**at(9)), notes=(Note("one", 3),))
    second = trace(start(**at(0)), end(**at(9)), path="other", notes=(Note("two", 4),))
    assert merge([first, second]).notes == (Note("one", 3), Note("other: two", 4))


def test_lines_are_those_of_the_shard() -> None:
    first = trace(start(**at(0)), said("a", **at(1)), end(**at(9)), lines=[1, 3, 4])
    second = trace(start(**at(0)), said("b", **at(2)), end("unknown", **at(3)))
    assert merge([first, second]).lines == [1, 3, 2, 4]


def test_a_shard_of_another_run_is_refused_by_name() -> None:
    first = trace(start(trace_id="one"), end())
    with pytest.raises(InputError, match=r"of another run than run\.jsonl") as caught:
        merge([first, trace(start(trace_id="two"), end(), path="run.jsonl.7-0")])
    assert caught.value.where is not None
    assert caught.value.where.path == "run.jsonl.7-0"
    assert merge([first, trace(start(), end())]).incomplete is None


def turns(merged: Trace) -> list[tuple[str, int | None]]:
    names = {ModelTurn: "turn", ToolCall: "call", Message: "message"}
    return [(names[type(event)], event.turn) for event in merged.events[1:-1]]


def call(call_id: str, **fields: Any) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name="t", **fields)


def test_turns_of_two_processes_are_not_one_turn() -> None:
    first = trace(
        start(**at(0)), ModelTurn(turn=1, **at(1)), call("a", turn=1, **at(4)),
        ModelTurn(turn=2, **at(5)), call("b", turn=2, **at(8)), end(**at(9)),
    )  # fmt: skip
    second = trace(start(**at(0)), ModelTurn(turn=1, **at(2)), call("c", turn=1, **at(7)), end("unknown", **at(9)))
    assert turns(merge([first, second])) == [
        ("turn", 1), ("turn", 2), ("call", 1), ("turn", 3), ("call", 2), ("call", 3),
    ]  # fmt: skip


def test_a_forked_worker_goes_on_with_its_parents_turn() -> None:
    parent = trace(start(**at(0)), ModelTurn(turn=1, **at(1)), call("a", turn=1, **at(2)), end(**at(9)))
    worker = trace(start(**at(0)), call("b", turn=1, **at(3)), ModelTurn(turn=2, **at(4)), call("c", turn=2, **at(5)))
    assert turns(merge([parent, worker])) == [("turn", 1), ("call", 1), ("call", 1), ("turn", 2), ("call", 2)]


def test_a_worker_without_turns_works_in_the_turn_that_runs() -> None:
    parent = trace(start(**at(0)), ModelTurn(turn=4, **at(1)), call("a", turn=4, **at(2)), end(**at(9)))
    worker = trace(start(**at(0)), call("b", **at(3)))
    assert turns(merge([parent, worker])) == [("turn", 4), ("call", 4), ("call", None)]


def test_turns_without_numbers_keep_their_calls() -> None:
    first = trace(start(**at(0)), ModelTurn(**at(1)), call("a", **at(5)), end(**at(9)))
    second = trace(start(**at(0)), ModelTurn(**at(2)), call("b", **at(6)), end("unknown", **at(9)))
    assert turns(merge([first, second])) == [("turn", 1), ("turn", 2), ("call", 1), ("call", 2)]


@pytest.mark.parametrize(
    ("states", "together"),
    [
        ((["retry"], ["retry"]), ["retry"]),
        ((["abort"], ["retry"]), ["retry", "abort"]),
        ((["retry"], None), None),
        (([], []), []),
    ],
)
def test_the_whole_can_state_what_a_shard_can(states: tuple[Any, Any], together: list[str] | None) -> None:
    traces = [trace(start(states=stated, **at(0)), said("x", **at(0)), end(**at(1))) for stated in states]
    assert merge(traces).start.states == together


def test_a_start_that_nothing_follows_does_not_say_what_can_be_stated() -> None:
    bare = trace(start(**at(0)), end("unknown", **at(1)))
    speaking = trace(start(states=["retry"], **at(0)), said("x", **at(0)), end(**at(1)))
    assert merge([bare, speaking]).start.states == ["retry"]
    assert merge([bare, bare]).start.states is None


def test_the_start_is_the_first_ones_with_what_only_others_state() -> None:
    first = trace(start(scenario_id="s", attributes={"a": 1}, **at(0)), end(**at(1)))
    second = trace(
        start(scenario_id="other", seed=7, source="r", attributes={"a": 2, "tools": []}, **at(0)), end(**at(1))
    )
    merged = merge([first, second]).start
    assert (merged.scenario_id, merged.seed, merged.source) == ("s", 7, "r")
    assert merged.attributes == {"a": 1, "tools": []}


@st.composite
def shards_of_a_run(draw: st.DrawFn) -> list[Trace]:
    traces = []
    for number in range(draw(st.integers(2, 4))):
        offset_ms = draw(st.sampled_from([0, 400, 5_000_000]))
        events: list[AnyEvent] = [start(**at(0))]
        for place, ms in enumerate(draw(st.lists(st.integers(0, 50), max_size=8))):
            times = draw(st.sampled_from([{}, at(ms), {"ts": at(ms)["ts"]}, {"mono_ns": BOOT_NS + ms}]))
            events.append(said(f"{number}.{place}", **times))
        events.append(end("unknown", **at(60)))
        moved = [
            msgspec.structs.replace(event, mono_ns=None if event.mono_ns is None else event.mono_ns + offset_ms * 10**6)
            for event in events
        ]
        traces.append(trace(*moved, path=f"shard {number}"))
    return traces


@given(shards_of_a_run())
def test_nothing_is_lost_or_reordered_and_the_whole_is_a_valid_trace(traces: list[Trace]) -> None:
    merged = merge(traces)
    kept = texts(merged)
    assert sorted(kept, key=str) == sorted((text for one in traces for text in texts(one)), key=str)
    for number, one in enumerate(traces):
        assert [text for text in kept if str(text).startswith(f"{number}.")] == texts(one)
    data = b"".join(encode_event(event) for event in merged.events)
    assert texts(read_trace(data, "merged")) == kept
    assert merge([merged]) is merged
