"""GT1303 success-claimed-unconfirmed: the run says success, and nobody knows whether a write took effect.

What it finds: a run that ends with the outcome `success` after a declared write whose answer was lost (timeout,
    reset, 500, 502, 504 …), which no later call repeated with success and nothing reconciled.
Why it matters: the user is told that it is done; it may not be, or it may be done twice by the next try.
Example: charge_card times out; the agent answers "your card was charged".
Not a finding: an equal call that succeeded later; a `reconcile` decision; a tool that `reconciles` this one and
    succeeded later; a decision to escalate; a request that did not leave.
Options: none.
Needs: access of the tool, failed calls told from successful ones, an outcome that the run itself states.
References: what is expected after a lost answer: reconcile, or repeat under the same key, or say that it is unknown.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.claims import claimed_outcome
from goldentrace.rules.registry import Unchecked, finding, rule, undeclared
from goldentrace.rules.subject import Subject
from goldentrace.rules.writes import unknown_writes

CODE = "GT1303"


@rule(CODE, "success-claimed-unconfirmed", severity="error", needs={Needs.FAILURES})
def success_claimed_unconfirmed(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per operation that is unconfirmed when the run claims success."""
    writes, unknown = unknown_writes(subject)
    outcome, why = claimed_outcome(subject)
    if writes and outcome is None:
        yield Unchecked(why)
    last = {write.operation.label: write for write in writes if not write.is_settled}
    for write in last.values():
        if outcome == "success" and write.decided != "escalate":
            yield finding(
                CODE, f"the run ends with success, and the outcome of {write.operation.label} is unknown "
                f"({write.attempt.error_class or write.attempt.status})",
                lines=[write.attempt.result_line or write.attempt.call_line, subject.end_line],
                labels=[write.operation.label], tool_name=write.operation.tool_name,
            )  # fmt: skip
    yield from undeclared(unknown)
