"""Events to operations: which attempts belong together, which calls form a batch, which event belongs to which call.

Joining by `op_id` is stated by the source; joining without it needs equal arguments, a failed attempt before, and
nothing of a later batch between. A result belongs to the nearest earlier open call of its id, because ids are reused
in the wild. This module must not look into values: a `Likeness` is given to it. What is inferred here is marked as
inferred.
"""

import msgspec

from goldentrace.model.event import (
    Approval,
    Decision,
    Effect,
    Limit,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
)
from goldentrace.model.operation import LeafMap
from goldentrace.model.trace import Trace
from goldentrace.normalize.failed import FailedCalls, Likeness

FAILED = frozenset({"error", "timeout", "cancelled", "unfinished"})
"""Statuses after which an equal call is the next attempt. A denial is an answer, not a failure."""


class Try:
    """One attempt as recorded: its call and its result, with their indexes in the trace."""

    __slots__ = ("call", "call_index", "plain", "result", "result_index")

    def __init__(self, call: ToolCall, call_index: int) -> None:
        self.call = call
        self.call_index = call_index
        self.result: ToolResult | None = None
        self.result_index = -1
        self.plain: tuple[LeafMap, str | None] | None = None
        """The written arguments and their hash, where they depend on nothing else in the trace."""


class Group:
    """An operation as recorded: `steps` are Try, Decision or Approval with its index, in order."""

    __slots__ = ("children", "closer", "first", "label", "last", "parent", "steps", "turn")

    def __init__(self, first: Try, turn: int | None) -> None:
        self.first = first
        self.last = first
        self.turn = turn
        self.steps: list[Try | tuple[Decision | Approval, int]] = [first]
        self.parent: Group | None = None
        self.children: list[list[Group]] | None = None
        """The units that ran within it; None for most."""
        self.label = ""
        self.closer: Group | None = None
        """The first call of a later batch, which ends the series of attempts."""

    def tries(self) -> list[Try]:
        """Return the attempts in order."""
        if len(self.steps) == 1:
            return [self.first]
        return [step for step in self.steps if type(step) is Try]


class Grouped(msgspec.Struct):
    """units: batches and serial calls in order, each a list of groups (one, where serial), calls without a parent
    only; the calls that ran within a call are its `children`. loose: indexes of the events of no operation."""

    groups: list[Group] = msgspec.field(default_factory=list)
    units: list[list[Group]] = msgspec.field(default_factory=list)
    loose: list[int] = msgspec.field(default_factory=list)
    unmatched_results: list[int] = msgspec.field(default_factory=list)
    has_turns: bool = False


def group(trace: Trace, likeness: Likeness) -> Grouped:
    """Return the operations of a trace in order of their first calls, batches found.

    likeness: tells which calls ask for the same; it is asked only where an equal tool has just failed. Cost is linear
    in events.
    """
    return _Grouping(likeness).run(trace)


class _Grouping:
    """One pass over the events; the state is what later events may still refer to."""

    def __init__(self, likeness: Likeness) -> None:
        self.out = Grouped()
        self.open: dict[str, list[tuple[Group, Try]]] = {}
        self.early: dict[str, list[tuple[ToolResult, int]]] = {}
        self.by_operation: dict[str, Group] = {}
        self.by_call: dict[str, Group] = {}
        self.waiting: dict[str, list[tuple[Decision | Approval, int]]] = {}
        self.failed = FailedCalls(likeness)
        self.turns: dict[int | None, int | None] = {None: None}
        self.turn: int | None = None

    def run(self, trace: Trace) -> Grouped:
        events = trace.events
        for index, event in enumerate(events):
            kind = type(event)
            if kind is ToolCall:
                self.add_call(event, index)  # type: ignore[arg-type]
            elif kind is ToolResult:
                self.add_result(event, index)  # type: ignore[arg-type]
            elif kind is ModelTurn:
                self.turn = event.turn if event.turn is not None else (self.turn or 0) + 1
            elif kind is Decision or kind is Approval:
                self.add_about(event, index)  # type: ignore[arg-type]
            elif kind is Limit or kind is Effect:
                self.out.loose.append(index)
            elif kind is Message and event.role == "user":  # type: ignore[union-attr]
                self.failed.clear()
        for events_about in self.waiting.values():
            self.out.loose.extend(index for _, index in events_about)
        for early in self.early.values():
            self.out.unmatched_results.extend(index for _, index in early)
        self.out.unmatched_results.sort()
        self.out.loose.sort()
        _find_batches(self.out)
        return self.out

    def add_call(self, call: ToolCall, index: int) -> None:
        attempt = Try(call, index)
        found = self.joined(call, index) if self.failed.entries or call.op_id is not None else None
        if found is None:
            turn = call.turn if call.turn is not None else self.turn
            found = Group(attempt, turn)
            self.out.groups.append(found)
            if turn is not None:
                self.out.has_turns = True
            if call.parent is not None:
                found.parent = self.by_call.get(call.parent)
            if self.failed.entries:
                self.failed.close(found)
            self.by_operation[call.op_id if call.op_id is not None else call.call_id] = found
        else:
            found.steps.append(attempt)
            found.last = attempt
            self.failed.discard(found)
            if call.op_id is None:
                self.by_operation[call.call_id] = found
        call_id = call.call_id
        self.by_call[call_id] = found
        if call_id in self.waiting:
            about = self.waiting.pop(call_id)
            found.steps[-1:-1] = about  # an approval stands before the call that it allows
        early = self.early.get(call_id) if self.early else None
        if early:
            self.attach(found, attempt, *early.pop(0))
            if not early:
                del self.early[call_id]
        else:
            waiting = self.open.get(call_id)
            if waiting is None:
                self.open[call_id] = [(found, attempt)]
            else:
                waiting.append((found, attempt))

    def joined(self, call: ToolCall, index: int) -> Group | None:
        if call.op_id is not None:
            return self.by_operation.get(call.op_id)
        parent = self.by_call.get(call.parent) if call.parent is not None else None
        return self.failed.find(call, call.turn if call.turn is not None else self.turn, parent, index)

    def add_result(self, result: ToolResult, index: int) -> None:
        waiting = self.open.get(result.call_id)
        if not waiting:
            if result.call_id in self.by_call:  # answered already: a second result belongs to no later call
                self.out.unmatched_results.append(index)
            else:
                self.early.setdefault(result.call_id, []).append((result, index))
            return
        place = len(waiting) - 1
        if result.attempt is not None and len(waiting) > 1:
            place = next(
                (n for n in range(len(waiting) - 1, -1, -1) if waiting[n][1].call.attempt == result.attempt), place
            )
        found, attempt = waiting.pop(place)
        if not waiting:
            del self.open[result.call_id]
        self.attach(found, attempt, result, index)

    def attach(self, found: Group, attempt: Try, result: ToolResult, index: int) -> None:
        attempt.result = result
        attempt.result_index = index
        if result.status in FAILED and attempt is found.last:
            self.failed.add(found)

    def add_about(self, event: Decision | Approval, index: int) -> None:
        if event.call_id is None:
            self.out.loose.append(index)
            return
        found = self.by_call.get(event.call_id)
        if found is not None:
            found.steps.append((event, index))
        else:
            self.waiting.setdefault(event.call_id, []).append((event, index))


def _find_batches(grouped: Grouped) -> None:
    """Find the batches: equal `batch` of one turn; without it, calls of one turn, agent and parent of which each
    started before any of them had a result. Fills `units` and `children`."""
    serial_end: dict[tuple[int | None, str, int], tuple[list[Group], float]] = {}
    stated: dict[tuple[int | None, str, int, str | int], list[Group]] = {}
    units: list[list[Group]] = []
    for member in grouped.groups:
        call = member.first.call
        if call.batch is not None:
            key = (member.turn, call.agent, id(member.parent), call.batch)
            if key in stated:
                stated[key].append(member)
                continue
            stated[key] = unit = [member]
        else:
            place = (member.turn, call.agent, id(member.parent))
            unit, ends = serial_end.get(place, ([], -1.0))
            start = member.first.call_index
            end = float(member.first.result_index) if member.first.result is not None else float("inf")
            if unit and start < ends:
                unit.append(member)
                serial_end[place] = (unit, min(ends, end))
                continue
            unit = [member]
            serial_end[place] = (unit, end)
        units.append(unit)
    grouped.units = [unit for unit in units if unit[0].parent is None]
    for unit in units:
        parent = unit[0].parent
        if parent is not None:
            if parent.children is None:
                parent.children = []
            parent.children.append(unit)
