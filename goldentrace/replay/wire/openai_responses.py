"""OpenAI Responses: `POST /v1/responses`, streaming and not.

Field names and the order of events: openai-python `types/responses`, and what its stream helper accepts. A call has two
ids; results are paired by `call_id`. Reasoning items are dropped wherever they are met.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

from goldentrace.codec.canonical import decode
from goldentrace.replay.conversation import Call, Finish, Message, ModelRequest, Reply, Result, Role, TokenUsage
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

_ROLES: Final[dict[Any, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXT_TYPES: Final = ("input_text", "output_text", "text")
_CALL_TYPES: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULT_TYPES: Final = ("function_call_output", "custom_tool_call_output")
_ECHOED: Final[dict[str, Any]] = {
    "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True,
    "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "store": True, "temperature": 1.0,
    "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
    "user": None,
}  # fmt: skip
"""What a response repeats of its request, with the API's defaults."""
_INCOMPLETE: Final[dict[Any, Finish]] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_REASONS: Final = {finish: reason for reason, finish in _INCOMPLETE.items()}


def read_request(body: Any, _headers: dict[str, str], is_strict: bool) -> ModelRequest:  # noqa: FBT001 (one shape for all wires)
    """Return the request. Raises: RequestRefused, as the API would refuse it."""
    fields = need_object(body)
    model = need_model(fields)
    for key in ("background", "conversation"):
        if fields.get(key):
            raise RequestRefused(
                f"'{key}' is not supported by a scripted model.", param=key, code="unsupported_parameter"
            )
    if isinstance(fields.get("input"), str):
        messages = [Message("user", fields["input"])]
    else:
        messages = _read_items(need_list(fields, "input", is_needed=True), is_strict=is_strict)
    instructions = fields.get("instructions")
    if isinstance(instructions, str):
        messages.insert(0, Message("system", instructions))
    return ModelRequest(
        model=model,
        messages=tuple(messages),
        tool_names=tuple(str(tool.get("name") or tool.get("type")) for tool in need_list(fields, "tools")),
        is_stream=need_flag(fields, "stream"),
        is_parallel=fields.get("parallel_tool_calls") is not False,
        echo={key: fields.get(key) if fields.get(key) is not None else value for key, value in _ECHOED.items()},
    )


def _read_items(items: list[dict[str, Any]], *, is_strict: bool) -> list[Message]:
    messages: list[Message] = []
    for index, item in enumerate(items):
        message = _read_item(item, f"input[{index}]", is_strict=is_strict)
        if message is None:
            continue
        last = messages[-1] if messages else None
        if last is not None and last.role == message.role and message.role in ("assistant", "tool"):
            text = "\n".join(part for part in (last.text, message.text) if part)
            messages[-1] = Message(last.role, text, last.calls + message.calls, last.results + message.results)
        else:
            messages.append(message)
    if is_strict:
        _check_pairs(messages)
    return messages


def _read_item(item: dict[str, Any], param: str, *, is_strict: bool) -> Message | None:
    kind = need_text(item.get("type", "message"), f"{param}.type")
    if kind == "message":
        role = _ROLES.get(need_text(item.get("role"), f"{param}.role"))
        if role is None:
            raise RequestRefused(
                f"Invalid value: {item.get('role')!r}. Supported values are: {', '.join(_ROLES)}.",
                param=f"{param}.role",
            )
        return Message(role, text_of(item.get("content"), f"{param}.content", _TEXT_TYPES))
    if kind in _CALL_TYPES or kind in _RESULT_TYPES:
        call_id = item.get("call_id")
        if is_strict or call_id is not None:
            call_id = need_text(call_id, f"{param}.call_id")
        if kind in _RESULT_TYPES:
            text = text_of(item.get("output"), f"{param}.output", _TEXT_TYPES)
            return Message("tool", results=(Result(call_id or "", text),))
        key = _CALL_TYPES[kind]
        name = need_text(item.get("name"), f"{param}.name")
        return Message("assistant", calls=(Call(name, need_text(item.get(key), f"{param}.{key}"), call_id or None),))
    return None


def _check_pairs(messages: list[Message]) -> None:
    called = {call.call_id for message in messages for call in message.calls}
    answered = {result.call_id for message in messages for result in message.results}
    for result in sorted(answered - called, key=str):
        raise RequestRefused(f"No tool call found for function call output with call_id {result}.", param="input")
    for call in sorted(called - answered, key=str):
        raise RequestRefused(f"No tool output found for function call {call}.", param="input")


def write_reply(reply: Reply, request: ModelRequest, created_s: int) -> dict[str, Any]:
    """Return the `response`, complete."""
    incomplete = _REASONS.get(reply.finish)
    return {
        **_envelope(reply, request, created_s),
        "status": "incomplete" if incomplete else "completed",
        "completed_at": None if incomplete else created_s,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "output": [_item_value(reply, index) for index in range(_item_count(reply))],
        "usage": _usage(reply.usage),
    }


def stream_reply(reply: Reply, request: ModelRequest, created_s: int, draw: random.Random) -> Iterator[StreamPart]:
    """Yield the events from `response.created` to `response.completed` or `response.incomplete`."""
    number = 0

    def event(kind: PartKind, event_type: str, /, **fields: Any) -> StreamPart:
        nonlocal number
        part = StreamPart(kind, dumps({"type": event_type, "sequence_number": number, **fields}), event_type)
        number += 1
        return part

    begun = {**_envelope(reply, request, created_s), "status": "in_progress", "output": [], "usage": None}
    yield event("open", "response.created", response=begun)
    yield event("open", "response.in_progress", response=begun)
    for index in range(_item_count(reply)):
        item = _item_value(reply, index)
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            yield event("open", "response.output_item.added", output_index=index,
                        item={**item, "status": "in_progress", "content": []})  # fmt: skip
            within = {**place, "content_index": 0}
            yield event("open", "response.content_part.added", **within, part={**part, "text": ""})
            for piece in split_text(reply.text, draw):
                yield event("text", "response.output_text.delta", **within, delta=piece, logprobs=[])
            yield event("close", "response.output_text.done", **within, text=reply.text, logprobs=[])
            yield event("close", "response.content_part.done", **within, part=part)
        else:
            yield event("open", "response.output_item.added", output_index=index,
                        item={**item, "status": "in_progress", "arguments": ""})  # fmt: skip
            for piece in split_text(item["arguments"], draw):
                yield event("arguments", "response.function_call_arguments.delta", **place, delta=piece)
            yield event("close", "response.function_call_arguments.done", **place,
                        name=item["name"], arguments=item["arguments"])  # fmt: skip
        yield event("close", "response.output_item.done", output_index=index, item=item)
    whole = write_reply(reply, request, created_s)
    yield event("end", f"response.{whole['status']}", response=whole)


def stream_error(error: ProviderError, parts_before: int) -> StreamPart:
    """Return the part that ends a stream with an error."""
    fields = error_fields(error, None)
    known = {"code": fields["code"] or fields["type"], "message": fields["message"], "param": None}
    return StreamPart("end", dumps({"type": "error", "sequence_number": parts_before, **known}), "error")


def _envelope(reply: Reply, request: ModelRequest, created_s: int) -> dict[str, Any]:
    return {
        "id": reply.reply_id, "object": "response", "created_at": created_s, "model": reply.model, "background": False,
        "error": None, "incomplete_details": None, "service_tier": "default", **(request.echo or _ECHOED),
    }  # fmt: skip


def _item_count(reply: Reply) -> int:
    return len(reply.calls) + bool(reply.text)


def _item_value(reply: Reply, index: int) -> dict[str, Any]:
    own_id = reply.reply_id.removeprefix(WIRE.reply_prefix)
    if reply.text and index == 0:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        status = "incomplete" if reply.finish in _REASONS and not reply.calls else "completed"
        return {"id": f"msg_{own_id}", "type": "message", "status": status, "role": "assistant", "content": [part]}
    call = reply.calls[index - bool(reply.text)]
    known = {} if call.call_id is None else {"call_id": call.call_id}
    return {
        "id": f"fc_{own_id}{index:02d}", "type": "function_call", "status": "completed", **known,
        "name": call.tool_name, "arguments": call.arguments,
    }  # fmt: skip


def _usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def read_reply(body: Any) -> Reply:
    """Return the reply that a `response` holds; reasoning items are left out."""
    texts: list[str] = []
    calls: list[Call] = []
    for item in body.get("output") or []:
        kind = item.get("type")
        if kind == "message":
            texts.append(text_of(item.get("content"), "content", _TEXT_TYPES))
        elif kind in _CALL_TYPES:
            calls.append(Call(item["name"], item.get(_CALL_TYPES[kind]) or "", item.get("call_id")))
    reason = (body.get("incomplete_details") or {}).get("reason")
    usage = body.get("usage") or {}
    return Reply(
        reply_id=body.get("id", ""),
        model=body.get("model", ""),
        text="\n".join(texts),
        calls=tuple(calls),
        finish=_INCOMPLETE.get(reason, "tool_calls" if calls else "stop"),
        usage=TokenUsage(
            input_tokens=usage.get("input_tokens") or 0,
            output_tokens=usage.get("output_tokens") or 0,
            cached_tokens=(usage.get("input_tokens_details") or {}).get("cached_tokens") or 0,
        ),
    )


def read_stream(events: Iterable[tuple[str | None, str]]) -> Reply:
    """Return the reply of a stream: the last whole response in it, else what its finished items add up to."""
    head: dict[str, Any] = {}
    items: dict[int, Any] = {}
    for _, data in events:
        event = decode(data)
        kind = event.get("type", "")
        if kind == "response.output_item.done":
            items[event["output_index"]] = event["item"]
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            return read_reply(event["response"])
        elif isinstance(event.get("response"), dict):
            head = event["response"]
    return read_reply({**head, "output": [items[index] for index in sorted(items)]})


WIRE: Final = Wire(
    name="openai-responses",
    paths=("/responses",),
    call_prefix="call_",
    reply_prefix="resp_",
    request_id_header="x-request-id",
    read_request=read_request,
    write_reply=write_reply,
    stream_reply=stream_reply,
    write_error=write_error,
    stream_error=stream_error,
    read_reply=read_reply,
    read_stream=read_stream,
)
