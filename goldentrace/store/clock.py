"""The clocks of a journal, read together. A virtual clock takes their place by having the same two methods."""

import time
from typing import NamedTuple, Protocol


class Clock(Protocol):
    """Nanoseconds since the epoch, and of a clock that never goes back. The module `time` is one."""

    def time_ns(self) -> int: ...

    def monotonic_ns(self) -> int: ...


class Moment(NamedTuple):
    """One reading of both clocks, in ns."""

    mono_ns: int
    time_ns: int


def read_clock(clock: Clock) -> Moment:
    """Return what both clocks show now."""
    return Moment(clock.monotonic_ns(), clock.time_ns())


def format_time(time_ns: int) -> str:
    """Return ns since the epoch as RFC 3339 UTC with microseconds."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest_ns // 1000:06d}Z"
