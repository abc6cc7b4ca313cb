"""What each comparison says in its words, at its place, and what follows from what."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.arguments import list_changes, looks_generated
from goldentrace.diff.codes import CODES
from goldentrace.diff.decisions import comparable_kinds
from goldentrace.diff.differ import as_golden, compare, reading_pairs
from goldentrace.diff.payload import MAX_BYTES, MAX_DIFFERENCES, describe_differences, rebuild
from goldentrace.match.alignment import Alignment, PairKind
from goldentrace.model.change import Change, Comparison
from goldentrace.model.event import ABSENT, DECISION_KINDS
from goldentrace.model.operation import LeafMap
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from tests.traces import Run, normal

U = [f"0f8fad5b-d9cb-469f-a165-7086772895{n:02d}" for n in range(10)]


def known(profile: dict[str, Any] | None = None) -> Profile:
    return msgspec.convert({"name": "test@1", **(profile or {})}, Profile)


def diff(golden: Run | Trace, candidate: Run | Trace, profile: dict[str, Any] | None = None) -> Comparison:
    """By way of the golden's file; the candidate's own file gives the same codes where no value is needed."""
    one, other = (normal(run.end() if isinstance(run, Run) else run, known(profile)) for run in (golden, candidate))
    return compare(read_golden(encode_golden(as_golden(one, known(profile))), "g"), other, known(profile))


def only(found: Comparison, code: str) -> Change:
    roots = [c for c in found.changes if c.is_root]
    assert [c.code for c in roots] == [code], [(c.code, c.message) for c in found.changes]
    return roots[0]


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "pointers", "message"),
    [
        (1, 2, ("",), "t#1: argument (the whole value) differs"),
        ({"a": 1, "b": 2}, {"a": 2, "b": 3}, ("/a", "/b"), "t#1: 2 of 2 arguments differ"),
        ({"a": 1}, {"a": 1, "b": 2}, ("/b",), "t#1: argument /b differs"),
        ({"a": [1, 2], "b": 1}, {"a": [2], "b": 1}, ("/a",), "t#1: argument /a differs"),
        ({"a": [1, 2]}, {"a": [1, 3]}, ("/a/1",), "t#1: argument /a/1 differs"),
        ({"a": {"0": 1, "x": 2}}, {"a": {"0": 2, "x": 2}}, ("/a/0",), "t#1: argument /a/0 differs"),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, ("/a/b", "/a/c"), "t#1: 2 of 2 arguments differ"),
    ],
)
def test_which_arguments_differ(one: Any, other: Any, pointers: tuple[str, ...], message: str) -> None:
    change = only(diff(Run().call("t", one), Run().call("t", other)), "GT101")
    assert (change.pointers, change.message) == (pointers, message)


def test_the_candidates_value_is_shown_and_the_goldens_where_it_is_kept() -> None:
    change = only(diff(Run().call("t", {"a": 1}), Run().call("t", {"a": 2})), "GT101")
    assert (str(change.expected)[:5], change.actual) == ("int h", 2)
    kept = {"arguments": {"keep": ["/a"]}}
    change = only(diff(Run().call("t", {"a": 1}), Run().call("t", {"a": 2}), kept), "GT101")
    assert (change.expected, change.actual) == (1, 2)
    change = only(diff(Run().call("t", {"a": [1]}), Run().call("t", {"a": [1, 2]})), "GT101")
    assert (change.expected, change.actual) == ("1 element", "2 elements")
    one, other = (normal(Run().call("t", {"a": n}).end(), known(kept)) for n in (1, 2))
    other.payloads = None
    assert compare(one, other, known(kept)).changes[0].actual == 2


def test_a_secret_is_never_shown() -> None:
    change = only(diff(Run().call("t", {"password": 1}), Run().call("t", {"password": "hunter2"})), "GT101")
    assert change.actual == "<secret:1>"


def test_a_changed_argument_of_a_retry_names_the_attempt() -> None:
    def run(amount: int) -> Run:
        made = Run().call("t", {"a": 1, "r": U[0]}, status="error", id="1")
        return made.call("t", {"a": amount, "r": U[0]}, op_id="1").call("t", {"a": amount, "r": U[0]}, op_id="1")

    change = only(diff(run(2), run(3)), "GT101")
    assert (change.attempt, change.pointers, change.golden_line) == (2, ("/a",), 4)
    assert only(diff(run(1), run(2)), "GT101").attempt == 2
    assert diff(run(2), run(2)).changes == []


@pytest.mark.parametrize(
    ("value", "is_generated"),
    [
        ("AB12CD34EF", True), ("a1-b2_c3d4", True), ("a1b2c3d", False), ("abcdefgh1", False), ("12345678a", False),
        ("a1 b2 c3 d4", False), (U[0], False), ("", False),
    ],
)  # fmt: skip
def test_what_looks_generated(value: str, is_generated: bool) -> None:
    assert looks_generated(value) is is_generated


def test_the_line_that_would_mask_a_value_is_offered_only_where_it_looks_generated() -> None:
    def hint(one: Any, other: Any) -> str | None:
        return only(diff(Run().call("t", one), Run().call("t", other)), "GT101").hint

    assert "keys: [b]" in str(hint({"a": 1, "b": "AB12CD34"}, {"a": 2, "b": "EF56GH78"}))
    assert hint({"b": "AB12CD34"}, {"b": "EF56GH789"}) is None
    assert hint({"b": "some text"}, {"b": "any other"}) is None
    assert hint({"b": 1}, {"b": "EF56GH78"}) is None


def test_changes_inside_a_list_of_other_length_are_one_at_the_list() -> None:
    one, other = {"/a/0/x": "1", "/a/1/x": "2", "/b": "3"}, {"/a/0/x": "9", "/b": "4"}
    assert list_changes(one, other, ["/a/0/x", "/a/1/x", "/b"]) == ["/a", "/b"]
    assert list_changes({"/m/0/k/1": "1"}, {"/m/0/k/1": "2", "/m/0/k/2": "3"}, ["/m/0/k/1"]) == ["/m/0/k"]


def test_ids_that_come_from_elsewhere_are_one_change() -> None:
    def run(first: int, second: int) -> Run:
        return Run().call("list", {}, {"x": U[0], "y": U[1]}).call("t", {"a": U[first], "b": U[second]})

    change = only(diff(run(0, 1), run(1, 0)), "GT109")
    assert (change.pointers, change.message) == (("/a", "/b"), "t#1: 2 ids come from elsewhere at /a, /b")
    assert "an id comes from elsewhere at /a" in only(diff(run(0, 1), run(1, 1)), "GT109").message


# -- attempts and results ---------------------------------------------------------------------------------------------


def tried(*statuses: str | None, origin: str = "harness", states: list[str] | None = None, **last: Any) -> Run:
    run = Run(states=states)
    for n, status in enumerate(statuses):
        more = last if n == len(statuses) - 1 else {}
        run.call("t", {}, id=f"{n}", op_id="0" if n else None, status=status, origin=origin if n else "model", **more)
    return run


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (1, 2, "a retry more, attempts 1 -> 2"),
        (2, 1, "a retry less, attempts 2 -> 1"),
        (1, 4, "retries, attempts 1 -> 4"),
    ],
)
def test_attempts_are_counted(before: int, now: int, words: str) -> None:
    change = only(diff(tried(*["error"] * before), tried(*["error"] * now)), "GT201")
    assert words in change.message
    assert (change.expected, change.actual) == (before, now)


def test_who_asked_for_an_attempt_counts() -> None:
    change = only(diff(tried("error", "ok"), tried("error", "ok", origin="sdk")), "GT201")
    assert change.message == "t#1: attempt 2 was asked for by the sdk, not by the harness"


def test_how_an_attempt_ended_and_with_which_error() -> None:
    change = only(diff(tried("ok"), tried("error", error_class="timeout", http_status=504)), "GT301")
    assert (change.expected, change.actual) == ("ok", "error timeout 504")
    change = only(diff(tried("error", "error"), tried("timeout", "error")), "GT301")
    assert change.attempt == 1
    change = only(diff(tried("error", http_status=500), tried("error", http_status=503)), "GT302")
    assert change.actual == "error 503"


def test_a_result_that_one_side_has_not_is_a_coverage_line() -> None:
    found = diff(tried("ok"), tried(None, states=[]))
    assert found.changes == []
    assert "results of some attempts: one side has none" in found.coverage
    assert diff(tried(None), tried(None)).coverage == []


def test_with_more_attempts_the_last_of_both_tell_how_it_ended() -> None:
    found = diff(tried("error", "ok"), tried("error", "error", "error"))
    assert [(c.code, c.is_root) for c in found.changes] == [("GT201", True), ("GT301", False)]


DIGEST = {"results": {"compare": "digest"}}


def test_results_are_compared_leaf_by_leaf_and_only_of_attempts_that_ended_alike() -> None:
    def run(body: Any, status: str = "ok") -> Run:
        return Run().call("t", {}, body, status=status)

    change = only(diff(run({f"k{n}": n for n in range(5)}), run({f"k{n}": n + 1 for n in range(5)}), DIGEST), "GT108")
    assert change.message == "t#1: the result differs at /k0, /k1, /k2 and more"
    assert len(change.pointers) == 5
    assert only(diff(run({"a": 1}), run({"a": 2}, "error"), DIGEST), "GT301").code == "GT301"
    assert diff(run({"a": 1}), run({"a": 1.0}), DIGEST).changes == []
    assert only(diff(run({"a": 1}), run({"a": 1, "b": 2}), DIGEST), "GT108").pointers == ("/b",)


def test_results_that_one_side_does_not_hold_are_a_coverage_line() -> None:
    golden = read_golden(encode_golden(as_golden(normal(tried("ok").end(), known()), known())), "g")
    candidate = normal(Run().call("t", {}, {"a": 1}, origin="model").end(), known(DIGEST))
    found = compare(golden, candidate, known(DIGEST))
    assert (found.changes, found.coverage) == ([], ["results: one side does not hold them"])


def test_kept_results_say_what_changed() -> None:
    keep = {"results": {"compare": "keep"}}
    found = diff(Run().call("t", {}, {"a": {"b": 1}, "c": "x"}), Run().call("t", {}, {"a": {"b": 2}, "c": "x"}), keep)
    assert only(found, "GT108").hint == "/a/b: 1 -> 2"


def test_differences_of_values_are_few_and_those_of_long_ones_are_not_looked_for() -> None:
    assert describe_differences({"a": 1, "b": [1]}, {"a": 1, "b": [2]}) == ["/b/0: 1 -> 2"]
    assert describe_differences(1, 1) == []
    many = {str(n): n for n in range(50)}
    assert len(describe_differences(many, dict.fromkeys(many, -1))) == MAX_DIFFERENCES
    assert describe_differences("x" * MAX_BYTES, "y") == []


def test_kept_leaves_are_put_together_again() -> None:
    assert rebuild({"": {"value": 5}}) == 5
    assert rebuild({"/a/b": {"value": 1}, "/a/c": "str[1] h:00", "/d": "[]"}) == {
        "a": {"b": 1, "c": "str[1] h:00"},
        "d": "[]",
    }
    assert rebuild({"/a": "json", "/a/b": {"value": 1}}) == {"a": {"b": 1}}
    assert rebuild({}) == {}


# -- decisions and the events of no call ------------------------------------------------------------------------------


def test_kinds_that_both_sides_can_state_or_show_are_compared() -> None:
    def kinds(states: list[str] | None, profile: dict[str, Any] | None = None) -> set[str]:
        trace = normal(Run(states=states).end())
        return set(comparable_kinds(normal(Run().end()), trace, known(profile)))

    declared = {"tools": {"a": {"reconciles": "x"}, "b": {"fallback_for": ["x"]}, "c": {"escalates": True}, "d": {}}}
    assert kinds(None) == set(DECISION_KINDS)
    assert kinds([]) == {"retry"}
    assert kinds(["abort"], {"tools": {"b": {"fallback_for": "x"}}}) == {"retry", "abort", "fallback"}
    assert kinds([], declared) == {"retry", "reconcile", "fallback", "escalate"}


def test_an_inferred_decision_is_held_to_its_kind_alone() -> None:
    def run(**fields: Any) -> Run:
        return Run().call("t", {}, status="error", id="1").decide("abort", "1", **fields)

    assert diff(run(reason="a"), run(reason="b", inferred=True)).changes == []
    assert diff(run(reason="a"), run()).changes == []
    assert only(diff(run(by="model", inferred=True), run(by="sdk")), "GT202").expected == "abort by the model"
    change = only(diff(run(reason="a", by="model"), run(reason="b", by="model")), "GT202")
    assert (change.expected, change.actual) == ("abort (a) by the model", "abort (b) by the model")


def test_several_decisions_are_told_together() -> None:
    def run(*kinds: str) -> Run:
        made = Run().call("t", {}, status="error", id="1")
        for kind in kinds:
            made.decide(kind, "1")
        return made

    assert only(diff(run("abort"), run("abort", "fallback", "escalate")), "GT204").actual == "fallback, escalate"
    assert only(diff(run("abort", "escalate"), run()), "GT203").expected == "abort, escalate"


def test_a_ledger_that_the_source_does_not_keep_is_a_coverage_line() -> None:
    golden = Run().call("pay", {}).effect("charge")
    found = diff(golden, Run(states=[]).call("pay", {}))
    assert [c.code for c in found.changes] == []
    assert any("ledger" in line for line in found.coverage)
    assert only(diff(golden, Run().call("pay", {})), "GT504").message == "effects charge: 1 -> 0"


def test_effects_on_something_else_are_told_though_their_number_is_the_same() -> None:
    def run(key: str) -> Run:
        return Run().call("make", {}, {"id": U[0], "other": U[1]}).effect("charge", key=key, value=encode_raw({"n": 5}))

    assert diff(run(U[0]), run(U[0])).changes == []
    assert "on something else" in only(diff(run(U[0]), run(U[1])), "GT504").message
    assert "on something else" in only(diff(run("a"), run("b")), "GT504").message


def test_of_an_unpaired_call_the_number_in_its_label_is_no_difference_of_the_ledger() -> None:
    def run(*numbers: int) -> Run:
        made = Run()
        for n in numbers:
            made.call("make", {"n": n}, {"id": U[n]})
        return made.effect("charge", key=U[numbers[-1]])

    found = diff(run(1, 2), run(2))
    assert [c.code for c in found.changes] == ["GT103"]


def test_a_source_that_does_not_record_the_end_is_a_coverage_line() -> None:
    golden = Run().call("t", {})
    imported = Run(states=[]).call("t", {})
    found = diff(golden.end("success", "final_answer"), imported.end("unknown", "unknown"))
    assert found.changes == []
    assert {"outcome: one side does not record it", "stop reason: one side does not record it"} <= set(found.coverage)
    silent = Run().call("t", {}).end("unknown", "unknown")
    assert [c.code for c in diff(Run().call("t", {}), silent).changes] == ["GT501", "GT502"]


def test_the_limits_that_fired_are_told_by_name_maximum_and_place() -> None:
    def run(*limits: tuple[str, int | None]) -> Run:
        made = Run().call("t", {})
        for name, most in limits:
            made.limit(name, max=most)
        return made

    change = only(diff(run(), run(("max_wall_ms", 5))), "GT503")
    assert (change.expected, change.actual) == ("none", "max_wall_ms 5 after 1 calls that both sides have")
    change = only(diff(run(("a", None), ("b", None)), run(("a", None))), "GT503")
    assert (change.expected, change.actual) == ("b after 1 calls that both sides have", "none")
    assert only(diff(run(("a", 1)), run(("a", 2))), "GT503").actual == "a 2 after 1 calls that both sides have"


# -- order and turns --------------------------------------------------------------------------------------------------


def reads(*names: str, **more: Any) -> Run:
    run = Run()
    for name in names:
        run.call(name, {}, access="read", **more)
    return run


def test_a_move_says_what_it_passed() -> None:
    change = only(diff(reads(*"abcde"), reads(*"bcdea")), "GT104")
    assert (change.severity, change.message) == ("warning", "a#1: now after b#1 and 3 more; only reads are passed")
    assert (change.expected, change.actual) == ("position 1", "position 5")
    change = only(diff(reads(*"abcde"), reads(*"eabcd")), "GT104")
    assert change.message == "e#1: now before a#1 and 3 more; only reads are passed"


def test_a_read_moved_past_a_write_and_a_write_moved_are_errors() -> None:
    def run(*names: str) -> Run:
        made = Run()
        for name in names:
            made.call(name, {}, access="write" if name == "w" else "read")
        return made

    change = only(diff(run("a", "w", "b"), run("w", "b", "a")), "GT104")
    assert (change.severity, change.message.partition("; ")[2]) == ("error", "what it passes is not declared a read")
    change = only(diff(run("w", "a", "b"), run("a", "b", "w")), "GT104")
    assert (change.severity, change.message.partition("; ")[2]) == ("error", "w is not declared a read")


def test_a_read_moved_past_one_that_uses_it_is_an_error() -> None:
    def run(*names: str) -> Run:
        made = Run()
        for name in names:
            result = {"x": "alpha"} if name == "s" else None
            made.call(name, {"v": "alpha"} if name == "u" else {}, result, access="read")
        return made

    change = only(diff(run("s", "u", "a", "b"), run("u", "a", "b", "s")), "GT104")
    assert (change.severity, change.message.partition("; ")[2]) == ("error", "u#1 uses it")
    change = only(diff(run("s", "a", "b", "u"), run("u", "s", "a", "b")), "GT104")
    assert (change.severity, change.message.partition("; ")[2]) == ("error", "it uses s#1")


def test_reversed_calls_are_each_told_to_have_passed_the_others() -> None:
    found = diff(reads(*"abcd"), reads(*"dcba"))
    assert {c.code for c in found.changes} == {"GT104"}
    assert len(found.changes) == 3


def test_far_moves_of_a_long_run_are_told_one_by_one() -> None:
    names = [f"t{n}" for n in range(300)]
    moved = names[150:160]
    rest = [name for name in names if name not in moved]
    found = diff(reads(*names), reads(*rest, *moved))
    assert [(c.code, c.severity) for c in found.changes] == [("GT104", "warning")] * 10
    assert found.changes[0].message.startswith("t150#1: now after t160#1 and 139 more")


def test_children_of_different_calls_have_no_order_and_those_of_one_call_do() -> None:
    def run(order: list[tuple[str, str]]) -> Run:
        made = Run().turn().call("p", {}, id="p", status=None, batch="b", access="read")
        made.call("q", {}, id="q", status=None, batch="b", access="read")
        for parent, tool in order:
            made.call(tool, {}, parent=parent, access="write")
        return made.result("p").result("q")

    one = run([("p", "a"), ("q", "b"), ("p", "c"), ("q", "d")])
    assert diff(one, run([("q", "b"), ("q", "d"), ("p", "a"), ("p", "c")])).changes == []
    assert only(diff(one, run([("p", "c"), ("q", "b"), ("p", "a"), ("q", "d")])), "GT104").severity == "error"


def test_a_batch_of_many_is_named_by_its_first_members() -> None:
    def run(*, is_batch: bool) -> Run:
        made = Run().turn()
        for name in "abcde":
            made.call(name, {}, access="read", batch="x" if is_batch else None)
        return made

    assert only(diff(run(is_batch=True), run(is_batch=False)), "GT107").message == (
        "a#1, b#1, c#1 and 2 more: were one batch, now serial"
    )


def test_serial_calls_of_which_one_uses_another_became_one_batch() -> None:
    def run(*, is_batch: bool) -> Run:
        more = {"batch": "x"} if is_batch else {}
        made = Run().turn().call("a", {}, {"name": "alpha"}, access="read", **more)
        return made.call("b", {"name": "alpha"}, access="read", **more)

    change = only(diff(run(is_batch=False), run(is_batch=True)), "GT107")
    assert (change.severity, change.message) == ("error", "a#1, b#1: were serial, now one batch; b#1 uses a#1")


def test_a_call_that_runs_within_another_call_now() -> None:
    def run(parent: str | None) -> Run:
        made = Run().turn().call("p", {}, id="p", status=None).call("q", {}, id="q", status=None)
        return made.call("c", {}, parent=parent).result("p").result("q")

    assert diff(run("p"), run("p")).changes == []
    change = next(c for c in diff(run("p"), run("q")).changes if c.code == "GT602")
    assert (change.expected, change.actual) == ("p#1", "q#1")
    assert any(c.code == "GT602" for c in diff(run(None), run("p")).changes)


def test_all_operations_are_read_in_the_goldens_order_each_added_one_behind_its_pair() -> None:
    alignment = Alignment({0: (1, PairKind.SAME), 2: (4, PairKind.SAME), 3: (3, PairKind.MOVED)})
    assert reading_pairs(alignment, 4, 7) == [
        (None, 0), (0, 1), (None, 2), (1, None), (2, 4), (None, 5), (None, 6), (3, 3),
    ]  # fmt: skip


# -- what follows from what -------------------------------------------------------------------------------------------


def links(found: Comparison) -> list[tuple[str, str | None]]:
    return [(c.code, c.caused_by.code if c.caused_by else None) for c in found.changes]


def test_an_error_does_not_follow_from_a_warning() -> None:
    def run(*, amount: int, is_batch: bool) -> Run:
        more = {"batch": "x"} if is_batch else {}
        return Run().turn().call("a", {"n": amount}, access="read", **more).call("b", {}, access="read", **more)

    found = diff(run(amount=1, is_batch=True), run(amount=2, is_batch=False))
    assert links(found) == [("GT101", None), ("GT107", "GT101")]
    graded = {"compare": {"severities": {"GT101": "note"}}}
    assert sorted(links(diff(run(amount=1, is_batch=True), run(amount=2, is_batch=False), graded))) == [
        ("GT101", None),
        ("GT107", None),
    ]


def test_a_value_of_a_call_that_is_gone_follows_from_it() -> None:
    one = Run().call("make", {}, {"id": U[0]}).call("use", {"id": U[0], "n": 1})
    other = Run().call("use", {"id": U[5], "n": 1})
    assert links(diff(one, other)) == [("GT103", None), ("GT109", "GT103")]
    assert ("GT109", "GT102") in links(diff(other, one))


def test_a_call_that_became_an_attempt_follows_from_the_attempts() -> None:
    apart = Run().call("t", {}, status="error").say("again").call("t", {})
    joined = Run().call("t", {}, status="error").call("t", {})
    assert ("GT103", "GT201") in links(diff(apart, joined))
    assert ("GT102", "GT201") in links(diff(joined, apart))
    other = Run().call("t", {}, status="error").say("again").call("u", {})
    assert not any(code == "GT102" and cause == "GT201" for code, cause in links(diff(joined, other)))


def test_calls_that_a_new_limit_cut_off_follow_from_it() -> None:
    one = Run().call("a", {}).call("b", {}).call("c", {})
    other = Run().call("a", {}).limit("max_tool_calls", max=1).end("aborted", "call_limit")
    found = diff(one, other)
    assert [c.code for c in found.changes if c.is_root] == ["GT503"] or [
        c.code for c in found.changes if c.is_root
    ] == ["GT103"]
    assert {c.code for c in found.changes} >= {"GT103", "GT503", "GT501", "GT502"}


def test_the_end_follows_from_the_ledger_where_nothing_else_changed() -> None:
    one = Run().call("a", {}).effect("charge").end()
    other = Run().call("a", {}).effect("charge").effect("charge").end("failed", "tool_error")
    assert sorted(links(diff(one, other))) == [("GT501", "GT504"), ("GT502", "GT504"), ("GT504", None)]


def test_between_two_files_a_use_is_told_by_its_labels() -> None:
    def file(name: str) -> Any:
        run = Run().call("find", {"q": name}, {"hit": "h-" + name}).call("open", {"hit": "h-" + name})
        return read_golden(encode_golden(as_golden(normal(run.end(), known()), known())), "g")

    assert links(compare(file("cats"), file("dogs"), known())) == [("GT101", None), ("GT101", "GT101")]


def test_every_code_of_the_table_is_its_own_and_is_said_in_words() -> None:
    assert all(
        code == entry.code and entry.summary and entry.name == entry.name.lower() for code, entry in CODES.items()
    )
    assert len({entry.name for entry in CODES.values()}) == len(CODES)
    assert list(CODES) == sorted(CODES)


def test_waits_that_cannot_be_compared_say_why() -> None:
    def run(*, has_end: bool) -> Run:
        made = (
            Run().at(1).call("t", {}, status="error", id="1")
            if has_end
            else Run().at(1).call("t", {}, status=None, id="1")
        )
        return made.at(4).call("t", {}, id="2", op_id="1", origin="harness")

    found = diff(run(has_end=True), run(has_end=False))
    assert any("no end" in why for why in found.not_comparable)

    def cut(second: float | None) -> Run:
        made = Run().at(1).call("t", {}, status=None, id="1").at(second).result("1", ABSENT, "error")
        return made.at(4).call("t", {}, id="2", op_id="1", origin="harness")

    assert any("same clock" in why for why in diff(cut(2), cut(None)).not_comparable)


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ([1], [1, 2], ("1 element", "2 elements")),
        ([1, 2], [], ("2 elements", "0 elements")),
        ([[1], [2]], [[1]], ("2 elements", "1 element")),
        ([1, 2], {"0": 1, "x": 2}, ("2 elements", "an object")),
    ],
)
def test_a_list_of_other_length_is_shown_alike_on_both_sides(one: Any, other: Any, shown: tuple[str, str]) -> None:
    change = only(diff(Run().call("t", {"a": one}), Run().call("t", {"a": other})), "GT101")
    assert (change.pointers[0], change.expected, change.actual) == ("/a", *shown)


def plain_list_changes(expected: LeafMap, actual: LeafMap, changed: list[str]) -> list[str]:
    def length(leaves: LeafMap, container: str) -> int:
        inside = [pointer.removeprefix(f"{container}/") for pointer in leaves if pointer.startswith(f"{container}/")]
        heads = {re.split("[/#~]", pointer)[0] for pointer in inside}
        return len(heads) if all(head.isdigit() for head in heads) else -1

    places: list[str] = []
    for pointer in changed:
        parts = pointer.partition("#")[0].split("/")
        containers = ["/".join(parts[:depth]) for depth in range(1, len(parts)) if parts[depth].isdigit()]
        differ = [place for place in containers if length(expected, place) != length(actual, place)]
        place = differ[0] if differ else pointer
        if place not in places:
            places.append(place)
    return places


_pointers = st.lists(st.sampled_from(["a", "0", "1", "2", "x", "1~1b", "~"]), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
_leaves = st.dictionaries(
    st.tuples(_pointers, st.sampled_from(["", "", "#json"])).map("".join), st.just("v"), max_size=8
)


@given(_leaves, _leaves)
def test_lists_of_other_length_are_those_that_a_plain_count_finds(one: LeafMap, other: LeafMap) -> None:
    changed = sorted(one.keys() ^ other.keys())
    assert list_changes(one, other, changed) == plain_list_changes(one, other, changed)


def test_a_map_of_many_changed_leaves_is_read_once() -> None:
    one = {f"/rows/{n}/cells/{m}": "1" for n in range(2000) for m in range(10)}
    other = {f"/rows/{n}/cells/{m}": "2" for n in range(2000) for m in range(10)}
    assert list_changes(one, other, list(one)) == list(one)
