"""GT1802 continued-after-limit: calls after a stop condition had fired.

What it finds: calls that start after a `limit` event (of the same tool, where the limit is one tool's).
Why it matters: a limit that does not stop anything is a comment.
Example: max_tool_calls 20 is reached, and six more calls follow.
Not a finding: members of the batch in which the limit fired; a last turn of the model without calls.
Options: none.
Needs: `limit` events.
References: `limits:` are enforced while running; the run ends with the reason that fired.
"""

from collections.abc import Iterator

from goldentrace.model.event import Limit
from goldentrace.model.finding import Finding
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.claims import NATIVE
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1802"


@rule(CODE, "continued-after-limit", severity="error")
def continued_after_limit(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per limit that did not stop the run, at the limit, and the first and last call after it."""
    if subject.trace.format != NATIVE and not any(isinstance(event, Limit) for event in subject.trace.events):
        yield Unchecked("the source records no limits")
        return
    done: set[tuple[str, str | None]] = set()
    for index, event in enumerate(subject.trace.events):
        if not isinstance(event, Limit):
            continue
        named = (event.extra or {}).get("tool_name")
        tool_name = named if isinstance(named, str) else None
        if (event.limit, tool_name) in done:
            continue
        done.add((event.limit, tool_name))
        after = [pair for pair in subject.attempts if _continues(subject, pair, event, index, tool_name)]
        if after:
            shown = after if len(after) == 1 else [after[0], after[-1]]
            yield finding(
                CODE, f"{event.limit} was reached, and {len(after)} more calls were made",
                lines=[subject.line(index), *(attempt.call_line for _, attempt in shown)],
                labels=[operation.label for operation, _ in shown], tool_name=shown[0][0].tool_name, count=len(after),
                pointer=event.limit,
            )  # fmt: skip


def _continues(
    subject: Subject, pair: tuple[Operation, Attempt], limit: Limit, index: int, tool_name: str | None
) -> bool:
    operation, attempt = pair
    if attempt.call_index < index or tool_name not in (None, operation.tool_name):
        return False
    is_same_turn = limit.turn is not None and subject.call(attempt).turn == limit.turn
    return not (is_same_turn and operation.batch is not None)
