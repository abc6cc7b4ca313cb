"""Anthropic Messages: message lists, requests and responses, streamed events.

A call is a `tool_use` block of the assistant, its result a `tool_result` block of the next user message, which states
failure in `is_error`. Tools that Anthropic runs (`server_tool_use`, `mcp_tool_use`) have their result in the message of
the assistant itself. Thinking is dropped.
"""

from functools import partial
from typing import Any, Final

from goldentrace.model.event import ABSENT, ErrorClass, Usage
from goldentrace.sources import clock, dialect, envelope
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.shapes import (
    as_count,
    as_list,
    as_name,
    as_object,
    as_objects,
    as_text,
    as_word,
    text_of_parts,
)
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said, Turn, rest, result_value

CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
EVENTS: Final = frozenset({
    "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta",
    "content_block_stop",
})  # fmt: skip
HIDDEN: Final = frozenset({"thinking", "redacted_thinking", "compaction"})
ERROR_CLASSES: Final[dict[str, ErrorClass]] = {
    "too_many_requests": "rate_limited", "unavailable": "server_error", "invalid_tool_input": "bad_request",
    "query_too_long": "bad_request", "execution_time_exceeded": "timeout", "url_not_accessible": "connect",
    "url_not_allowed": "denied", "file_not_found": "not_found",
}  # fmt: skip
"""error_code of the tools that Anthropic runs (API reference of web search, web fetch and code execution)."""
_USE_KEYS: Final = frozenset({"id", "type", "name", "input", "cache_control"})
_RESULT_KEYS: Final = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})


def items(message: Message) -> list[Item]:
    """Return the items of one message."""
    role, content = message.get("role"), message.get("content")
    ts = clock.utc(message.get("timestamp"))
    is_model = role == "assistant"
    found: list[Item] = []
    if is_model:
        found.append(_turn(message, ts))
    if isinstance(content, str):
        return [*found, Said(role if isinstance(role, str) else "user", content, ts)]
    texts: list[str] = []
    others: list[str] = []
    for block in as_list(content):
        kind = as_word(as_object(block).get("type"))
        if isinstance(block, str) or kind == "text":
            texts.append(block if isinstance(block, str) else (as_text(block.get("text")) or ""))
        elif kind in CALLS:
            found += [*_said(role, texts, ts), _call(block, ts)]
        elif kind.endswith("tool_result"):
            found += [*_said(role, texts, ts), _result(block, ts, is_inline=is_model)]
        elif kind not in HIDDEN:
            others.append(kind)
    found += _said(role, texts, ts)
    return [*found, Remark(f"content of type {others[0]} has no text and was left out")] if others else found


def response_items(response: Message) -> list[Item]:
    """Return what a response adds to the conversation."""
    return items({**response, "role": "assistant"})


def request_items(request: Message) -> list[Item]:
    """Return the items of the history that a request sends: its system prompt, then its messages."""
    system = text_of_parts(request.get("system"))
    told: list[Item] = [Said("system", system)] if system else []
    return [*told, *(item for message in as_objects(request.get("messages")) for item in items(message))]


def usage_of(usage: Any) -> Usage | None:
    """Return the usage of one response, None where it counts nothing.

    Anthropic's input_tokens leave out what was read from or written to the cache; here, as with other providers,
    input_tokens are all of them.
    """
    counts = as_object(usage)
    fresh = as_count(counts.get("input_tokens"))
    cached = as_count(counts.get("cache_read_input_tokens"))
    written = as_count(counts.get("cache_creation_input_tokens"))
    total = None if fresh is None else fresh + (cached or 0) + (written or 0)
    found = Usage(input_tokens=total, output_tokens=as_count(counts.get("output_tokens")), cached_tokens=cached)
    return None if found == Usage() else found


def is_message(record: Message) -> bool:
    """Whether an object can be a message."""
    has_content = isinstance(record.get("content"), (str, list))
    is_typed_right = record.get("type", "message") == "message"
    return has_content and is_typed_right and record.get("role") in ("user", "assistant", "system")


def is_certain(record: Message) -> bool:
    """Whether only this format writes the object so."""
    if is_response(record) or is_event(record):
        return True
    kinds = [as_word(part.get("type")) for part in as_objects(record.get("content"))]
    return is_message(record) and any(kind in CALLS or kind.endswith("tool_result") for kind in kinds)


def is_response(record: Message) -> bool:
    """Whether an object is a whole response."""
    return record.get("type") == "message" and "stop_reason" in record and isinstance(record.get("content"), list)


def is_event(record: Message) -> bool:
    """Whether an object is a part of a streamed response."""
    return as_word(record.get("type")) in EVENTS


def begins_stream(event: Message, _before: Message) -> bool:
    """Whether an event opens another response."""
    return event.get("type") == "message_start"


def assemble(events: list[Message]) -> Message | None:
    """Return the message that events add up to; the pieces of a tool's input are kept as the text they were."""
    message: Message = {}
    blocks: dict[Any, Message] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(as_object(event.get("message")))
        elif kind == "content_block_start":
            blocks[str(event.get("index"))] = dict(as_object(event.get("content_block")))
        elif kind == "content_block_delta":
            _extend(blocks.setdefault(str(event.get("index")), {}), as_object(event.get("delta")))
        elif kind == "message_delta":
            message |= as_object(event.get("delta"))
            message["usage"] = {**as_object(message.get("usage")), **as_object(event.get("usage"))}
        elif kind == "error":
            message["error"] = event.get("error")
    if not message and not blocks:
        return None
    return {"type": "message", "stop_reason": None, **message, "content": list(blocks.values())}


def _extend(block: Message, delta: Message) -> None:
    if isinstance(delta.get("text"), str):
        block["text"] = (as_text(block.get("text")) or "") + delta["text"]
    piece = delta.get("partial_json")
    if isinstance(piece, str) and piece:
        held = block.get("input")
        block["input"] = (held if isinstance(held, str) else "") + piece


def _turn(message: Message, ts: str | None) -> Turn:
    extra = {"stop_details": message.get("stop_details"), "container": message.get("container")}
    return Turn(
        as_text(message.get("model")), as_text(message.get("stop_reason")), usage_of(message.get("usage")), ts=ts,
        extra=extra,
    )  # fmt: skip


def _said(role: Any, texts: list[str], ts: str | None) -> list[Item]:
    """The text so far, once: emptied, so that text and calls keep their order."""
    text = "".join(texts) if role == "assistant" else "\n".join(texts)
    texts.clear()
    return [Said(role if isinstance(role, str) else "user", text, ts)] if text else []


def _call(block: Message, ts: str | None) -> Called:
    name, call_id = as_text(block.get("name")), as_name(block.get("id"))
    kind = block.get("type")
    extra = {**rest(block, _USE_KEYS), "block": kind if kind != "tool_use" else None}
    given = block.get("input", ABSENT)
    if isinstance(given, str):
        return Called(name, call_id, args_text=given, ts=ts, extra=extra)
    return Called(name, call_id, given, ts=ts, extra=extra)


def _result(block: Message, ts: str | None, *, is_inline: bool) -> Answered:
    content = block.get("content", ABSENT)
    inner = as_object(content)
    code = inner.get("error_code")
    has_failed = block.get("is_error") is True or isinstance(code, str) or inner.get("return_code") not in (None, 0)
    error_class = ERROR_CLASSES.get(code, "tool_error") if isinstance(code, str) else "tool_error"
    return Answered(
        as_name(block.get("tool_use_id")), result_value(content), "error" if has_failed else "ok",
        error_class if has_failed else None, is_inline=is_inline, ts=ts, extra=rest(block, _RESULT_KEYS),
    )  # fmt: skip


DIALECT: Final = Dialect(
    "anthropic-messages", items, is_message, is_certain, request_items=request_items, response_items=response_items,
    is_response=is_response, is_event=is_event, begins_stream=begins_stream, assemble=assemble,
    absent={"times": "Messages carry no clock", "usage": "only responses carry usage"},
)  # fmt: skip

SOURCE: Final = Source(
    "anthropic-messages", "Anthropic Messages: message lists, requests and responses, streamed events",
    partial(dialect.matches, DIALECT), partial(envelope.read_messages, DIALECT), notes="no clock",
)  # fmt: skip
