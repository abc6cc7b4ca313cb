"""GT1803 proceeded-after-error: the run ends with success although a write had failed.

What it finds: a declared write that failed for certain, with no later success of that tool or of a tool that is
    `fallback_for` it, no decision to abort, escalate or fall back about it, in a run whose outcome is `success`.
Why it matters: the model went on as if the call had succeeded; the answer says that something is done which is not.
Example: create_ticket answers 400; the agent says "I have created the ticket".
Not a finding: a write of unknown outcome (GT1303); a denial; a failed read; a later success of the same tool; an
    outcome that a benchmark gave.
Options: none.
Needs: access of the tool, failed calls told from successful ones, an outcome that the run itself states.
References: a failure is given to the model, and a decision follows it.
"""

from collections.abc import Iterator

from goldentrace.model.event import Decision
from goldentrace.model.finding import Finding, Needs
from goldentrace.model.operation import Operation
from goldentrace.rules.claims import claimed_outcome
from goldentrace.rules.registry import Unchecked, finding, rule, undeclared
from goldentrace.rules.subject import Subject
from goldentrace.rules.writes import is_unknown

CODE = "GT1803"
GIVEN_UP = frozenset({"abort", "escalate", "fallback"})


@rule(CODE, "proceeded-after-error", severity="error", needs={Needs.STATUS, Needs.FAILURES})
def proceeded_after_error(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per tool whose last write failed."""
    outcome, why = claimed_outcome(subject)
    open_failures: dict[str, Operation] = {}
    unknown: set[str] = set()
    for operation in subject.operations:
        access, last = subject.access(operation), operation.last
        if last.status == "ok":
            open_failures.pop(operation.tool_name, None)
            stands_for = subject.tool(operation.tool_name).fallback_for or []
            for name in [stands_for] if isinstance(stands_for, str) else stands_for:
                open_failures.pop(name, None)
        elif last.status not in (None, "denied", "unfinished") and not is_unknown(last):
            if access is None:
                unknown.add(operation.tool_name)
            elif access == "write" and not any(step.decision in GIVEN_UP for step in operation.decisions):
                open_failures[operation.tool_name] = operation
    if any(isinstance(e, Decision) and e.call_id is None and e.decision in GIVEN_UP for e in subject.trace.events):
        return
    if open_failures and outcome is None:
        yield Unchecked(why)
    if outcome == "success":
        for operation in open_failures.values():
            last = operation.last
            yield finding(
                CODE, f"{operation.label} failed ({last.error_class or last.status}), nothing made up for it, and the "
                "run ends with success",
                lines=[last.result_line or last.call_line, subject.end_line], labels=[operation.label],
                tool_name=operation.tool_name,
            )  # fmt: skip
    yield from undeclared(unknown)
