"""Counts a trace against the limits of its run, event by event: while it is being written, and once more when it is
whole.

An agent with the `Recorder` stops itself before a limit is passed; this is for all others, whose events are all that
can be counted. The counting is the recorder's own, so that a limit means one thing. Must not read files or clocks.
"""

import msgspec

from goldentrace.model.config import Limits
from goldentrace.model.event import AnyEvent, ModelTurn, ToolCall, ToolResult
from goldentrace.model.profile import Profile
from goldentrace.normalize.offsets import wall_ms
from goldentrace.record.limits import Execution, LimitReached, Meter, read_limits
from goldentrace.runner.job import Breach


def limits_text(limits: Limits) -> str:
    """Return the limits as the recorder in the agent reads them, JSON."""
    return msgspec.json.encode(limits).decode()


class TraceMeter:
    """Counts events in the order in which they are given."""

    def __init__(self, limits: Limits, profile: Profile) -> None:
        self._meter = Meter(msgspec.structs.replace(read_limits(None, limits_text(limits)), max_wall_ms=None))
        self._profile = profile
        self._started: dict[str, AnyEvent] = {}
        self._attempts: dict[str, int] = {}
        self._operations: dict[str, str] = {}
        self._open: dict[str, ToolCall] = {}
        self._turns: set[tuple[str, int]] = set()

    @property
    def is_counting(self) -> bool:
        """Is there any limit that events can pass?"""
        return not self._meter.limits.is_empty

    def add(self, event: AnyEvent) -> Breach | None:
        """Count one event; return the limit that it passes, if it passes one."""
        try:
            if type(event) is ToolCall:
                self._open[event.call_id] = event
                self._meter.take_execution(self._execution(event))
            elif type(event) is ModelTurn:
                self._add_turn(event)
            elif type(event) is ToolResult:
                self._open.pop(event.call_id, None)
                return self._elapsed(event)
        except LimitReached as reached:
            return Breach(reached.limit, reached.value, reached.maximum, reached.stop_reason, reached.tool_name)
        return None

    def overdue(self, mono_ns: int) -> Breach | None:
        """Return the limit of a call that has been running too long. mono_ns: now, on the clock of the events."""
        for event in self._open.values():
            most = self._meter.limits.of_tool(event.tool_name).max_elapsed_ms
            first = self._started.get(event.op_id or event.call_id, event)
            if most is not None and first.mono_ns is not None and mono_ns - first.mono_ns > most * 1e6:
                took_ms = round((mono_ns - first.mono_ns) / 1e6)
                return Breach("max_elapsed_ms", took_ms, most, "wall_clock_limit", event.tool_name)
        return None

    def _add_turn(self, event: ModelTurn) -> None:
        if event.turn is None or (event.agent, event.turn) not in self._turns:
            self._meter.take_turn(0)
        if event.turn is not None:
            self._turns.add((event.agent, event.turn))
        if event.usage is not None:
            self._meter.take_usage(event.usage)

    def _execution(self, event: ToolCall) -> Execution:
        """An attempt as the meter counts it: what joins an operation is `op_id`, or an attempt number above 1."""
        operation = event.op_id or event.call_id
        seen = self._attempts.get(operation, 0)
        attempt = max(event.attempt, seen + 1 if event.op_id is not None else 1)
        self._attempts[operation] = max(seen, attempt)
        self._operations[event.call_id] = operation
        first = self._started.setdefault(operation, event) if attempt > 1 else event
        if attempt == 1:
            self._started[operation] = event
        tool = self._profile.tool(event.tool_name)
        return Execution(
            tool_name=event.tool_name,
            attempt=attempt,
            is_by_model=event.origin == "model",
            is_write=(event.access or tool.access) == "write",
            is_destructive=tool.destructive,
            elapsed_ms=_between_ms(first, event),
            wall_ms=0,
        )

    def _elapsed(self, event: ToolResult) -> Breach | None:
        """A call that took longer than its tool may."""
        first = self._started.get(self._operations.pop(event.call_id, event.call_id))
        if not isinstance(first, ToolCall):
            return None
        most = self._meter.limits.of_tool(first.tool_name).max_elapsed_ms
        took_ms = _between_ms(first, event)
        if most is None or took_ms <= most:
            return None
        return Breach("max_elapsed_ms", took_ms, most, "wall_clock_limit", first.tool_name)


def _between_ms(first: AnyEvent, second: AnyEvent) -> float:
    """The time between two events, 0 where no common clock tells it."""
    if first.mono_ns is not None and second.mono_ns is not None:
        return (second.mono_ns - first.mono_ns) / 1e6
    before, after = wall_ms(first), wall_ms(second)
    return 0.0 if before is None or after is None else after - before
