"""Which operation pairs with which: as moved, as changed, as another tool or agent, or with none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.match import leftovers as module
from goldentrace.match.align import align_operations
from goldentrace.match.alignment import Alignment, PairKind, has_references
from goldentrace.match.references import References
from goldentrace.match.sequences import Pairs
from goldentrace.model.normal import NormalTrace
from goldentrace.model.trace import Trace
from tests.traces import Run, normal

U = [f"0f8fad5b-d9cb-469f-a165-7086772895{n:02d}" for n in range(20)]


def aligned(golden: Run | Trace, candidate: Run | Trace) -> Alignment:
    one, other = (normal(run.end() if isinstance(run, Run) else run) for run in (golden, candidate))
    references = References(one, other)
    found = align_operations(one, other, references)
    assert references.to_candidate == {g: c for g, (c, _) in found.pairs.items()}
    check(found, one, other)
    return found


def check(found: Alignment, golden: NormalTrace, candidate: NormalTrace) -> None:
    taken = [c for c, _ in found.pairs.values()]
    assert len(taken) == len(set(taken))
    assert set(found.pairs) <= set(range(len(golden.operations)))
    assert set(taken) <= set(range(len(candidate.operations)))
    for g, (c, kind) in found.pairs.items():
        one, other = golden.operations[g], candidate.operations[c]
        if kind is PairKind.MOVED or not has_references(one):
            assert kind not in (PairKind.SAME, PairKind.MOVED) or one.key == other.key
        elif kind is PairKind.SAME:  # an id may have another name
            assert (one.agent, one.tool_name, one.args.keys()) == (other.agent, other.tool_name, other.args.keys())


def calls(*steps: tuple[str, Any]) -> Run:
    run = Run()
    for tool, args in steps:
        run.call(tool, args)
    return run


def shown(found: Alignment) -> dict[int, tuple[int, str]]:
    return {g: (c, kind.name) for g, (c, kind) in sorted(found.pairs.items())}


def test_equal_runs_pair_in_order() -> None:
    run = calls(("a", 1), ("b", 2), ("a", 1))
    assert shown(aligned(run, run)) == {n: (n, "SAME") for n in range(3)}


@pytest.mark.parametrize(
    ("golden", "candidate", "pairs"),
    [
        ([("a", 1), ("b", 1), ("c", 1)], [("b", 1), ("c", 1), ("a", 1)], {0: (2, "MOVED"), 1: (0, "SAME"), 2: (1, "SAME")}),
        ([("a", 1), ("b", 1)], [("a", 2), ("b", 1)], {0: (0, "ARGUMENTS"), 1: (1, "SAME")}),
        ([("a", 1), ("b", 1)], [("c", 1), ("b", 1)], {0: (0, "TOOL"), 1: (1, "SAME")}),
        ([("a", 1), ("b", 1)], [("c", 2), ("b", 1)], {0: (0, "TOOL"), 1: (1, "SAME")}),
        ([("a", 1), ("b", 1)], [("b", 1), ("a", 2)], {1: (0, "SAME")}),
        ([("a", 1)], [], {}),
        ([], [("a", 1)], {}),
    ],
)  # fmt: skip
def test_what_is_left_over_pairs_as_moved_as_changed_or_not_at_all(
    golden: list[Any], candidate: list[Any], pairs: dict[int, tuple[int, str]]
) -> None:
    assert shown(aligned(calls(*golden), calls(*candidate))) == pairs


def test_another_agent_is_tried_before_another_tool() -> None:
    one = Run().call("a", {"n": 1}).call("b", {})
    other = Run().call("a", {"n": 1}, agent="helper").call("b", {})
    assert shown(aligned(one, other)) == {0: (0, "AGENT"), 1: (1, "SAME")}


def test_most_equal_leaves_pair_first_then_the_nearest() -> None:
    golden = calls(("t", {"a": 1, "b": 1, "c": 1}), ("t", {"a": 2, "b": 2, "c": 2}))
    candidate = calls(("t", {"a": 2, "b": 2, "c": 9}), ("t", {"a": 1, "b": 1, "c": 9}))
    assert shown(aligned(golden, candidate)) == {0: (1, "ARGUMENTS"), 1: (0, "ARGUMENTS")}
    far = calls(("t", {"a": 7}), ("t", {"a": 8})), calls(("t", {"a": 9}), ("t", {"a": 10}))
    assert shown(aligned(*far)) == {0: (0, "ARGUMENTS"), 1: (1, "ARGUMENTS")}


def test_ids_count_as_equal_leaves_where_they_are_the_same_reference() -> None:
    def run(first: str, second: str) -> Run:
        listed = Run().call("list", {}, {"x": U[0], "y": U[1]})
        return listed.call("t", {"id": first, "n": 1, "s": {"k": 1}}).call("t", {"id": second, "n": 2, "s": {"k": 2}})

    one = run(U[0], U[1])
    other = Run().call("list", {}, {"x": U[0], "y": U[1]})
    other.call("t", {"id": U[1], "n": 8, "s": {"k": 8}}).call("t", {"id": U[0], "n": 9, "s": {"k": 9}})
    assert shown(aligned(one, other)) == {0: (0, "SAME"), 1: (2, "ARGUMENTS"), 2: (1, "ARGUMENTS")}


def test_beyond_the_limit_position_alone_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    golden = calls(("t", {"a": 1, "b": 1, "c": 1}), ("t", {"a": 2, "b": 2, "c": 2}))
    candidate = calls(("t", {"a": 2, "b": 2, "c": 9}), ("t", {"a": 1, "b": 1, "c": 9}), ("t", {"a": 5}))
    monkeypatch.setattr(module, "MAX_SCORED", 3)
    assert shown(aligned(golden, candidate)) == {0: (0, "ARGUMENTS"), 1: (1, "ARGUMENTS")}


def test_a_batch_has_no_order_so_its_changed_members_pair_across_gaps() -> None:
    def run(first: dict[str, int]) -> Run:
        turn = Run().turn().call("t", first, batch="b")
        for n in range(4):
            turn.call("u", {"n": n}, batch="b")
        return turn

    for n in range(5):
        found = aligned(run({"a": 1}), run({"a": 100 + n}))
        assert sorted(kind.name for _, kind in found.pairs.values()) == ["ARGUMENTS", "SAME", "SAME", "SAME", "SAME"]


def test_a_moved_call_with_other_ids_is_still_that_call() -> None:
    one = Run().call("list", {}, {"x": U[0]}).call("see", {"id": U[0]}).call("b", {}).call("c", {})
    other = Run().call("list", {}, {"x": U[0]}).call("b", {}).call("c", {}).call("see", {"id": U[9]})
    assert shown(aligned(one, other))[1] == (3, "MOVED_OTHER_IDS")


def test_of_several_that_moved_those_with_the_same_references_pair() -> None:
    ids = {f"k{n}": U[n] for n in range(3)}
    made = Run().call("list", {}, ids)
    for n in range(3):
        made.call("pack", {"box": U[n]})
    made.call("a", {}).call("b", {}).call("c", {}).call("d", {})
    other = Run().call("list", {}, ids).call("a", {}).call("b", {}).call("c", {}).call("d", {})
    for n in (2, 0, 1):
        other.call("pack", {"box": U[n]})
    found = shown(aligned(made, other))
    assert {found[1 + n][0] for n in range(3)} == {5, 6, 7}
    assert [found[1 + n] for n in range(3)] == [(6, "MOVED"), (7, "MOVED"), (5, "MOVED")]


def test_the_second_alignment_is_kept_only_where_it_leaves_fewer_differences() -> None:
    def run(*boxes: int) -> Run:
        listed = Run().call("list", {}, {"boxes": U[:6]})
        for box in boxes:
            listed.call("pack", {"box": U[box]})
        return listed.call("done", {})

    for dropped in range(5):
        found = aligned(run(*range(5)), run(*(n for n in range(5) if n != dropped)))
        assert 1 + dropped not in found.pairs
        assert {kind for _, kind in found.pairs.values()} == {PairKind.SAME}
    assert len(aligned(run(0, 1, 2), run(2, 1, 0)).pairs) == 5


def test_a_call_that_ended_otherwise_is_told_from_its_twin() -> None:
    def run(*statuses: str) -> Run:
        made = Run()
        for status in statuses:
            made.say("go").call("t", {"a": 1}, status=status)
        return made.call("end", {})

    found = aligned(run("ok", "error", "denied"), run("ok", "denied"))
    assert shown(found) == {0: (0, "SAME"), 2: (1, "SAME"), 3: (2, "SAME")}


def test_a_far_aligner_marks_what_it_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    from goldentrace.match import sequences

    monkeypatch.setattr(sequences, "SHORT_CELLS", 0)
    monkeypatch.setattr(sequences, "MAX_CELLS", 1)
    one, other = normal(calls(("a", 1), ("b", 1), ("c", 1)).end()), normal(calls(("b", 1), ("d", 1), ("a", 1)).end())

    def far(left: Any, right: Any) -> tuple[Pairs, bool]:
        return [(1, 0)], False

    found = align_operations(one, other, References(one, other), far)
    assert not found.is_exact
    assert found.pairs[1] == (0, PairKind.SAME)


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.sampled_from(["ok", "error"]), st.sampled_from([None, "b"])), max_size=9
)  # fmt: skip


def rendered(steps: list[Any]) -> Run:
    run = Run().turn()
    for n, (tool, number, status, batch) in enumerate(steps):
        if n % 3 == 2:
            run.turn()
        run.call(tool, {"n": number, "id": U[number]}, {"id": U[(number + n) % 20]}, status=status, batch=batch)
    return run


@given(STEPS, STEPS)
def test_no_operation_is_in_two_pairs_and_a_run_pairs_with_itself(golden: list[Any], candidate: list[Any]) -> None:
    aligned(rendered(golden), rendered(candidate))
    same = aligned(rendered(golden), rendered(golden))
    assert all((g, PairKind.SAME) == pair for g, pair in same.pairs.items())
