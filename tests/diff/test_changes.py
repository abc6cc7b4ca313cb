"""Each kind of change, what it points at, and what follows from what."""

from typing import Any

import msgspec
import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import CompareOptions, as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.change import Comparison
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from tests.traces import Run, normal

U1, U2, U3 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(3))


def diff(golden: Trace, candidate: Trace, profile: dict[str, Any] | None = None, **options: bool) -> Comparison:
    """Compare by way of the golden's file; the raw run must give the same."""
    known = msgspec.convert({"name": "test@1", **(profile or {})}, Profile)
    one, other = normal(golden, known), normal(candidate, known)
    data = encode_golden(as_golden(one, known))
    found = compare(read_golden(data, "golden"), other, known, options=CompareOptions(**options))
    raw = compare(normal(golden, known), other, known, options=CompareOptions(**options))
    assert [(c.code, c.severity, c.is_root) for c in raw.changes] == [
        (c.code, c.severity, c.is_root) for c in found.changes
    ]
    again = encode_golden(rerecord(found, known))
    assert (again != data) == bool(found.changes or found.not_comparable)
    after = compare(read_golden(again, "golden"), other, known, options=CompareOptions(**options))
    assert not after.changes
    assert not after.not_comparable
    return found


def roots(found: Comparison) -> list[tuple[str, str]]:
    return [(c.code, c.severity) for c in found.changes if c.is_root]


def test_another_agent() -> None:
    one = Run().call("get", {"a": 1}).end()
    other = Run().call("get", {"a": 1}, agent="helper").end()
    assert roots(diff(one, other)) == [("GT602", "error")]


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        ([], [("abort", {"reason": "x"})], "GT204"),
        ([("abort", {"reason": "x"})], [], "GT203"),
        ([("abort", {"reason": "x"})], [("escalate", {"reason": "x"})], "GT202"),
        ([("abort", {"reason": "x"})], [("abort", {"reason": "y"})], "GT202"),
        ([("abort", {"by": "model"})], [("abort", {"by": "harness"})], "GT202"),
    ],
)
@pytest.mark.parametrize("about", ["c1", None])
def test_decisions(before: list[Any], now: list[Any], code: str, about: str | None) -> None:
    def run(decisions: list[Any]) -> Trace:
        trace = Run().call("get", {"a": 1}, status="error")
        for kind, fields in decisions:
            trace.decide(kind, about, **fields)
        return trace.call("other", {}).end()

    assert roots(diff(run(before), run(now))) == [(code, "error")]


def test_a_decision_of_the_run_at_another_place() -> None:
    one = Run().call("a", {}).decide("escalate").call("b", {}).end()
    other = Run().call("a", {}).call("b", {}).decide("escalate").end()
    assert roots(diff(one, other)) == [("GT202", "error")]


def test_a_decision_moved_by_an_attempt() -> None:
    def run(first: bool) -> Trace:
        trace = Run().call("a", {}, status="error", id="1")
        if first:
            trace.decide("fallback", "1", reason="r")
        trace.call("a", {}, status="error", id="2", attempt=2, op_id="1", origin="harness")
        if not first:
            trace.decide("fallback", "2", reason="r")
        return trace.end()

    assert roots(diff(run(True), run(False))) == [("GT202", "error")]


def test_a_finish_decision_is_implied_by_the_end() -> None:
    assert diff(Run().call("a", {}).end(), Run().call("a", {}).decide("finish").end()).changes == []


@pytest.mark.parametrize(("before", "now"), [("approved", "denied"), (None, "approved"), ("approved", None)])
def test_approvals(before: str | None, now: str | None) -> None:
    def run(verdict: str | None) -> Trace:
        trace = Run()
        if verdict:
            trace.approve("c1", verdict)
        return trace.call("pay", {}).end()

    assert roots(diff(run(before), run(now))) == [("GT205", "error")]


def test_errors_differ_in_class_or_status_code() -> None:
    def run(**error: Any) -> Trace:
        return Run().call("a", {}, status="error", **error).end()

    assert roots(diff(run(error_class="timeout"), run(error_class="reset"))) == [("GT302", "error")]
    assert roots(diff(run(http_status=500), run(http_status=503))) == [("GT302", "error")]
    assert diff(run(http_status=500), run()).changes == []


def retried(
    gap_s: float | None, *, owed_ms: int | None = None, delay_ms: int | None = None, origin: str = "harness"
) -> Trace:
    trace = Run().at(1).call("a", {}, status="error", id="1", error_class="rate_limited", owed_ms=owed_ms)
    if delay_ms is not None:
        trace.decide("retry", "1", delay_ms=delay_ms)
    trace.at(None if gap_s is None else 1 + gap_s)
    return trace.call("a", {}, id="2", attempt=2, op_id="1", origin=origin).end()


def test_waits_without_a_policy() -> None:
    assert diff(retried(2), retried(2.2)).changes == []
    assert roots(diff(retried(2), retried(1))) == [("GT401", "error")]
    assert roots(diff(retried(4.1, owed_ms=4000), retried(1, owed_ms=4000))) == [("GT402", "error")]
    change = diff(retried(2), retried(1)).changes[0]
    assert change.tolerance is not None
    assert change.tolerance.deviation_ms < 0


def test_an_attempt_that_started_before_the_one_before_it_ended() -> None:
    assert roots(diff(retried(2), retried(-0.5))) == [("GT206", "error")]


def test_waits_of_one_side_only_and_of_neither() -> None:
    found = diff(retried(2), retried(None))
    assert [c.code for c in found.changes] == ["GT403"]
    assert diff(retried(None), retried(None)).changes == []


def test_a_policy_of_the_header_outranks_the_others() -> None:
    known = Profile(
        name="test@1",
        backoff={"policy": "custom", "base_ms": 100, "factor": 2, "cap_ms": 1000, "jitter": {"kind": "none"}},
    )
    golden, candidate = normal(retried(2), known), normal(retried(3), known)
    assert [c.code for c in compare(golden, candidate, known).changes] == ["GT401"]
    own = {"policy": "custom", "base_ms": 3000, "factor": 2, "cap_ms": 9000, "jitter": {"kind": "none"}}
    with_header = as_golden(golden, known, backoff=own)
    assert compare(with_header, candidate, known).changes == []


def test_limits_by_name_and_by_the_call_they_fired_after() -> None:
    one = Run().call("a", {}).call("b", {}).limit("max_tool_calls", value=3, max=2).end("aborted", "call_limit")
    other = Run().call("a", {}).limit("max_wall_ms", value=3, max=2).call("b", {}).end("aborted", "wall_clock_limit")
    found = diff(one, other)
    assert roots(found) == [("GT503", "error")]
    assert [c.code for c in found.changes] == ["GT503", "GT502"]
    assert diff(one, one).changes == []


def test_effects_are_counted_not_ordered() -> None:
    def run(*names: str) -> Trace:
        trace = Run().call("pay", {})
        for name in names:
            trace.effect(name)
        return trace.end()

    assert diff(run("charge", "mail"), run("mail", "charge")).changes == []
    found = diff(run("charge"), run("charge", "charge"))
    assert roots(found) == [("GT504", "error")]
    assert found.changes[0].message == "effects charge: 1 -> 2"


def test_serial_writes_that_became_one_batch_are_an_error_and_reads_a_warning() -> None:
    def run(tools: tuple[str, str], access: str | None, *, is_batch: bool) -> Trace:
        more: dict[str, Any] = {"batch": "b"} if is_batch else {}
        trace = Run().turn()
        for tool in tools:
            trace.call(tool, {}, access=access, **more)
        return trace.end()

    for access, severity in (("read", "warning"), ("write", "error"), (None, "error")):
        golden, candidate = (run(("a", "b"), access, is_batch=b) for b in (False, True))
        assert roots(diff(golden, candidate)) == [("GT107", severity)]
        assert roots(diff(candidate, golden)) == [("GT107", "warning")]


def test_calls_that_came_in_one_turn_and_now_in_two() -> None:
    one = Run().turn().call("a", {}).call("b", {}).call("c", {}).end()
    two = Run().turn().call("a", {}).turn().call("b", {}).turn().call("c", {}).end()
    assert roots(diff(one, two)) == [("GT107", "warning")]
    assert roots(diff(two, one)) == [("GT107", "warning")]


def test_turns_that_the_candidate_lost_are_no_verdict() -> None:
    whole, narrow = Run().turn().call("a", {}).end(), Run().call("a", {}).end()
    found = diff(whole, narrow)
    assert found.not_comparable == ["turns: the candidate has none (--allow-narrower compares the rest)"]
    allowed = diff(whole, narrow, allow_narrower=True)
    assert (allowed.not_comparable, allowed.changes) == ([], [])
    assert allowed.coverage == ["turns: the candidate has none"]
    wider = diff(narrow, whole)
    assert (wider.not_comparable, wider.changes) == ([], [])
    assert wider.coverage == ["turns: the golden has none (remove it and record again to add them)"]


def test_turns_that_the_candidate_lost_of_one_agent_are_no_verdict() -> None:
    def run(turn: int | None) -> Trace:
        return Run().call("a", {}, turn=1).call("b", {}, agent="helper", turn=turn).end()

    assert diff(run(1), run(None)).not_comparable == [
        "turns of helper: the candidate has none (--allow-narrower compares the rest)"
    ]
    gone = Run().call("a", {}, turn=1).end()
    assert not diff(run(1), gone).not_comparable, "an agent that calls nothing any more has lost no turns"


def test_strict_order_reports_members_of_a_batch() -> None:
    strict = {"compare": {"parallel_order": "strict"}}
    one = Run().turn().call("a", {}, batch="x").call("b", {}, batch="x").end()
    other = Run().turn().call("b", {}, batch="x").call("a", {}, batch="x").end()
    assert diff(one, other).changes == []
    assert roots(diff(one, other, strict)) == [("GT106", "error")]


def test_a_read_that_passes_what_it_uses_is_an_error() -> None:
    get = {"access": "read"}
    one = (
        Run()
        .call("list", {}, {"name": "alpha"}, **get)
        .call("get", {"name": "alpha"}, **get)
        .call("see", {"n": 77}, **get)
    )
    other = (
        Run()
        .call("get", {"name": "alpha"}, **get)
        .call("list", {}, {"name": "alpha"}, **get)
        .call("see", {"n": 77}, **get)
    )
    found = diff(one.end(), other.end())
    assert roots(found) == [("GT104", "error")]
    assert "uses" in found.changes[0].message
    swapped = (
        Run()
        .call("list", {}, {"name": "alpha"}, **get)
        .call("see", {"n": 77}, **get)
        .call("get", {"name": "alpha"}, **get)
    )
    assert roots(diff(one.end(), swapped.end())) == [("GT104", "warning")]


def test_one_of_four_equal_calls_dropped_is_one_error() -> None:
    def run(*boxes: int) -> Trace:
        ids = [f"0f8fad5b-d9cb-469f-a165-7086772895{n:02d}" for n in range(4)]
        trace = Run().call("list", {}, {"boxes": ids})
        for box in boxes:
            trace.call("pack", {"box": ids[box]}, {"done": box})
        return trace.end()

    for dropped in range(4):
        found = diff(run(0, 1, 2, 3), run(*(n for n in range(4) if n != dropped)))
        assert roots(found) == [("GT103", "error")]
        assert found.changes[0].label == f"pack#{dropped + 1}"


def test_an_inserted_twin_read_alarms_no_dependent() -> None:
    one = Run().call("get", {}, {"id": U1}).call("use", {"id": U1})
    twin = Run().call("get", {}, {"id": U1}).call("get", {}, {"id": U1}).call("use", {"id": U1})
    assert roots(diff(one.end(), twin.end())) == [("GT102", "error")]
    assert roots(diff(twin.end(), one.end())) == [("GT103", "error")]


def test_a_dropped_duplicate_field_alarms_nobody() -> None:
    one = Run().call("get", {}, {"a": U1, "longer": U1}).call("use", {"id": U1})
    other = Run().call("get", {}, {"longer": U1}).call("use", {"id": U1})
    assert diff(one.end(), other.end()).changes == []


def test_interchangeable_members_of_a_batch_are_assigned_by_their_later_uses() -> None:
    def run(order: tuple[int, int]) -> Trace:
        made = [U1, U2]
        trace = Run().turn()
        for n in order:
            trace.call("make", {}, {"id": made[n], "n": n}, batch="b")
        trace.turn()
        return trace.call("paint", {"id": U1}).call("sell", {"id": U2}).end()

    assert diff(run((0, 1)), run((1, 0))).changes == []


def test_a_fresh_key_on_a_retry_is_another_id() -> None:
    def run(second: str) -> Trace:
        trace = Run().call("pay", {"key": U1, "n": 5}, status="timeout", id="1")
        return trace.call("pay", {"key": second, "n": 5}, id="2", attempt=2, op_id="1", origin="harness").end()

    found = diff(run(U1), run(U2))
    assert roots(found) == [("GT109", "error")]
    assert (found.changes[0].pointers, found.changes[0].attempt) == (("/key",), 2)


def test_the_same_wrong_value_later_follows_from_the_first() -> None:
    def run(amount: int) -> Trace:
        return Run().call("quote", {"amount": amount}).call("pay", {"amount": amount, "n": 1}).end()

    found = diff(run(50), run(500))
    assert roots(found) == [("GT101", "error")]
    assert [c.is_root for c in found.changes] == [True, False]


def test_a_value_taken_from_a_changed_call_follows_from_it() -> None:
    def run(query: str, hit: str) -> Trace:
        return Run().call("search", {"q": query}, {"hit": hit}).call("open", {"hit": hit}).end()

    found = diff(run("cats", "tabby"), run("dogs", "poodle"))
    assert roots(found) == [("GT101", "error")]
    assert [(c.code, c.caused_by is not None) for c in found.changes] == [("GT101", False), ("GT101", True)]


def test_the_outcome_follows_from_the_first_error() -> None:
    one = Run().call("a", {}).call("b", {}).end()
    other = Run().call("a", {}).end("aborted", "tool_error")
    found = diff(one, other)
    assert roots(found) == [("GT103", "error")]
    assert [c.code for c in found.changes] == ["GT103", "GT501", "GT502"]


def test_a_retry_that_became_a_call_of_its_own_is_one_change() -> None:
    joined = Run().call("a", {}, status="error").call("a", {})
    apart = Run().call("a", {}, status="ok").call("a", {})
    found = diff(joined.end(), apart.end())
    assert roots(found) == [("GT201", "error")]
    assert {c.code for c in found.changes} == {"GT201", "GT301", "GT102"} or {c.code for c in found.changes} == {
        "GT201",
        "GT102",
    }


def test_a_value_that_looks_generated_names_the_line_that_would_mask_it() -> None:
    one, other = (Run().call("a", {"ref": ref}).end() for ref in ("AB12CD34EF", "ZX98YW76VU"))
    (change,) = diff(one, other).changes
    assert change.hint is not None
    assert "ids: {keys: [ref]}" in change.hint


def test_an_incomplete_recording_is_no_verdict_unless_allowed() -> None:
    whole, cut = Run().call("a", {}).end(), Run().call("a", {}).cut()
    known = Profile(name="test@1")
    golden, candidate = normal(whole, known), normal(cut, known)
    assert compare(golden, candidate, known).not_comparable
    allowed = compare(golden, candidate, known, options=CompareOptions(allow_incomplete=True))
    assert not allowed.not_comparable
    assert "incomplete" in allowed.coverage[0]


def test_decisions_that_a_source_cannot_state() -> None:
    golden = Run().call("a", {}, status="error", id="1").decide("abort", "1").end()
    narrower = Run(states=[]).call("a", {}, status="error").end()
    found = diff(golden, narrower)
    assert found.not_comparable == [
        "decisions that the candidate's source cannot state: abort (1 in the golden) (--allow-narrower compares the rest)"
    ]
    allowed = diff(golden, narrower, allow_narrower=True)
    assert not allowed.not_comparable
    assert not allowed.changes
    wider = diff(narrower, golden)
    assert not wider.changes
    assert any("golden's source cannot state: abort" in line for line in wider.coverage)


def test_two_golden_files_are_compared_through_the_mapping() -> None:
    known = Profile(name="test@1")

    def golden(*calls: tuple[str, dict[str, Any]]) -> Any:
        trace = Run().call("get", {"n": 1}, {"id": U1, "other": U2})
        for tool, args in calls:
            trace.call(tool, args)
        return read_golden(encode_golden(as_golden(normal(trace.end(), known), known)), "g")

    one = golden(("use", {"id": U1}), ("use", {"id": U2, "x": 1}))
    assert (
        compare(one, golden(("new", {}), ("use", {"id": U1}), ("use", {"id": U2, "x": 1})), known)
        .roots("error")[0]
        .code
        == "GT102"
    )
    wrong = compare(one, golden(("use", {"id": U2}), ("use", {"id": U2, "x": 1})), known)
    assert [c.code for c in wrong.roots("error")] == ["GT109"]


def test_severities_are_the_profiles_to_change() -> None:
    one, other = Run().call("a", {"n": 1}).end(), Run().call("a", {"n": 2}).end()
    assert roots(diff(one, other, {"compare": {"severities": {"GT101": "note"}}})) == [("GT101", "note")]


def test_what_a_golden_holds_as_a_value_is_no_id_in_a_run() -> None:
    """What looks random and was the same in every run that was recorded is compared by value from then on."""
    known = Profile(name="test@1")

    def run(tenant: str) -> Trace:
        return Run().call("pay", {"tenant": tenant, "n": 1}).call("pay", {"tenant": tenant, "n": 2}).end()

    literal = normal(Run().say(U1).call("pay", {"tenant": U1}).end(), known).values()
    golden = as_golden(normal(run(U1), known, constants=literal), known)
    assert golden.operations[0].args["/tenant"].startswith("str[36] h:")  # type: ignore[union-attr]
    same = normal(run(U1), known, constants=golden.values())
    other = normal(run(U2), known, constants=golden.values())
    assert compare(golden, same, known).changes == []
    assert roots(compare(golden, other, known)) == [("GT101", "error")]


def test_a_write_before_the_call_that_it_depends_on_is_an_error() -> None:
    """An id that no result had given when it was used did not come from the result that gave it later."""

    def run(*, is_late: bool, access: str | None) -> Trace:
        trace = Run()

        def login() -> None:
            trace.turn().call("login", {"user": "ann"}, {"id": U1}, access="read")

        def batch() -> None:
            trace.turn()
            trace.call("pay", {"q": U1}, access=access, batch="b").call("log", {"p": 1}, access="read", batch="b")

        for step in (batch, login) if is_late else (login, batch):
            step()
        return trace.end()

    for access in ("write", None):
        found = diff(run(is_late=False, access=access), run(is_late=True, access=access))
        assert found.roots("error"), [c.message for c in found.changes]


def failed_then_ok(looks_up: int, ids: tuple[str, str]) -> Trace:
    """A charge whose first attempt times out with an id in its body; then the id of one attempt is looked up."""
    trace = Run().call("charge", {"n": 1}, {"charge_id": ids[0]}, status="timeout", id="1")
    trace.call("charge", {"n": 1}, {"charge_id": ids[1]}, id="2", op_id="1", attempt=2, origin="harness")
    return trace.call("get_charge", {"id": ids[looks_up]}).end()


def test_the_id_of_a_failed_attempt_is_another_than_that_of_the_last() -> None:
    redrawn = (U3, U3.replace("0f8f", "1f8f"))
    for looks_up in (0, 1):
        assert diff(failed_then_ok(looks_up, (U1, U2)), failed_then_ok(looks_up, redrawn)).changes == []
        other = diff(failed_then_ok(looks_up, (U1, U2)), failed_then_ok(1 - looks_up, redrawn))
        assert roots(other) == [("GT109", "error")]


def test_the_order_of_argument_keys_names_nothing() -> None:
    one = Run().call("pay", {"a": U1, "b": U2}).end()
    other = Run().call("pay", {"b": U3, "a": U2}).end()
    assert diff(one, other).changes == []


def test_a_retry_in_a_batch_may_start_after_its_sibling() -> None:
    def run(order: str, *, is_stated: bool) -> Trace:
        batch: dict[str, Any] = {"batch": "x"} if is_stated else {}
        trace = Run().turn()
        trace.call("a", {}, status=None, id="a1", **batch).call("b", {}, status=None, id="b1", **batch)
        trace.result("a1", None, "error").result("b1").turn()
        for name in order:
            trace.call(name, {}, status=None, id=f"{name}2", **({"batch": "y"} if is_stated else {}))
        for name in order:
            trace.result(f"{name}2")
        return trace.end()

    for is_stated in (True, False):
        assert diff(run("ac", is_stated=is_stated), run("ca", is_stated=is_stated)).changes == []


def test_ids_whose_source_the_golden_does_not_know_are_said() -> None:
    from goldentrace.model.event import ABSENT

    blind = Run().call("list", {}, ABSENT).call("cancel", {"id": U1}).end()
    known = Run().call("list", {}, {"id": U2}).call("cancel", {"id": U2}).end()
    found = diff(blind, known)
    assert found.changes == []
    assert any("unknown provenance" in line for line in found.coverage)


def test_effects_on_other_entities_are_another_ledger() -> None:
    def run(charged: tuple[int, int]) -> Trace:
        made = (U1, U2)
        trace = Run()
        for n in (0, 1):
            trace.call("order", {"n": n}, {"id": made[n]})
        for n in charged:
            trace.effect("charge", key=made[n])
        return trace.end()

    assert diff(run((0, 1)), run((1, 0))).changes == []
    assert roots(diff(run((0, 1)), run((0, 0)))) == [("GT504", "error")]


def test_another_parent() -> None:
    def run(parent: str) -> Trace:
        trace = Run().turn()
        for name in ("p1", "p2"):
            trace.call("ask", {"who": name}, status=None, id=name)
        trace.call("read", {"x": 1}, parent=parent, agent="helper")
        return trace.result("p1").result("p2").end()

    assert diff(run("p1"), run("p1")).changes == []
    assert ("GT602", "error") in roots(diff(run("p1"), run("p2")))


def test_an_approval_after_the_call_has_run_is_another() -> None:
    before = Run().approve("c1").call("pay", {}).end()
    after = Run().call("pay", {}).approve("c1").end()
    assert roots(diff(before, after)) == [("GT205", "error")]


def test_twins_of_a_batch_of_which_the_other_failed_are_equal() -> None:
    def run(failing: int) -> Trace:
        trace = Run().turn()
        for n in (0, 1):
            trace.call("get", {"a": 1}, status="error" if n == failing else "ok", batch="b")
        return trace.end()

    assert diff(run(0), run(1)).changes == []


def test_batches_of_one_name_under_two_agents_are_two() -> None:
    trace = Run().turn().call("a", {}, batch="1").call("b", {}, batch="1").call("c", {}, batch="1", agent="sub").end()
    assert [(o.label, o.batch) for o in normal(trace).operations] == [("a#1", 1), ("b#1", 1), ("sub/c#1", None)]


def test_a_second_result_belongs_to_no_later_call_of_the_id() -> None:
    run = Run().call("a", {"n": 1}, id="c").result("c", None, "error").call("a", {"n": 2}, id="c").end()
    assert [o.last.status for o in normal(run).operations] == ["ok", "ok"]


def test_an_end_that_a_foreign_source_does_not_record_is_said() -> None:
    told = Run().call("a", {}).end()
    foreign = Run(states=[]).call("a", {}).end("unknown", "unknown")
    silent = Run().call("a", {}).end("unknown", "unknown")
    assert diff(told, foreign).changes == []
    assert roots(diff(told, silent)) == [("GT501", "error")]


@pytest.mark.parametrize("text", ["basic telecommunications", "bearer responsibilities"])
def test_ordinary_words_are_no_secrets(text: str) -> None:
    leaf = normal(Run().call("a", {"q": text, "pwd": "/srv/a"}).end()).operations[0].args
    assert "<secret" not in str(leaf)


def test_calls_that_a_limit_cut_off_follow_from_the_limit() -> None:
    whole = Run().call("a", {}).call("b", {}).call("c", {}).end()
    cut = Run().call("a", {}).limit("max_tool_calls", value=2, max=1).end("aborted", "call_limit")
    found = diff(whole, cut)
    assert roots(found) == [("GT503", "error")]
    assert {c.code for c in found.changes} == {"GT503", "GT103", "GT501", "GT502"}
