"""The table of change codes: what a golden and a candidate may differ in, each under one stable code.

One place, so that the differ, the renderers, the profile's `compare.severities` and `explain` agree. A code is never
reused or renamed once released. This module must not decide anything: where a change is graded by more than its code
(a move, a batching, N runs), the differ does it and `severity` is what stands where nothing else is known.
"""

from typing import Final

import msgspec

from goldentrace.model.profile import Severity


class Code(msgspec.Struct, frozen=True):
    """One kind of change.

    code: `GT` and three digits; name: its words, joined by dashes; severity: the default, which a profile may change;
    summary: one clause for lists.
    """

    code: str
    name: str
    severity: Severity
    summary: str


_TABLE: Final = (
    Code("GT101", "argument-changed", "error", "an argument of a call has another value"),
    Code("GT102", "call-added", "error", "a call that the golden does not have"),
    Code("GT103", "call-removed", "error", "a call of the golden did not happen"),
    Code("GT104", "call-moved", "error", "a call happened at another place in the order; a warning among reads"),
    Code("GT105", "tool-changed", "error", "another tool was called at this place"),
    Code("GT106", "parallel-reordered", "error", "calls of one batch came in another order (strict order only)"),
    Code("GT107", "batching-changed", "warning", "calls became parallel or serial, or came in other turns"),
    Code("GT108", "result-changed", "error", "a result differs, where the profile compares results"),
    Code("GT109", "identity-changed", "error", "an id comes from elsewhere, or two ids that were one differ"),
    Code("GT201", "attempts-changed", "error", "a retry was added or is missing"),
    Code("GT202", "decision-changed", "error", "another decision was made at this place"),
    Code("GT203", "decision-missing", "error", "a decision of the golden was not made"),
    Code("GT204", "decision-added", "error", "a decision that the golden does not have"),
    Code("GT205", "approval-changed", "error", "a call was approved or denied otherwise, or without being asked"),
    Code("GT206", "hedged", "error", "an attempt started before the one before it had ended"),
    Code("GT301", "status-changed", "error", "an attempt ended with another status"),
    Code("GT302", "error-changed", "error", "an attempt failed with another error class or HTTP status"),
    Code("GT401", "backoff-out-of-band", "error", "a wait before a retry lies outside its allowed interval"),
    Code("GT402", "retry-after-violated", "error", "a retry came before the server's Retry-After had passed"),
    Code("GT403", "backoff-not-comparable", "warning", "a wait could not be compared"),
    Code("GT404", "backoff-shape", "error", "the waits of a call do not grow, or pass their cap"),
    Code("GT501", "outcome-changed", "error", "the run ended with another outcome"),
    Code("GT502", "stop-reason-changed", "error", "the run stopped for another reason"),
    Code("GT503", "limit-changed", "error", "another limit stopped the run, or at another call"),
    Code("GT504", "effects-changed", "error", "the tools' own ledger shows other side effects"),
    Code("GT602", "agent-changed", "error", "another agent made the call"),
    Code("GT701", "baseline-shift", "error", "a metric over several runs moved beyond chance"),
    Code("GT702", "new-variant", "warning", "a sequence of calls that no baseline run showed"),
    Code("GT703", "rate-shift", "error", "a rate over several runs moved beyond chance"),
)

CODES: Final[dict[str, Code]] = {entry.code: entry for entry in _TABLE}
"""Every change code, in order."""
