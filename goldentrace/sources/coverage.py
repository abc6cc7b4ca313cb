"""What a trace holds and what its source did not record: the table that `import` prints."""

from collections import Counter
from dataclasses import dataclass

from goldentrace.model.event import Decision, ModelTurn, ToolCall, ToolResult
from goldentrace.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts over one trace. results: without the `unfinished` ones that stand for `unanswered` calls; batches: groups
    of two or more calls that ran together; has_times: whether a call or a result has one;
    absent: (what, why) of what the source did not record.
    """

    calls: int
    results: int
    errors: int
    unanswered: int
    turns: int
    batches: int
    decisions: int
    has_times: bool
    has_usage: bool
    absent: tuple[tuple[str, str], ...]

    def rows(self) -> tuple[tuple[str, str], ...]:
        """(name, value) in the order of the table, counts first."""
        unanswered = f"{self.unanswered}" + (" (no result in the file)" if self.unanswered else "")
        counted = (
            ("calls", str(self.calls)), ("results", str(self.results)), ("errors", str(self.errors)),
            ("unanswered", unanswered), ("turns", str(self.turns)), ("batches", str(self.batches)),
            ("decisions", str(self.decisions)),
        )  # fmt: skip
        reasons = {"times": "not in the file", "usage": "not in the file", **dict(self.absent)}
        for name, is_there in (("times", self.has_times), ("usage", self.has_usage)):
            if is_there:
                reasons[name] = "yes"
        order = ("times", "usage", *sorted(reasons.keys() - {"times", "usage"}))
        return (
            *counted,
            *((name, reason if (reason := reasons[name]) == "yes" else f"no: {reason}") for name in order),
        )


def coverage_table(trace: Trace) -> Coverage:
    """Return what the trace holds, in one pass over its events."""
    counts: Counter[str] = Counter()
    batches = _Batches()
    for event in trace.events:
        if isinstance(event, ToolCall):
            counts["calls"] += 1
            batches.call(event)
        elif isinstance(event, ToolResult):
            counts["unanswered" if event.status == "unfinished" else "results"] += 1
            counts["errors"] += event.status not in ("ok", "unfinished")
            batches.result(event)
        elif isinstance(event, ModelTurn):
            counts["turns"] += 1
            counts["usage"] += event.usage is not None
        elif isinstance(event, Decision):
            counts["decisions"] += not event.inferred
        if isinstance(event, ToolCall | ToolResult):
            counts["times"] += event.ts is not None or event.mono_ns is not None
    return Coverage(
        calls=counts["calls"],
        results=counts["results"],
        errors=counts["errors"],
        unanswered=counts["unanswered"],
        turns=counts["turns"],
        batches=batches.count(),
        decisions=counts["decisions"],
        has_times=counts["times"] > 0,
        has_usage=counts["usage"] > 0,
        absent=tuple(sorted(trace.coverage.items())),
    )


class _Batches:
    """Groups of calls of one turn that share a `batch`, or, without one, that all started before a result of theirs."""

    def __init__(self) -> None:
        self._sizes: Counter[tuple[object, ...]] = Counter()
        self._rounds: Counter[tuple[str, int | None]] = Counter()
        self._home_of: dict[str, tuple[str, int | None]] = {}

    def call(self, event: ToolCall) -> None:
        home = (event.agent, event.turn)
        self._home_of[event.call_id] = home
        if event.batch is not None:
            self._sizes[(*home, "batch", event.batch)] += 1
        elif event.turn is not None:
            self._sizes[(*home, "round", self._rounds[home])] += 1

    def result(self, event: ToolResult) -> None:
        home = self._home_of.get(event.call_id)
        if home is not None:
            self._rounds[home] += 1

    def count(self) -> int:
        return sum(size > 1 for size in self._sizes.values())
