"""The rules over one trace, as the commands `lint`, `check` and `record` share them. Must not print."""

from dataclasses import replace
from typing import Any

import msgspec

from goldentrace.model.change import Change, Comparison
from goldentrace.model.config import Scenario
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time


def lint_trace(
    trace: Trace,
    normal: NormalTrace,
    profile: Profile,
    scenario: Scenario | None = None,
    *,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
) -> LintResult:
    """Return what the rules say of a trace. normal: its normalized form. Raises: ConfigError for an unknown rule."""
    from goldentrace.rules.registry import run_rules

    place_in_time(normal, trace)
    budgets = msgspec.to_builtins(scenario.budgets) if scenario is not None else None
    return run_rules(trace, normal, profile, budgets=budgets, select=select, ignore=ignore)


def accepted(lint: LintResult, accepts: tuple[dict[str, Any], ...]) -> LintResult:
    """Return the findings with those marked that a golden's header accepts (code, and tool if it names one)."""

    def marked(finding: Finding) -> Finding:
        for entry in accepts:
            if entry.get("code") == finding.code and entry.get("tool") in (None, finding.tool_name):
                return _mark(finding, f"accepted in the golden: {entry.get('reason', 'no reason given')}")
        return finding

    return replace(lint, findings=[marked(finding) for finding in lint.findings])


def explained(lint: LintResult, comparison: Comparison) -> LintResult:
    """Return the findings with those marked that a change explains: they end at an event of its operation, and one
    cause is one error."""
    lines = _explained_lines(comparison)

    def marked(finding: Finding) -> Finding:
        change = lines.get(finding.lines[-1]) if finding.lines else None
        if change is None:
            return finding
        return _mark(finding, f"explained by {change.code} {change.name} at {change.label}")

    return replace(lint, findings=[marked(finding) for finding in lint.findings])


def _mark(finding: Finding, why: str) -> Finding:
    return finding if finding.accepted is not None else replace(finding, accepted=why)


def _explained_lines(comparison: Comparison) -> dict[int, Change]:
    """Line of the candidate -> the error that concerns its operation."""
    lines: dict[int, Change] = {}
    for change in comparison.changes:
        if change.candidate_index is None or change.severity != "error":
            continue
        for attempt in comparison.candidate.operations[change.candidate_index].attempts:
            for line in (attempt.call_line, attempt.result_line):
                lines.setdefault(line, change)
    lines.pop(0, None)
    return lines


def known_rules() -> list[tuple[str, str, str, str]]:
    """Return (code, name, severity, summary) of every rule."""
    from goldentrace.rules.registry import rules

    return [(rule.code, rule.name, rule.severity, rule.summary) for rule in rules().values()]
