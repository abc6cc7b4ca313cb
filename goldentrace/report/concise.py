"""One clickable line per change or finding: `goldens/429.jsonl:6: GT101 refund#1: argument /amount differs`.

For editors and for people who scan. Lines are not cut: what reads them does that.
"""

from goldentrace.model.change import Change
from goldentrace.model.finding import Finding
from goldentrace.model.report import Report, TraceReport
from goldentrace.report.json_document import MISSING, subjects
from goldentrace.report.sanitise import terminal
from goldentrace.report.view import full_message, subject

_MAX_MESSAGE = 400


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return one line per root change, unaccepted finding and problem; with verbosity 1 those that follow too."""
    lines: list[str] = []
    for trace in report.traces:
        lines += [terminal(line) for line in _lines(trace, is_full=verbosity > 0)]
    return "".join(f"{line}\n" for line in lines)


def _lines(trace: TraceReport, *, is_full: bool) -> list[str]:
    place = trace.golden_path or trace.candidate_path or trace.name
    if trace.missing is not None:
        return [f"{place}: {MISSING[trace.missing]}: {trace.name}"]
    lines: list[str] = []
    if trace.problem is not None:
        path = trace.problem.path or place
        line = f":{trace.problem.line}" if trace.problem.line is not None else ""
        lines.append(f"{path}{line}: {trace.problem.what}")
    if trace.comparison is not None:
        lines += [f"{place}: not comparable: {why}" for why in trace.comparison.not_comparable]
    for found in subjects(trace):
        if isinstance(found, Change) and (is_full or found.is_root):
            lines.append(_change_line(found, trace, place))
        elif isinstance(found, Finding) and (is_full or found.accepted is None):
            path = trace.lint.path if trace.lint is not None else place
            line = f":{found.line}" if found.line is not None else ""
            lines.append(f"{path}{line}: {found.code} {_cut(found.message)}{_grade(found.severity)}")
    return lines


def _change_line(change: Change, trace: TraceReport, place: str) -> str:
    number = change.golden_line
    if change.golden_line is None and change.candidate_line is not None and trace.candidate_path is not None:
        place, number = trace.candidate_path, change.candidate_line
    line = f":{number}" if number else ""
    message = full_message(change)
    if change.label is not None and not message.startswith((change.label, change.tool_name or change.label)):
        message = f"{subject(change)}: {message}"
    cause = change.caused_by
    tail = f" (follows from {cause.code} at {subject(cause)})" if cause is not None else ""
    return f"{place}{line}: {change.code} {_cut(message)}{_grade(change.severity)}{tail}"


def _grade(severity: str) -> str:
    return "" if severity == "error" else f" [{severity}]"


def _cut(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 3] + "..."
