"""The exit code and the status of a trace are decided here, for every output format."""

from typing import Any

import pytest

from goldentrace.model.change import Change, Comparison
from goldentrace.model.event import error_class_of_status
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.profile import SEVERITIES, Profile, Severity, Tool
from goldentrace.model.report import Problem, Report, TraceReport
from tests.traces import Run, normal


def change(severity: Severity, *, is_effect: bool = False) -> Change:
    made = Change("GT101", "argument-changed", severity, "m")
    made.caused_by = Change("GT102", "call-added", severity, "m") if is_effect else None
    return made


def finding(severity: Severity, accepted: str | None = None) -> Finding:
    return Finding("GT1001", "n", severity, "m", accepted=accepted)


def traced(*changes: Change, not_comparable: tuple[str, ...] = (), **fields: Any) -> TraceReport:
    trace = normal(Run().end())
    return TraceReport("s", comparison=Comparison(trace, trace, [], list(changes), list(not_comparable)), **fields)


def linted(*findings: Finding) -> TraceReport:
    return TraceReport("s", lint=LintResult("p", list(findings)))


CASES = [
    (traced(), "clean", "clean"),
    (TraceReport("s"), "clean", "clean"),
    (traced(change("error")), "changed", "changed"),
    (traced(change("warning")), "clean", "changed"),
    (traced(change("note")), "clean", "clean"),
    (traced(change("error", is_effect=True)), "clean", "clean"),
    (linted(finding("error")), "changed", "changed"),
    (linted(finding("warning")), "clean", "changed"),
    (linted(finding("error", accepted="known")), "clean", "clean"),
    (traced(change("error"), not_comparable=("cut off",)), "not-comparable", "not-comparable"),
    (TraceReport("s", problem=Problem("no JSON")), "unreadable", "unreadable"),
    (traced(change("error"), missing="missing-golden"), "missing-golden", "missing-golden"),
    (TraceReport("s", problem=Problem("x"), missing="missing-candidate"), "missing-candidate", "missing-candidate"),
]


@pytest.mark.parametrize(("trace", "on_error", "on_warning"), CASES)
def test_the_status_of_a_trace(trace: TraceReport, on_error: str, on_warning: str) -> None:
    assert trace.status() == on_error
    assert trace.status("warning") == on_warning


def test_under_fail_on_note_every_change_counts() -> None:
    assert traced(change("note")).status("note") == "changed"


def test_roots_and_unaccepted_findings_are_counted() -> None:
    trace = traced(change("error"), change("error", is_effect=True), change("warning"))
    trace.lint = LintResult("p", [finding("error"), finding("error", accepted="known")])
    assert [trace.count(severity) for severity in SEVERITIES] == [2, 1, 0]


CLEAN, CHANGED, UNREADABLE = TraceReport("a"), traced(change("error")), TraceReport("c", problem=Problem("x"))


@pytest.mark.parametrize(
    ("traces", "code", "verdict"),
    [
        ([], 3, "no-verdict"),
        ([CLEAN], 0, "clean"),
        ([CLEAN, CHANGED], 2, "changed"),
        ([CLEAN, CHANGED, UNREADABLE], 3, "no-verdict"),
        ([TraceReport("s", missing="missing-candidate"), CLEAN], 3, "no-verdict"),
    ],
)
def test_no_verdict_wins_over_changed_and_changed_over_clean(
    traces: list[TraceReport], code: int, verdict: str
) -> None:
    report = Report("diff", traces)
    assert (report.exit_code, report.verdict) == (code, verdict)


def test_the_gate_of_a_report_moves_with_fail_on() -> None:
    traces = [traced(change("warning"))]
    assert Report("diff", traces).exit_code == 0
    assert Report("diff", traces, fail_on="warning").exit_code == 2


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (200, None), (302, None), (399, None), (400, "bad_request"), (401, "auth"), (403, "auth"), (404, "not_found"),
        (408, "timeout"), (409, "conflict"), (418, "bad_request"), (429, "rate_limited"), (500, "server_error"),
        (503, "server_error"),
    ],
)  # fmt: skip
def test_the_error_class_of_an_http_status(status: int, error_class: str | None) -> None:
    assert error_class_of_status(status) == error_class


def test_what_alters_no_normalization_is_not_in_the_digest_of_a_profile() -> None:
    plain = Profile(name="p@1", tools={"t": Tool(ignore=["/x"])})
    graded = Profile(
        name="q@2", extends="p@1", rules={"GT1001": {}}, backoff={"policy": "none"},
        tools={"t": Tool(ignore=["/x"], access="read", backoff={"policy": "none"}), "other": Tool(polling=True)},
    )  # fmt: skip
    assert plain.normalizing() == graded.normalizing()
    assert plain.normalizing() != Profile(name="p@1", tools={"t": Tool(ignore=["/y"])}).normalizing()
    assert plain.normalizing() != Profile(name="p@1").normalizing()
    assert plain.tool("unheard") == Tool()
