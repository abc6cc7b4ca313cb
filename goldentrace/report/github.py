"""GitHub workflow commands, and below them the text report for whoever opens the log.

GitHub keeps 10 annotations of a kind per step and drops the rest without a word, so: the worst of each scenario, 9 at
most, and a tenth that says how many more there are. Source: GitHub community discussion 68471.
"""

from typing import Final

from goldentrace.model.change import Change
from goldentrace.model.finding import Finding
from goldentrace.model.profile import SEVERITIES
from goldentrace.model.report import Report, TraceReport
from goldentrace.report import text
from goldentrace.report.json_document import counted
from goldentrace.report.places import Place, place_of, problem_place, why_no_verdict
from goldentrace.report.sanitise import github_data, github_property
from goldentrace.report.view import full_message

MAX_ANNOTATIONS: Final = 9
_LEVELS: Final = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:
    """Return the annotations, then the text report."""
    return annotations(report) + text.render(report, width=width, color=color, verbosity=verbosity)


def annotations(report: Report) -> str:
    """Return at most ten workflow commands, worst first."""
    found = [made for trace in report.traces if (made := _worst(trace)) is not None]
    found.sort(key=lambda made: made[0])
    lines = [line for _, line in found[:MAX_ANNOTATIONS]]
    if len(found) > MAX_ANNOTATIONS:
        more = len(found) - MAX_ANNOTATIONS
        lines.append(_command("error", None, "goldentrace", f"{more} more traces: see the log or the summary"))
    return "".join(f"{line}\n" for line in lines)


def _worst(trace: TraceReport) -> tuple[int, str] | None:
    why = why_no_verdict(trace)
    if why is not None:
        return 0, _command("error", problem_place(trace), f"{trace.name}: no verdict", why)
    found = counted(trace)
    if not found:
        return None
    worst = min(found, key=lambda subject: SEVERITIES.index(subject.severity))
    return SEVERITIES.index(worst.severity) + 1, _annotation(worst, trace, len(found) - 1)


def _annotation(subject: Change | Finding, trace: TraceReport, more: int) -> str:
    title = f"{trace.name}: {subject.code} {subject.name}"
    message = full_message(subject) if isinstance(subject, Change) else subject.message
    message += f"\n{more} more in this trace" if more else ""
    return _command(_LEVELS[subject.severity], place_of(subject, trace), title, message)


def _command(level: str, place: Place | None, title: str, message: str) -> str:
    where = f"file={github_property(place.path)},line={place.line}," if place is not None else ""
    return f"::{level} {where}title={github_property(title)}::{github_data(message)}"
