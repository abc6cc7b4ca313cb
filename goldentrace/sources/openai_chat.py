"""OpenAI Chat Completions: message lists, request and response logs, streamed chunks; also everything that speaks it.

Calls are `tool_calls` (older: `function_call`) of an assistant message, results are messages of the role `tool` (older:
`function`). The format has no flag for a failed tool, so a result is `ok` unless a dump adds one.
"""

from functools import partial
from typing import Any, Final

from goldentrace.model.event import ABSENT, Usage
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
from goldentrace.sources.transcript import Answered, Called, Item, Said, Turn, rest, result_value

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
HIDDEN: Final = frozenset({
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "thinking", "thinking_blocks", "thoughts",
    "provider_specific_fields", "extra_content",
})  # fmt: skip
"""Where the services that speak this format put reasoning: dropped, it is never recorded."""
_READ: Final = HIDDEN | {
    "role", "content", "tool_calls", "function_call", "tool_call_id", "name", "timestamp", "model", "finish_reason",
    "usage", "refusal", "is_error", "error", "status", "audio",
}  # fmt: skip
FOREIGN_BLOCKS: Final = frozenset({
    "tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result",
    "redacted_thinking",
})  # fmt: skip


def items(message: Message) -> list[Item]:
    """Return the items of one message. Raises: ValueError where it holds another provider's content blocks."""
    role = message.get("role")
    content = message.get("content")
    ts = clock.utc(message.get("timestamp"))
    if isinstance(content, list) and any(as_word(part.get("type")) in FOREIGN_BLOCKS for part in as_objects(content)):
        raise ValueError("holds content blocks of Anthropic Messages")
    extra = rest(message, _READ)
    if role in ("tool", "function"):
        is_error = message.get("is_error") is True or message.get("error") is True or message.get("status") == "error"
        return [
            Answered(
                as_name(message.get("tool_call_id")), result_value(content), "error" if is_error else "ok",
                "tool_error" if is_error else None, as_text(message.get("name")), ts=ts, extra=extra,
            )
        ]  # fmt: skip
    text = text_of_parts(content)
    if role != "assistant":
        return [Said(role if isinstance(role, str) else "user", text, ts, extra)]
    turn = Turn(
        as_text(message.get("model")), as_text(message.get("finish_reason")), usage_of(message.get("usage")), ts=ts,
        extra=extra,
    )  # fmt: skip
    said = text or as_text(message.get("refusal")) or as_text(as_object(message.get("audio")).get("transcript")) or ""
    return [turn, *([Said("assistant", said, ts)] if said else []), *_calls(message, ts)]


def usage_of(usage: Any) -> Usage | None:
    """Return the usage of one response, None where it counts nothing."""
    counts = as_object(usage)
    found = Usage(
        input_tokens=as_count(counts.get("prompt_tokens")),
        output_tokens=as_count(counts.get("completion_tokens")),
        cached_tokens=as_count(as_object(counts.get("prompt_tokens_details")).get("cached_tokens")),
    )
    return None if found == Usage() else found


def response_items(response: Message) -> list[Item]:
    """Return what a chat.completion adds to the conversation: its first choice."""
    choices = as_objects(response.get("choices"))
    if not choices:
        return []
    message = as_object(choices[0].get("message"))
    ts = clock.utc_from_epoch(response.get("created"), per_second=1)
    read: list[Item] = items({**message, "role": "assistant"})
    extra = {"other_choices": len(choices) - 1} if len(choices) > 1 else {}
    reason = as_text(choices[0].get("finish_reason"))
    extra |= rest(message, _READ)
    turn = Turn(as_text(response.get("model")), reason, usage_of(response.get("usage")), ts=ts, extra=extra)
    return [turn, *read[1:]]


def request_items(request: Message) -> list[Item]:
    """Return the items of the whole history that a request sends."""
    return [item for message in as_objects(request.get("messages")) for item in items(message)]


def is_message(record: Message) -> bool:
    """Whether an object has a role of this format and content or calls."""
    is_one = as_word(record.get("role")) in ROLES and "type" not in record
    return is_one and not record.keys().isdisjoint(("content", "tool_calls", "function_call"))


def is_certain(record: Message) -> bool:
    """Whether only this format writes the object so."""
    if is_response(record) or is_event(record):
        return True
    calls = as_objects(record.get("tool_calls"))
    return (
        (record.get("role") in ("tool", "function") and ("tool_call_id" in record or record.get("role") == "function"))
        or any(isinstance(call.get("function"), dict) for call in calls)
        or isinstance(record.get("function_call"), dict)
    )


def is_response(record: Message) -> bool:
    """Whether an object is a chat.completion."""
    return any(isinstance(choice.get("message"), dict) for choice in as_objects(record.get("choices")))


def is_event(record: Message) -> bool:
    """Whether an object is a chat.completion.chunk."""
    return record.get("object") == "chat.completion.chunk" or any(
        isinstance(choice.get("delta"), dict) for choice in as_objects(record.get("choices"))
    )


def begins_stream(event: Message, before: Message) -> bool:
    """Whether a chunk is of another response than the one before it."""
    return bool(event.get("id")) and bool(before.get("id")) and event.get("id") != before.get("id")


def assemble(chunks: list[Message]) -> Message:
    """Return the chat.completion that chunks add up to: text and arguments are concatenated, calls told by `index`."""
    whole: dict[str, Any] = {}
    content: list[str] = []
    refusal: list[str] = []
    calls: dict[Any, dict[str, Any]] = {}
    legacy: dict[str, Any] = {}
    finish_reason = None
    for chunk in chunks:
        for key in ("id", "model", "created", "usage"):
            if chunk.get(key):
                whole[key] = chunk[key]
        choice = next((each for each in as_objects(chunk.get("choices")) if not each.get("index")), {})
        finish_reason = choice.get("finish_reason") or finish_reason
        delta = as_object(choice.get("delta"))
        content.append(text_of_parts(delta.get("content")))
        refusal.append(as_text(delta.get("refusal")) or "")
        for part in as_objects(delta.get("tool_calls")):
            _merge(calls.setdefault(_slot(part, calls), {"type": "function"}), part)
        if isinstance(delta.get("function_call"), dict):
            _merge(legacy, {"function": delta["function_call"]})
    message: dict[str, Any] = {"role": "assistant", "content": "".join(content), "refusal": "".join(refusal)}
    if calls:
        message["tool_calls"] = list(calls.values())
    if legacy:
        message["function_call"] = legacy["function"]
    return {**whole, "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}


def _slot(part: Message, calls: dict[Any, Any]) -> Any:
    """Which call a part belongs to: its index; without one (some services) a new id begins a new call."""
    index = part.get("index")
    if isinstance(index, int):
        return index
    if part.get("id") or not calls:
        return ("unnumbered", len(calls))
    return next(reversed(calls))


def _merge(call: dict[str, Any], part: Message) -> None:
    if part.get("id") and not call.get("id"):
        call["id"] = part["id"]
    function = call.setdefault("function", {})
    new = as_object(part.get("function"))
    if new.get("name") and not function.get("name"):
        function["name"] = new["name"]
    piece = new.get("arguments")
    if isinstance(piece, str):
        held = function.get("arguments")
        function["arguments"] = (held if isinstance(held, str) else "") + piece
    elif piece is not None:
        function["arguments"] = piece


def _calls(message: Message, ts: str | None) -> list[Called]:
    called = [_call(each, ts) for each in as_list(message.get("tool_calls"))]
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and not called:
        called.append(_call({"function": legacy}, ts))
    return called


def _call(call: Any, ts: str | None) -> Called:
    written = as_object(call)
    custom = written.get("custom")
    if isinstance(custom, dict):  # a tool with free text as its input
        return Called(as_text(custom.get("name")), as_name(written.get("id")), custom.get("input"), ts=ts)
    function = written.get("function") if isinstance(written.get("function"), dict) else written
    arguments = as_object(function).get("arguments", ABSENT)
    name, call_id = as_text(as_object(function).get("name")), as_name(written.get("id"))
    extra = rest(written, frozenset({"id", "type", "function", "name", "arguments", "index"}))
    if isinstance(arguments, str):
        return Called(name, call_id, args_text=arguments, ts=ts, extra=extra)
    return Called(name, call_id, {} if arguments is None else arguments, ts=ts, extra=extra)


DIALECT: Final = Dialect(
    "openai-chat", items, is_message, is_certain, request_items=request_items, response_items=response_items,
    is_response=is_response, is_event=is_event, begins_stream=begins_stream, assemble=assemble,
    absent={
        "times": "Chat Completions messages carry no clock", "usage": "only responses carry usage",
        "status": "the format has no flag for a failed tool",
    },
)  # fmt: skip

SOURCE: Final = Source(
    "openai-chat", "OpenAI Chat Completions: messages, requests and responses, streamed chunks",
    partial(dialect.matches, DIALECT), partial(envelope.read_messages, DIALECT), partial(dialect.is_plain, DIALECT),
    notes="no clock, no failed-tool flag; message lists that hold text only are read as this format",
)  # fmt: skip
