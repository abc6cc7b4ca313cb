"""GT1401 unmatched-result: a result that no call of the trace asked for.

What it finds: a tool result whose call id no call has.
Why it matters: the result reached the model under a wrong id, or a call was lost from the record.
Example: a result for `call_9` in a run whose calls are `call_1` and `call_2`.
Not a finding: a result that stands before its call; a second result for an answered call (GT1403).
Options: none.
Needs: call ids.
References: providers reject a request whose tool results do not answer its tool calls.
"""

from collections.abc import Iterator

from goldentrace.model.event import ToolResult
from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject


@rule("GT1401", "unmatched-result", severity="error")
def unmatched_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per result without a call."""
    known = {call.call_id for call in subject.trace.calls()}
    for index in subject.pairs[1]:
        result = subject.trace.events[index]
        assert isinstance(result, ToolResult)
        if result.call_id not in known:
            yield finding("GT1401", f"a result for {result.call_id!r}, which no call has", lines=[subject.line(index)])
    if "call_ids" in subject.trace.coverage:
        yield Unchecked(subject.trace.coverage["call_ids"])
