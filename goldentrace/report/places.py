"""Where a change or finding is in a file, for services that show results beside lines: repo-relative path and line.

An annotation points at the golden, which is in the repository: for a call that only the candidate has, at the call
before it. What a rule says points at the trace that it read.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from goldentrace.model.change import Change
from goldentrace.model.finding import Finding
from goldentrace.model.report import TraceReport


@dataclass(frozen=True, slots=True)
class Place:
    """path: relative to the working folder where it lies below it; line: 1-based, 1 where it is not known."""

    path: str
    line: int

    @property
    def uri(self) -> str:
        """The path as a URI reference; absolute only for a file outside of the working folder."""
        path = Path(self.path)
        if path.is_absolute():
            return path.as_uri()
        return quote(path.as_posix().encode("utf-8", "surrogatepass"), safe="/~")


def relative(path: str) -> str:
    """Return a path as seen from the working folder, unchanged where it lies elsewhere."""
    given = Path(path)
    if given.is_absolute():
        try:
            return given.relative_to(Path.cwd()).as_posix()
        except ValueError:
            return given.as_posix()
    return given.as_posix()


def place_of(subject: Change | Finding, trace: TraceReport) -> Place:
    """Return where a change or finding of a trace is."""
    fallback = trace.golden_path or trace.candidate_path or trace.name
    if isinstance(subject, Finding):
        path = trace.lint.path if trace.lint is not None else trace.candidate_path
        return Place(relative(path or fallback), subject.line or 1)
    if subject.golden_line is None and subject.candidate_line is not None and trace.golden_path is None:
        return Place(relative(trace.candidate_path or fallback), subject.candidate_line or 1)
    return Place(relative(fallback), subject.golden_line or _line_near(subject, trace))


def _line_near(change: Change, trace: TraceReport) -> int:
    """The golden's line of the last call before an added one: that is where a reviewer looks for it."""
    comparison = trace.comparison
    if comparison is None or change.candidate_index is None:
        return 1
    line = 1
    for golden, candidate in comparison.pairs:
        if golden is None and candidate == change.candidate_index:
            return line
        if golden is not None:
            attempts = comparison.golden.operations[golden].attempts
            line = (attempts[0].call_line if attempts else 0) or line
    return 1


def problem_place(trace: TraceReport) -> Place:
    """Return where to look for why there is no verdict about a trace."""
    problem = trace.problem
    if problem is not None and problem.path:
        return Place(relative(problem.path), problem.line or 1)
    return Place(relative(trace.golden_path or trace.candidate_path or trace.name), 1)


def why_no_verdict(trace: TraceReport) -> str | None:
    """Return why there is no verdict about a trace, None where there is one."""
    from goldentrace.report.json_document import MISSING

    if trace.missing is not None:
        return MISSING[trace.missing]
    if trace.problem is not None:
        return trace.problem.what + (f"; {trace.problem.next_step}" if trace.problem.next_step else "")
    if trace.comparison is not None and trace.comparison.not_comparable:
        return "not comparable: " + "; ".join(trace.comparison.not_comparable)
    return None
