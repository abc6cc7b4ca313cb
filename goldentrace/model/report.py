"""The report: one object that every output format is rendered from, and where the exit code is decided."""

from typing import Literal, TypeAlias

import msgspec

from goldentrace.exitcodes import CHANGED, NO_VERDICT, OK
from goldentrace.model.change import Comparison
from goldentrace.model.finding import LintResult
from goldentrace.model.profile import SEVERITIES, Severity

TraceStatus: TypeAlias = Literal[
    "clean", "changed", "missing-golden", "missing-candidate", "unreadable", "not-comparable"
]


class Problem(msgspec.Struct, frozen=True):
    """Why there is no verdict about one trace: what, where (`file:line $.pointer`), what to do next."""

    what: str
    path: str = ""
    line: int | None = None
    pointer: str | None = None
    next_step: str = ""


class TraceReport(msgspec.Struct):
    """One scenario or pair of files.

    name: the scenario, or the golden's file name; comparison: None where a side is missing or unreadable, or where only
    rules ran; lint: what the rules said of the candidate (or of the trace, where nothing was compared).
    """

    name: str
    golden_path: str | None = None
    candidate_path: str | None = None
    comparison: Comparison | None = None
    lint: LintResult | None = None
    problem: Problem | None = None
    missing: Literal["missing-golden", "missing-candidate"] | None = None
    is_pending: bool = False
    """Has the comparison left a pending golden?"""

    def count(self, severity: Severity) -> int:
        """Return how many root changes and unaccepted findings of a severity there are."""
        changes = len(self.comparison.roots(severity)) if self.comparison is not None else 0
        findings = self.lint.findings if self.lint is not None else []
        return changes + sum(1 for finding in findings if finding.severity == severity and finding.accepted is None)

    def status(self, fail_on: Severity = "error") -> TraceStatus:
        """Return the verdict about this trace; what could not be compared wins over what changed."""
        if self.missing is not None:
            return self.missing
        if self.problem is not None:
            return "unreadable"
        if self.comparison is not None and self.comparison.not_comparable:
            return "not-comparable"
        gating = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        return "changed" if any(self.count(severity) for severity in gating) else "clean"


class Report(msgspec.Struct):
    """All traces of one command. command: `diff`, `check`, `lint`, …; fail_on: the lowest severity that gates."""

    command: str
    traces: list[TraceReport]
    fail_on: Severity = "error"
    config_path: str | None = None
    notes: list[str] = msgspec.field(default_factory=list)
    can_accept: bool = True
    """Are the pending goldens still there when the report is read? In CI often not."""
    options: tuple[str, ...] = ()
    """What the commands that the report proposes need to find the same files: `--artifacts DIR`."""

    @property
    def exit_code(self) -> int:
        """3 wins over 2, 2 over 0; nothing selected is 3."""
        statuses = {trace.status(self.fail_on) for trace in self.traces}
        if not statuses or statuses - {"clean", "changed"}:
            return NO_VERDICT
        return CHANGED if "changed" in statuses else OK

    @property
    def verdict(self) -> Literal["clean", "changed", "no-verdict"]:
        return {OK: "clean", CHANGED: "changed", NO_VERDICT: "no-verdict"}[self.exit_code]  # type: ignore[return-value]
