"""Values that follow the clock: what a date, a date-time or an epoch is, seen from the clock of its own event."""

from typing import Final

from goldentrace.model.event import Event
from goldentrace.normalize.leaves import Moment
from goldentrace.normalize.offsets import wall_ms

NOW_WITHIN_MS: Final = 5 * 60 * 1000
"""A value this near to its event's own clock is the clock's: the widest skew seen between an agent and its tools."""
RELATIVE_STEP_MS: Final = 10 * 60 * 1000
"""Dates that follow the clock are named by their distance from it, rounded to this, so that latency does not show."""
_DAY_MS: Final = 86_400_000


def moment_placeholder(moment: Moment, event: Event) -> str | None:
    """Return `<now>`, or, where the profile says that the value follows the clock, `<now+3600s>` or `<today-1d>`.

    None where it is a value like any other, or the event has no time.
    """
    clock = wall_ms(event)
    if clock is None:
        return None
    distance_ms = moment.at_ms - clock
    if moment.is_relative and moment.is_date:
        return f"<today{int(moment.at_ms // _DAY_MS) - int(clock // _DAY_MS):+d}d>"
    if abs(distance_ms) <= NOW_WITHIN_MS:
        return "<now>"
    if moment.is_relative:
        return f"<now{round(distance_ms / RELATIVE_STEP_MS) * RELATIVE_STEP_MS // 1000:+d}s>"
    return None
