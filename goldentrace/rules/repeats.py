"""Repeats: one finding for all calls that repeat one another, and what kind of repeat it is.

Shared by the rules about repeats, so that they point in the same way: at the first call, and at the repeats as a range.
The kind (idempotent read, side effect, error repeat, unclassified) helps a reader and decides nothing.
"""

from collections.abc import Sequence

from goldentrace.model.finding import Finding
from goldentrace.model.profile import Severity
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import finding
from goldentrace.rules.subject import Subject

TRANSIENT = frozenset({
    "timeout", "connect", "dns", "reset", "empty_reply", "partial_body", "protocol", "malformed_json", "rate_limited",
    "server_error", "conflict", "cancelled",
})  # fmt: skip
"""Errors after which the same call may well succeed (RFC 9110, sections 15.5.9 and 15.6; RFC 6585, section 4)."""


def repeat(
    code: str,
    subject: Subject,
    first: Ask,
    repeats: Sequence[Ask],
    what: str,
    *,
    claims: Sequence[Ask] | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return one finding about calls that repeat a first one, and claim them.

    repeats: in order, at least one; what: a clause that follows the names; claims: the calls that are spoken for,
    default `repeats`.
    """
    for ask in repeats if claims is None else claims:
        subject.claimed[ask.call_index] = code
    shown = [first, *repeats] if len(repeats) <= 2 else [first, repeats[0], repeats[-1]]
    if len(repeats) == 1:
        who = f"{repeats[0].label} repeats {first.label}"
    else:
        who = f"{repeats[0].label} to {repeats[-1].label}, {len(repeats)} calls, repeat {first.label}"
    return finding(
        code, f"{who}: {what} [{kind_of(subject, repeats[-1])}]", lines=[ask.line for ask in shown],
        labels=[ask.label for ask in shown], tool_name=first.tool_name, count=len(repeats), severity=severity,
    )  # fmt: skip


def kind_of(subject: Subject, ask: Ask) -> str:
    """Return what kind of repeat a call is, for a reader."""
    access = subject.access(ask.operation)
    if not ask.is_ok:
        return "error repeat"
    if access == "write":
        return "side effect"
    return "idempotent read" if access == "read" else "unclassified"


def is_free(subject: Subject, ask: Ask) -> bool:
    """Has no rule spoken about this call yet, and may its tool's calls be judged as repeats at all?"""
    return ask.call_index not in subject.claimed and not subject.is_polling(ask.tool_name)
