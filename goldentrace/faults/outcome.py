"""What a call came to, judged from the server's side: its fault, its answer, what was sent. Pure."""

from typing import Final

from goldentrace.faults.call import Call, Outcome
from goldentrace.faults.connection import Sent
from goldentrace.faults.kinds import KINDS
from goldentrace.model.event import ErrorClass, Status

_WHOLE: Final = frozenset(
    ("none", "slow", "drip", "status", "auth_expired", "denied", "schema_drift", "truncated_page", "duplicate_header",
     "slow_close", "stale_keepalive", "duplicate_result", "out_of_order")
)  # fmt: skip
"""Faults after which the client has a body that can be read."""
_HEADLESS: Final = frozenset(("empty_reply", "garbage"))


def outcome(call: Call, sent: Sent, *, is_http: bool) -> Outcome:
    """Return what a call came to. is_http: does the answer's status stand on the wire? (Not for a failure inside a
    result.)"""
    answer = call.answer
    status, error_class = _status(call, sent)
    fault = call.step.fault if answer is None or not answer.is_refusal else "none"
    is_headed = (
        answer is not None and sent.bytes_sent > 0 and fault not in _HEADLESS and call.step.phase != "mid_headers"
    )
    is_whole = answer is not None and fault in _WHOLE and not sent.is_gone and not sent.is_stopped
    return Outcome(
        status,
        error_class,
        http_status=answer.status if answer is not None and is_headed and is_http else None,
        has_result=is_whole,
        result=answer.value if answer is not None and is_whole else None,
        bytes_sent=sent.bytes_sent,
        is_gone=sent.is_gone,
    )


def _status(call: Call, sent: Sent) -> tuple[Status, ErrorClass | None]:
    answer = call.answer
    if call.is_cancelled:
        return "cancelled", "cancelled"
    if answer is not None and answer.is_refusal:
        return "error", answer.error_class
    if sent.is_stopped:
        return "unfinished", None
    fault = call.step.fault
    kind = KINDS[fault]
    if kind.status is not None and fault not in ("status", "denied", "auth_expired"):
        return kind.status, kind.error_class
    if sent.is_gone:
        return ("timeout", "timeout") if fault == "slow" else ("cancelled", "cancelled")
    if answer is None:
        return "cancelled", "cancelled"  # a slow call whose client left before it took effect
    if not answer.is_error:
        return "ok", None
    return ("denied" if fault == "denied" and not call.is_replay else "error"), answer.error_class
