"""The table of rules and the way they are run.

A rule is a generator over a Subject. It yields findings, and `Unchecked(why)` for what it could not check because the
trace lacks what it needs; it never passes in silence. Its file's docstring is its documentation. Rules do not call each
other.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import goldentrace.rules
from goldentrace.errors import ConfigError
from goldentrace.model.finding import Finding, LintResult, Needs
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile, Severity
from goldentrace.model.trace import Trace
from goldentrace.rules.subject import Subject


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that a rule could not check, and why."""

    why: str


Check: TypeAlias = Callable[[Subject], Iterator[Finding | Unchecked]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. needs: what the trace must hold for it to say anything; severity: the default; summary: one line."""

    code: str
    name: str
    severity: Severity
    needs: Needs
    check: Check
    summary: str


_RULES: Final[dict[str, Rule]] = {}


def rule(code: str, name: str, *, severity: Severity, needs: Needs = Needs.NOTHING) -> Callable[[Check], Check]:
    """Register a generator as the rule of a code; its module's docstring is the documentation."""

    def register(check: Check) -> Check:
        module = importlib.import_module(check.__module__)
        head = (module.__doc__ or "").partition("\n")[0]
        _RULES[code] = Rule(code, name, severity, needs, check, head.partition(": ")[2])
        return check

    return register


def rules() -> dict[str, Rule]:
    """Return every rule by its code, ascending."""
    for module in pkgutil.iter_modules(goldentrace.rules.__path__):
        if module.name.startswith("gt"):
            importlib.import_module(f"goldentrace.rules.{module.name}")
    return dict(sorted(_RULES.items()))


def run_rules(
    trace: Trace,
    normal: NormalTrace,
    profile: Profile,
    *,
    budgets: Mapping[str, Any] | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> LintResult:
    """Return what the rules say of one trace.

    normal: its normalized form; budgets: of the scenario; select, ignore: codes or their beginnings, `GT14`.
    Raises: ConfigError for a selection that names no rule.
    """
    chosen = _chosen(tuple(select), tuple(ignore))
    subject = Subject(trace, normal, profile, budgets or {}, profile.rules)
    result = LintResult(path=trace.path, findings=[])
    checked: list[str] = []
    for entry in chosen:
        missing = _missing(entry.needs, subject)
        if missing:
            result.could_not_check[entry.code] = missing
            continue
        reasons: dict[str, int] = {}
        for said in entry.check(subject):
            if isinstance(said, Unchecked):
                reasons[said.why] = reasons.get(said.why, 0) + 1
            else:
                result.findings.append(_graded(said, entry, profile))
        if reasons:
            result.could_not_check[entry.code] = "; ".join(
                why if count == 1 else f"{why} ({count} times)" for why, count in reasons.items()
            )
        else:
            checked.append(entry.code)
    result.checked = tuple(checked)
    result.findings.sort(key=lambda finding: (finding.lines[:1], finding.code))
    return result


def _chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> list[Rule]:
    known = rules()
    for prefix in (*select, *ignore):
        if not any(code.startswith(prefix.upper()) for code in known):
            raise ConfigError(f"no rule {prefix!r}", next_step="`goldentrace rules` lists them")
    wanted = [prefix.upper() for prefix in select] or [""]
    unwanted = tuple(prefix.upper() for prefix in ignore)
    return [
        entry
        for code, entry in known.items()
        if any(code.startswith(prefix) for prefix in wanted) and not (unwanted and code.startswith(unwanted))
    ]


def _graded(finding: Finding, entry: Rule, profile: Profile) -> Finding:
    """The profile's severity outranks the finding's own, which may be lower than its rule's."""
    severity = profile.compare.severities.get(entry.code)
    return replace(finding, severity=severity) if severity is not None else finding


def _missing(needs: Needs, subject: Subject) -> str:
    """Why a rule cannot say anything about this trace; empty where it can."""
    normal = subject.normal
    if Needs.TIMES in needs and not normal.has_times:
        return "the source records no times"
    if Needs.TURNS in needs and not normal.has_turns:
        return "the source records no turns"
    if Needs.STATUS in needs and normal.operations and all(o.last.status is None for o in normal.operations):
        return "the source records no results"
    if (
        Needs.RESULTS in needs
        and normal.operations
        and all(_has_no_body(subject, n) for n in range(len(normal.operations)))
    ):
        return "the source left out what the results held"
    if Needs.ACCESS in needs and normal.operations and all(o.access is None for o in normal.operations):
        return "the access of no tool is declared"
    return ""


def _has_no_body(subject: Subject, index: int) -> bool:
    return subject.result_digest(subject.normal.operations[index]) is None


def finding(  # noqa: PLR0913 - one keyword per field of a Finding
    code: str,
    message: str,
    *,
    lines: Iterable[int],
    labels: Iterable[str] = (),
    severity: Severity | None = None,
    tool_name: str | None = None,
    pointer: str | None = None,
    count: int = 1,
    expected: Any = None,
    actual: Any = None,
) -> Finding:
    """Return a finding of a registered rule; severity: lower than the rule's own, where the case is weaker."""
    entry = _RULES[code]
    return Finding(
        code, entry.name, severity or entry.severity, message, tuple(labels), tuple(lines), tool_name, pointer, count,
        expected, actual,
    )  # fmt: skip
