"""What the rules say of traces, for `lint`: each finding with `file:line`, and which rules could not check, and why."""

from goldentrace.model.finding import LintResult
from goldentrace.model.profile import Severity
from goldentrace.model.report import Report, TraceReport
from goldentrace.report.text import render as render_text


def render_lint(
    results: list[LintResult], *, width: int = 80, color: bool = False, verbosity: int = 0, fail_on: Severity = "error"
) -> str:
    """Return the report of the rules over some traces, as `render` does for a report of the command `lint`."""
    traces = [TraceReport(result.path, candidate_path=result.path, lint=result) for result in results]
    return render_text(Report("lint", traces, fail_on), width=width, color=color, verbosity=verbosity)
