"""GT1405 sibling-discarded: a call that had succeeded was made again because its sibling failed.

What it finds: a batch in which one call failed and another succeeded, and among the next calls of the same agent (as
    many as the batch had) both the failed and the successful call again, with arguments that are equal after
    normalization.
Why it matters: the harness threw the whole batch away; what had succeeded is paid for twice, and a write takes effect
    twice.
Example: three searches in parallel, one times out, all three are sent again.
Not a finding: only the failed call again; a successful call repeated without the failed one (GT1003, GT1004); a
    repeat after a message of the user.
Options: none.
Needs: arguments, batches, failed calls told from successful ones.
References: expected after a failure among siblings: every sibling has an outcome, successes are not called again.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1405"


@rule(CODE, "sibling-discarded", severity="error", needs={Needs.ARGUMENTS, Needs.STATUS, Needs.FAILURES})
def sibling_discarded(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per successful sibling that was called again."""
    lanes: dict[object, list[Ask]] = {}
    for ask in subject.asks:
        lanes.setdefault(ask.lane, []).append(ask)
    for asks in lanes.values():
        start = 0
        while start < len(asks):
            end = _batch_end(asks, start)
            if end - start > 1:
                yield from _check(subject, asks[start:end], asks[end : end + (end - start)])
            start = end


def _batch_end(asks: list[Ask], start: int) -> int:
    first = asks[start]
    if first.operation.batch is None:
        return start + 1
    place = (first.turn, first.operation.batch)
    end = start + 1
    while end < len(asks) and (asks[end].turn, asks[end].operation.batch) == place:
        end += 1
    return end


def _check(subject: Subject, batch: list[Ask], following: list[Ask]) -> Iterator[Finding]:
    failed = {_key(subject, ask): ask for ask in batch if ask.last.status in ("error", "timeout", "cancelled")}
    succeeded = {_key(subject, ask): ask for ask in batch if ask.is_ok}
    following = [ask for ask in following if ask.users == batch[0].users]
    again = next((failed[key] for key in (_key(subject, ask) for ask in following) if key in failed), None)
    if again is None:
        return
    for ask in following:
        first = succeeded.pop(_key(subject, ask), None)
        if first is None or subject.is_polling(ask.tool_name):
            continue
        subject.claimed[ask.call_index] = CODE
        yield finding(
            CODE, f"{ask.label} repeats {first.label}, which had succeeded, because its sibling {again.label} failed",
            lines=[first.line, ask.line], labels=[first.label, ask.label], tool_name=ask.tool_name,
        )  # fmt: skip


def _key(subject: Subject, ask: Ask) -> tuple[str, bytes]:
    return (ask.tool_name, subject.payload_key(ask.attempt))
