"""What must hold for every run: no false alarm, one change per mutation, one verdict for a run and its golden."""

from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.change import Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import ArgumentCache, normalize
from tests.diff.runs import PROFILE, Plan, Step, change_step, plans, render, replace_steps

DRAWS = st.tuples(st.integers(1, 400), st.integers(401, 800))


def normal(trace: Trace, cache: ArgumentCache | None = None) -> NormalTrace:
    return normalize(trace, PROFILE, "h:test", cache=cache)


def golden_file(trace: Trace) -> bytes:
    return encode_golden(as_golden(normal(trace), PROFILE))


def compared(golden: Trace, candidate: Trace) -> Comparison:
    """Compare by way of the golden file, and make sure that the raw run gives the same verdict."""
    data = golden_file(golden)
    by_file = compare(read_golden(data, "golden"), normal(candidate), PROFILE)
    by_run = compare(normal(golden), normal(candidate), PROFILE)
    assert told(by_file) == told(by_run)
    check_rerecording(data, by_file)
    return by_file


def told(found: Comparison) -> list[tuple[Any, ...]]:
    return [(c.code, c.severity, c.label, c.pointers, c.is_root) for c in found.changes]


def check_rerecording(data: bytes, found: Comparison) -> None:
    """The golden differs after sticky re-recording if and only if there was a change, and then it is clean."""
    again = encode_golden(rerecord(found, PROFILE))
    assert (again != data) == bool(found.changes), [c.message for c in found.changes]
    after = compare(read_golden(again, "golden"), found.candidate, PROFILE)
    assert not after.changes, [(c.code, c.message) for c in after.changes]


def only(found: Comparison, code: str, severity: str = "error") -> None:
    roots = [(c.code, c.severity, c.message) for c in found.changes if c.is_root]
    assert [(c, s) for c, s, _ in roots] == [(code, severity)], roots


@given(plans(), DRAWS)
def test_a_run_with_other_ids_clock_folder_and_arrival_order_is_clean(plan: Plan, draws: tuple[int, int]) -> None:
    first, second = (render(plan, draw) for draw in draws)
    assert told(compared(first, first)) == []
    found = compared(first, second)
    assert [(c.code, c.message) for c in found.changes] == []
    assert not found.not_comparable


@given(plans(), DRAWS)
def test_normalizing_is_idempotent_and_the_same_without_the_cache(plan: Plan, draws: tuple[int, int]) -> None:
    trace = render(plan, draws[0])
    data = golden_file(trace)
    assert encode_golden(read_golden(data, "again")) == data
    assert encode_golden(normal(trace, ArgumentCache(is_used=False))) == data


@given(plans(), DRAWS, st.data())
def test_a_dropped_call_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(plan.steps()) - 1))
    used = {use for step in plan.steps() for use in step.uses}
    assume(len(plan.steps()) > 1 and place not in used and plan.escalates_after is None)
    found = compared(render(plan, draws[0]), render(replace_steps(plan, {place: []}), draws[1]))
    only(found, "GT103")


@given(plans(), DRAWS, st.data())
def test_a_duplicated_call_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(plan.steps()) - 1))
    step = plan.steps()[place]
    assume(step.status == "ok" and plan.escalates_after is None and not step.has_key)
    found = compared(render(plan, draws[0]), render(replace_steps(plan, {place: [step, step]}), draws[1]))
    roots = [c for c in found.changes if c.is_root and c.severity == "error"]
    assert [c.code for c in roots] == ["GT102"], [(c.code, c.message) for c in found.changes]


@given(plans(), DRAWS, st.data())
def test_a_changed_argument_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(plan.steps()) - 1))
    step = plan.steps()[place]
    changed = change_step(plan, place, args={**step.args, "text": step.args["text"] + "!"})
    found = compared(render(plan, draws[0]), render(changed, draws[1]))
    only(found, "GT101")
    assert found.changes[0].pointers == ("/text",)


@given(plans(), DRAWS, st.data())
def test_another_tool_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(plan.steps()) - 1))
    found = compared(render(plan, draws[0]), render(change_step(plan, place, tool="other"), draws[1]))
    only(found, "GT105")


@given(plans(), DRAWS, st.data())
def test_an_id_of_another_call_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    steps = plan.steps()
    places = [n for n, step in enumerate(steps) if len(step.uses) == 2]
    assume(places)
    place = data.draw(st.sampled_from(places))
    found = compared(render(plan, draws[0]), render(change_step(plan, place, uses=steps[place].uses[::-1]), draws[1]))
    only(found, "GT109")
    assert set(found.changes[0].pointers) == {"/ref0", "/ref1"}


@given(plans(), DRAWS, st.data())
def test_a_halved_wait_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    places = [n for n, step in enumerate(plan.steps()) if step.failures and step.failures[0] >= 1000]
    assume(places)
    place = data.draw(st.sampled_from(places))
    waits = plan.steps()[place].failures
    found = compared(
        render(plan, draws[0]), render(change_step(plan, place, failures=(waits[0] // 2, *waits[1:])), draws[1])
    )
    only(found, "GT401")


@given(plans(), DRAWS, st.data())
def test_a_missing_or_added_retry_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    places = [n for n, step in enumerate(plan.steps()) if step.failures]
    assume(places)
    place = data.draw(st.sampled_from(places))
    waits = plan.steps()[place].failures
    other = data.draw(st.sampled_from([waits[:-1], (*waits, 500)]))
    only(compared(render(plan, draws[0]), render(change_step(plan, place, failures=other), draws[1])), "GT201")


@given(plans(), DRAWS, st.data())
def test_another_status_is_one_change(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    places = [n for n, step in enumerate(plan.steps()) if step.decision is None]
    assume(places)
    place = data.draw(st.sampled_from(places))
    other = "ok" if plan.steps()[place].status != "ok" else "error"
    only(compared(render(plan, draws[0]), render(change_step(plan, place, status=other), draws[1])), "GT301")


@given(plans(), DRAWS)
def test_another_outcome_is_one_change(plan: Plan, draws: tuple[int, int]) -> None:
    only(compared(render(plan, draws[0]), render(replace(plan, outcome="failed"), draws[1])), "GT501")


@given(plans(), DRAWS)
def test_a_missing_decision_of_the_run_is_one_change(plan: Plan, draws: tuple[int, int]) -> None:
    assume(plan.escalates_after is not None)
    only(compared(render(plan, draws[0]), render(replace(plan, escalates_after=None), draws[1])), "GT203")


@given(plans(), DRAWS, st.data())
def test_a_batch_that_became_serial_is_one_warning(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    places = [n for n, turn in enumerate(plan.turns) if turn.is_batch]
    assume(places)
    place = data.draw(st.sampled_from(places))
    turns = [replace(turn, is_batch=False) if n == place else turn for n, turn in enumerate(plan.turns)]
    only(compared(render(plan, draws[0]), render(replace(plan, turns=tuple(turns)), draws[1])), "GT107", "warning")


@given(plans(), DRAWS, st.data())
def test_swapped_neighbours_are_one_move(plan: Plan, draws: tuple[int, int], data: st.DataObject) -> None:
    steps = plan.steps()
    places: list[tuple[int, int]] = []
    n = 0
    for turn in plan.turns:
        if not turn.is_batch:
            places.extend((n + k, n + k + 1) for k in range(len(turn.steps) - 1))
        n += len(turn.steps)
    assume(places)
    one, other = data.draw(st.sampled_from(places))
    assume(one not in steps[other].uses)
    swapped = swap(plan, one)
    found = compared(render(plan, draws[0]), render(swapped, draws[1]))
    is_read = {steps[one].tool, steps[other].tool} <= {"get", "list", "search"}
    only(found, "GT104", "warning" if is_read else "error")


def swap(plan: Plan, place: int) -> Plan:
    """Swap two neighbours of one serial turn; references to them follow."""
    follow = {place: place + 1, place + 1: place}
    turns = []
    n = 0
    for turn in plan.turns:
        steps: list[Step] = [replace(s, uses=tuple(follow.get(u, u) for u in s.uses)) for s in turn.steps]
        if n <= place < n + len(steps) - 1:
            k = place - n
            steps[k], steps[k + 1] = steps[k + 1], steps[k]
        n += len(steps)
        turns.append(replace(turn, steps=tuple(steps)))
    return replace(plan, turns=tuple(turns))


settings.register_profile("wide", max_examples=1000, deadline=None)
