"""GT1202 backoff-missing: retries without growing waits.

What it finds: an operation that harness, SDK or transport tried again two times or more after failures that may pass,
    with no wait at all between the attempts (each under 50 ms), or three times or more with waits that stay the same
    (within 10 %).
Why it matters: a service that is overloaded gets more load; all clients that failed together come back together.
Example: 503, 503, 503 with 2 ms between the attempts.
Not a finding: one immediate retry; waits that follow a Retry-After; waits that grow, or that vary because of jitter;
    waits under a declared policy that says `none` of jitter and a cap (GT401 and GT404 judge those against the
    golden); a repeat by the model.
Options: min_wait_ms (50): below this a wait is none.
Needs: times, or the delays of decisions.
References: a measured gap under 50 ms is scheduling, no wait; of full jitter three gaps within 10 % of one another
    are rarer than 1 in 100.
"""

from collections.abc import Iterator
from itertools import pairwise

from goldentrace.model.finding import Finding
from goldentrace.model.operation import Attempt, DecisionStep, Operation
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.repeats import TRANSIENT
from goldentrace.rules.subject import Subject

CODE = "GT1202"
MIN_WAIT_MS = 50.0
SAME_WITHIN = 0.1


@rule(CODE, "backoff-missing", severity="error")
def backoff_missing(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per operation whose waits are none, or do not grow."""
    min_wait_ms = float(subject.option(CODE, "min_wait_ms", MIN_WAIT_MS))
    for operation in subject.operations:
        if len(operation.attempts) < 3:
            continue
        for row in _rows(operation.attempts):
            waits = [_wait_ms(operation, attempt) for attempt in row[1:]]
            known = [wait for wait in waits if wait is not None]
            if len(known) < len(waits):
                yield Unchecked("the source records no times for retries")
                continue
            what = _fault(subject, operation, known, min_wait_ms)
            if what:
                yield finding(
                    CODE, f"{operation.label}: {len(known)} retries by the {row[-1].origin} {what}",
                    lines=[attempt.call_line for attempt in (row[0], row[1], row[-1])],
                    labels=[operation.label] * 3, tool_name=operation.tool_name, count=len(known),
                    actual=", ".join(f"{wait:g} ms" for wait in known[:10]),
                )  # fmt: skip


def _rows(attempts: list[Attempt]) -> Iterator[list[Attempt]]:
    """Rows of attempts that each follow a failure which may pass, without a wait that the service asked for."""
    row = [attempts[0]]
    for before, attempt in pairwise(attempts):
        may_pass = before.error_class in TRANSIENT or before.status == "timeout" or (before.http_status or 0) >= 500
        if attempt.origin != "model" and may_pass and not before.owed_ms:
            row.append(attempt)
            continue
        if len(row) >= 3:
            yield row
        row = [attempt]
    if len(row) >= 3:
        yield row


def _fault(subject: Subject, operation: Operation, waits: list[float], min_wait_ms: float) -> str:
    if max(waits) < min_wait_ms:
        return f"with no wait (at most {max(waits):g} ms)"
    has_policy = bool(
        subject.tool(operation.tool_name).backoff or subject.profile.backoff or subject.normal.header.backoff
    )
    if len(waits) >= 3 and not has_policy and max(waits) <= min(waits) * (1 + SAME_WITHIN):
        return f"whose waits do not grow ({min(waits):g} to {max(waits):g} ms)"
    return ""


def _wait_ms(operation: Operation, attempt: Attempt) -> float | None:
    for step in reversed(operation.steps):
        if isinstance(step, DecisionStep) and step.index < attempt.call_index:
            if step.delay_ms is not None and step.decision == "retry" and _is_next(operation, step, attempt):
                return step.delay_ms
            break
    return attempt.gap_ms


def _is_next(operation: Operation, step: DecisionStep, attempt: Attempt) -> bool:
    """Is the attempt the first one after the decision?"""
    return all(not step.index < other.call_index < attempt.call_index for other in operation.attempts)
