"""Anthropic Messages: `POST /v1/messages`, streaming and not.

Field names and the order of events: anthropic-sdk-python `types`, and what its stream helper accepts. `input_tokens`
leaves the cached ones out here. Arguments that are no object can only be streamed; in a whole message they are a string
where an object belongs, which is what such a defect looks like. Thinking blocks are dropped wherever they are met.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

from goldentrace.codec.canonical import decode, encode
from goldentrace.replay.conversation import Call, Finish, Message, ModelRequest, Reply, Result, TokenUsage, object_of
from goldentrace.replay.script import ProviderError
from goldentrace.replay.wire.wire import (
    PartKind,
    RequestRefused,
    StreamPart,
    Wire,
    dumps,
    need_flag,
    need_list,
    need_model,
    need_object,
    need_text,
    split_text,
    text_of,
)

VERSION_HEADER: Final = "anthropic-version"
_TYPES: Final = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip
_MESSAGES: Final = {
    401: "invalid x-api-key",
    429: "This request would exceed your rate limit.",
    500: "Internal server error",
    529: "Overloaded",
}
_STOP_REASONS: Final[dict[Finish, str]] = {
    "stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal",
}  # fmt: skip
_FINISHES: Final[dict[Any, Finish]] = {
    **{reason: finish for finish, reason in _STOP_REASONS.items()},
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "model_context_window_exceeded": "length",
}


def read_request(body: Any, headers: dict[str, str], is_strict: bool) -> ModelRequest:  # noqa: FBT001 (one shape for all wires)
    """Return the request. Raises: RequestRefused, as the API would refuse it."""
    fields = need_object(body)
    if is_strict and VERSION_HEADER not in headers:
        raise RequestRefused(f"{VERSION_HEADER}: header is required")
    model = need_model(fields)
    max_tokens = fields.get("max_tokens")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise RequestRefused("max_tokens: Field required" if max_tokens is None else "max_tokens: must be at least 1")
    messages: list[Message] = []
    for index, message in enumerate(need_list(fields, "messages", is_needed=True)):
        for read in _read_message(message, f"messages.{index}", is_strict=is_strict):
            _append_merged(messages, read)
    if is_strict:
        _check_pairs(messages)
    system = text_of(fields.get("system"), "system", ("text",))
    choice = fields.get("tool_choice")
    return ModelRequest(
        model=model,
        messages=((Message("system", system),) if system else ()) + tuple(messages),
        tool_names=tuple(
            need_text(tool.get("name"), f"tools.{index}.name") for index, tool in enumerate(need_list(fields, "tools"))
        ),
        is_stream=need_flag(fields, "stream"),
        is_parallel=not (isinstance(choice, dict) and choice.get("disable_parallel_tool_use") is True),
    )


def _read_message(message: dict[str, Any], param: str, *, is_strict: bool) -> list[Message]:
    role = message.get("role")
    if role not in ("user", "assistant"):
        raise RequestRefused(f"{param}.role: Input should be 'user' or 'assistant'")
    content = message.get("content")
    if content is None:
        raise RequestRefused(f"{param}.content: Field required")
    text = text_of(
        [part for part in content if not _is_tool_part(part)] if isinstance(content, list) else content,
        f"{param}.content", ("text",),
    )  # fmt: skip
    blocks = [part for part in content if _is_tool_part(part)] if isinstance(content, list) else []
    if role == "assistant":
        uses = [_read_use(part, param, is_strict=is_strict) for part in blocks if part["type"] == "tool_use"]
        return [Message("assistant", text, tuple(uses))]
    results = tuple(_read_result(part, param, is_strict=is_strict) for part in blocks if part["type"] == "tool_result")
    found = [Message("tool", results=results)] if results else []
    return [*found, Message("user", text)] if text or not found else found


def _append_merged(messages: list[Message], message: Message) -> None:
    """Add a message; the API takes consecutive ones of a role as one."""
    last = messages[-1] if messages else None
    if last is None or last.role != message.role or message.role == "user":
        messages.append(message)
        return
    text = "\n".join(part for part in (last.text, message.text) if part)
    messages[-1] = Message(message.role, text, last.calls + message.calls, last.results + message.results)


def _is_tool_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result")


def _read_use(part: dict[str, Any], param: str, *, is_strict: bool) -> Call:
    call_id = part.get("id")
    if is_strict or call_id is not None:
        call_id = need_text(call_id, f"{param}.content.tool_use.id")
    value = part.get("input")
    if is_strict and not isinstance(value, dict):
        raise RequestRefused(f"{param}.content.tool_use.input: Input should be a valid dictionary")
    name = need_text(part.get("name"), f"{param}.content.tool_use.name")
    return Call(name, _arguments_of(value), call_id or None)


def _read_result(part: dict[str, Any], param: str, *, is_strict: bool) -> Result:
    call_id = part.get("tool_use_id")
    if is_strict or call_id is not None:
        call_id = need_text(call_id, f"{param}.content.tool_result.tool_use_id")
    is_error = part.get("is_error")
    text = text_of(part.get("content"), f"{param}.content.tool_result.content", ("text",))
    return Result(call_id or "", text, is_error if isinstance(is_error, bool) else None)


def _check_pairs(messages: list[Message]) -> None:
    """Every tool_use is answered in the very next message, once, and nothing else is."""
    if messages[0].role == "assistant":
        raise RequestRefused('messages: first message must use the "user" role')
    for index, message in enumerate(messages):
        before = [call.call_id for call in messages[index - 1].calls] if index else []
        answers = [result.call_id for result in message.results]
        for call_id in answers:
            if call_id not in before:
                raise RequestRefused(
                    f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if answers.count(call_id) > before.count(call_id):
                raise RequestRefused(
                    f"messages.{index}: each tool_use must have a single result. Found multiple `tool_result` blocks "
                    f"with id: {call_id}"
                )
        unanswered = [str(call_id) for call_id in before if call_id not in answers]
        if unanswered:
            raise _unanswered(index - 1, unanswered)
    if messages[-1].calls:
        raise _unanswered(len(messages) - 1, [str(call.call_id) for call in messages[-1].calls])


def _unanswered(index: int, call_ids: list[str]) -> RequestRefused:
    return RequestRefused(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(call_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def write_reply(reply: Reply, _request: ModelRequest, _created_s: int) -> dict[str, Any]:
    """Return the `message`."""
    text = [{"type": "text", "text": reply.text, "citations": None}] if reply.text else []
    return {
        **_envelope(reply),
        "content": [*text, *(_use_value(call, _input_of(call)) for call in reply.calls)],
        "stop_reason": _STOP_REASONS[reply.finish],
        "usage": {**_usage(reply.usage), "output_tokens": reply.usage.output_tokens},
    }


def stream_reply(reply: Reply, _request: ModelRequest, _created_s: int, draw: random.Random) -> Iterator[StreamPart]:
    """Yield the events from `message_start` to `message_stop`."""

    def event(kind: PartKind, name: str, **fields: Any) -> StreamPart:
        return StreamPart(kind, dumps({"type": name, **fields}), name)

    begun = {
        **_envelope(reply),
        "content": [],
        "stop_reason": None,
        "usage": {**_usage(reply.usage), "output_tokens": 1},
    }
    yield event("open", "message_start", message=begun)
    index = 0
    if reply.text:
        yield event("open", "content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield event("open", "ping")
        for piece in split_text(reply.text, draw):
            yield event("text", "content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("close", "content_block_stop", index=0)
        index = 1
    for position, call in enumerate(reply.calls, start=index):
        yield event("open", "content_block_start", index=position, content_block=_use_value(call, {}))
        for piece in ["", *split_text(call.arguments, draw)]:  # the first delta is empty, as the API's is
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("arguments" if piece else "open", "content_block_delta", index=position, delta=delta)
        yield event("close", "content_block_stop", index=position)
    ending = {"stop_reason": _STOP_REASONS[reply.finish], "stop_sequence": None}
    usage = {**_usage(reply.usage), "output_tokens": reply.usage.output_tokens}
    yield event("close", "message_delta", delta=ending, usage=usage)
    yield event("end", "message_stop")


def write_error(error: ProviderError, _param: str | None, request_id: str) -> dict[str, Any]:
    """Return the body of an error reply."""
    return {"type": "error", "error": _error_fields(error), "request_id": request_id}


def stream_error(error: ProviderError, _parts_before: int) -> StreamPart:
    """Return the part that ends a stream with an error."""
    return StreamPart("end", dumps({"type": "error", "error": _error_fields(error)}), "error")


def _error_fields(error: ProviderError) -> dict[str, Any]:
    kind = error.type or _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    message = error.message or _MESSAGES.get(error.status, "The request could not be served.")
    fields: dict[str, Any] = {"type": kind, "message": message}
    return fields if error.code is None else {**fields, "details": {"error_code": error.code}}


def _envelope(reply: Reply) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": reply.reply_id, "type": "message", "role": "assistant", "model": reply.model}
    fields["stop_sequence"] = None
    return fields


def _use_value(call: Call, value: Any) -> dict[str, Any]:
    known = {} if call.call_id is None else {"id": call.call_id}
    return {"type": "tool_use", **known, "name": call.tool_name, "input": value}


def _input_of(call: Call) -> Any:
    value = call.args
    return call.arguments if value is None else value


def _arguments_of(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode("utf-8")


def _usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
    }


def read_reply(body: Any) -> Reply:
    """Return the reply that a `message` holds; thinking blocks are left out."""
    texts: list[str] = []
    calls: list[Call] = []
    for block in body.get("content") or []:
        if block.get("type") == "text":
            texts.append(block["text"])
        elif block.get("type") == "tool_use":
            calls.append(Call(block["name"], _arguments_of(block.get("input")), block.get("id")))
    return Reply(
        reply_id=body.get("id", ""),
        model=body.get("model", ""),
        text="".join(texts),
        calls=tuple(calls),
        finish=_FINISHES.get(body.get("stop_reason"), "stop"),
        usage=_read_usage(body.get("usage") or {}),
    )


def read_stream(events: Iterable[tuple[str | None, str]]) -> Reply:
    """Return the reply that events add up to."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for _, data in events:
        event = decode(data)
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "pieces": []}
        elif kind == "content_block_delta":
            delta = event["delta"]  # of a thinking block it has neither field
            blocks[event["index"]]["pieces"].append(delta.get("text", "") + delta.get("partial_json", ""))
        elif kind == "message_delta":
            message["stop_reason"] = event["delta"].get("stop_reason")
            message["usage"] = {**(message.get("usage") or {}), **(event.get("usage") or {})}
    message["content"] = [_joined(block) for _, block in sorted(blocks.items())]
    return read_reply(message)


def _joined(block: dict[str, Any]) -> dict[str, Any]:
    whole = "".join(block["pieces"])
    if block.get("type") != "tool_use":
        return {**block, "text": block.get("text", "") + whole}
    value = object_of(whole) if whole else block.get("input")
    return {**block, "input": whole if value is None else value}


def _read_usage(usage: dict[str, Any]) -> TokenUsage:
    cached = usage.get("cache_read_input_tokens") or 0
    fresh = (usage.get("input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    return TokenUsage(input_tokens=fresh + cached, output_tokens=usage.get("output_tokens") or 0, cached_tokens=cached)


WIRE: Final = Wire(
    name="anthropic-messages",
    paths=("/messages",),
    call_prefix="toolu_01",
    reply_prefix="msg_01",
    request_id_header="request-id",
    read_request=read_request,
    write_reply=write_reply,
    stream_reply=stream_reply,
    write_error=write_error,
    stream_error=stream_error,
    read_reply=read_reply,
    read_stream=read_stream,
)
