"""Members of a batch that ask for the same: which of them is which."""

from itertools import permutations

import pytest

from goldentrace.match.references import References
from goldentrace.match.siblings import Pairs, reassign_children, reassign_siblings
from goldentrace.model.normal import NormalTrace
from tests.traces import Run, normal


def assigned(golden: NormalTrace, candidate: NormalTrace, pairs: Pairs) -> Pairs:
    return reassign_siblings(golden, candidate, References(golden, candidate, dict(pairs)), pairs, {})


U = [f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(4)]


def made(order: tuple[int, ...], *, has_batch: bool = True, statuses: tuple[str, ...] = ("ok",) * 4) -> NormalTrace:
    """Three things are made by equal calls, which arrive in `order`; then the first is painted, the second is sold."""
    run = Run().turn()
    for n in order:
        run.call("make", {}, {"id": U[n]}, status=statuses[n], batch="b" if has_batch else None)
    run.turn().call("paint", {"id": U[0]}).call("sell", {"id": U[1]}).call("sell", {"other": 1})
    return normal(run.end())


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_they_are_assigned_by_who_uses_their_results(order: tuple[int, ...]) -> None:
    golden, candidate = made((0, 1, 2)), made(order)
    pairs = assigned(golden, candidate, [(n, n) for n in range(6)])
    assert pairs == [(n, order.index(n)) for n in range(3)] + [(3, 3), (4, 4), (5, 5)]


def test_without_uses_those_pair_that_ended_alike() -> None:
    def run(*statuses: str) -> NormalTrace:
        made = Run().turn()
        for status in statuses:
            made.call("make", {}, status=status, batch="b")
        return normal(made.end())

    pairs = assigned(run("ok", "timeout"), run("error", "ok"), [(0, 0), (1, 1)])
    assert pairs == [(0, 1), (1, 0)]
    assert assigned(run("ok", "ok"), run("ok", "ok"), [(0, 0), (1, 1)]) == [(0, 0), (1, 1)]


def test_outside_a_batch_nothing_is_interchangeable() -> None:
    golden, candidate = made((0, 1, 2), has_batch=False), made((1, 0, 2), has_batch=False)
    pairs = [(n, n) for n in range(6)]
    assert assigned(golden, candidate, pairs) is pairs
    alone = [(0, 0), (3, 3)]
    assert assigned(made((0, 1, 2)), made((1, 0, 2)), alone) is alone


def test_a_use_by_a_call_that_only_one_side_has_counts_for_nothing() -> None:
    golden, candidate = made((0, 1, 2)), made((1, 0, 2))
    pairs = assigned(golden, candidate, [(0, 0), (1, 1), (2, 2), (5, 5)])
    assert pairs == [(0, 0), (1, 1), (2, 2), (5, 5)]


def test_equal_calls_within_different_calls_pair_by_the_calls_they_ran_within() -> None:
    def run(*parents: str) -> NormalTrace:
        made = Run().turn()
        for name in "pq":
            made.call(name, {}, id=name, status=None, batch="b")
        for parent in parents:
            made.call("inner", {}, parent=parent)
        return normal(made.result("p").result("q").end())

    golden, candidate = run("p", "q"), run("p", "q")
    assert [o.label for o in golden.operations] == ["p#1", "q#1", "inner#1", "inner#2"]
    straight, crossed = {0: 0, 1: 1, 2: 2, 3: 3}, {0: 0, 1: 1, 2: 3, 3: 2}
    assert reassign_children(golden, candidate, straight) == {}
    assert reassign_children(golden, candidate, crossed) == {2: 2, 3: 3}
    assert reassign_children(golden, candidate, {0: 1, 1: 0, 2: 2, 3: 3}) == {2: 3, 3: 2}
    assert reassign_children(golden, candidate, {2: 2, 3: 3}) == {}
