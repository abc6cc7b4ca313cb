"""Where a run stopped before it was done: in or after which call, and by which limit.

For `show`, as words and as a value. Must not judge whether it should have stopped.
"""

from dataclasses import dataclass

from goldentrace.model.event import Limit
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt, Operation
from goldentrace.model.trace import Trace
from goldentrace.report.values import as_json


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a run stopped before it was done.

    limit: name of the limit that fired last, with the value reached and the one allowed, None where none did; outcome,
    reason: as the run ends, None of an incomplete recording; label, line: the call that was running, or the last one
    before; None where there was none, line also where the source has none.
    """

    limit: str | None
    value: float | None
    maximum: float | None
    outcome: str | None
    reason: str | None
    label: str | None
    line: int | None
    is_running: bool


def stop_of(normal: NormalTrace, trace: Trace) -> Stop | None:
    """Return where a run stopped before it was done: a limit fired, the recording breaks off, or the run ends as
    aborted or failed; None for any other."""
    limits = [index for index, event in enumerate(trace.events) if isinstance(event, Limit)]
    end = trace.end
    if not limits and normal.incomplete is None and (end is None or end.outcome not in ("aborted", "failed")):
        return None
    at = limits[-1] if limits else len(trace.events)
    fired = trace.events[at] if limits else None
    started = [
        (attempt, operation)
        for operation in normal.operations
        for attempt in operation.attempts
        if attempt.call_index < at
    ]
    last = max(started, key=_call_index, default=None)
    running = [pair for pair in started if last is not None and _is_open(pair[0], at) and _is_beside(pair, last)]
    attempt, operation = max(running or started, key=_call_index, default=(None, None))
    return Stop(
        limit=fired.limit if isinstance(fired, Limit) else None,
        value=fired.value if isinstance(fired, Limit) else None,
        maximum=fired.max if isinstance(fired, Limit) else None,
        outcome=end.outcome if end is not None else None,
        reason=end.stop_reason if end is not None else None,
        label=operation.label if operation is not None else None,
        line=(attempt.call_line or None) if attempt is not None else None,
        is_running=bool(running),
    )


def _call_index(pair: tuple[Attempt, Operation]) -> int:
    return pair[0].call_index


def _is_open(attempt: Attempt, at: int) -> bool:
    """Had an attempt no result yet when the event at an index came?"""
    if attempt.status in (None, "unfinished") or attempt.result_index is None:
        return True
    return attempt.result_index > at


def _is_beside(pair: tuple[Attempt, Operation], last: tuple[Attempt, Operation]) -> bool:
    """Is a call the last one, or of its turn? What an earlier turn left without a result was over by then."""
    return pair[0] is last[0] or (pair[1].turn is not None and pair[1].turn == last[1].turn)


def stop_words(stop: Stop) -> str:
    """Return a stop in words, empty where nothing is known of it.

    `by max_wall_ms (20100 reached, 20000 allowed), while search#2 (line 9) was running`.
    """
    numbers = [
        f"{as_json(stop.value)} reached" if stop.value is not None else "",
        f"{as_json(stop.maximum)} allowed" if stop.maximum is not None else "",
    ]
    said = ", ".join(number for number in numbers if number)
    words = []
    if stop.limit is not None:
        words.append(f"by {stop.limit}" + (f" ({said})" if said else ""))
    elif stop.outcome is not None:
        words.append(f"{stop.outcome}, {stop.reason}")
    if stop.label is not None:
        place = stop.label if stop.line is None else f"{stop.label} (line {stop.line})"
        words.append(f"while {place} was running" if stop.is_running else f"after {place}")
    elif words:
        words.append("before the first call")
    return ", ".join(words)
