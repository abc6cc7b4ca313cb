"""SARIF 2.1.0 (OASIS), within what GitHub's code scanning takes.

Every result has a physical location, because GitHub refuses a whole file for one without; fingerprints are our own and
hold no line number. What gave no verdict stands as a notification of the run: it is no result.
"""

import json
from typing import Any, Final

import goldentrace
from goldentrace.diff.codes import CODES
from goldentrace.model.change import Change
from goldentrace.model.finding import Finding
from goldentrace.model.profile import SEVERITIES
from goldentrace.model.report import Report, TraceReport
from goldentrace.report.explanation import markdown_of, summary_of
from goldentrace.report.fingerprint import fingerprints
from goldentrace.report.json_document import subjects
from goldentrace.report.places import Place, place_of, problem_place, why_no_verdict
from goldentrace.report.sanitise import terminal
from goldentrace.report.view import subject as subject_name

MAX_RESULTS: Final = 25_000
"""GitHub refuses a run with more results (docs.github.com, SARIF support for code scanning)."""
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return the report as SARIF."""
    found = [item for trace in report.traces for item in _found(trace)]
    found.sort(key=lambda item: SEVERITIES.index(item[0].severity))
    kept = found[:MAX_RESULTS]
    codes = sorted({subject.code for subject, _, _ in kept})
    names = {subject.code: subject.name for subject, _, _ in kept}
    run = {
        "tool": {
            "driver": {
                "name": "goldentrace",
                "semanticVersion": goldentrace.__version__,
                "rules": [_rule(code, names[code]) for code in codes],
            }
        },
        "automationDetails": {"id": f"goldentrace/{terminal(report.command)}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, len(found) - len(kept))],
        "results": [_result(subject, name, trace, codes.index(subject.code)) for subject, name, trace in kept],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _found(trace: TraceReport) -> list[tuple[Change | Finding, str, TraceReport]]:
    """What counts, and what was accepted: SARIF has a word for that."""
    shown = subjects(trace)
    return [
        (subject, name, trace)
        for subject, name in zip(shown, fingerprints(trace.name, shown), strict=True)
        if isinstance(subject, Finding) or subject.is_root
    ]


def _rule(code: str, name: str) -> dict[str, Any]:
    known = CODES.get(code)
    words = "".join(word.capitalize() for word in name.split("-"))
    page = markdown_of(code) or f"# {code} {name}\n"
    summary = summary_of(code) or name.replace("-", " ")
    return {
        "id": code,
        "name": words,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": known.severity if known is not None else "error"},
        "properties": {"tags": ["behaviour" if known is not None else "structure"]},
    }


def _result(subject: Change | Finding, name: str, trace: TraceReport, index: int) -> dict[str, Any]:
    about = subject_name(subject) if isinstance(subject, Change) else ", ".join(subject.labels) or "the run"
    result: dict[str, Any] = {
        "ruleId": subject.code,
        "ruleIndex": index,
        "level": subject.severity,
        "message": {"text": terminal(f"{trace.name}: {subject.message}")},
        "locations": [_location(place_of(subject, trace), about, trace.name)],
        "partialFingerprints": {"goldentrace/v1": name, "primaryLocationLineHash": name},
    }
    if isinstance(subject, Finding) and subject.accepted is not None:
        result["suppressions"] = [{"kind": "external", "justification": terminal(subject.accepted)}]
    return result


def _location(place: Place, about: str, trace: str) -> dict[str, Any]:
    return {
        "physicalLocation": {"artifactLocation": {"uri": place.uri}, "region": {"startLine": place.line}},
        "logicalLocations": [{"name": terminal(about), "fullyQualifiedName": terminal(f"{trace}/{about}")}],
    }


def _invocation(report: Report, left_out: int) -> dict[str, Any]:
    notes = [
        {
            "level": "error",
            "message": {"text": terminal(f"{trace.name}: {why}")},
            "locations": [_location(problem_place(trace), trace.name, report.command)],
        }
        for trace in report.traces
        if (why := why_no_verdict(trace)) is not None
    ]
    if left_out:
        notes.append(
            {"level": "warning", "message": {"text": f"{left_out} results left out: {MAX_RESULTS} are the limit"}}
        )
    return {
        "executionSuccessful": report.verdict != "no-verdict",
        "exitCode": report.exit_code,
        "toolExecutionNotifications": notes,
    }
