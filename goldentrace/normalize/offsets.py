"""Timestamps to offsets: since the start of the trace for people, since their cause where that is behaviour.

The monotonic clock of the recording process is used where both ends have it, the wall clock otherwise; the two are
never mixed. A time that is missing stays missing. This module must not judge a wait.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from goldentrace.model.event import Event
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt
from goldentrace.model.trace import Trace


def wall_ms(event: Event) -> float | None:
    """Return the wall clock of an event in ms since 1970, None where it has none or it is no date-time."""
    ts = event.ts
    if ts is None:
        return None
    if len(ts) == _FULL_LENGTH and ts[-1] == "Z":
        minute_ms = _minute_ms(ts[:17])
        seconds = ts[17:-1]
        if minute_ms is not None and seconds[2] == "." and seconds.replace(".", "", 1).isdigit():
            return minute_ms + float(seconds) * 1000
    return _parsed_ms(ts)


_FULL_LENGTH: Final = len("2026-03-01T09:00:00.000000Z")


@lru_cache(maxsize=4096)
def _minute_ms(minute: str) -> float | None:
    """The start of a minute, `2026-03-01T09:00:`: one parse serves all its events."""
    return _parsed_ms(minute + "00Z")


def _parsed_ms(ts: str) -> float | None:
    try:
        parsed = datetime.fromisoformat(ts)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp() * 1000


def gap_ms(end: Event | None, start: Event) -> int | None:
    """Return the time from one event to another in whole ms, negative if they overlap; None where no common clock tells
    it. Whole, because that is what a golden holds, and a run and its golden must give one verdict."""
    if end is None:
        return None
    if end.mono_ns is not None and start.mono_ns is not None:
        return round((start.mono_ns - end.mono_ns) / 1e6)
    before, after = wall_ms(end), wall_ms(start)
    if before is None or after is None:
        return None
    return round(after - before)


def has_times(trace: Trace) -> bool:
    """Does the source record when calls happened?"""
    return any(event.ts is not None or event.mono_ns is not None for event in trace.events[1:])


class TraceClock:
    """Offsets of the events of one trace in ms since its first event that has a time.

    Events with a monotonic time are placed by it, the others by the wall clock; the first event that has both ties
    them.
    """

    def __init__(self, trace: Trace) -> None:
        self._wall_start: float | None = None
        self._mono_start: int | None = None
        self._lead_ms = 0.0
        for event in trace.events:
            wall = wall_ms(event) if self._wall_start is None or event.mono_ns is not None else None
            if self._wall_start is None:
                self._wall_start = wall
            if event.mono_ns is not None:
                self._mono_start = event.mono_ns
                self._lead_ms = wall - self._wall_start if wall is not None and self._wall_start is not None else 0.0
                break

    def offset_ms(self, event: Event) -> float | None:
        """Return the offset of an event, None where it has no time."""
        if event.mono_ns is not None and self._mono_start is not None:
            return round((event.mono_ns - self._mono_start) / 1e6 + self._lead_ms, 3)
        wall = wall_ms(event)
        if wall is None or self._wall_start is None:
            return None
        return round(wall - self._wall_start, 3)


def offsets_of(trace: Trace) -> list[float | None]:
    """Return each event's offset in ms since the first event that has a time."""
    clock = TraceClock(trace)
    return [clock.offset_ms(event) for event in trace.events]


def place_in_time(normal: NormalTrace, trace: Trace, only: Iterable[int] | None = None) -> None:
    """Fill the offsets of attempts, decisions and loose events since the start of the trace; for display and for rules.

    only: the operations to place, None for all: of a long run a report shows few.
    """
    clock = TraceClock(trace)
    for operation in normal.operations if only is None else [normal.operations[index] for index in only]:
        for step in operation.steps:
            if isinstance(step, Attempt):
                step.started_ms = clock.offset_ms(trace.events[step.call_index])
                step.ended_ms = None
                if step.result_index is not None:
                    step.ended_ms = clock.offset_ms(trace.events[step.result_index])
            else:
                step.at_ms = clock.offset_ms(trace.events[step.index])
    for event in normal.loose:
        event.at_ms = clock.offset_ms(trace.events[event.index])
    if trace.end is not None:
        normal.end_ms = clock.offset_ms(trace.end)
