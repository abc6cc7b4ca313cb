"""Timestamps to offsets: since the start of the trace for people, since their cause where that is behaviour.

The monotonic clock of the recording process is used where both ends have it, the wall clock otherwise; the two are
never mixed. A time that is missing stays missing. This module must not judge a wait.
"""

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
    return any(event.ts is not None or event.mono_ns is not None for event in trace.events[1:50])


def offsets_of(trace: Trace) -> list[float | None]:
    """Return each event's offset in ms since the first event that has a time."""
    walls = [wall_ms(event) for event in trace.events]
    wall_start = next((wall for wall in walls if wall is not None), None)
    monos = [event.mono_ns for event in trace.events]
    if wall_start is not None and monos.count(None) == len(monos):
        return [None if wall is None else round(wall - wall_start, 3) for wall in walls]
    anchor = next(((m, w) for m, w in zip(monos, walls, strict=True) if m is not None), None)
    first_mono = anchor[0] if anchor is not None else None
    lead_ms = anchor[1] - wall_start if anchor is not None and anchor[1] is not None and wall_start is not None else 0.0
    offsets: list[float | None] = []
    for mono, wall in zip(monos, walls, strict=True):
        if mono is not None and first_mono is not None:
            offsets.append(round((mono - first_mono) / 1e6 + lead_ms, 3))
        elif wall is not None and wall_start is not None:
            offsets.append(round(wall - wall_start, 3))
        else:
            offsets.append(None)
    return offsets


def place_in_time(normal: NormalTrace, trace: Trace) -> None:
    """Fill the offsets of attempts, decisions and loose events since the start of the trace; for display and for
    rules."""
    offsets = offsets_of(trace)
    for operation in normal.operations:
        for step in operation.steps:
            if isinstance(step, Attempt):
                step.started_ms = offsets[step.call_index]
                step.ended_ms = offsets[step.result_index] if step.result_index is not None else None
            else:
                step.at_ms = offsets[step.index]
    for event in normal.loose:
        event.at_ms = offsets[event.index]
    if trace.end is not None:
        normal.end_ms = offsets[-1]
