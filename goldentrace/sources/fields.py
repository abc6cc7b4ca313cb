"""What the methods of TraceBuilder take beside their own arguments, by kind of event, and how arguments are read."""

from collections.abc import Mapping
from typing import Any, TypedDict

from msgspec import Raw

from goldentrace.codec.canonical import MAX_DEPTH, JsonError, decode, encode_raw
from goldentrace.model.event import ABSENT, Access, ErrorClass, Origin, Usage


class Common(TypedDict, total=False):
    """Of every event. ts: as clock.utc returns it; agent: default main; extra: what has no field of its own."""

    ts: str | None
    agent: str
    extra: Mapping[str, Any] | None


class TurnFields(Common, total=False):
    """input_call_ids: calls whose results the request carried and no earlier one did, where the request was seen."""

    model: str | None
    finish_reason: str | None
    usage: Usage | None
    input_call_ids: list[str] | None


class CallFields(Common, total=False):
    """turn: default the agent's last; the others as in ToolCall."""

    turn: int | None
    attempt: int
    op_id: str | None
    origin: Origin
    batch: str | int | None
    parent: str | None
    access: Access | None
    resource: str | None
    idempotency_key: str | None


class ResultFields(Common, total=False):
    """turn, attempt and agent: default those of the call; the others as in ToolResult."""

    turn: int | None
    attempt: int | None
    error_class: ErrorClass | None
    http_status: int | None
    owed_ms: float | None
    sent: bool | None
    result_bytes: int | None


class DecisionFields(Common, total=False):
    call_id: str | None
    by: Origin | None
    reason: str | None
    delay_ms: float | None


class StartFields(TypedDict, total=False):
    """trace_id: unique within the file; scenario_id: the task, where the file knows one."""

    trace_id: str | None
    scenario_id: str | None
    seed: int | None
    cwd: str | None
    home: str | None
    ts: str | None


def read_arguments(text: str) -> tuple[Raw, str | None]:
    """Return (args, args_raw) of arguments that were sent as text.

    JSON on one line is kept byte for byte; JSON over lines is written compactly beside its text; nothing at all is how
    several providers write no arguments, `{}`; what does not parse (truncated arguments, too many levels) has its text
    only.
    """
    if not text.strip():
        return Raw(b"{}"), text
    try:
        value = decode(text, MAX_DEPTH - 1)  # the line of the call is a level
    except JsonError:
        return ABSENT, text
    if "\n" in text or "\r" in text:
        return encode_raw(value), text
    try:
        return Raw(text.encode("utf-8")), None
    except UnicodeEncodeError:  # a lone surrogate
        return encode_raw(value), None
