"""The events of `goldentrace/1` as they are recorded or imported.

One Struct per event type, a union tagged on `type`. JSON values that goldentrace does not interpret (arguments,
results) stay `msgspec.Raw`: the bytes as they were written, so that integers of any length survive and nothing is
decoded twice. `ABSENT` is the Raw of a value that is not there; `null` is a value. Fields that a source knew and the
format has no place for go to `extra`. This module must not read, write or normalize anything.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw

FORMAT: Final = "goldentrace/1"
ABSENT: Final = Raw(b"")
MAIN_AGENT: Final = "main"

Nanoseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Of a clock: 64 bits are 292 years, and what is told from them fits a float."""
Origin: TypeAlias = Literal["model", "harness", "sdk", "transport"]
"""Who asked for a call: the model, the agent's own retry loop, the provider's SDK, or the HTTP transport."""
Access: TypeAlias = Literal["read", "write"]
Status: TypeAlias = Literal["ok", "error", "timeout", "cancelled", "denied", "unfinished"]
ErrorClass: TypeAlias = Literal[
    "timeout", "connect", "dns", "reset", "empty_reply", "partial_body", "protocol", "malformed_json", "schema",
    "rate_limited", "server_error", "bad_request", "auth", "not_found", "conflict", "payload_mismatch", "cancelled",
    "denied", "tool_error", "unknown",
]  # fmt: skip
"""One vocabulary for all sources."""
DecisionKind: TypeAlias = Literal["retry", "reconcile", "fallback", "abort", "escalate", "finish"]
Verdict: TypeAlias = Literal["approved", "denied"]
Outcome: TypeAlias = Literal["success", "partial", "aborted", "needs_human", "failed", "unknown"]
StopReason: TypeAlias = Literal[
    "final_answer", "user_cancelled", "provider_error", "tool_error", "approval_denied", "tool_loop", "call_limit",
    "attempt_limit", "turn_limit", "wall_clock_limit", "token_limit", "context_limit", "cost_limit", "execution_limit",
    "write_limit", "destructive_limit", "unknown",
]  # fmt: skip
"""A closed list; a source's own words go to `extra`."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens and cost of one model turn; absent is unknown, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="type",
):
    """What all events share.

    seq: the writer's order; ts: RFC 3339 UTC with microseconds; mono_ns: monotonic clock of the recording process in
    ns; turn: 1-based; agent: role or type with an ordinal where there are several, never a random id.
    """

    seq: int | None = None
    ts: str | None = None
    mono_ns: Nanoseconds | None = None
    turn: int | None = None
    agent: str = MAIN_AGENT
    extra: dict[str, Any] | None = None


class TraceStart(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="trace_start"):
    """First event. `states`: the decision kinds that this source can state, None means all."""

    format: str
    trace_id: str | None = None
    scenario_id: str | None = None
    seed: int | None = None
    source: str | None = None
    states: list[str] | None = None
    cwd: str | None = None
    home: str | None = None
    tmp: str | None = None
    attributes: dict[str, Any] | None = None


class ModelTurn(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="model_turn"):
    """One response of the model opens a turn. `input_call_ids`: the calls whose results were in the request."""

    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    input_call_ids: list[str] | None = None


class ToolCall(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="tool_call"):
    """One attempt of one call starts.

    args: any JSON; args_raw: the text as sent where it did not parse or is not canonical; attempt: 1-based;
    op_id: joins the attempts of an operation; parent: the call id that this call ran within.
    """

    call_id: str
    tool_name: str
    args: Raw = ABSENT
    args_raw: str | None = None
    attempt: int = 1
    op_id: str | None = None
    origin: Origin = "model"
    batch: str | int | None = None
    parent: str | None = None
    access: Access | None = None
    resource: str | None = None
    idempotency_key: str | None = None


class ToolResult(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="tool_result"):
    """One attempt ends. owed_ms: the wait that Retry-After asks for, in ms from receipt; sent: did the request
    leave?"""

    call_id: str
    status: Status
    attempt: int | None = None
    error_class: ErrorClass | None = None
    http_status: int | None = None
    owed_ms: float | None = None
    sent: bool | None = None
    result: Raw = ABSENT
    result_hash: str | None = None
    result_bytes: int | None = None


class Decision(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="decision"):
    """What the agent decided about a call (or about the run, without call_id). delay_ms: the wait that it asked for."""

    decision: DecisionKind
    call_id: str | None = None
    by: Origin | None = None
    reason: str | None = None
    delay_ms: float | None = None
    inferred: bool = False


class Approval(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="approval"):
    """A person or policy allowed or denied a call."""

    call_id: str
    verdict: Verdict
    by: str | None = None


class Message(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="message"):
    """Text of a role. Never compared; user and system text is where literals come from. Hidden reasoning never
    enters."""

    role: str
    text: str | None = None
    text_hash: str | None = None


class Effect(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="effect"):
    """A side effect as the tool's own ledger saw it."""

    name: str
    key: str | None = None
    value: Raw = ABSENT


class Limit(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="limit"):
    """An enforced stop condition fired: its name, the value reached and the maximum."""

    limit: str
    value: float | int | None = None
    max: float | int | None = None


class TraceEnd(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="trace_end"):
    """Last event. events: how many events stand before it; sha256: of all earlier bytes (recorder only); incomplete:
    why the recording is not whole, so that no verdict is passed on it."""

    outcome: Outcome
    stop_reason: StopReason
    events: int | None = None
    sha256: str | None = None
    incomplete: str | None = None


AnyEvent: TypeAlias = (
    TraceStart | ModelTurn | ToolCall | ToolResult | Decision | Approval | Message | Effect | Limit | TraceEnd
)
EVENT_TYPES: Final[dict[str, type[Event]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (TraceStart, ModelTurn, ToolCall, ToolResult, Decision, Approval, Message, Effect, Limit, TraceEnd)
}
DECISION_KINDS: Final = ("retry", "reconcile", "fallback", "abort", "escalate", "finish")
_CLASS_OF_STATUS: Final[dict[int, ErrorClass]] = {
    401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 409: "conflict", 429: "rate_limited",
}  # fmt: skip


def error_class_of_status(http_status: int) -> ErrorClass | None:
    """Return the error class that an HTTP status stands for, None below 400 (RFC 9110, section 15; RFC 6585)."""
    if http_status < 400:
        return None
    return _CLASS_OF_STATUS.get(http_status, "server_error" if http_status >= 500 else "bad_request")
