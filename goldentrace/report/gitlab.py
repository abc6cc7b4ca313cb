"""GitLab's code quality report: one JSON array, results told apart by their fingerprints.

Keys and severities are those of GitLab's documentation of the format (docs.gitlab.com, ci/testing/code_quality).
"""

import hashlib
import json
from typing import Any, Final

from goldentrace.model.report import Report, TraceReport
from goldentrace.report.fingerprint import DIGITS, fingerprints
from goldentrace.report.json_document import counted, subjects
from goldentrace.report.places import Place, place_of, problem_place, why_no_verdict
from goldentrace.report.sanitise import terminal

_SEVERITIES: Final = {"error": "major", "warning": "minor", "note": "info"}


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return what counts, and why there is no verdict where there is none, as GitLab reads it."""
    entries = [entry for trace in report.traces for entry in _entries(trace)]
    return json.dumps(entries, indent=1) + "\n"


def _entries(trace: TraceReport) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    why = why_no_verdict(trace)
    if why is not None:
        name = hashlib.sha256(f"no-verdict\0{trace.name}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
        entries.append(_entry("no-verdict", f"{trace.name}: {why}", name, "blocker", problem_place(trace)))
    shown = subjects(trace)
    counting = set(map(id, counted(trace)))
    for subject, name in zip(shown, fingerprints(trace.name, shown), strict=True):
        if id(subject) in counting:
            text = f"{trace.name}: {subject.code} {subject.message}"
            entries.append(_entry(subject.code, text, name, _SEVERITIES[subject.severity], place_of(subject, trace)))
    return entries


def _entry(check: str, description: str, fingerprint: str, severity: str, place: Place) -> dict[str, Any]:
    return {
        "type": "issue",
        "check_name": check,
        "description": terminal(description),
        "categories": ["Bug Risk"],
        "severity": severity,
        "fingerprint": fingerprint,
        "location": {"path": place.path, "lines": {"begin": place.line}},
    }
