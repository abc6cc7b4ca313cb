"""pydantic-ai message histories (`all_messages_json()`): requests and responses made of parts.

A result is a `tool-return` part of the next request, or a `retry-prompt` part where the tool asked for another try; the
parts carry times.
"""

from functools import partial
from typing import Any, Final

from goldentrace.model.event import ABSENT, ErrorClass, Status, Usage
from goldentrace.sources import clock, dialect, envelope
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.shapes import (
    as_count,
    as_name,
    as_number,
    as_object,
    as_objects,
    as_text,
    as_word,
    text_of_parts,
)
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said, Turn

_CALLS: Final = frozenset({"tool-call", "builtin-tool-call"})
_RETURNS: Final = frozenset({"tool-return", "builtin-tool-return"})
_STATUS: Final[dict[Any, Status]] = {"success": "ok", "failed": "error", "retried": "error", "denied": "denied"}


def items(message: Message) -> list[Item]:
    """Return the items of one request or response."""
    ts = clock.utc(message.get("timestamp"))
    is_response = message.get("kind") == "response"
    found: list[Item] = [_turn(message, ts)] if is_response else []
    instructions = as_text(message.get("instructions"))
    if instructions:
        found.append(Said("system", instructions, ts))
    for part in as_objects(message.get("parts")):
        found += _part(part, ts, is_response=is_response)
    return found


def is_message(record: Message) -> bool:
    """Whether an object is a request or a response of pydantic-ai."""
    return record.get("kind") in ("request", "response") and isinstance(record.get("parts"), list)


def _turn(message: Message, ts: str | None) -> Turn:
    counts = as_object(message.get("usage"))
    usage = Usage(
        input_tokens=as_count(counts.get("input_tokens", counts.get("request_tokens"))),
        output_tokens=as_count(counts.get("output_tokens", counts.get("response_tokens"))),
        cached_tokens=as_count(counts.get("cache_read_tokens")),
        cost_usd=as_number(counts.get("cost")),
    )
    extra = {"provider": message.get("provider_name"), "response_id": message.get("provider_response_id")}
    reason = as_text(message.get("finish_reason"))
    return Turn(as_text(message.get("model_name")), reason, None if usage == Usage() else usage, ts=ts, extra=extra)


def _part(part: Message, message_ts: str | None, *, is_response: bool) -> list[Item]:
    kind = as_word(part.get("part_kind"))
    ts = clock.utc(part.get("timestamp")) or message_ts
    if kind in _CALLS:
        return [_call(part, ts)]
    if kind in _RETURNS:
        return [_return(part, ts, is_inline=is_response)]
    if kind == "retry-prompt" and as_text(part.get("tool_name")):
        content = part.get("content", ABSENT)
        reason: ErrorClass = "schema" if isinstance(content, list) else "tool_error"  # a list holds validation errors
        return [_answer(part, content, "error", reason, ts)]
    if kind in ("text", "user-prompt", "system-prompt", "retry-prompt"):
        content = part.get("content")
        role = "assistant" if is_response else "system" if kind == "system-prompt" else "user"
        text = text_of_parts(content)
        return [Said(role, text, ts)] if text else []
    if kind in ("thinking", "compaction"):
        return []
    return [Remark(f"a part of kind {kind} was left out")]


def _call(part: Message, ts: str | None) -> Called:
    args = part.get("args")
    name, call_id = as_text(part.get("tool_name")), as_name(part.get("tool_call_id"))
    extra = {
        "tool_kind": part.get("tool_kind"),
        "part_kind": "builtin" if part.get("part_kind") != "tool-call" else None,
    }
    if isinstance(args, str):
        return Called(name, call_id, args_text=args, ts=ts, extra=extra)
    return Called(name, call_id, {} if args is None else args, ts=ts, extra=extra)


def _return(part: Message, ts: str | None, *, is_inline: bool) -> Answered:
    outcome = part.get("outcome")
    status = _STATUS.get(outcome, "ok") if isinstance(outcome, str) else "ok"
    reason: ErrorClass | None = {"error": "tool_error", "denied": "denied"}.get(status)  # type: ignore[assignment]
    return _answer(part, part.get("content", ABSENT), status, reason, ts, is_inline=is_inline)


def _answer(
    part: Message, value: Any, status: Status, reason: ErrorClass | None, ts: str | None, *, is_inline: bool = False
) -> Answered:
    extra = {"retry": part.get("retry"), "metadata": part.get("metadata")}
    name, call_id = as_text(part.get("tool_name")), as_name(part.get("tool_call_id"))
    return Answered(call_id, value, status, reason, name, is_inline=is_inline, ts=ts, extra=extra)


DIALECT: Final = Dialect(
    "pydantic-ai", items, is_message, is_message,
    absent={"times": "no part carries a timestamp", "usage": "no response carries usage"},
)  # fmt: skip

SOURCE: Final = Source(
    "pydantic-ai", "pydantic-ai message histories", partial(dialect.matches, DIALECT),
    partial(envelope.read_messages, DIALECT), notes="a call's time is that of the response which asked for it",
)  # fmt: skip
