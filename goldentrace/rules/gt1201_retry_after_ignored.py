"""GT1201 retry-after-ignored: a call made before the wait that the service asked for was over.

What it finds: an attempt that starts earlier than the Retry-After of the failure before it allows, whichever layer
    sent it; and a `retry` decision that asks for less than that. Another call of the same tool inside the wait is a
    warning.
Why it matters: the service answers 429 again, often with a longer wait, and may block the client.
Example: 429 with Retry-After: 2, the next attempt 500 ms later.
Not a finding: no Retry-After, or one of 0; a start within 5 ms of the end of the wait (clocks); a call that was
    already under way when the answer came.
Options: early_ms (5): how much earlier an attempt may start.
Needs: the wait that was owed (`owed_ms`), and times or the delay of the decision.
References: RFC 9110, section 10.2.3; RFC 6585, section 4.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding
from goldentrace.model.operation import Attempt, DecisionStep, Operation
from goldentrace.normalize.offsets import gap_ms
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1201"
EARLY_MS = 5.0


@rule(CODE, "retry-after-ignored", severity="error")
def retry_after_ignored(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per wait that was cut short, at the attempt that cut it."""
    early_ms = float(subject.option(CODE, "early_ms", EARLY_MS))
    waiting: dict[tuple[str, str], tuple[Operation, Attempt]] = {}
    for operation, attempt in subject.attempts:
        place = (operation.agent, operation.tool_name)
        owing = waiting.get(place)
        if owing is not None and _follows(owing, operation, attempt):
            yield from _check(subject, owing, (operation, attempt), early_ms)
            if owing[0] is operation:
                del waiting[place]
        if attempt.owed_ms is not None and attempt.owed_ms > 0 and attempt.result_index is not None:
            waiting[place] = (operation, attempt)


def _follows(owing: tuple[Operation, Attempt], operation: Operation, attempt: Attempt) -> bool:
    """Was it started after the answer, and not together with the call that got it?"""
    before, failed = owing
    is_sibling = before.batch is not None and (before.turn, before.batch) == (operation.turn, operation.batch)
    return (failed.result_index or 0) < attempt.call_index and (before is operation or not is_sibling)


def _check(
    subject: Subject, owing: tuple[Operation, Attempt], now: tuple[Operation, Attempt], early_ms: float
) -> Iterator[Finding | Unchecked]:
    (before, failed), (operation, attempt) = owing, now
    owed_ms = failed.owed_ms or 0.0
    waited_ms: float | None = gap_ms(subject.result(failed), subject.call(attempt))
    is_own = before is operation
    what = "waited"
    if waited_ms is None and is_own:
        waited_ms, what = _asked_for(operation, failed, attempt), "asked to wait"
    if waited_ms is None:
        if is_own:
            yield Unchecked("the source records no times for a call that was told to wait")
        return
    if waited_ms >= owed_ms - early_ms:
        return
    who = "" if attempt.origin == "model" else f" by the {attempt.origin}"
    yield finding(
        CODE, f"{operation.label} attempt {attempt.number}{who} {what} {waited_ms:g} ms after {before.label} "
        f"was told to wait {owed_ms:g} ms",
        lines=[failed.result_line, attempt.call_line], labels=[before.label, operation.label],
        tool_name=operation.tool_name, severity=None if is_own else "warning", expected=owed_ms, actual=waited_ms,
    )  # fmt: skip


def _asked_for(operation: Operation, failed: Attempt, attempt: Attempt) -> float | None:
    """The delay of the decision between two attempts."""
    for step in operation.steps:
        if isinstance(step, DecisionStep) and failed.call_index < step.index < attempt.call_index:
            return step.delay_ms
    return None
