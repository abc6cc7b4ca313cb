"""GT1304 unresolved-write: a write of unknown outcome that nobody took care of.

What it finds: a declared write whose answer was lost, which no later call repeated with success and nothing
    reconciled, in a run that ends as `failed`, or as `partial` or `aborted` without a decision about it.
Why it matters: "failed" is a claim too: the write may have taken effect, and whoever starts again does it twice.
Example: charge_card times out three times; the run ends with the outcome `failed`.
Not a finding: the outcomes `unknown` and `needs_human`, which say how it is; `success` (GT1303); a decision to
    escalate; a decision to abort, with the outcome `partial` or `aborted`; a call without any result (GT1402).
Options: none.
Needs: access of the tool, failed calls told from successful ones, an outcome that the run itself states.
References: after the last attempt without an answer the only true outcome is that it is unknown.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.claims import claimed_outcome
from goldentrace.rules.registry import Unchecked, finding, rule, undeclared
from goldentrace.rules.subject import Subject
from goldentrace.rules.writes import unknown_writes

CODE = "GT1304"


@rule(CODE, "unresolved-write", severity="error", needs={Needs.FAILURES})
def unresolved_write(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per operation whose outcome was left open."""
    writes, unknown = unknown_writes(subject)
    outcome, why = claimed_outcome(subject)
    if writes and outcome is None:
        yield Unchecked(why)
    last = {write.operation.label: write for write in writes if not write.is_settled}
    for write in last.values():
        is_left = outcome == "failed" or (outcome in ("partial", "aborted") and write.decided != "abort")
        if is_left and write.decided != "escalate":
            yield finding(
                CODE, f"the outcome of {write.operation.label} is unknown "
                f"({write.attempt.error_class or write.attempt.status}), and the run ends as {outcome}",
                lines=[write.attempt.result_line or write.attempt.call_line, subject.end_line],
                labels=[write.operation.label], tool_name=write.operation.tool_name,
            )  # fmt: skip
    yield from undeclared(unknown)
