"""GT1403 duplicate-result: a call that was answered twice.

What it finds: a second result for a call id all of whose calls are answered.
Why it matters: whichever result the model sees, the other was paid for, and a late one may overwrite the right one.
Example: two results for `call_1`, one of them after the call was cancelled.
Not a finding: an id that is used again by a later call; each use takes one result.
Options: none.
Needs: call ids.
References: MCP and the providers' tool protocols allow one result per call.
"""

from collections.abc import Iterator

from goldentrace.model.event import ToolResult
from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject


@rule("GT1403", "duplicate-result", severity="error")
def duplicate_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per result too many, beside the result that came first."""
    pairs, unmatched = subject.pairs
    first: dict[str, int] = {}
    for index in sorted(pairs):
        result = subject.trace.events[index]
        assert isinstance(result, ToolResult)
        first.setdefault(result.call_id, index)
    for index in unmatched:
        result = subject.trace.events[index]
        assert isinstance(result, ToolResult)
        if result.call_id in first:
            lines = [subject.line(first[result.call_id]), subject.line(index)]
            yield finding("GT1403", f"a second result for {result.call_id!r}", lines=lines)
    if "call_ids" in subject.trace.coverage:
        yield Unchecked(subject.trace.coverage["call_ids"])
