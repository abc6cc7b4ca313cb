"""Comparison: what is near a change, and where to start reading."""

import pytest

from goldentrace.model.change import Change, Comparison
from goldentrace.model.operation import Attempt, Operation
from goldentrace.model.profile import Severity
from tests.traces import Run, normal


def change(severity: Severity = "error", golden: int | None = None, candidate: int | None = None) -> Change:
    return Change("GT101", "argument-changed", severity, "m", golden_index=golden, candidate_index=candidate)


def compared(pairs: list[tuple[int | None, int | None]], changes: list[Change]) -> Comparison:
    trace = normal(Run().end())
    return Comparison(trace, trace, pairs, changes)


PAIRS: list[tuple[int | None, int | None]] = [(n, n) for n in range(10)]


@pytest.mark.parametrize(
    ("changes", "around", "near"),
    [
        ([], 2, [8, 9]),
        ([change(golden=4, candidate=4)], 1, [3, 4, 5, 9]),
        ([change(golden=0, candidate=0)], 2, [0, 1, 2, 8, 9]),
        ([change(golden=9, candidate=9)], 1, [8, 9]),
        ([change(golden=4, candidate=4)], 0, [4]),
        ([change()], 1, [9]),
    ],
)
def test_near_a_change_stand_the_rows_around_it_and_the_last_ones(
    changes: list[Change], around: int, near: list[int]
) -> None:
    assert compared(PAIRS, changes).near_changes(around) == (near, near)


def test_an_added_and_a_removed_operation_are_rows_of_one_side() -> None:
    pairs: list[tuple[int | None, int | None]] = [(0, 0), (None, 1), (1, None), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert compared(pairs, [change(candidate=1)]).near_changes(1) == ([0, 1, 5], [0, 1, 5])
    assert compared(pairs, [change(golden=1)]).near_changes(1) == ([1, 2, 5], [1, 2, 5])


def test_reading_starts_at_the_first_root_of_the_worst_severity() -> None:
    warning, error, second = change("warning"), change("error"), change("error")
    effect = change("error")
    effect.caused_by = error
    assert compared(PAIRS, []).first is None
    assert compared(PAIRS, [warning]).first is warning
    found = compared(PAIRS, [warning, effect, error, second])
    assert found.first is error
    assert found.roots("error") == [error, second]
    assert (effect.is_root, error.is_root) == (False, True)


def test_uses_are_asked_for_once_and_are_none_without_values() -> None:
    trace = normal(Run().call("list", {}, {"name": "alpha"}).call("get", {"name": "alpha"}).end())
    assert [trace.uses_of(n) for n in range(2)] == [(), ("list#1",)]
    trace.payloads = None
    assert trace.uses_of(1) == ("list#1",)
    trace.operations[1].uses = None
    assert trace.uses_of(1) == ()


def test_an_operation_tells_its_first_and_last_attempt() -> None:
    trace = normal(
        Run().approve("1").call("t", {}, status="error", id="1").call("t", {}, id="2").decide("abort", "2").end()
    )
    (operation,) = trace.operations
    assert [a.status for a in (operation.first, operation.last)] == ["error", "ok"]
    with pytest.raises(AssertionError):
        _ = Operation(label="t#1", tool_name="t").first
    with pytest.raises(AssertionError):
        _ = Operation(label="t#1", tool_name="t", steps=trace.operations[0].steps[-1:]).last
    assert Attempt().number == 1
