"""The table of rules and the way they are run.

A rule is a generator over a Subject. It yields findings, and `Unchecked(why)` for what it could not check because the
trace lacks what it needs; it never passes in silence. Its file's docstring is its documentation. Rules do not call each
other.
"""

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import msgspec

import goldentrace.rules
from goldentrace.errors import ConfigError
from goldentrace.model.finding import Finding, LintResult, Needs
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt
from goldentrace.model.profile import Profile, Severity
from goldentrace.model.trace import Trace
from goldentrace.rules.claims import NATIVE
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
    needs: frozenset[Needs]
    check: Check
    summary: str


_RULES: Final[dict[str, Rule]] = {}


PRECEDENCE: Final = ("GT1101", "GT1405", "GT1103", "GT1001", "GT1002", "GT1102", "GT1003", "GT1004")
"""Rules that may all see one repeat, run in this order: the first that applies claims it, the others stay silent."""

UNPROVEN: Final = frozenset(
    {"GT1001", "GT1002", "GT1101", "GT1103", "GT1501", "GT1502", "GT1503", "GT1504", "GT1505", "GT1506"}
)
"""Heuristic rules with fewer than 10 hits on the real runs of tests/rules/precision: their errors are warnings where
nothing is declared of the tool. A test holds this list to the judgements."""


def rule(code: str, name: str, *, severity: Severity, needs: Collection[Needs] = ()) -> Callable[[Check], Check]:
    """Register a generator as the rule of a code; its module's docstring is the documentation."""

    def register(check: Check) -> Check:
        module = importlib.import_module(check.__module__)
        head = (module.__doc__ or "").partition("\n")[0]
        _RULES[code] = Rule(code, name, severity, frozenset(needs), check, head.partition(": ")[2].removesuffix("."))
        return check

    return register


def rules() -> dict[str, Rule]:
    """Return every rule by its code, ascending."""
    _load()
    return dict(sorted(_RULES.items()))


@cache
def _load() -> None:
    """Import every rule's file, once."""
    for module in pkgutil.iter_modules(goldentrace.rules.__path__):
        if module.name.startswith("gt"):
            importlib.import_module(f"goldentrace.rules.{module.name}")


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

    normal: its normalized form; budgets: of the scenario; select, ignore: codes or their beginnings, `GT14`. Only the
    rules that run claim repeats. Raises: ConfigError for a selection that names no rule, and for options of a rule that
    have another type.
    """
    return judge(Subject(trace, normal, profile, budgets or {}, profile.rules), select=select, ignore=ignore)


def judge(subject: Subject, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> LintResult:
    """Return what the rules say of a subject; afterwards its `claimed` names the repeats. As `run_rules`."""
    result = LintResult(path=subject.trace.path, findings=[])
    checked: list[str] = []
    lacking = _lacking(subject)
    for entry in _chosen(tuple(select), tuple(ignore)):
        missing = next((why for need, why in lacking.items() if need in entry.needs), "")
        if missing:
            result.could_not_check[entry.code] = missing
            continue
        reasons: dict[str, int] = {}
        for said in entry.check(subject):
            if isinstance(said, Unchecked):
                reasons[said.why] = reasons.get(said.why, 0) + 1
            else:
                result.findings.append(_graded(said, entry, subject))
        if reasons:
            result.could_not_check[entry.code] = "; ".join(
                why if count == 1 else f"{why} ({count} times)" for why, count in reasons.items()
            )
        else:
            checked.append(entry.code)
    result.checked = tuple(sorted(checked))
    result.could_not_check = dict(sorted(result.could_not_check.items()))
    result.findings.sort(key=lambda finding: (finding.lines[:1], finding.code, finding.lines))
    return result


@lru_cache(maxsize=64)
def _chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> list[Rule]:
    """Those that claim repeats first, by precedence; the rest by code."""
    known = rules()
    places = {code: place for place, code in enumerate(PRECEDENCE)}
    for prefix in (*select, *ignore):
        if not any(code.startswith(prefix.upper()) for code in known):
            raise ConfigError(f"no rule {prefix!r}", next_step="`goldentrace rules` lists them")
    wanted = [prefix.upper() for prefix in select] or [""]
    unwanted = tuple(prefix.upper() for prefix in ignore)
    chosen = [
        entry
        for code, entry in known.items()
        if any(code.startswith(prefix) for prefix in wanted) and not (unwanted and code.startswith(unwanted))
    ]
    return sorted(chosen, key=lambda entry: (places.get(entry.code, len(places)), entry.code))


def _graded(finding: Finding, entry: Rule, subject: Subject) -> Finding:
    """The profile's severity outranks the finding's own, which may be lower than its rule's."""
    severity = subject.profile.compare.severities.get(entry.code)
    if severity is not None:
        return msgspec.structs.replace(finding, severity=severity)
    tool_name = finding.tool_name
    if finding.severity == "error" and entry.code in UNPROVEN and tool_name and not subject.is_declared(tool_name):
        why = f"{finding.message} (a warning, because nothing is declared of {tool_name})"
        return msgspec.structs.replace(finding, severity="warning", message=why)
    return finding


def _lacking(subject: Subject) -> dict[Needs, str]:
    """What a trace does not hold, and how that is said; a trace without calls lacks nothing but times."""
    normal, attempts = subject.normal, subject.attempts
    lacking: dict[Needs, str] = {}
    if not normal.has_times:
        lacking[Needs.TIMES] = "the source records no times"
    if not attempts:
        return lacking
    if not normal.has_turns:
        lacking[Needs.TURNS] = "the source records no turns"
    if all(attempt.status is None for _, attempt in attempts):
        lacking[Needs.STATUS] = "the source records no results"
    given = [attempt for _, attempt in attempts if attempt.status == "ok"] or [attempt for _, attempt in attempts]
    if not any(subject.is_recorded(attempt) for attempt in given):
        lacking[Needs.RESULTS] = "the source left out what the results held"
    flags = subject.trace.coverage.get("status")
    if flags is not None and all(attempt.status == "ok" for _, attempt in attempts):
        lacking[Needs.FAILURES] = f"{flags}: name `error_patterns` in the profile's tools"
    if "arguments" in subject.trace.coverage:
        lacking[Needs.ARGUMENTS] = f"arguments are {subject.trace.coverage['arguments']}"
    if subject.trace.format != NATIVE and all(attempt.origin == "model" for _, attempt in attempts):
        lacking[Needs.RETRIES] = "the source records no retries by harness, SDK or transport"
    return lacking


def undeclared(names: Iterable[str]) -> Iterator[Unchecked]:
    """Yield what could not be checked because nobody says whether these tools read or write; nothing for none."""
    known = sorted(set(names))
    if known:
        shown = ", ".join(known[:MAX_NAMES]) + (f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else "")
        yield Unchecked(f"the access of {shown} is not declared")


def left_out(subject: Subject, attempts: Iterable[Attempt]) -> Iterator[Unchecked]:
    """Yield how many of these attempts succeeded with a result that the source did not keep; nothing for none."""
    count = sum(attempt.status == "ok" and not subject.is_recorded(attempt) for attempt in attempts)
    if count:
        yield Unchecked(f"the results of {count} calls were left out")


MAX_NAMES: Final = 5
"""Tools named in one reason."""


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
