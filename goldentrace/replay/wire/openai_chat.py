"""OpenAI Chat Completions: `POST /v1/chat/completions`, streaming and not.

Field names and the order of chunks: openai-python `types/chat`, and what its stream helper accepts. A tool result has
no error flag here. This module must not know what a script is, beyond the error to write."""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

from goldentrace.codec.canonical import decode
from goldentrace.replay.conversation import Call, Finish, Message, ModelRequest, Reply, Result, TokenUsage
from goldentrace.replay.script import ProviderError
from goldentrace.replay.wire.openai_error import error_fields, write_error
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

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_DONE: Final = StreamPart("end", "[DONE]")
_FINISHES: Final[dict[Any, Finish]] = {
    "stop": "stop", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length",
    "content_filter": "content_filter",
}  # fmt: skip


def read_request(body: Any, _headers: dict[str, str], is_strict: bool) -> ModelRequest:  # noqa: FBT001 (one shape for all wires)
    """Return the request. Raises: RequestRefused, as the API would refuse it."""
    fields = need_object(body)
    model = need_model(fields)
    if fields.get("n") not in (None, 1):
        raise RequestRefused("Only one choice can be served: 'n' must be 1.", param="n")
    messages = tuple(
        _read_message(message, f"messages[{index}]", is_strict=is_strict)
        for index, message in enumerate(need_list(fields, "messages", is_needed=True))
    )
    if is_strict:
        _check_pairs(messages)
    options = fields.get("stream_options")
    return ModelRequest(
        model=model,
        messages=messages,
        tool_names=tuple(_tool_name(tool, index) for index, tool in enumerate(need_list(fields, "tools"))),
        is_stream=need_flag(fields, "stream"),
        wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
        is_parallel=fields.get("parallel_tool_calls") is not False,
    )


def _tool_name(tool: dict[str, Any], index: int) -> str:
    kind = tool.get("type")
    inner = tool.get(kind) if kind in ("function", "custom") else None
    if not isinstance(inner, dict):
        raise RequestRefused(f"Missing required parameter: 'tools[{index}].function'.", param=f"tools[{index}]")
    return need_text(inner.get("name"), f"tools[{index}].{kind}.name")


def _read_message(message: dict[str, Any], param: str, *, is_strict: bool) -> Message:
    role = message.get("role")
    if role not in _ROLES:
        raise RequestRefused(
            f"Invalid value: {role!r}. Supported values are: {', '.join(_ROLES)}.", param=f"{param}.role"
        )
    text = text_of(message.get("content"), f"{param}.content", ("text",))
    if role == "tool":
        call_id = message.get("tool_call_id")
        if is_strict or call_id is not None:
            call_id = need_text(call_id, f"{param}.tool_call_id")
        return Message("tool", results=(Result(call_id or "", text),))
    if role == "assistant":
        calls = tuple(
            _read_call(call, f"{param}.tool_calls[{index}]", is_strict=is_strict)
            for index, call in enumerate(need_list(message, "tool_calls"))
        )
        if is_strict and not calls and message.get("content") is None and not message.get("refusal"):
            raise RequestRefused(
                f"Invalid value for '{param}.content': expected a string, got null.", param=f"{param}.content"
            )
        return Message("assistant", text, calls)
    if message.get("content") is None:
        raise RequestRefused(f"Missing required parameter: '{param}.content'.", param=f"{param}.content")
    return Message("system" if role == "developer" else role, text)


def _read_call(call: dict[str, Any], param: str, *, is_strict: bool) -> Call:
    call_id = call.get("id")
    if is_strict or call_id is not None:
        call_id = need_text(call_id, f"{param}.id")
    kind, arguments = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    inner = call.get(kind)
    if not isinstance(inner, dict):
        raise RequestRefused(f"Missing required parameter: '{param}.{kind}'.", param=param)
    name = need_text(inner.get("name"), f"{param}.{kind}.name")
    return Call(name, need_text(inner.get(arguments), f"{param}.{kind}.{arguments}"), call_id or None)


def _check_pairs(messages: tuple[Message, ...]) -> None:
    """Every call of an assistant message is answered by the tool messages right after it, and they answer nothing
    else."""
    open_ids: set[str] = set()
    known: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "tool":
            call_id = message.results[0].call_id
            if call_id not in known:
                raise RequestRefused(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                    "'tool_calls'.",
                    param=f"messages[{index}].role",
                )
            open_ids.discard(call_id)
            continue
        _check_answered(open_ids, index)
        known = {call.call_id for call in message.calls if call.call_id is not None}
        open_ids = set(known)
    _check_answered(open_ids, len(messages))


def _check_answered(open_ids: set[str], index: int) -> None:
    if open_ids:
        raise RequestRefused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(sorted(open_ids))}",
            param=f"messages[{index}]",
        )


def write_reply(reply: Reply, _request: ModelRequest, created_s: int) -> dict[str, Any]:
    """Return the `chat.completion`."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if reply.calls and not reply.text else reply.text,
        "refusal": None,
        "annotations": [],
    }
    if reply.calls:
        message["tool_calls"] = [_call_value(call, call.arguments) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return {**_envelope(reply, "chat.completion", created_s), "choices": [choice], "usage": _usage(reply.usage)}


def stream_reply(reply: Reply, request: ModelRequest, created_s: int, draw: random.Random) -> Iterator[StreamPart]:
    """Yield the `chat.completion.chunk`s and `[DONE]`."""

    def chunk(kind: PartKind, delta: dict[str, Any], finish: str | None = None) -> StreamPart:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return StreamPart(
            kind, dumps({**_envelope(reply, "chat.completion.chunk", created_s), "choices": [choice], **usage})
        )

    usage = {"usage": None} if request.wants_usage else {}
    opening = None if reply.calls and not reply.text else ""
    yield chunk("open", {"role": "assistant", "content": opening, "refusal": None})
    for piece in split_text(reply.text, draw):
        yield chunk("text", {"content": piece})
    for index, call in enumerate(reply.calls):
        yield chunk("open", {"tool_calls": [{"index": index, **_call_value(call, "")}]})
        for piece in split_text(call.arguments, draw):
            yield chunk("arguments", {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk("close", {}, reply.finish)
    if request.wants_usage:
        envelope = _envelope(reply, "chat.completion.chunk", created_s)
        yield StreamPart("close", dumps({**envelope, "choices": [], "usage": _usage(reply.usage)}))
    yield _DONE


def stream_error(error: ProviderError, _parts_before: int) -> StreamPart:
    """Return the part that ends a stream with an error."""
    return StreamPart("end", dumps({"error": error_fields(error, None)}))


def _envelope(reply: Reply, kind: str, created_s: int) -> dict[str, Any]:
    return {
        "id": reply.reply_id, "object": kind, "created": created_s, "model": reply.model, "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }  # fmt: skip


def _call_value(call: Call, arguments: str) -> dict[str, Any]:
    known = {} if call.call_id is None else {"id": call.call_id}
    return {**known, "type": "function", "function": {"name": call.tool_name, "arguments": arguments}}


def _usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    }  # fmt: skip


def read_reply(body: Any) -> Reply:
    """Return the reply that a `chat.completion` holds; hidden reasoning is left out."""
    choice = body["choices"][0]
    message = choice["message"]
    calls = [(call.get("id"), call["function"]) for call in message.get("tool_calls") or [] if "function" in call]
    return Reply(
        reply_id=body.get("id", ""),
        model=body.get("model", ""),
        text=text_of(message.get("content"), "content", ("text",)),
        calls=tuple(Call(inner["name"], inner.get("arguments") or "", call_id or None) for call_id, inner in calls),
        finish=_FINISHES.get(choice.get("finish_reason"), "stop"),
        usage=_read_usage(body.get("usage")),
    )


def read_stream(events: Iterable[tuple[str | None, str]]) -> Reply:
    """Return the reply that chunks add up to. Deltas of a call are joined by their index."""
    text: list[str] = []
    finish, usage = None, None
    head: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for _, data in events:
        if data == _DONE.data:
            break
        chunk = decode(data)
        head = head or chunk
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or []:
            delta = choice.get("delta") or {}
            text.append(delta.get("content") or "")
            finish = choice.get("finish_reason") or finish
            for part in delta.get("tool_calls") or []:
                inner = part.get("function") or {}
                call = calls.setdefault(part["index"], {"id": None, "name": "", "arguments": []})
                call["id"] = part.get("id") or call["id"]
                call["name"] += inner.get("name") or ""
                call["arguments"].append(inner.get("arguments") or "")
    return Reply(
        reply_id=head.get("id", ""),
        model=head.get("model", ""),
        text="".join(text),
        calls=tuple(Call(c["name"], "".join(c["arguments"]), c["id"]) for _, c in sorted(calls.items())),
        finish=_FINISHES.get(finish, "stop"),
        usage=_read_usage(usage),
    )


def _read_usage(usage: Any) -> TokenUsage:
    fields = usage or {}
    return TokenUsage(
        input_tokens=fields.get("prompt_tokens") or 0,
        output_tokens=fields.get("completion_tokens") or 0,
        cached_tokens=(fields.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
    )


WIRE: Final = Wire(
    name="openai-chat",
    paths=("/chat/completions",),
    call_prefix="call_",
    reply_prefix="chatcmpl-",
    request_id_header="x-request-id",
    read_request=read_request,
    write_reply=write_reply,
    stream_reply=stream_reply,
    write_error=write_error,
    stream_error=stream_error,
    read_reply=read_reply,
    read_stream=read_stream,
)
