"""What a trace holds and what its source did not record: the table that `import` prints."""

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
    """Return what the trace holds."""
    results = trace.results()
    unanswered = sum(result.status == "unfinished" for result in results)
    turns = [event for event in trace.events if type(event) is ModelTurn]
    return Coverage(
        calls=len(trace.calls()),
        results=len(results) - unanswered,
        errors=sum(result.status not in ("ok", "unfinished") for result in results),
        unanswered=unanswered,
        turns=len(turns),
        batches=_count_batches(trace),
        decisions=sum(type(event) is Decision and not event.inferred for event in trace.events),
        has_times=any(event.ts is not None or event.mono_ns is not None for event in (*trace.calls(), *results)),
        has_usage=any(turn.usage is not None for turn in turns),
        absent=tuple(sorted(trace.coverage.items())),
    )


def _count_batches(trace: Trace) -> int:
    """Groups of calls of one turn that share a `batch`, or, without one, that all started before a result of theirs."""
    sizes: dict[tuple[object, ...], int] = {}
    rounds: dict[tuple[str, int | None], int] = {}
    turn_of: dict[str, tuple[str, int | None]] = {}
    for event in trace.events:
        if type(event) is ToolCall:
            home = (event.agent, event.turn)
            turn_of[event.call_id] = home
            key = (*home, "batch", event.batch) if event.batch is not None else (*home, "round", rounds.get(home, 0))
            if event.turn is not None or event.batch is not None:
                sizes[key] = sizes.get(key, 0) + 1
        elif type(event) is ToolResult and event.call_id in turn_of:
            home = turn_of[event.call_id]
            rounds[home] = rounds.get(home, 0) + 1
    return sum(size > 1 for size in sizes.values())
