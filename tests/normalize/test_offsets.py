"""Times: which clock counts, what a gap is, what stays missing."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.model.event import ModelTurn
from goldentrace.model.operation import Attempt, DecisionStep
from goldentrace.normalize.offsets import gap_ms, has_times, offsets_of, place_in_time, wall_ms
from tests.traces import Run, clock, normal

NINE_MS = 1772355600000.0


def event(second: float | None = None, mono_ms: float | None = None) -> ModelTurn:
    return ModelTurn(
        ts=None if second is None else clock(second), mono_ns=None if mono_ms is None else int(mono_ms * 1e6)
    )


@pytest.mark.parametrize(
    ("ts", "ms"),
    [
        ("2026-03-01T09:00:00.000000Z", NINE_MS),
        ("2026-03-01T09:00:01.500000Z", NINE_MS + 1500),
        ("2026-03-01T09:00:01.5Z", NINE_MS + 1500),
        ("2026-03-01T09:00:01Z", NINE_MS + 1000),
        ("2026-03-01T10:00:01+01:00", NINE_MS + 1000),
        ("2026-03-01T09:00:01", NINE_MS + 1000),
        ("2026-03-01", NINE_MS - 9 * 3_600_000),
        ("2026-03-01T09:00:00.00000xZ", None),
        ("2026-13-01T09:00:00.000000Z", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_the_wall_clock_of_an_event(ts: str | None, ms: float | None) -> None:
    assert wall_ms(ModelTurn(ts=ts)) == (None if ms is None else pytest.approx(ms))


@pytest.mark.parametrize(
    ("end", "start", "gap"),
    [
        (event(1), event(3.5), 2500),
        (event(3), event(1), -2000),
        (event(1, 100), event(9, 350.6), 251),
        (event(1, 100), event(2), 1000),
        (event(None, 100), event(2), None),
        (event(1), event(None, 350), None),
        (event(), event(1), None),
        (event(1), event(), None),
        (None, event(1), None),
    ],
)
def test_a_gap_is_told_by_one_clock_that_both_ends_have(end: Any, start: Any, gap: int | None) -> None:
    assert gap_ms(end, start) == gap


@pytest.mark.parametrize(
    ("events", "offsets"),
    [
        ([event(1), event(2.25)], [0, 1250]),
        ([event(None, 500), event(None, 700.5)], [0, 200.5]),
        ([event(), event(1), event(), event(3)], [None, 0, None, 2000]),
        ([event(), event()], [None, None]),
        ([event(1), event(2, 500), event(99, 700), event(4)], [0, 1000, 1200, 3000]),
        ([event(1, 500), event(99, 700)], [0, 200]),
        ([event(), event(None, 500), event(7)], [None, 0, None]),
        ([event(5), event(None, 500), event(6)], [0, 0, 1000]),
    ],
)
def test_offsets_count_from_the_first_event_that_has_a_time(events: list[Any], offsets: list[float | None]) -> None:
    trace = Run().end()
    assert offsets_of(type(trace)(events, "x")) == offsets


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8).map(sorted), st.integers(-(10**6), 10**6))
def test_with_a_monotonic_clock_offsets_never_run_back_whatever_the_wall_clock_does(mono: list[int], jump: int) -> None:
    events = [event(n * (-1) ** n + jump, ms) for n, ms in enumerate(mono)]
    offsets = offsets_of(type(Run().end())(events, "x"))  # type: ignore[arg-type]
    assert offsets == [ms - mono[0] for ms in mono]


def test_a_source_without_times_is_told_from_one_with_them() -> None:
    assert has_times(Run().call("a", {}).end())
    untimed = [msgspec.structs.replace(e, ts=None) for e in Run().call("a", {}).end().events]
    assert not has_times(type(Run().end())(untimed, "x"))
    assert has_times(type(Run().end())([ModelTurn(), event(None, 1)], "x"))


def run_of_all() -> Any:
    run = Run().at(1).approve("1").at(2).call("t", {}, status="error", id="1").at(3).decide("retry", "1", delay_ms=1)
    run.at(5).call("t", {}, id="2", attempt=2, op_id="1").at(6).limit("max_wall_ms").at(7).call("u", {}, status=None)
    return run.at(8).end()


def test_every_step_is_placed_since_the_start() -> None:
    trace = run_of_all()
    found = normal(trace)
    place_in_time(found, trace)
    first, second = found.operations
    times = [(s.started_ms, s.ended_ms) if isinstance(s, Attempt) else s.at_ms for s in first.steps]
    assert times == [1000, (2000, 2000), 3000, (5000, 5000)]
    assert (second.first.started_ms, second.first.ended_ms) == (7000, None)
    assert [e.at_ms for e in found.loose] == [6000]
    assert found.end_ms == 8000
    assert first.attempts[1].gap_ms == 3000


def test_only_the_wanted_operations_are_placed() -> None:
    trace = run_of_all()
    found = normal(trace)
    place_in_time(found, trace, [1])
    assert found.operations[0].first.started_ms is None
    assert isinstance(found.operations[0].steps[2], DecisionStep)
    assert found.operations[0].steps[2].at_ms is None
    assert found.operations[1].first.started_ms == 7000


def test_a_trace_that_was_cut_has_no_end_time() -> None:
    trace = Run().call("t", {}).cut()
    found = normal(trace)
    place_in_time(found, trace)
    assert found.end_ms is None


def test_a_model_turn_between_attempts_is_said_and_their_gap_is_whole() -> None:
    def second(*, has_turn: bool) -> Attempt:
        run = Run().at(1).call("t", {}, status="error", id="1").at(2)
        if has_turn:
            run.turn()
        return normal(run.at(3.0004).call("t", {}, id="2", op_id="1").end()).operations[0].attempts[1]

    for has_turn in (False, True):
        found = second(has_turn=has_turn)
        assert (found.gap_ms, found.after_model_turn) == (2000, has_turn)
