"""GT1702 approval-missing: a destructive call that nobody approved.

What it finds: a call of a tool declared `destructive` that was carried out without an approval before it.
Why it matters: what cannot be undone must be asked for.
Example: delete_repo with the status ok, and no approval event.
Not a finding: a call that was approved, or that a policy approved; a call that was denied or not carried out; a tool
    that is not declared destructive.
Options: none.
Needs: `destructive` in the profile, or MCP's `destructiveHint: true` in the trace's list of tools; a source that
    records approvals.
References: MCP 2025-06-18, ToolAnnotations; the hint's default (true) is not assumed, only a stated one counts.
"""

from collections.abc import Iterator

from goldentrace.model.event import Approval
from goldentrace.model.finding import Finding
from goldentrace.model.operation import ApprovalStep
from goldentrace.rules.claims import NATIVE
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1702"


@rule(CODE, "approval-missing", severity="error")
def approval_missing(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per operation that nobody approved."""
    has_approvals = any(isinstance(event, Approval) for event in subject.trace.events)
    for operation in subject.operations:
        if not subject.tool(operation.tool_name).destructive:
            continue
        if subject.trace.format != NATIVE and not has_approvals:
            yield Unchecked("the source records no approvals")
            continue
        carried_out = next((a for a in operation.attempts if a.status not in ("denied", "cancelled", None)), None)
        if carried_out is None:
            continue
        end = carried_out.result_index if carried_out.result_index is not None else len(subject.trace.events)
        verdicts = [step.verdict for step in operation.steps if isinstance(step, ApprovalStep) and step.index < end]
        if "approved" not in verdicts:
            yield finding(
                CODE, f"{operation.label}: a destructive call without an approval", lines=[carried_out.call_line],
                labels=[operation.label], tool_name=operation.tool_name,
            )  # fmt: skip
