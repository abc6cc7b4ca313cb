"""GT1402 missing-result: a call without an outcome.

What it finds: a call that no result answers, or only with the status `unfinished`.
Why it matters: a sibling whose outcome is unknown may have taken effect; the model goes on without knowing.
Example: three calls of one batch, two results.
Not a finding: a call that was still open when the recording itself was cut off (the trace says that it is
    incomplete).
Options: none.
Needs: nothing.
References: providers reject a request in which a tool call has no result.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject


@rule("GT1402", "missing-result", severity="error")
def missing_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per attempt without an outcome."""
    last_result = max((a.result_index or 0 for o in subject.operations for a in o.attempts), default=0)
    for operation in subject.operations:
        for attempt in operation.attempts:
            if attempt.status not in (None, "unfinished"):
                continue
            if subject.trace.incomplete is not None and attempt.call_index > last_result:
                yield Unchecked("calls still open when the recording was cut off")
                continue
            yield finding(
                "GT1402", f"{operation.label}: no result", lines=[attempt.call_line], labels=[operation.label],
                tool_name=operation.tool_name,
            )  # fmt: skip
