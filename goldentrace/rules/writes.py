"""Writes whose outcome nobody knows, and what became of them.

A write is of unknown outcome when its request may have reached the service and its answer did not come back: it may
have taken effect. Shared by the rules about retries and effects. Must not judge.
"""

from dataclasses import dataclass, field

from goldentrace.model.event import Decision
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.subject import Subject

UNKNOWN_OUTCOME = frozenset({
    "timeout", "reset", "empty_reply", "partial_body", "protocol", "malformed_json", "cancelled",
})  # fmt: skip
"""Errors after which a write may have taken effect (RFC 9110, section 9.2.2, on retrying what is not idempotent)."""
UNKNOWN_STATUSES = frozenset({500, 502, 504})
"""The service, or one behind it, broke off; 503 and 429 say that nothing was done (RFC 9110, section 15.6)."""


def is_unknown(attempt: Attempt) -> bool:
    """May this attempt have taken effect although it did not succeed?"""
    if attempt.status in (None, "ok", "denied", "unfinished") or attempt.sent is False:
        return False
    if attempt.http_status is not None and attempt.error_class not in UNKNOWN_OUTCOME:
        return attempt.http_status in UNKNOWN_STATUSES
    return attempt.status == "timeout" or attempt.error_class in UNKNOWN_OUTCOME


@dataclass(slots=True)
class Write:
    """A write of unknown outcome. is_settled: a later equal call succeeded, or it was reconciled; decided: the kind of
    a decision that gave it up or handed it on."""

    operation: Operation
    attempt: Attempt
    is_settled: bool = False
    decided: str | None = None
    repeats: list[tuple[Operation, Attempt]] = field(default_factory=list)


def unknown_writes(subject: Subject) -> tuple[list[Write], set[str]]:
    """Return the declared writes of unknown outcome in order, and the tools of undeclared access of which a call ended
    so. repeats: equal calls that followed the last of equal writes
    before it was reconciled. Linear in events."""
    known: list[Write] = []
    undeclared: set[str] = set()
    open_by_key: dict[tuple[object, ...], list[Write]] = {}
    open_by_tool: dict[str, list[Write]] = {}
    about = _decisions(subject)
    for operation, attempt in subject.attempts:
        key = (operation.tool_name, subject.payload_key(attempt))
        for write in open_by_key.get(key, [])[-1:]:
            write.repeats.append((operation, attempt))
        if attempt.status == "ok":
            for write in open_by_key.pop(key, []):
                write.is_settled = True
            for tool_name in reconciled_by(subject, operation.tool_name):
                for write in open_by_tool.pop(tool_name, []):
                    write.is_settled = True
                    open_by_key.pop((tool_name, subject.payload_key(write.attempt)), None)
        if not is_unknown(attempt):
            continue
        access = subject.access(operation)
        if access is None:
            undeclared.add(operation.tool_name)
        elif access == "write":
            write = Write(operation, attempt, decided=about.get(operation.label))
            write.is_settled = write.decided == "reconcile"
            known.append(write)
            if not write.is_settled:
                open_by_key.setdefault(key, []).append(write)
                open_by_tool.setdefault(operation.tool_name, []).append(write)
    return known, undeclared


def reconciled_by(subject: Subject, tool_name: str) -> list[str]:
    """Return the tools whose unknown outcomes a read by this tool clears up."""
    found = subject.tool(tool_name).reconciles
    return [] if found is None else [found] if isinstance(found, str) else found


def _decisions(subject: Subject) -> dict[str, str]:
    """Label of an operation -> the weightiest decision about it; decisions about no call go under ''."""
    weights = {"reconcile": 4, "escalate": 3, "abort": 2, "fallback": 1}
    found: dict[str, str] = {}
    for operation in subject.operations:
        for step in operation.decisions:
            if weights.get(step.decision, 0) > weights.get(found.get(operation.label, ""), 0):
                found[operation.label] = step.decision
    loose = [e.decision for e in subject.trace.events if isinstance(e, Decision) and e.call_id is None]
    for operation in subject.operations:
        if operation.label not in found and "escalate" in loose:
            found[operation.label] = "escalate"
    return found
