"""GT1404 result-after-cancel-used: a late answer to a cancelled call was used.

What it finds: a second result for a call that was already answered as cancelled or timed out, and a later call of the
    model with a value that only this late result supplied.
Why it matters: the agent has decided on the ground that the call was over; acting on its answer all the same mixes
    two states, and a retry of the call may be under way.
Example: get_quote is cancelled, its answer with quote Q-881 comes later, and book(quote=Q-881) follows.
Not a finding: a late result that nothing uses (GT1403 shows it); a value that the user or another result supplied
    too.
Options: none.
Needs: call ids, results.
References: MCP 2025-06-18, cancellation: the sender should ignore a response that arrives after it cancelled.
"""

from collections.abc import Iterator

from goldentrace.model.event import Message, ToolCall, ToolResult
from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject
from goldentrace.rules.values import values_in, words_in

CODE = "GT1404"


@rule(CODE, "result-after-cancel-used", severity="error")
def result_after_cancel_used(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per call that uses a late result."""
    events = subject.trace.events
    pairs, unmatched = subject.pairs
    ended: dict[str, int] = {}
    for index in pairs:
        result = events[index]
        if isinstance(result, ToolResult) and result.status in ("cancelled", "timeout"):
            ended[result.call_id] = index
    late = {n for n in unmatched if getattr(events[n], "call_id", None) in ended}
    if not late:
        return
    labels = {attempt.call_index: operation for operation, attempt in subject.attempts}
    supplied: set[str] = set()
    only_late: dict[str, int] = {}
    for index, event in enumerate(events):
        if index in late and isinstance(event, ToolResult):
            if not bytes(event.result):
                yield Unchecked("what a late result held was left out")
            for value in values_in(event.result) - supplied:
                only_late.setdefault(value, index)
        elif isinstance(event, ToolResult):
            supplied |= values_in(event.result)
        elif isinstance(event, Message):
            supplied |= words_in(event)
        elif isinstance(event, ToolCall):
            used = values_in(event.args)
            hit = next((only_late[v] for v in sorted(used) if v in only_late and v not in supplied), None)
            supplied |= used
            operation = labels.get(index)
            if hit is not None and operation is not None:
                source = events[hit]
                assert isinstance(source, ToolResult)
                first = labels.get(pairs[ended[source.call_id]])
                yield finding(
                    CODE, f"{operation.label} uses what came after {first.label if first else source.call_id} was over",
                    lines=[subject.line(hit), subject.line(index)],
                    labels=[first.label, operation.label] if first else [operation.label],
                    tool_name=operation.tool_name,
                )  # fmt: skip
