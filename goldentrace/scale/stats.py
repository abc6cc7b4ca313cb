"""Figures of runs: per tool and per run, of one trace or of many files.

Stands here, above the rules, because unknown outcomes and repeats mean what the rules say they mean. What a source does
not record is absent, never 0. Must not read files and must not judge.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from goldentrace.model.event import Limit
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.ask import Ask
from goldentrace.rules.repeats import kind_of
from goldentrace.rules.subject import Subject
from goldentrace.rules.writes import unknown_writes

PERCENTILES: Final = (50, 95, 99)
LABELS: Final = ("idempotent read", "side effect", "error repeat", "unclassified")
"""Kinds of repeats, as `rules.repeats.kind_of` names them: for a reader, they decide nothing. A call whose equal
predecessor failed is an error repeat too."""


@dataclass(slots=True)
class Figures:
    """Sums over operations; of a tool, of a run, or of everything.

    calls: operations; ok, failed: by how the last attempt ended; open: without a result; untold: with one, of a source
    that does not tell failed calls from successful ones; attempts: attempts of an
    operation -> how many operations; latencies_ms: of the attempts whose start and end are known; rate_limited: answers
    429; timeouts: attempts that timed out; unknown_outcomes: declared writes that may have taken effect, were not
    repeated with success and never reconciled; unknown_access: calls of tools of undeclared access that ended so;
    limits: name of a limit -> how often it fired; asks: calls of the model; repeats: label -> calls of the model that
    equal an earlier one (polling tools left out).
    """

    calls: int = 0
    ok: int = 0
    failed: int = 0
    open: int = 0
    untold: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    rate_limited: int = 0
    timeouts: int = 0
    unknown_outcomes: int = 0
    unknown_access: int = 0
    limits: Counter[str] = field(default_factory=Counter)
    asks: int = 0
    repeats: Counter[str] = field(default_factory=Counter)

    @property
    def success_rate(self) -> float | None:
        """Of the operations that are known to have succeeded or failed, the part whose last attempt succeeded."""
        known = self.ok + self.failed
        return self.ok / known if known else None

    @property
    def has_failures(self) -> bool:
        """Would failed calls be seen? Where not, no number of 429s, time-outs or unknown outcomes is known."""
        return not self.untold or self.ok + self.failed > 0

    def percentiles_ms(self) -> dict[int, float] | None:
        """The latencies that 50, 95 and 99 % of the attempts do not exceed; None where none is known."""
        ordered = sorted(self.latencies_ms)
        return {percent: percentile(ordered, percent) for percent in PERCENTILES} if ordered else None

    def rate(self, label: str) -> float | None:
        """Repeats of a label per call of the model."""
        return self.repeats[label] / self.asks if self.asks else None

    def add(self, other: "Figures") -> None:
        """Take in the figures of other operations."""
        for name in (
            "calls", "ok", "failed", "open", "untold", "rate_limited", "timeouts", "unknown_outcomes", "unknown_access",
            "asks",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.attempts.update(other.attempts)
        self.latencies_ms += other.latencies_ms
        self.limits.update(other.limits)
        self.repeats.update(other.repeats)


@dataclass(slots=True)
class RunStats:
    """One run. name: its file, with the trace's name where a file holds several; outcome: None of an incomplete one."""

    name: str
    outcome: str | None
    stop_reason: str | None
    total: Figures
    tools: dict[str, Figures]


@dataclass(slots=True)
class Stats:
    """Of many runs: each of them, and per tool over all."""

    runs: list[RunStats] = field(default_factory=list)
    total: Figures = field(default_factory=Figures)
    tools: dict[str, Figures] = field(default_factory=dict)


def percentile(ordered: list[float], percent: float) -> float:
    """Return the nearest-rank percentile of sorted values, at least one: the smallest one that `percent` % of them do
    not exceed. A value that was measured, also of a few."""
    return ordered[max(ceil(percent / 100 * len(ordered)), 1) - 1]


def stats_of_run(subject: Subject, name: str) -> RunStats:
    """Return the figures of one trace that was placed in time."""
    tools: dict[str, Figures] = {}
    has_failures = _tells_failures(subject)
    for operation in subject.operations:
        _add_operation(tools.setdefault(operation.tool_name, Figures()), operation, has_failures=has_failures)
    _add_unknown(tools, subject)
    _add_repeats(tools, subject)
    total = Figures()
    for figures in tools.values():
        total.add(figures)
    for event in subject.trace.events:
        if isinstance(event, Limit):
            total.limits[event.limit] += 1
            tool_name = (event.extra or {}).get("tool_name")
            if tool_name in tools:
                tools[tool_name].limits[event.limit] += 1
    end = subject.trace.end
    outcome, reason = (end.outcome, end.stop_reason) if end is not None else (None, None)
    return RunStats(name, outcome, reason, total, dict(sorted(tools.items())))


def stats_of(runs: Iterable[RunStats]) -> Stats:
    """Return the figures over runs, which keep their order."""
    found = Stats()
    for run in runs:
        found.runs.append(run)
        found.total.add(run.total)
        for name, figures in run.tools.items():
            found.tools.setdefault(name, Figures()).add(figures)
    found.tools = dict(sorted(found.tools.items()))
    return found


def _tells_failures(subject: Subject) -> bool:
    """Does the source tell failed calls from successful ones, itself or with the profile's `error_patterns`?"""
    return "status" not in subject.trace.coverage or any(a.status not in (None, "ok") for _, a in subject.attempts)


def _add_operation(figures: Figures, operation: Operation, *, has_failures: bool) -> None:
    attempts = operation.attempts
    figures.calls += 1
    figures.attempts[len(attempts)] += 1
    status = attempts[-1].status
    if status in (None, "unfinished"):
        figures.open += 1
    elif not has_failures:
        figures.untold += 1
    elif status == "ok":
        figures.ok += 1
    else:
        figures.failed += 1
    for attempt in attempts:
        figures.rate_limited += attempt.http_status == 429 or attempt.error_class == "rate_limited"
        figures.timeouts += attempt.status == "timeout" or attempt.error_class == "timeout"
        latency_ms = _latency_ms(attempt)
        if latency_ms is not None:
            figures.latencies_ms.append(latency_ms)


def _latency_ms(attempt: Attempt) -> float | None:
    """None also where the source ends calls that nobody answered, or its two clocks disagree."""
    if attempt.status == "unfinished" or attempt.started_ms is None or attempt.ended_ms is None:
        return None
    return attempt.ended_ms - attempt.started_ms if attempt.ended_ms >= attempt.started_ms else None


def _add_unknown(tools: dict[str, Figures], subject: Subject) -> None:
    writes, undeclared = unknown_writes(subject)
    for label in {write.operation.label: write for write in writes if not write.is_settled}.values():
        tools[label.operation.tool_name].unknown_outcomes += 1
    for name in undeclared:
        tools[name].unknown_access += 1


def _add_repeats(tools: dict[str, Figures], subject: Subject) -> None:
    """Label every call of the model that equals an earlier one of the same agent, whatever came between: the rules
    judge which of them are defects."""
    earlier: dict[tuple[object, ...], Ask] = {}
    for ask in subject.asks:
        figures = tools[ask.tool_name]
        figures.asks += 1
        if subject.is_polling(ask.tool_name):
            continue
        key = subject.call_key(ask)
        before = earlier.get(key)
        if before is not None:
            figures.repeats[kind_of(subject, ask) if before.is_ok else "error repeat"] += 1
        earlier[key] = ask
