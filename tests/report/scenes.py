"""Reports made by hand, one per thing that a report can say, and the texts that are expected of them.

`python tests/report/scenes.py` writes the texts anew; whoever does that reads them.
"""

import sys
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[2]))

from goldentrace.diff.codes import CODES
from goldentrace.model.change import Change, Comparison, JudgedWait, Tolerance
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.normal import Header, NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep, LooseEvent, Operation, Step
from goldentrace.model.report import Problem, Report, TraceReport
from goldentrace.report import render

EXPECTED = Path(__file__).with_name("expected")
Pairs = list[tuple[int | None, int | None]]


def attempt(number: int = 1, status: Any = "ok", **fields: Any) -> Attempt:
    """Return one attempt; `at` is its start in ms, it takes 250."""
    at = fields.pop("at", None)
    times = {} if at is None else {"started_ms": at, "ended_ms": at + 250}
    return Attempt(number=number, status=status, **times, **fields)


def limited(number: int = 1, owed_ms: float | None = 2000, **fields: Any) -> Attempt:
    """Return an attempt that was told to wait."""
    return attempt(number, "error", error_class="rate_limited", http_status=429, owed_ms=owed_ms, **fields)


def decision(kind: Any, reason: str | None = None, **fields: Any) -> DecisionStep:
    """Return a decision about a call."""
    return DecisionStep(decision=kind, reason=reason, **fields)


def operation(label: str, *steps: Step, **fields: Any) -> Operation:
    """Return an operation with lines as a golden would have them."""
    agent, _, rest = label.rpartition("/")
    fields.setdefault("args", {"/order_id": "str[5] h:e0445e937323"})
    return Operation(
        label=label,
        tool_name=rest.rpartition("#")[0],
        agent=agent or "main",
        steps=list(steps or (attempt(),)),
        **fields,
    )


def side(
    operations: list[Operation], *, is_golden: bool, loose: list[LooseEvent] | None = None, **fields: Any
) -> NormalTrace:
    """Return one side of a comparison; calls without a line or a time get one."""
    for number, one in enumerate(operations):
        for step in one.steps:
            if isinstance(step, Attempt):
                step.call_line = step.call_line or 3 * number + 3
                if not is_golden and step.started_ms is None:
                    step.started_ms = 500.0 * number + 410
    given = {"outcome": "success", "stop_reason": "final_answer", **fields}
    path = "goldens/shop/refund.jsonl" if is_golden else ".goldentrace/runs/shop/refund.jsonl"
    return NormalTrace(
        header=Header(scenario_id="refund", profile="default@1"), operations=operations, loose=loose or [], path=path,
        has_turns=True, has_times=True, is_golden=is_golden, end_line=3 * len(operations) + 3, **given,
    )  # fmt: skip


def change(code: str, message: str, golden: int | None = None, candidate: int | None = None, **fields: Any) -> Change:
    """Return a change with the name, severity and lines that the differ would give it."""
    known = CODES[code]
    fields.setdefault("severity", known.severity)
    fields.setdefault("golden_line", None if golden is None else 3 * golden + 3)
    fields.setdefault("candidate_line", None if candidate is None else 3 * candidate + 3)
    return Change(code, known.name, message=message, golden_index=golden, candidate_index=candidate, **fields)


def report(
    golden: NormalTrace, candidate: NormalTrace, pairs: Pairs, *changes: Change, name: str = "refund", **fields: Any
) -> TraceReport:
    """Return the report of one comparison; a change without a label gets that of its call."""
    for one in changes:
        trace, index = (golden, one.golden_index) if one.golden_index is not None else (candidate, one.candidate_index)
        if index is not None:
            one.label = one.label or trace.operations[index].label
            one.tool_name = one.tool_name or trace.operations[index].tool_name
    compared = Comparison(golden, candidate, pairs, list(changes), **fields)
    return TraceReport(name, golden.path, candidate.path, compared, is_pending=bool(changes))


def shop() -> list[Operation]:
    """Return five calls: a read, a batch of two, a write that waits, a message."""
    return [
        operation("get_order#1", turn=1),
        operation("get_customer#1", turn=2, batch=1),
        operation("get_policy#1", turn=2, batch=1),
        operation(
            "refund#1", limited(), decision("retry", "rate_limited", delay_ms=2131), attempt(2, origin="harness", gap_ms=2131),
            limited(3, 4000, origin="harness", gap_ms=100), attempt(4, origin="harness", gap_ms=4272),
            turn=3, args={"/amount": "float h:ddd03f95ebd4", "/currency": "str[3] h:1f1a2b3c4d5e", "/order_id": "<get_order#1/id>"},
        ),
        operation("notify#1", turn=4),
    ]  # fmt: skip


SAME: Pairs = [(n, n) for n in range(5)]


def sides(**fields: Any) -> tuple[NormalTrace, NormalTrace]:
    """Return the golden and a candidate that is the same."""
    return side(shop(), is_golden=True), side(shop(), is_golden=False, **fields)


def changed(*changes: Change, pairs: Pairs = SAME, **fields: Any) -> TraceReport:
    """Return a report of equal sides with some changes said of them."""
    return report(*sides(), pairs, *changes, **fields)


def argument_changed() -> TraceReport:
    return changed(
        change(
            "GT101",
            "refund#1: argument /amount differs",
            3,
            3,
            pointers=("/amount",),
            expected="float h:ddd03f95ebd4",
            actual=499.99,
        )
    )


def several_arguments() -> TraceReport:
    one = change(
        "GT101", "refund#1: 2 of 3 arguments differ", 3, 3, pointers=("/amount", "/currency"), expected=49.99, actual=499.99,
        hint="if this value is drawn anew in each run, add to the profile: ids: {keys: [currency]}",
    )  # fmt: skip
    found = changed(one)
    assert found.comparison is not None
    found.comparison.candidate.operations[3].args["/currency"] = "str[3] h:99887766aabb"
    return found


def long_values() -> TraceReport:
    return changed(
        change(
            "GT101", "refund#1: argument /memo differs", 3, 3, pointers=("/memo",), expected="str[400] h:ddd03f95ebd4",
            actual="漢字と kana, then a very long text that goes on " * 8 + "\x1b[31mand ends here\u202e",
        )
    )  # fmt: skip


def call_added() -> TraceReport:
    golden, candidate = sides()
    candidate.operations.insert(
        4, operation("get_order#2", attempt(at=2105.0, call_line=14), args={"/order_id": "str[6] h:aa45e937323f"})
    )
    pairs: Pairs = [*SAME[:4], (None, 4), (4, 5)]
    one = change("GT102", "get_order: a call that the golden does not have", None, 4, candidate_line=14)
    return report(golden, candidate, pairs, one)


def call_removed() -> TraceReport:
    golden, candidate = sides()
    del candidate.operations[4]
    pairs: Pairs = [*SAME[:4], (4, None)]
    return report(golden, candidate, pairs, change("GT103", "notify#1: did not happen", 4))


def call_moved() -> TraceReport:
    golden, candidate = sides()
    candidate.operations.insert(1, candidate.operations.pop(3))
    pairs: Pairs = [(0, 0), (1, 2), (2, 3), (3, 1), (4, 4)]
    one = change("GT104", "refund#1: now before get_customer#1 and 1 more; refund is not declared a read", 3, 1)
    return report(golden, candidate, pairs, one)


def tool_changed() -> TraceReport:
    golden, candidate = sides()
    candidate.operations[4] = operation("send_sms#1", attempt(at=2410.0, call_line=15))
    one = change("GT105", "notify#1: send_sms was called instead", 4, 4, expected="notify", actual="send_sms")
    return report(golden, candidate, SAME, one)


def reordered() -> TraceReport:
    return changed(change("GT106", "get_customer#1: came at another place of its batch", 1, 1))


def batching() -> TraceReport:
    return changed(change("GT107", "get_customer#1, get_policy#1: were one batch, now serial", 1, 1))


def result_changed() -> TraceReport:
    return changed(
        change(
            "GT108", "get_policy#1: the result differs at /limit, /days", 2, 2, pointers=("/limit", "/days"), attempt=1,
            expected="int h:4b227777d4dd", actual="int h:f5ca38f748a1", hint="/limit: 100 -> 20; /days: 30 -> 14",
        )
    )  # fmt: skip


def identity_changed() -> TraceReport:
    return changed(
        change(
            "GT109", "refund#1: an id comes from elsewhere at /order_id", 3, 3, pointers=("/order_id",),
            expected="<get_order#1/id>", actual="<get_policy#1/id>",
        )
    )  # fmt: skip


def attempts_changed() -> TraceReport:
    found = changed(change("GT201", "refund#1: a retry less, attempts 4 -> 3", 3, 3, expected=4, actual=3, attempt=4))
    assert found.comparison is not None
    now = found.comparison.candidate.operations[3]
    now.steps = [*now.steps[:-1]]
    cause = found.comparison.changes[0]
    found.comparison.changes.append(
        change(
            "GT301", "refund#1: ok, now error rate_limited 429", 3, 3, expected="ok", actual="error rate_limited 429",
            attempt=3, label="refund#1", tool_name="refund", caused_by=cause,
        )
    )  # fmt: skip
    return found


def decision_changed() -> TraceReport:
    found = changed(
        change("GT202", "refund#1: decided retry (rate_limited), now abort (rate_limited)", 3, 3,
               expected="retry (rate_limited)", actual="abort (rate_limited)")
    )  # fmt: skip
    assert found.comparison is not None
    found.comparison.candidate.operations[3].steps[1] = decision("abort", "rate_limited")
    return found


def decision_missing() -> TraceReport:
    return changed(
        change(
            "GT203",
            "the run: did not decide escalate (notify_failed)",
            expected="escalate (notify_failed)",
            golden_line=14,
        )
    )


def decision_added() -> TraceReport:
    return changed(
        change(
            "GT204", "the run: decided fallback (timeout) in addition", actual="fallback (timeout)", candidate_line=2
        )
    )


def approval_changed() -> TraceReport:
    found = changed(change("GT205", "refund#1: approval approved, now none", 3, 3, expected=["approved"], actual=None))
    assert found.comparison is not None
    found.comparison.golden.operations[3].steps.insert(0, ApprovalStep(verdict="approved", by="cashier"))
    return found


Waits = tuple[float | None, float | None]


def wait_change(code: str, message: str, waits: Waits, tolerance: Tolerance | None) -> TraceReport:
    """Return a report of the third wait of refund#1: the golden's and the candidate's."""
    golden_ms, now_ms = waits
    found = changed(
        change(
            code, f"refund#1: {message}", 3, 3, expected=golden_ms, actual=now_ms, attempt=4, tolerance=tolerance
        )
    )  # fmt: skip
    assert found.comparison is not None
    if "together" not in message:
        found.comparison.candidate.operations[3].attempts[3].gap_ms = now_ms
    found.comparison.changes[0].waits = judged_waits(
        found.comparison.changes[0], "sum" if "together" in message else "gap"
    )
    return found


def judged_waits(change: Change, measure: Literal["gap", "delay", "sum"], retry: int = 3) -> tuple[JudgedWait, ...]:
    """Return the waits before the retries of a call, those before `retry` in their band, that one as the change says."""
    fine = [JudgedWait(n, "gap", 2000.0 + n, 2100.0 + n, Tolerance(1000, 3000, 0, ""), False) for n in range(1, retry)]
    return (*fine, JudgedWait(retry, measure, change.expected, change.actual, change.tolerance, True))


def hedged() -> TraceReport:
    return wait_change(
        "GT206", "retry 3: an attempt started before the one before it ended, golden 4272 ms, now -30 ms, allowed at least "
        "0 ms, 30 ms too short", (4272, -30),
        Tolerance(0, None, -30, "attempts of one call do not overlap in the golden"),
    )  # fmt: skip


def status_changed() -> TraceReport:
    found = changed(change("GT301", "get_policy#1: ok, now timeout", 2, 2, expected="ok", actual="timeout", attempt=1))
    assert found.comparison is not None
    found.comparison.candidate.operations[2].steps = [
        attempt(status="timeout", error_class="timeout", at=1410.0, call_line=9)
    ]
    return found


def error_changed() -> TraceReport:
    found = changed(
        change("GT302", "refund#1: error rate_limited 429, now error server_error 503", 3, 3, attempt=1,
               expected="error rate_limited 429", actual="error server_error 503")
    )  # fmt: skip
    assert found.comparison is not None
    found.comparison.candidate.operations[3].steps[0] = attempt(1, "error", error_class="server_error", http_status=503)
    return found


def backoff_out_of_band() -> TraceReport:
    return wait_change(
        "GT401", "retry 3: wait out of its band, golden 4272 ms, now 9804 ms, allowed 1995 ms to 6650 ms, 3154 ms too long "
        "(backoff.policy: openai)", (4272, 9804), Tolerance(1995, 6650, 3154, "backoff.policy: openai (goldentrace.yaml:14)"),
    )  # fmt: skip


def delay_out_of_band() -> TraceReport:
    found = wait_change(
        "GT401", "retry 1: announced delay out of its band, golden 2131 ms, now 90 ms, allowed 374 ms to 501 ms, 284 ms too "
        "short (backoff.policy: openai)", (2131, 90), Tolerance(374, 501, -284, "backoff.policy: openai"),
    )  # fmt: skip
    assert found.comparison is not None
    found.comparison.changes[0].attempt = 2
    found.comparison.changes[0].waits = judged_waits(found.comparison.changes[0], "delay", 1)
    steps = found.comparison.candidate.operations[3].steps
    steps[1], steps[4] = decision("retry", "rate_limited", delay_ms=90), attempt(4, origin="harness", gap_ms=4272)
    return found


def waits_too_short_together() -> TraceReport:
    return wait_change(
        "GT401", "retry 3: waits too short together, golden 6503 ms, now 2371 ms, allowed at least 2800 ms, 429 ms too short "
        "(backoff.policy: backoff)", (6503, 2371),
        Tolerance(2800, None, -429, "backoff.policy: backoff, full jitter: sum of 3 waits, Irwin-Hall at 0.001"),
    )  # fmt: skip


def retry_after_violated() -> TraceReport:
    return wait_change(
        "GT402", "retry 3: shorter than Retry-After, golden 4272 ms, now 1006 ms, allowed at least 3995 ms, 2989 ms too "
        "short (Retry-After of 4000 ms)", (4272, 1006), Tolerance(3995, None, -2989, "Retry-After of 4000 ms"),
    )  # fmt: skip


def backoff_not_comparable() -> TraceReport:
    return wait_change(
        "GT403",
        "retry 3: no time in the golden (not recorded); count and Retry-After hold, now 4301 ms",
        (None, 4301),
        None,
    )


def backoff_shape() -> TraceReport:
    return wait_change(
        "GT404", "retry 3: waits do not grow, golden 4272 ms, now 540 ms, allowed 791 ms to 1808 ms, 251 ms too short "
        "(backoff.factor: 2)", (4272, 540), Tolerance(791, 1808, -251, "backoff.factor: 2 (goldentrace.yaml:14)"),
    )  # fmt: skip


def outcome_changed() -> TraceReport:
    golden, candidate = sides(outcome="needs_human", stop_reason="call_limit")
    limit = change(
        "GT503", "limit none, now max_tool_calls 20 after 4 calls that both sides have", expected="none",
        actual="max_tool_calls 20 after 4 calls that both sides have", candidate_line=15,
    )  # fmt: skip
    end = {"golden_line": 18, "candidate_line": 19, "caused_by": limit}
    return report(
        golden, candidate, SAME, limit,
        change("GT501", "outcome success, now needs_human", expected="success", actual="needs_human", **end),
        change("GT502", "stop reason final_answer, now call_limit", expected="final_answer", actual="call_limit", **end),
    )  # fmt: skip


def outcome_alone() -> TraceReport:
    golden, candidate = sides(outcome="partial")
    one = change(
        "GT501", "outcome success, now partial", expected="success", actual="partial", golden_line=18, candidate_line=18
    )
    return report(golden, candidate, SAME, one)


def stop_reason_alone() -> TraceReport:
    golden, candidate = sides(stop_reason="user_cancelled")
    one = change(
        "GT502", "stop reason final_answer, now user_cancelled", expected="final_answer", actual="user_cancelled", golden_line=18,
        candidate_line=18,
    )  # fmt: skip
    return report(golden, candidate, SAME, one)


def effects_changed() -> TraceReport:
    return changed(
        change(
            "GT504",
            "effects charge: 1 -> 2",
            expected={"charge": 1},
            actual={"charge": 2},
            golden_line=13,
            candidate_line=13,
        )
    )


def agent_changed() -> TraceReport:
    golden, candidate = sides()
    golden.operations[3] = operation("billing/refund#1", attempt(call_line=12))
    one = change("GT602", "billing/refund#1: called by billing, now by main", 3, 3, expected="billing", actual="main")
    return report(golden, candidate, SAME, one)


def shifts() -> TraceReport:
    return changed(
        change("GT701", "tool calls: median 6 in 20 runs, now 9 in 20 runs", expected=6, actual=9),
        change("GT702", "variant h:3f9a0c17be52 in 2 of 20 runs; the nearest known one has one call less"),
        change("GT703", "success in 19 of 20 runs, now in 11 of 20", expected="19 of 20", actual="11 of 20"),
    )


def not_comparable() -> TraceReport:
    return changed(
        change(
            "GT101",
            "refund#1: argument /amount differs",
            3,
            3,
            pointers=("/amount",),
            expected="float h:ddd03f95ebd4",
            actual=499.99,
        ),
        not_comparable=[
            "the candidate is incomplete: no trace_end (--allow-incomplete compares what is there)",
            "decisions that the candidate's source cannot state: escalate (1 in the golden) (--allow-narrower compares the rest)",
        ],
        coverage=["results: one side does not hold them (3 times)", "turns: one side does not record them"],
        is_approximate=True,
    )


def clean() -> TraceReport:
    return changed()


def missing_golden() -> TraceReport:
    return TraceReport("payout", "goldens/payout.jsonl", ".goldentrace/runs/payout.jsonl", missing="missing-golden")


def missing_candidate() -> TraceReport:
    return TraceReport("payout", "goldens/payout.jsonl", ".goldentrace/runs/payout.jsonl", missing="missing-candidate")


def broken() -> TraceReport:
    problem = Problem(
        "golden is not readable: conflict marker", "goldens/legacy.jsonl", 11, None,
        "resolve the merge, then run: goldentrace fmt --check goldens/legacy.jsonl",
    )  # fmt: skip
    return TraceReport("legacy", "goldens/legacy.jsonl", problem=problem)


def findings() -> TraceReport:
    lint = LintResult(
        "runs/refund.jsonl",
        [
            Finding(
                "GT1001", "exact-duplicate", "error", "charge#2: repeats charge#1 in the same turn, byte by byte",
                ("charge#1", "charge#2"), (6, 8), "charge",
            ),
            Finding(
                "GT1003", "stale-refetch", "warning", "read#2: config.json was read in turn 2 and nothing touched it since",
                ("read#1", "read#2"), (3, 12), "read",
            ),
            Finding(
                "GT1507", "invented-argument", "note", "no message or result holds this id", ("charge#1",), (6,), "charge",
                "/customer", actual="C-77",
            ),
            Finding(
                "GT1202", "backoff-missing", "error", "three retries without a growing wait", ("poll#1",), (20, 22, 24, 26, 28, 30),
                "poll", accepted="the mock server does not throttle",
            ),
        ],
        ("GT1001", "GT1002", "GT1003", "GT1202", "GT1507"),
        {"GT1004": "results are not recorded", "GT1101": "results are not recorded", "GT1702": "no tool is declared destructive"},
        ("suppression of GT1201 matched nothing",),
    )  # fmt: skip
    return TraceReport("runs/refund.jsonl", candidate_path="runs/refund.jsonl", lint=lint)


def no_findings() -> TraceReport:
    return TraceReport(
        "runs/refund.jsonl",
        candidate_path="runs/refund.jsonl",
        lint=LintResult("runs/refund.jsonl", [], ("GT1001", "GT1002")),
    )


def many_changes() -> TraceReport:
    count = 60
    golden = side([operation(f"poll#{n + 1}") for n in range(count)], is_golden=True)
    candidate = side([operation(f"poll#{n + 1}") for n in range(count)], is_golden=False)
    changes = [
        change(
            "GT101",
            f"poll#{n + 1}: argument /page differs",
            n,
            n,
            pointers=("/page",),
            expected="int h:4b227777d4dd",
            actual=n,
        )
        for n in range(0, count, 2)
    ]
    return report(golden, candidate, [(n, n) for n in range(count)], *changes)


SCENES = {
    made.__name__: made
    for made in (
        argument_changed, several_arguments, long_values, call_added, call_removed, call_moved, tool_changed, reordered,
        batching, result_changed, identity_changed, attempts_changed, decision_changed, decision_missing, decision_added,
        approval_changed, hedged, status_changed, error_changed, backoff_out_of_band, delay_out_of_band, waits_too_short_together, retry_after_violated,
        backoff_not_comparable, backoff_shape, outcome_changed, outcome_alone, stop_reason_alone, effects_changed,
        agent_changed, shifts, not_comparable, clean, missing_golden, missing_candidate, broken, findings, no_findings,
        many_changes,
    )
}  # fmt: skip
"""One trace each."""


def scene(name: str) -> Report:
    """Return the report of one scene."""
    made = SCENES[name]()
    is_lint = made.comparison is None and made.lint is not None
    return Report("lint" if is_lint else "diff", [made], config_path=None if is_lint else "goldentrace.yaml")


def suite() -> Report:
    """Return a report of several traces, each of another kind."""
    traces = [
        clean(),
        argument_changed(),
        attempts_changed(),
        batching(),
        missing_golden(),
        broken(),
        clean(),
        not_comparable(),
    ]
    names = ("research", "refund", "invoice", "search", "payout", "legacy", "triage", "import-of-the-archive")
    for trace, name in zip(traces, names, strict=True):
        trace.name = name
    return Report("diff", traces, config_path="goldentrace.yaml")


def texts() -> dict[str, str]:
    """Return the expected texts by the names of their files."""
    found = {name: render(scene(name), "text") for name in SCENES}
    found["findings_verbose"] = render(scene("findings"), "text", verbosity=1)
    found["suite"] = render(suite(), "text")
    found["suite_quiet"] = render(suite(), "text", verbosity=-1)
    found["suite_concise"] = render(suite(), "concise", verbosity=1)
    found["narrow"] = render(scene("retry_after_violated"), "text", width=50)
    return found


if __name__ == "__main__":
    for name, text in texts().items():
        (EXPECTED / f"{name}.txt").write_text(text)
