"""The report as one JSON document, exactly as `report.schema.json` says; the other machine formats are made from it.

Keys are never removed or renamed within a `schema_version`. Written in ASCII, so that no reader, terminal or log meets
a control character. This module must not judge: the verdict and the exit code are the report's.
"""

import json
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import goldentrace
from goldentrace.model.change import Change, Comparison
from goldentrace.model.finding import Finding
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt
from goldentrace.model.report import Report, TraceReport
from goldentrace.report.fingerprint import fingerprints
from goldentrace.report.values import capped, is_long

SCHEMA_VERSION: Final = "1.0"
MAX_RUNS: Final = 10_000
"""Runs of the alignment that a report holds; a comparison with more of them is read in its findings."""

Document = dict[str, Any]


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return the report as indented JSON."""
    return json.dumps(document(report), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> Document:
    """Return the report as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "goldentrace", "version": goldentrace.__version__},
        "command": report.command,
        "config": {"path": report.config_path},
        "fail_on": report.fail_on,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "summary": summary(report),
        "traces": [trace_document(trace, report) for trace in report.traces],
        "notes": list(report.notes),
    }


def summary(report: Report) -> Document:
    """Return the counts over all traces; errors, warnings, notes and by_rule count what no other change causes."""
    statuses = Counter(trace.status(report.fail_on) for trace in report.traces)
    rules: Counter[str] = Counter()
    for trace in report.traces:
        rules.update(subject.code for subject in counted(trace))
    return {
        "traces": len(report.traces),
        "clean": statuses["clean"],
        "changed": statuses["changed"],
        "missing": statuses["missing-golden"] + statuses["missing-candidate"],
        "unreadable": statuses["unreadable"],
        "not_comparable": statuses["not-comparable"],
        "errors": sum(trace.count("error") for trace in report.traces),
        "warnings": sum(trace.count("warning") for trace in report.traces),
        "notes": sum(trace.count("note") for trace in report.traces),
        "by_rule": dict(sorted(rules.items())),
    }


def subjects(trace: TraceReport) -> list[Change | Finding]:
    """Return the changes and findings of a trace in the order in which they are shown."""
    changes: list[Change | Finding] = list(trace.comparison.changes) if trace.comparison is not None else []
    return changes + (trace.lint.findings if trace.lint is not None else [])


def counted(trace: TraceReport) -> list[Change | Finding]:
    """Return those that count: changes that no other one causes, findings that nobody accepted."""
    return [
        subject
        for subject in subjects(trace)
        if (subject.is_root if isinstance(subject, Change) else subject.accepted is None)
    ]


def trace_document(trace: TraceReport, report: Report) -> Document:
    """Return one trace with its findings."""
    comparison, lint = trace.comparison, trace.lint
    shown = subjects(trace)
    names = dict(zip(map(id, shown), fingerprints(trace.name, shown), strict=True))
    first = comparison.first if comparison is not None else None
    return {
        "name": trace.name,
        "status": trace.status(report.fail_on),
        "golden": _side(trace.golden_path, comparison.golden if comparison is not None else None),
        "candidate": _side(trace.candidate_path, comparison.candidate if comparison is not None else None),
        "error": _error(trace, report.options),
        "first_divergence": names[id(first)] if first is not None else None,
        "findings": [
            _change(subject, comparison, names) if isinstance(subject, Change) else _finding(subject, names)
            for subject in shown
        ],
        "not_comparable": list(comparison.not_comparable) if comparison is not None else [],
        "not_compared": list(comparison.coverage) if comparison is not None else [],
        "is_approximate": comparison.is_approximate if comparison is not None else False,
        "alignment": alignment(comparison) if comparison is not None else None,
        "rules": {
            "checked": list(lint.checked),
            "could_not_check": dict(lint.could_not_check),
            "notes": list(lint.notes),
        }
        if lint is not None
        else None,
    }


def _side(path: str | None, normal: NormalTrace | None) -> Document | None:
    if normal is None:
        return None if path is None else {"path": path, "events": None, "calls": None, "outcome": None}
    return {
        "path": path or normal.path,
        "events": count_events(normal),
        "calls": len(normal.operations),
        "outcome": normal.outcome,
        "stop_reason": normal.stop_reason,
        "incomplete": normal.incomplete,
    }


def count_events(normal: NormalTrace) -> int:
    """Return how many events a normalized trace tells of, its start and end included; turns are not counted."""
    events = 2 + len(normal.loose)
    for operation in normal.operations:
        for step in operation.steps:
            events += 2 if isinstance(step, Attempt) and step.status is not None else 1
    return events


def _error(trace: TraceReport, options: tuple[str, ...]) -> Document | None:
    if trace.missing is not None:
        step = shlex.join(next_command(trace, options))
        return {"path": None, "line": None, "pointer": None, "message": MISSING[trace.missing], "next_step": step}
    problem = trace.problem
    if problem is None:
        return None
    return {
        "path": problem.path or None,
        "line": problem.line,
        "pointer": problem.pointer,
        "message": problem.what,
        "next_step": problem.next_step,
    }


MISSING: Final = {
    "missing-golden": "this scenario has no golden",
    "missing-candidate": "this golden has no candidate run",
}


def next_command(trace: TraceReport, options: tuple[str, ...]) -> list[str]:
    """Return the command that makes what is missing. options: those that it needs to find the same files."""
    verb = "record" if trace.missing == "missing-golden" else "run"
    return ["goldentrace", verb, *options, *(["--"] if trace.name.startswith("-") else []), trace.name]


def _change(change: Change, comparison: Comparison | None, names: dict[int, str]) -> Document:
    golden = comparison.golden if comparison is not None else None
    candidate = comparison.candidate if comparison is not None else None
    ordinal = change.golden_index if change.golden_index is not None else change.candidate_index
    tolerance = change.tolerance
    return {
        **_head("change", change, names),
        "golden": _position(golden, change.golden_index, change.golden_line),
        "candidate": _position(candidate, change.candidate_index, change.candidate_line),
        "operation": change.label,
        "tool": change.tool_name,
        "call": ordinal + 1 if ordinal is not None else None,
        "attempt": change.attempt,
        "path": event_path(change.pointers[0], change.code) if change.pointers else None,
        "pointers": list(change.pointers),
        **_values(change),
        "tolerance": {
            "min": _finite(tolerance.lo_ms),
            "max": _finite(tolerance.hi_ms),
            "deviation": _finite(tolerance.deviation_ms),
            "unit": "ms",
            "source": tolerance.source,
        }
        if tolerance is not None
        else None,
        "caused_by": names.get(id(change.caused_by)) if change.caused_by is not None else None,
        "hint": change.hint,
    }


def _finding(finding: Finding, names: dict[int, str]) -> Document:
    return {
        **_head("finding", finding, names),
        "golden": None,
        "candidate": {"index": None, "line": finding.line, "offset_ms": None} if finding.line else None,
        "operation": finding.labels[-1] if finding.labels else None,
        "operations": list(finding.labels),
        "lines": [line for line in finding.lines if line],
        "tool": finding.tool_name,
        "path": event_path(finding.pointer) if finding.pointer is not None else None,
        "pointers": [finding.pointer] if finding.pointer is not None else [],
        "count": finding.count,
        **_values(finding),
        "caused_by": None,
        "accepted": finding.accepted,
    }


def _head(kind: str, subject: Change | Finding, names: dict[int, str]) -> Document:
    return {
        "kind": kind,
        "rule": subject.code,
        "name": subject.name,
        "severity": subject.severity,
        "message": subject.message,
        "fingerprint": names[id(subject)],
    }


def _values(subject: Change | Finding) -> Document:
    expected, actual = subject.expected, subject.actual
    cut = [name for name, value in (("expected", expected), ("actual", actual)) if is_long(value)]
    return {"expected": capped(expected), "actual": capped(actual), "shortened": cut}


def _position(normal: NormalTrace | None, index: int | None, line: int | None) -> Document | None:
    if index is None and line is None:
        return None
    started_ms = None
    if normal is not None and index is not None and index < len(normal.operations):
        attempts = normal.operations[index].attempts
        started_ms = attempts[0].started_ms if attempts else None
    return {"index": index, "line": line or None, "offset_ms": _finite(started_ms)}


def _finite(value: float | None) -> float | None:
    """JSON has no word for what is not finite: an absent bound is null."""
    return value if value is not None and math.isfinite(value) else None


def event_path(pointer: str, code: str = "") -> str:
    """Return the JSON Pointer, inside its event, of a leaf of a call's arguments; of its result under GT108."""
    if code == "GT108":
        return "/result" + pointer.partition("#")[0]
    if pointer.startswith("#"):
        name = {"#raw": "args_raw"}.get(pointer, pointer[1:])
        return f"/{name}"
    return "/args" + pointer.partition("#")[0]


def alignment(comparison: Comparison) -> list[Document] | None:
    """Return how the operations pair, equal neighbours as one run of [first, last]; None beyond MAX_RUNS runs."""
    changed = {change.golden_index for change in comparison.changes if change.golden_index is not None}
    moved = {change.golden_index for change in comparison.changes if change.code == "GT104"}
    runs: list[Document] = []
    for golden, candidate in comparison.pairs:
        if golden is None or candidate is None:
            kind = "added" if golden is None else "removed"
        else:
            kind = "moved" if golden in moved else "changed" if golden in changed else "same"
        last = runs[-1] if runs else None
        if (
            last is not None
            and last["op"] == kind
            and _follows(last["golden"], golden)
            and _follows(last["candidate"], candidate)
        ):
            _extend(last["golden"], golden)
            _extend(last["candidate"], candidate)
        else:
            runs.append({"op": kind, "golden": _run(golden), "candidate": _run(candidate)})
            if len(runs) > MAX_RUNS:
                return None
    return runs


def _run(index: int | None) -> list[int] | None:
    return None if index is None else [index, index]


def _follows(run: Sequence[int] | None, index: int | None) -> bool:
    return index is None if run is None else index == run[1] + 1


def _extend(run: list[int] | None, index: int | None) -> None:
    if run is not None and index is not None:
        run[1] = index
