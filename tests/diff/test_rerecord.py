"""A new golden out of an old one: names stay, only what changed is rewritten, children and batches keep their places."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.profile import Profile
from tests.traces import Run, normal

U = [f"0f8fad5b-d9cb-469f-a165-7086772895{n:02d}" for n in range(10)]
PROFILE = Profile(name="test@1")


def first(run: Run, profile: Profile = PROFILE) -> bytes:
    return encode_golden(as_golden(normal(run.end(), profile), profile))


def again(data: bytes, run: Run, profile: Profile = PROFILE) -> bytes:
    """Record anew on top of a golden file; the new file is clean against the run, and stays as it is."""
    trace = run.end()
    new = encode_golden(rerecord(compare(read_golden(data, "g"), normal(trace, profile), profile), profile))
    assert compare(read_golden(new, "g"), normal(trace, profile), profile).changes == []
    assert encode_golden(rerecord(compare(read_golden(new, "g"), normal(trace, profile), profile), profile)) == new
    return new


def changed_lines(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]]:
    before, now = old.splitlines(), new.splitlines()
    return [line for line in before if line not in now], [line for line in now if line not in before]


def labels(data: bytes) -> list[str]:
    return [o.label for o in read_golden(data, "g").operations]


def test_an_inserted_call_takes_the_next_free_number_and_changes_no_other_line() -> None:
    def run(*numbers: int) -> Run:
        made = Run()
        for n in numbers:
            made.call("get", {"n": n}, {"id": U[n]})
        for n in numbers:
            made.call("use", {"n": n, "id": U[n]})
        return made

    old = first(run(1, 2, 3))
    new = again(old, run(1, 7, 2, 3))
    assert labels(new) == ["get#1", "get#4", "get#2", "get#3", "use#1", "use#4", "use#2", "use#3"]
    gone, come = changed_lines(old, new)
    assert gone == []
    assert len(come) == 4
    assert b"<get#4/id>" in come[2]
    assert b'"uses":["get#4"]' in come[2]


def test_a_number_is_not_given_again_within_one_recording_and_a_removed_call_leaves_a_hole() -> None:
    def run(*numbers: int) -> Run:
        made = Run()
        for n in numbers:
            made.call("get", {"n": n})
        return made

    holes = again(first(run(1, 2, 3)), run(1, 3))
    assert labels(holes) == ["get#1", "get#3"]
    assert labels(again(holes, run(1, 5, 6, 3))) == ["get#1", "get#4", "get#5", "get#3"]


def test_a_call_whose_source_is_gone_is_written_anew() -> None:
    old = first(Run().call("get", {"n": 1}, {"id": U[1]}).call("use", {"id": U[1], "k": 1}))
    new = again(old, Run().call("use", {"id": U[2], "k": 1}))
    assert labels(new) == ["use#1"]
    assert b"get#1" not in new
    assert b"<new:uuid>" in new


def nested(*children: tuple[str, str], extra: bool = False) -> Run:
    run = Run().turn()
    if extra:
        run.call("before", {}).turn()
    run.call("ask", {"who": "p"}, id="p", status=None, batch="b").call(
        "ask", {"who": "q"}, id="q", status=None, batch="b"
    )
    for parent, tool in children:
        run.call(tool, {"in": parent}, {"id": U[3]}, parent=parent, agent="helper")
    return run.result("p", {"id": U[4]}).result("q", {"id": U[5]}).turn().call("end", {"id": U[4]})


def test_children_stand_behind_the_batch_of_their_parents_and_name_them() -> None:
    old = first(nested(("p", "read"), ("q", "read")))
    new = again(old, nested(("p", "read"), ("p", "more"), ("q", "read"), extra=True))
    found = read_golden(new, "g").operations
    more = next(o for o in found if o.tool_name == "more")
    (twin,) = [o for o in found if o.tool_name == "read" and o.args == more.args]
    assert more.parent == twin.parent
    assert {o.parent for o in found if o.tool_name == "read"} == {"ask#1", "ask#2"}
    assert changed_lines(old, new)[0] == []


def test_children_that_came_in_another_order_change_nothing() -> None:
    old = first(nested(("p", "read"), ("q", "read"), ("p", "more")))
    assert again(old, nested(("q", "read"), ("p", "read"), ("p", "more"))) == old


def batches(*orders: str, **extra: Any) -> Run:
    run = Run().turn()
    for number, order in enumerate(orders):
        for tool in order:
            run.call(tool, {"batch": number, **extra.get(tool, {})}, access="read", batch=f"b{number}")
    return run


def test_members_of_several_batches_of_one_turn_keep_the_goldens_order() -> None:
    old = first(batches("abc", "de"))
    assert again(old, batches("cab", "ed")) == old
    new = again(old, batches("cab", "edf"))
    assert labels(new) == ["a#1", "b#1", "c#1", "d#1", "e#1", "f#1"]
    assert changed_lines(old, new)[0] == []
    assert [o.batch for o in read_golden(new, "g").operations] == [1, 1, 1, 2, 2, 2]


def test_under_strict_order_a_batch_is_written_as_it_came() -> None:
    strict = msgspec.convert({"name": "test@1", "compare": {"parallel_order": "strict"}}, Profile)
    old = first(batches("abc"), strict)
    assert labels(again(old, batches("cab"), strict)) == ["c#1", "a#1", "b#1"]


def test_events_of_no_call_stay_where_they_stood_unless_their_kind_changed() -> None:
    def run(*, is_first: bool, effects: int = 1, limit: bool = False) -> Run:
        made = Run().call("new", {}) if is_first else Run()
        made.call("a", {}).decide("escalate", reason="unsure").call("b", {})
        for _ in range(effects):
            made.effect("charge")
        return made.limit("max_tool_calls", max=2) if limit else made

    old = first(run(is_first=False))
    assert changed_lines(old, again(old, run(is_first=True)))[0] == []
    twice = again(old, run(is_first=False, effects=2))
    assert twice.count(b'"charge"') == 2
    assert twice.count(b'"escalate"') == 1
    limited = again(old, run(is_first=False, limit=True))
    assert (limited.count(b'"limit"'), limited.count(b'"charge"')) == (2, 1)


def two_batches(*, has_turns: bool, extra: bool = False) -> Run:
    run = Run()
    for number, tools in enumerate(["ab", "cd"]):
        if has_turns:
            run.turn()
        for tool in tools:
            run.call(tool, {"n": number}, access="read", batch=f"b{number}")
    if extra:
        for tool in "ef":
            run.call(tool, {}, access="read", batch="b9")
    return run


def test_turns_that_only_the_run_records_are_no_change_and_batches_stay_apart() -> None:
    old = first(two_batches(has_turns=False))
    assert again(old, two_batches(has_turns=True)) == old
    new = again(old, two_batches(has_turns=True, extra=True))
    assert changed_lines(old, new)[0] == []
    assert [o.tool_name for o in read_golden(new, "g").operations] == [*"abcdef"]


def test_turns_that_the_run_lost_are_lost_in_the_golden_recorded_of_it() -> None:
    narrow = two_batches(has_turns=False)
    assert again(first(two_batches(has_turns=True)), narrow) == first(narrow)


def test_a_golden_of_a_run_without_calls_takes_the_turns_of_the_new_run() -> None:
    new = again(first(Run()), two_batches(has_turns=True))
    assert new == first(two_batches(has_turns=True))


@pytest.mark.parametrize(("before", "now"), [((0, 2), (1, 2)), ((0, 2), (2, 4)), ((0, 3), (1, 3)), ((5, 1), (2, 0))])
def test_equal_calls_within_calls_that_changed_stay_with_those(before: tuple[int, ...], now: tuple[int, ...]) -> None:
    def run(numbers: tuple[int, ...]) -> Run:
        made = Run().turn()
        for n in numbers:
            made.call("ask", {"n": n}, id=f"p{n}", status=None, batch="b", access="read")
        for n in numbers:
            made.call("inner", {}, parent=f"p{n}", access="read")
        for n in numbers:
            made.result(f"p{n}")
        return made

    again(first(run(before)), run(now))


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from(["", "x", "y"]), st.booleans()), max_size=7
)


def rendered(steps: list[tuple[str, int, str, bool]], *, has_turns: bool) -> Run:
    run = Run()
    for n, (tool, number, batch, is_turn) in enumerate(steps):
        if has_turns and (is_turn or not n):
            run.turn()
        if number == 3:
            run.limit(f"limit_{tool}")
        run.call(tool, {"n": number}, {"id": U[n]}, batch=batch or None, id=f"c{n}")
        if number == 2:
            run.call("inner", {"n": number}, parent=f"c{n}")
    return run


@given(STEPS, STEPS, st.booleans())
def test_whatever_changed_the_new_golden_is_clean_and_stays(before: list[Any], now: list[Any], has_turns: bool) -> None:
    old = first(rendered(before, has_turns=has_turns))
    assert again(old, rendered(before, has_turns=has_turns)) == old
    new = again(old, rendered(now, has_turns=has_turns))
    assert len(set(labels(new))) == len(labels(new))
