"""Runs shaped like those of real agents: what may differ between equal ones, and what may not pass."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.change import Comparison
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from tests.traces import Run, clock, normal

READ: dict[str, Any] = {"access": "read"}
WRITE: dict[str, Any] = {"access": "write"}


def uuid(run: str, number: int) -> str:
    """The number-th id of a run."""
    return f"0f8fad5b-{sum(map(ord, run)) % 9999:04d}-469f-a165-7086772895{number:02d}"


def compared(golden: Trace, candidate: Trace, **profile: Any) -> Comparison:
    """By the golden's file. What is recorded again is clean."""
    settings = msgspec.convert({"name": "test@1", **profile}, Profile)
    data = encode_golden(as_golden(normal(golden, settings), settings))
    now = normal(candidate, settings)
    found = compare(read_golden(data, "g"), now, settings)
    assert encode_golden(read_golden(data, "g")) == data
    again = encode_golden(rerecord(found, settings))
    assert compare(read_golden(again, "g"), now, settings).changes == []
    assert (again == data) == (not found.changes)
    return found


def codes(golden: Trace, candidate: Trace, **profile: Any) -> list[str]:
    return [f"{c.code} {c.severity}" for c in compared(golden, candidate, **profile).changes]


def deleted(run: str, order: Sequence[int], *, is_list: bool) -> Trace:
    """Things are made one by one, or listed with a stock that differs from run to run; all are deleted in one batch."""
    made = Run().turn()
    if is_list:
        items = [{"id": uuid(run, n), "n": n, "stock": sum(map(ord, run)) * (n + 7)} for n in sorted(order)]
        made.call("list", {}, {"items": items}, **READ)
    else:
        for n in sorted(order):
            made.call("create", {"n": n}, {"id": uuid(run, n)}, **WRITE)
    made.turn()
    for n in order:
        made.call("delete", {"id": uuid(run, n)}, {}, batch="b", **WRITE)
    return made.end()


@pytest.mark.parametrize("is_list", [True, False])
@pytest.mark.parametrize("order", [[1, 0], [2, 0, 1], [3, 2, 1, 0], [7, 1, 0, 5, 6, 2, 4, 3], list(range(24, -1, -1))])
def test_members_of_a_batch_that_act_on_different_things_in_another_order(order: list[int], is_list: bool) -> None:
    golden = deleted("golden", sorted(order), is_list=is_list)
    for run in ("one", "two"):
        assert codes(golden, deleted(run, order, is_list=is_list)) == []
        assert codes(golden, deleted(run, sorted(order), is_list=is_list)) == []


@pytest.mark.parametrize("is_list", [True, False])
def test_a_member_of_a_batch_that_acts_on_the_thing_of_another(is_list: bool) -> None:
    golden = deleted("golden", [0, 1, 2], is_list=is_list)
    run = Run().turn()
    twice = deleted("x", [0, 1, 2], is_list=is_list)
    for event in twice.events[1:-1]:
        run.events.append(event)
    last = run.events[-2]
    run.events[-2] = msgspec.structs.replace(last, args=encode_raw({"id": uuid("x", 0)}))  # type: ignore[call-arg]
    assert codes(golden, run.end()) == ["GT109 error"]


def bought(run: str, rows: list[tuple[int, dict[str, Any]]], bought_id: int = 1, **effect: Any) -> Trace:
    items = [{"id": uuid(run, n), "n": n, **more} for n, more in rows]
    made = Run().turn().call("list", {}, {"items": items}, **READ).turn()
    made.call("buy", {"id": uuid(run, 1)}, {}, **WRITE)
    return made.effect("buy", key=uuid(run, bought_id), **effect).end()


def test_a_ledger_names_things_by_what_they_are_and_not_by_their_row() -> None:
    golden = bought("golden", [(1, {"stock": 5})])
    assert codes(golden, bought("x", [(0, {}), (1, {"stock": 5})])) == []
    assert codes(golden, bought("x", [(1, {"stock": 6})])) == []
    two = [(1, {}), (2, {})]
    assert codes(bought("golden", two), bought("x", two, bought_id=2)) == ["GT504 error"]


def test_a_ledgers_own_time_is_that_of_the_run() -> None:
    def run(second: float) -> Trace:
        made = Run().at(second).turn().call("buy", {}, {}, **WRITE)
        return made.effect("buy", key="k", value=encode_raw({"at": clock(second)})).end()

    assert codes(run(0), run(5000)) == []


def test_a_call_that_is_gone_is_told_once_and_not_by_the_ledger_again() -> None:
    def run(is_looked_up: bool) -> Trace:
        made = Run().turn()
        if is_looked_up:
            made.call("get_order", {}, {"id": uuid("x", 1)}, **READ).turn()
        return made.call("charge", {"n": 1}, {}, **WRITE).effect("charge", key=uuid("x", 1)).end()

    assert codes(run(True), run(False)) == ["GT103 error"]


@pytest.mark.parametrize(("one", "other"), [("ORD-1001", "ORD-1002"), (1001, 1002)])
def test_a_value_that_is_an_id_by_its_key_and_that_the_prompt_names(one: Any, other: Any) -> None:
    def run(order: Any) -> Trace:
        return Run().say(f"Cancel order {one}, keep {other}").turn().call("cancel", {"order_id": order}, **WRITE).end()

    keys = {"keys": ["order_id"]}
    assert codes(run(one), run(other), ids=keys) == ["GT101 error"]
    assert codes(run(one), run(one), ids=keys) == []
    drawn = [Run().turn().call("cancel", {"order_id": value}, **WRITE).end() for value in (one, other)]
    assert codes(*drawn, ids=keys) == []


def test_what_the_prompt_names_below_the_temporary_folder() -> None:
    def run(path: str) -> Trace:
        made = Run(tmp="/tmp").say("Delete /tmp/cache, keep /tmp/data").turn()
        return made.call("delete", {"path": path}, **WRITE).end()

    assert codes(run("/tmp/cache"), run("/tmp/data")) == ["GT101 error"]
    assert codes(run("/tmp/x1"), run("/tmp/x2")) == []


def approved(when: str, by: str | None = None) -> Trace:
    run = Run().turn().call("wire", {"a": 1}, status=None, id="c1", **WRITE)
    if when == "before its result":
        run.approve("c1", by=by)
    run.result("c1", {})
    if when == "after its result":
        run.approve("c1", by=by)
    return run.end()


def test_an_approval_after_the_call_has_run() -> None:
    assert codes(approved("before its result"), approved("after its result")) == ["GT205 error"]
    assert codes(approved("after its result"), approved("after its result")) == []
    early = Run().turn().approve("c1").call("wire", {"a": 1}, {}, id="c1", **WRITE).end()
    assert codes(early, approved("before its result")) == []


def test_an_approval_by_somebody_else() -> None:
    when = "before its result"
    assert codes(approved(when, "alice"), approved(when, "policy")) == ["GT205 error"]
    assert codes(approved(when, "alice"), approved(when)) == []


def test_a_call_that_is_not_answered_any_more() -> None:
    def run(status: str | None, **start: Any) -> Trace:
        return Run(**start).turn().call("send", {}, {}, status=status, **WRITE).end()

    assert codes(run("ok"), run(None)) == ["GT301 error"]
    assert codes(run(None), run("ok")) == ["GT301 error"]
    assert codes(run("ok"), run(None, states=[])) == []


def test_an_attempt_that_names_the_one_before_which_was_joined_by_what_it_asks_for() -> None:
    def run(wait_s: float) -> Trace:
        made = Run().turn().call("pay", {"x": 1}, status="error", id="c1", **WRITE).at(10).turn()
        made.call("pay", {"x": 1}, status="error", id="c2", **WRITE).at(10 + wait_s)
        return made.call("pay", {"x": 1}, id="c3", op_id="c2", attempt=2, origin="harness", **WRITE).end()

    assert codes(run(8), run(0)) == ["GT401 error"]
    assert len(normal(run(8)).operations) == 1


def test_a_call_within_a_sibling_ends_no_series_of_attempts() -> None:
    def run(*, is_child_first: bool) -> Trace:
        made = Run().turn().call("task", {}, status=None, id="t", batch="b", **WRITE)
        made.call("pay", {"x": 1}, status=None, id="p", batch="b", **WRITE)
        for is_child in (is_child_first, not is_child_first):
            if is_child:
                made.call("look", {}, parent="t", agent="helper", **READ)
            else:
                made.result("p", status="error")
        return made.result("t").turn().call("pay", {"x": 1}, id="p2", **WRITE).end()

    assert codes(run(is_child_first=True), run(is_child_first=False)) == []
    assert [len(o.attempts) for o in normal(run(is_child_first=False)).operations if o.tool_name == "pay"] == [2]


def test_two_reads_that_both_moved_and_of_which_one_uses_the_other() -> None:
    tools: dict[str, tuple[str, Any, Any]] = {
        "A": ("find", {"name": "Jo"}, {"no": 884211}), "B": ("get_orders", {"no": 884211}, {}),
        "X": ("weather", {}, {}), "Y": ("rates", {}, {}), "Z": ("news", {}, {}),
    }  # fmt: skip

    def run(order: str) -> Trace:
        made = Run()
        for name in order:
            made.turn().call(*tools[name], **READ)
        return made.end()

    assert "GT104 error" in codes(run("ABXYZ"), run("XYZBA"))


def test_sources_that_are_alike_are_held_to_what_the_golden_shows_of_them() -> None:
    def run(has_effect: bool, outcome: str) -> Trace:
        made = Run(states=["retry"]).turn().call("charge", {}, {}, **WRITE)
        return (made.effect("charge", key="k") if has_effect else made).end(outcome)

    assert codes(run(True, "success"), run(False, "success")) == ["GT504 error"]
    assert codes(run(True, "success"), run(True, "unknown")) == ["GT501 error"]


def test_whose_decision_and_whose_limit_it_was() -> None:
    def run(agent: str, kind: str) -> Trace:
        made = Run().turn().call("look", {}, {}, **READ)
        return (made.decide("escalate", agent=agent) if kind == "decision" else made.limit("calls", agent=agent)).end()

    assert codes(run("billing", "decision"), run("triage", "decision")) == ["GT202 error"]
    assert codes(run("billing", "limit"), run("triage", "limit")) == ["GT503 error"]


def test_two_goldens_of_one_behaviour() -> None:
    def run(name: str) -> Trace:
        items = [{"id": uuid(name, n), "n": n, "stock": len(name) * n} for n in range(70)]
        made = Run().turn().call("list", {}, {"items": items}, **READ).turn()
        args = {"ids": [uuid(name, n) for n in range(70)], "note": {"a": 1, "b": 2, "c": 3}}
        return made.call("act", args, {}, **WRITE).end()

    settings = Profile(name="test@1")
    files = [encode_golden(as_golden(normal(run(name), settings), settings)) for name in ("one", "three")]
    assert b"leaves[" in files[0]
    found = compare(read_golden(files[0], "g"), read_golden(files[1], "c"), settings)
    assert found.changes == []


def test_the_agents_own_id_that_the_user_quotes_later_is_an_id() -> None:
    def run(name: str) -> Trace:
        made = Run().say("Pay").turn().call("pay", {"ref": uuid(name, 1)}, {}, **WRITE)
        made.say(f"Cancel {uuid(name, 1)}").turn()
        return made.call("cancel", {"ref": uuid(name, 1)}, {}, **WRITE).end()

    assert codes(run("one"), run("three")) == []


def test_a_results_own_time_is_that_of_the_run() -> None:
    def run(second: float) -> Trace:
        return Run().at(second).turn().call("get", {}, {"at": clock(second)}, **READ).end()

    for mode in ("digest", "keep"):
        assert codes(run(0), run(5000), results={"compare": mode}) == []


def test_a_member_of_a_batch_that_another_agent_calls() -> None:
    def run(agent: str) -> Trace:
        made = Run().turn()
        for n in range(3):
            made.call("look", {"n": n}, {}, batch="b", agent=agent if n == 1 else "main", **READ)
        return made.end()

    assert codes(run("main"), run("rogue")) == ["GT602 error", "GT107 warning"]


def test_the_first_of_two_retry_decisions_is_not_made_any_more() -> None:
    def run(*decided: int) -> Trace:
        made = Run().turn()
        for n in range(3):
            if n in decided:
                made.decide("retry", "c0", by="harness")
            status = "ok" if n == 2 else "error"
            made.call("pay", {}, status=status, id=f"c{n}", op_id="c0" if n else None, origin="harness", **WRITE)
        return made.end()

    assert codes(run(1, 2), run(2)) == ["GT203 error"]
    assert codes(run(1, 2), run(1)) == ["GT203 error"]
    assert codes(run(1), run(2)) == ["GT202 error"]


@pytest.mark.parametrize("numbers", [(5, 6), (5, 5)])
def test_ids_that_are_keys_of_arguments(numbers: tuple[int, int]) -> None:
    def run(name: str, first: int = 0, second: int = 1) -> Trace:
        items = [{"id": uuid(name, n), "n": n} for n in range(3)]
        made = Run().turn().call("list", {}, {"items": items}, **READ).turn()
        update = {"set": {uuid(name, first): numbers[0], uuid(name, second): numbers[1]}, "why": "x"}
        return made.call("update", update, {}, **WRITE).end()

    golden = run("golden")
    for name in ("one", "three", "seven"):
        assert codes(golden, run(name)) == []
        assert codes(golden, run(name, 0, 2)) == ["GT109 error"]
    swapped = codes(golden, run("one", 1, 0))
    assert swapped == ([] if numbers[0] == numbers[1] else ["GT109 error"])
    assert uuid("golden", 0) not in encode_golden(normal(golden)).decode()


def test_a_list_without_an_order_that_holds_ids() -> None:
    free = {"arguments": {"order_free": ["/ids"]}}

    def run(name: str, picked: Sequence[int]) -> Trace:
        items = [{"id": uuid(name, n), "n": n} for n in range(4)]
        made = Run().turn().call("list", {}, {"items": items}, **READ).turn()
        return made.call("act", {"ids": [uuid(name, n) for n in picked]}, {}, **WRITE).end()

    golden = run("golden", (0, 1, 2))
    for name in ("one", "three", "seven"):
        for picked in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
            assert codes(golden, run(name, picked), **free) == []
        assert codes(golden, run(name, (0, 1, 3)), **free) == ["GT109 error"]


def test_rows_of_a_table_are_told_apart_by_what_they_hold() -> None:
    def run(name: str, picked: int, *, is_turned: bool) -> Trace:
        rows = [["A", uuid(name, 1)], ["B", uuid(name, 2)]]
        made = Run().turn().call("sql", {}, {"rows": rows[::-1] if is_turned else rows}, **READ).turn()
        return made.call("delete", {"id": uuid(name, picked)}, {}, **WRITE).end()

    golden = run("golden", 1, is_turned=False)
    assert codes(golden, run("one", 1, is_turned=True)) == []
    assert codes(golden, run("one", 2, is_turned=True)) == ["GT109 error"]
