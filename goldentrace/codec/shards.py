"""Several processes of one run recorded into a file each; here the files become one trace.

Order: by time, then by shard, then by place in the shard; a shard's own order is never changed. Times of different
processes are compared on one clock. A shard's first event with both clocks is its anchor (wall clock minus monotonic
clock). Shards whose anchors lie within a second of the first one's share its monotonic clock (one machine since one
start: the anchors differ by what the wall clock was set in between) and are compared on it exactly; others are moved
onto it by the difference.

Without an anchor: a shard with wall times only is placed by them; one with monotonic times only is taken to share the
first clock; an event without a time goes right after the one before it. A shard without any time goes in front as a
whole if it is the first one, else behind all others, and a note says so.

This module must not read files, or drop an event other than a repeated trace_start and trace_end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from goldentrace.errors import InputError, Where
from goldentrace.model.event import DECISION_KINDS, AnyEvent, ModelTurn, TraceEnd, TraceStart
from goldentrace.model.trace import Note, Trace

SAME_CLOCK_NS: Final = 1_000_000_000
"""Two machines that were started within a second of each other are taken for one; the error is then below a second."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BEFORE_ALL: Final = -(1 << 80)
_AFTER_ALL: Final = 1 << 80


@dataclass(frozen=True, slots=True)
class _Shard:
    """A trace with where its events stand in time: ns on the common clock; shift_ns: what was added to its mono_ns."""

    trace: Trace
    times_ns: list[int]
    shift_ns: int
    has_times: bool


def merge(traces: Sequence[Trace]) -> Trace:
    """Return the one trace that the shards of a run make: one trace_start, first; one trace_end, last.

    traces: at least one; FILE itself first, then its shards. Kept: the first trace_start, with what only another one
    states; the first shard's trace_end,
    or the latest one with a known outcome where the first has none or an unknown one, without count and checksum. `seq`
    is numbered anew, and so are turns where several shards open turns (a turn that a forked process only goes on with
    is the first shard's). The result is incomplete if a shard is; `lines` are each event's own in its shard. Raises:
    InputError when a shard states another trace_id than the first one: another run left it behind.
    """
    first = traces[0]
    if len(traces) == 1:
        return first
    for trace in traces[1:]:
        _check_same_run(first, trace)
    shards = _on_one_clock(traces)
    rows = sorted(
        (time_ns, number, place)
        for number, shard in enumerate(shards)
        for place, time_ns in enumerate(shard.times_ns)
        if not isinstance(shard.trace.events[place], TraceStart | TraceEnd)
    )
    end = _chosen_end(shards)
    places = [(0, 0), *((number, place) for _, number, place in rows), *([end] if end is not None else [])]
    return msgspec.structs.replace(
        first,
        events=_renumbered(shards, places),
        lines=[traces[number].line_of(place) for number, place in places],
        incomplete="; ".join(f"{trace.path}: {trace.incomplete}" for trace in traces if trace.incomplete) or None,
        notes=_notes(shards),
    )


def _check_same_run(first: Trace, shard: Trace) -> None:
    ours, theirs = first.start.trace_id, shard.start.trace_id
    if ours is not None and theirs is not None and ours != theirs:
        raise InputError(
            f"the shard is of another run than {first.path} (another trace_id)",
            where=Where(shard.path, shard.line_of(0)),
            next_step="remove what earlier runs left beside the file, or record into a new one",
        )


# --- time ------------------------------------------------------------------------------------------------------------


def _on_one_clock(traces: Sequence[Trace]) -> list[_Shard]:
    anchors = [_anchor_ns(trace) for trace in traces]
    common = next((anchor for anchor in anchors if anchor is not None), 0)
    shards = []
    for number, (trace, anchor) in enumerate(zip(traces, anchors, strict=True)):
        is_same_clock = anchor is None or abs(anchor - common) < SAME_CLOCK_NS
        shift_ns = 0 if anchor is None or is_same_clock else anchor - common
        known = [_time_ns(event, common + shift_ns) for event in trace.events]
        has_times = any(time_ns is not None for time_ns in known)
        default = _BEFORE_ALL if number == 0 else _AFTER_ALL
        shards.append(_Shard(trace, _never_back(known, default), shift_ns, has_times))
    return shards


def _anchor_ns(trace: Trace) -> int | None:
    """Wall clock minus monotonic clock, by the first event that has both."""
    for event in trace.events:
        if event.mono_ns is not None and (wall_ns := _wall_ns(event)) is not None:
            return wall_ns - event.mono_ns
    return None


def _time_ns(event: AnyEvent, anchor_ns: int) -> int | None:
    return _wall_ns(event) if event.mono_ns is None else event.mono_ns + anchor_ns


def _wall_ns(event: AnyEvent) -> int | None:
    """`ts` as ns since the epoch; None where it is missing or says nothing certain (no time zone, no date)."""
    if event.ts is None:
        return None
    try:
        since = datetime.fromisoformat(event.ts) - _EPOCH
    except (ValueError, TypeError):
        return None
    return since // timedelta(microseconds=1) * 1000


def _never_back(times_ns: Sequence[int | None], default_ns: int) -> list[int]:
    """Each event's time: its own, but never before the one before it; what stands before the first time has that
    one."""
    latest = next((time_ns for time_ns in times_ns if time_ns is not None), default_ns)
    filled = []
    for time_ns in times_ns:
        if time_ns is not None and time_ns > latest:
            latest = time_ns
        filled.append(latest)
    return filled


# --- what changes in an event ----------------------------------------------------------------------------------------


def _renumbered(shards: Sequence[_Shard], places: Sequence[tuple[int, int]]) -> list[AnyEvent]:
    turns = _Turns([shard.trace for shard in shards])
    events: list[AnyEvent] = []
    for number, place in places:
        shard = shards[number]
        event = shard.trace.events[place]
        changes: dict[str, object] = {"seq": len(events) + 1, "turn": turns.of(number, place)}
        if shard.shift_ns and event.mono_ns is not None:
            changes["mono_ns"] = event.mono_ns + shard.shift_ns
        if type(event) is TraceStart:
            changes |= _stated(shards)
        elif type(event) is TraceEnd:
            changes |= {"events": None, "sha256": None}
        events.append(msgspec.structs.replace(event, **changes))
    return events


class _Turns:
    """Numbers of turns in the merged trace, in the order in which they are asked for."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._stated = [_stated_turns(trace) for trace in traces]
        self._opened = [
            {turn for event, turn in zip(trace.events, stated, strict=True) if type(event) is ModelTurn}
            for trace, stated in zip(traces, self._stated, strict=True)
        ]
        self._is_renumbered = sum(bool(opened) for opened in self._opened) > 1
        self._numbers: dict[tuple[int, int], int] = {}

    def of(self, shard: int, place: int) -> int | None:
        turn = self._stated[shard][place]
        if turn is None or not self._is_renumbered:
            return turn
        owner = 0 if turn not in self._opened[shard] and turn in self._opened[0] else shard
        return self._numbers.setdefault((owner, turn), len(self._numbers) + 1)


def _stated_turns(trace: Trace) -> list[int | None]:
    """The turn of each event as a reader of the shard alone would see it: the last one that was opened, if it has
    none."""
    current: int | None = None
    turns: list[int | None] = []
    for event in trace.events:
        if type(event) is ModelTurn:
            current = event.turn if event.turn is not None else (current or 0) + 1
        is_bound = not isinstance(event, TraceStart | TraceEnd)
        turns.append(event.turn if event.turn is not None or not is_bound else current)
    return turns


def _stated(shards: Sequence[_Shard]) -> dict[str, object]:
    """What the shards state of the run together: where the first one says nothing, the next one that does."""
    starts = [shard.trace.start for shard in shards]
    stated: dict[str, object] = {"states": _states(shards)}
    for name in ("trace_id", "scenario_id", "seed", "source", "cwd", "home", "tmp"):
        stated[name] = next((value for start in starts if (value := getattr(start, name)) is not None), None)
    attributes: dict[str, object] = {}
    for start in reversed(starts):
        attributes |= start.attributes or {}
    stated["attributes"] = attributes or None
    return stated


def _states(shards: Sequence[_Shard]) -> list[str] | None:
    """The decision kinds that some shard can state, None for all; one without events has no say, if another has
    some."""
    speaking = [
        shard for shard in shards if any(type(event) not in (TraceStart, TraceEnd) for event in shard.trace.events)
    ]
    kinds: set[str] = set()
    for shard in speaking or shards:
        if shard.trace.start.states is None:
            return None
        kinds.update(shard.trace.start.states)
    return [kind for kind in DECISION_KINDS if kind in kinds]


def _chosen_end(shards: Sequence[_Shard]) -> tuple[int, int] | None:
    """Shard and place of the trace_end that says how the run ended."""
    ends = [(number, shard.trace.end) for number, shard in enumerate(shards)]
    known = [number for number, end in ends if end is not None and end.outcome != "unknown"]
    found = [number for number, end in ends if end is not None]
    if not found:
        return None
    number = found[0] if not known or 0 in known else max(known, key=lambda number: shards[number].times_ns[-1])
    return number, len(shards[number].trace.events) - 1


def _notes(shards: Sequence[_Shard]) -> tuple[Note, ...]:
    notes = list(shards[0].trace.notes)
    for shard in shards[1:]:
        notes += [Note(f"{shard.trace.path}: {note.text}", note.line) for note in shard.trace.notes]
    for number, shard in enumerate(shards):
        if not shard.has_times:
            where = "in front of" if number == 0 else "behind"
            notes.append(Note(f"{shard.trace.path}: has no times; its events stand {where} all others"))
    return tuple(notes)
