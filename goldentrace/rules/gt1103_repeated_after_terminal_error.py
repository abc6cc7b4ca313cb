"""GT1103 repeated-after-terminal-error: the same call after an error that it cannot get past.

What it finds: a call, by whoever, with arguments equal after normalization to those of an earlier call of the run
    that failed for good: HTTP 4xx (but 408, 409, 425, 429), a validation, authorization or not-found error, or a text
    that matches the tool's `terminal_errors`; with nothing in between that could have changed the outcome.
Why it matters: the same request gets the same answer; the attempt is wasted, and many services count it.
Example: create_refund answers 400, and the agent sends the same arguments again.
Not a finding: other arguments; a repeat after a message of the user, after an approval, or after a successful call
    that writes or of which nothing is declared; one repeat after 401 or 403 with a `retry` decision whose reason is
    `auth` in between (a refreshed token); a denial by a person or policy (GT1701); a tool declared `polling`.
Options: none; `tools.TOOL.terminal_errors` of the profile lists regular expressions over the error's text.
Needs: arguments, failed calls told from successful ones, with class or HTTP status.
References: RFC 9110, section 15.5: a client should not repeat a 4xx request without modification.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from goldentrace.codec.patterns import compile_pattern
from goldentrace.model.event import Approval, Decision, Message
from goldentrace.model.finding import Finding, Needs
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import MISSING, Subject

CODE = "GT1103"
PASSING_STATUSES = frozenset({408, 409, 425, 429})
TERMINAL = frozenset({"bad_request", "auth", "not_found", "payload_mismatch", "denied", "schema"})
SEARCHED_CHARACTERS = 10_000


@dataclass(slots=True)
class _Row:
    """A call that failed for good, and what repeated it. is_refreshed: the one repeat of a new token was made."""

    operation: Operation
    failed: Attempt
    repeats: list[tuple[Operation, Attempt]] = field(default_factory=list)
    last_index: int = 0
    is_refreshed: bool = False


@rule(CODE, "repeated-after-terminal-error", severity="error", needs={Needs.ARGUMENTS, Needs.STATUS, Needs.FAILURES})
def repeated_after_terminal_error(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per row of repeats, the failed call as their reference."""
    rows: dict[tuple[object, ...], _Row] = {}
    done: list[_Row] = []
    changes, refreshes = _changes(subject), _refreshes(subject)
    for operation, attempt in subject.attempts:
        if subject.is_polling(operation.tool_name):
            continue
        key = (operation.agent, operation.tool_name, subject.payload_key(attempt))
        row = rows.get(key)
        if row is not None and changes[row.failed.call_index] == changes[attempt.call_index]:
            if _is_refresh(row, attempt, refreshes):
                row.is_refreshed = True
            else:
                row.repeats.append((operation, attempt))
            row.last_index = attempt.call_index
        elif row is not None:
            done.append(rows.pop(key))
        if key not in rows and _is_terminal(subject, operation, attempt):
            rows[key] = _Row(operation, attempt, last_index=attempt.call_index)
        elif key in rows and attempt.status == "ok":
            done.append(rows.pop(key))
    for row in (*done, *rows.values()):
        yield from _finding(subject, row)


def _finding(subject: Subject, row: _Row) -> Iterator[Finding]:
    free = [pair for pair in row.repeats if pair[1].call_index not in subject.claimed]
    if not free:
        return
    for _, attempt in free:
        subject.claimed[attempt.call_index] = CODE
    first, failed = row.operation, row.failed
    shown = [(first, failed), *(free if len(free) <= 2 else (free[0], free[-1]))]
    error = " ".join(str(part) for part in (failed.error_class, failed.http_status) if part is not None)
    who = sorted({attempt.origin for _, attempt in free})
    times = "again" if len(free) == 1 else f"{len(free)} times more"
    yield finding(
        CODE, f"{first.label} failed for good ({error or failed.status}), and the same call was made {times} by the "
        f"{' and the '.join(who)} [error repeat]",
        lines=[attempt.call_line for _, attempt in shown], labels=[operation.label for operation, _ in shown],
        tool_name=first.tool_name, count=len(free),
    )  # fmt: skip


def _is_terminal(subject: Subject, operation: Operation, attempt: Attempt) -> bool:
    if attempt.status in (None, "ok", "denied", "unfinished", "timeout", "cancelled"):
        return False
    if attempt.http_status is not None:
        return 400 <= attempt.http_status < 500 and attempt.http_status not in PASSING_STATUSES
    if attempt.error_class in TERMINAL:
        return True
    patterns = subject.tool(operation.tool_name).terminal_errors
    if not patterns:
        return False
    value = subject.result_value(attempt)
    text = value if isinstance(value, str) else "" if value is MISSING else str(value)
    return any(compile_pattern(pattern).is_found(text[:SEARCHED_CHARACTERS]) for pattern in patterns)


def _refreshes(subject: Subject) -> list[int]:
    """Indexes of the decisions to try again because a token was refreshed."""
    return [
        index
        for index, event in enumerate(subject.trace.events)
        if isinstance(event, Decision) and event.decision == "retry" and event.reason == "auth"
    ]


def _is_refresh(row: _Row, attempt: Attempt, refreshes: list[int]) -> bool:
    """Is this the one repeat that a refreshed token allows?"""
    if row.is_refreshed or not (row.failed.error_class == "auth" or row.failed.http_status in (401, 403)):
        return False
    place = bisect_right(refreshes, row.last_index)
    return place < len(refreshes) and refreshes[place] < attempt.call_index


def _changes(subject: Subject) -> dict[int, int]:
    """Index of a call -> how much came before it that may change the outcome of another call."""
    events = subject.trace.events
    ended = {
        attempt.result_index
        for operation, attempt in subject.attempts
        if attempt.status == "ok" and subject.access(operation) != "read"
    }
    wanted = {attempt.call_index for _, attempt in subject.attempts}
    found: dict[int, int] = {}
    count = 0
    for index, event in enumerate(events):
        if index in wanted:
            found[index] = count
        is_word = isinstance(event, Message) and event.role == "user"
        count += is_word or isinstance(event, Approval) or index in ended
    return found
