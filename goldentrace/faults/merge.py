"""Joins what the agent recorded with what the server saw: one attempt, one event, the richer of the two.

An attempt of the server's is matched by call id, else by idempotency key, else by tool, arguments and order, never
against the clock. What only the server saw (retries inside an SDK, effects, limits) is put in where it happened. The
agent's word holds for what it saw itself: status and times. Pure: no file, no clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import msgspec

from goldentrace.codec.canonical import canonical
from goldentrace.faults.journal import about, value_of
from goldentrace.model.event import AnyEvent, Effect, Limit, ToolCall, ToolResult, TraceEnd
from goldentrace.model.trace import Trace

SLACK_S: Final = 0.05
"""How far two processes' wall clocks on one machine may disagree about one moment, scheduling included."""


@dataclass(slots=True)
class _Try:
    """One attempt: of the agent with the indexes of its events, or of the server."""

    call: ToolCall
    call_index: int = -1
    result: ToolResult | None = None
    result_index: int = -1
    seen: list["_Try"] = field(default_factory=list)
    """What the server saw of an agent's attempt: itself, then what an SDK repeated below the agent."""


def merge_journal(trace: Trace, server_events: Iterable[AnyEvent], *, names: Mapping[str, str] | None = None) -> Trace:
    """Return the agent's trace with the server's events merged in; nothing is counted twice.

    server_events: as `FaultsHandle.events` returns them; names: the server's tool name -> the agent's, where they
    differ.
    """
    server = [_renamed(event, names or {}) for event in server_events]
    if not server:
        return trace
    agent_tries = _tries(trace.events)
    only_server = _match(agent_tries, _tries(server))
    inserts: list[tuple[int, int, AnyEvent]] = []
    events = list(trace.events)
    order = _Order(trace.events)
    shifts: dict[str, int] = {}
    for attempt in agent_tries:
        _enrich(attempt, events, inserts, order, shifts)
    taken = {event.call_id for event in events if isinstance(event, ToolCall)}
    for attempt in only_server:
        _insert_alone(attempt, inserts, order, taken)
    for event in _loose(trace.events, server):
        inserts.append((order.place(event), len(inserts), _foreign(event)))
    return msgspec.structs.replace(trace, events=_woven(events, inserts), lines=None)


def _renamed(event: AnyEvent, names: Mapping[str, str]) -> AnyEvent:
    if isinstance(event, ToolCall) and event.tool_name in names:
        return msgspec.structs.replace(event, tool_name=names[event.tool_name])
    return event


def _tries(events: list[AnyEvent]) -> list[_Try]:
    """Attempts in order of their calls; a result belongs to the earliest open call of its id and attempt."""
    found: list[_Try] = []
    waiting: dict[str, list[_Try]] = {}
    for index, event in enumerate(events):
        if isinstance(event, ToolCall):
            attempt = _Try(event, index)
            found.append(attempt)
            waiting.setdefault(event.call_id, []).append(attempt)
        elif isinstance(event, ToolResult) and waiting.get(event.call_id):
            calls = waiting[event.call_id]
            place = next((n for n, item in enumerate(calls) if item.call.attempt == event.attempt), 0)
            attempt = calls.pop(place)
            attempt.result, attempt.result_index = event, index
    return found


# --- matching ---------------------------------------------------------------------------------------------------------


def _match(agent: list[_Try], server: list[_Try]) -> list[_Try]:
    """Give each of the server's attempts to the agent's it belongs to; returns those that belong to none."""
    alone: list[_Try] = []
    for seen in server:
        owner = _owner(agent, seen)
        if owner is None:
            alone.append(seen)
        else:
            owner.seen.append(seen)
    return alone


def _owner(agent: list[_Try], seen: _Try) -> _Try | None:
    known = about(seen.call)
    near = [item for item in agent if item.call.tool_name == seen.call.tool_name]
    if known.get("given_call_id"):
        near = [item for item in near if item.call.call_id == seen.call.call_id]
        exact = [item for item in near if item.call.attempt == seen.call.attempt]
        near = exact or near
    elif seen.call.idempotency_key is not None and any(_key(item.call, seen.call) for item in near):
        near = [item for item in near if _key(item.call, seen.call)]
    near = [item for item in near if _is_equal(item.call, seen.call) and _is_possible(item, seen)]
    claimed = [item for item in near if item.seen]
    if known.get("retry_count") and claimed:
        return claimed[-1]
    fresh = next((item for item in near if not item.seen), None)
    if fresh is not None:
        return fresh
    return claimed[-1] if claimed and _is_below(claimed[-1], seen) else None


def _key(mine: ToolCall, theirs: ToolCall) -> bool:
    """Does the agent's call carry the server's key, as a field or anywhere at the top of its arguments?"""
    if mine.idempotency_key is not None:
        return mine.idempotency_key == theirs.idempotency_key
    args = value_of(mine.args)
    return isinstance(args, dict) and theirs.idempotency_key in args.values()


def _is_equal(mine: ToolCall, theirs: ToolCall) -> bool:
    """Equal arguments, as far as both are known. The journal has secrets replaced, so a value may only differ by
    that."""
    one, other = value_of(mine.args), value_of(theirs.args)
    if one is None or other is None or _has_secret(other):
        return True
    return canonical(one) == canonical(other)


def _has_secret(value: Any) -> bool:
    return b"<secret:" in canonical(value)


def _is_possible(mine: _Try, seen: _Try) -> bool:
    """A request arrives after its call began, and before its result came. Unknown times forbid nothing."""
    arrived = _seconds(seen.call)
    begun = _seconds(mine.call)
    ended = _seconds(mine.result)
    if arrived is None:
        return True
    return (begun is None or begun <= arrived + SLACK_S) and (ended is None or arrived <= ended + SLACK_S)


def _is_below(mine: _Try, seen: _Try) -> bool:
    """Did this arrive while the agent still waited, so that something below the agent repeated it?"""
    ended, arrived = _seconds(mine.result), _seconds(seen.call)
    return ended is None or arrived is None or arrived <= ended + SLACK_S


def _seconds(event: AnyEvent | None) -> float | None:
    if event is None or event.ts is None:
        return None
    try:
        return datetime.fromisoformat(event.ts).timestamp()
    except ValueError:
        return None


# --- weaving ----------------------------------------------------------------------------------------------------------


class _Order:
    """Where an event of the server's stands among the agent's: after the last one that is not later."""

    def __init__(self, events: list[AnyEvent]) -> None:
        self.times = [_seconds(event) for event in events]
        self.last = len(events) - 1
        if events and isinstance(events[-1], TraceEnd):
            self.last -= 1

    def place(self, event: AnyEvent, first: int = 0, last: int | None = None) -> int:
        """Return the index of the agent's event that this one follows, within [first, last]."""
        at = _seconds(event)
        end = self.last if last is None else last
        if at is None:
            return max(first, end)
        earlier = [n for n in range(first, end + 1) if (time := self.times[n]) is not None and time <= at]
        return earlier[-1] if earlier else first


def _enrich(
    mine: _Try, events: list[AnyEvent], inserts: list[tuple[int, int, AnyEvent]], order: _Order, shifts: dict[str, int]
) -> None:
    """Put one attempt of the agent's together with what the server saw of it."""
    operation = mine.call.op_id or mine.call.call_id
    shift = shifts.get(operation, 0)
    attempt = mine.call.attempt + shift
    seen = mine.seen
    events[mine.call_index] = _call(mine.call, seen[0].call if seen else None, attempt)
    last = mine.result_index - 1 if mine.result_index >= 0 else order.last
    for number, (before, after) in enumerate(pairwise(seen), start=1):
        result = before.result or ToolResult(call_id=mine.call.call_id, status="unfinished")
        for event in (
            _own(result, mine.call.call_id, attempt + number - 1),
            _own(after.call, mine.call.call_id, attempt + number, mine.call),
        ):
            inserts.append((order.place(event, mine.call_index, last), len(inserts), event))
    extra = max(0, len(seen) - 1)
    if mine.result is not None:
        final = seen[-1].result if seen else None
        ended = attempt + extra if mine.result.attempt is not None or attempt + extra > 1 else None
        events[mine.result_index] = _result(mine.result, final, ended)
    shifts[operation] = shift + extra


def _call(mine: ToolCall, theirs: ToolCall | None, attempt: int) -> ToolCall:
    if theirs is None:
        return msgspec.structs.replace(mine, seq=None, attempt=attempt)
    return msgspec.structs.replace(
        mine,
        seq=None,
        attempt=attempt,
        args=mine.args if bytes(mine.args) or mine.args_raw is not None else theirs.args,
        access=mine.access or theirs.access,
        idempotency_key=mine.idempotency_key or theirs.idempotency_key,
        extra={**(mine.extra or {}), "server": about(theirs)},
    )


def _result(mine: ToolResult, theirs: ToolResult | None, attempt: int | None) -> ToolResult:
    """The agent's result with what it could not know: the exact wait that was owed, and that the request did arrive."""
    if theirs is None:
        return msgspec.structs.replace(mine, seq=None, attempt=attempt)
    is_body_known = bool(bytes(mine.result)) or mine.result_hash is not None
    return msgspec.structs.replace(
        mine,
        seq=None,
        attempt=attempt,
        error_class=mine.error_class or (theirs.error_class if mine.status != "ok" else None),
        http_status=mine.http_status if mine.http_status is not None else theirs.http_status,
        owed_ms=theirs.owed_ms if theirs.owed_ms is not None else mine.owed_ms,
        sent=True,
        result=mine.result if is_body_known or mine.status != theirs.status else theirs.result,
        extra={**(mine.extra or {}), "server": about(theirs)},
    )


def _own(event: Any, call_id: str, attempt: int, like: ToolCall | None = None) -> AnyEvent:
    """An event of the server's as one of the agent's operation: its id, its agent and turn, no clock of another
    process."""
    fields: dict[str, Any] = {"seq": None, "mono_ns": None, "call_id": call_id, "attempt": attempt}
    if like is not None:
        origin = event.origin if event.origin in ("sdk", "transport") else "transport"
        fields.update(
            op_id=like.op_id, agent=like.agent, turn=like.turn, batch=like.batch, parent=like.parent, origin=origin
        )
    found: AnyEvent = msgspec.structs.replace(event, **fields)
    return found


def _insert_alone(seen: _Try, inserts: list[tuple[int, int, AnyEvent]], order: _Order, taken: set[str]) -> None:
    """An attempt that the agent did not record at all."""
    call_id = seen.call.call_id
    fields: dict[str, Any] = {}
    if call_id in taken and not about(seen.call).get("given_call_id"):
        call_id = f"server:{call_id}"
    if seen.call.op_id is not None and seen.call.op_id in taken:
        fields["op_id"] = f"server:{seen.call.op_id}"
    call = msgspec.structs.replace(seen.call, seq=None, mono_ns=None, call_id=call_id, **fields)
    inserts.append((order.place(call), len(inserts), call))
    if seen.result is not None:
        result = msgspec.structs.replace(seen.result, seq=None, mono_ns=None, call_id=call_id)
        inserts.append((order.place(result), len(inserts), result))


def _loose(agent: list[AnyEvent], server: list[AnyEvent]) -> list[AnyEvent]:
    """The server's effects and limits, without those that the agent wrote down itself."""
    known = [_sameness(event) for event in agent if isinstance(event, Effect | Limit)]
    found: list[AnyEvent] = []
    for event in server:
        if isinstance(event, Effect | Limit):
            same = _sameness(event)
            if same in known:
                known.remove(same)
            else:
                found.append(event)
    return found


def _sameness(event: Effect | Limit) -> tuple[Any, ...]:
    if isinstance(event, Limit):
        return ("limit", event.limit)
    value = value_of(event.value)
    return ("effect", event.name, event.key, canonical(value))


def _foreign(event: AnyEvent) -> AnyEvent:
    found: AnyEvent = msgspec.structs.replace(event, seq=None, mono_ns=None)
    return found


def _woven(events: list[AnyEvent], inserts: list[tuple[int, int, AnyEvent]]) -> list[AnyEvent]:
    after: dict[int, list[AnyEvent]] = {}
    for place, _, event in sorted(inserts, key=lambda item: (item[0], _seconds(item[2]) or 0.0, item[1])):
        after.setdefault(place, []).append(event)
    woven: list[AnyEvent] = []
    for index, event in enumerate(events):
        if isinstance(event, TraceEnd):
            woven.append(msgspec.structs.replace(event, seq=None, events=None, sha256=None))
        else:
            woven.append(msgspec.structs.replace(event, seq=None))
        woven.extend(after.get(index, ()))
    return woven
