"""Messages inside the values that spans carry: what was sent to a model and what came back, in any provider's shape.

Instrumentation keeps requests and responses as it met them, so one attribute may hold messages of OpenAI, Anthropic,
Gemini, LangChain or the Vercel AI SDK, or the parts of the OpenTelemetry conventions. Each shape is read by the module
of its format. Must not know about spans.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.event import ABSENT
from goldentrace.sources import ai_sdk, anthropic_messages, langchain, openai_chat, openai_responses, pydantic_ai
from goldentrace.sources.shapes import REASONING_PARTS, as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said, Turn

REDACTED: Final = "__REDACTED__"
"""What OpenInference writes in place of a value that it was told to hide (its configuration page)."""
_LISTS: Final = ("messages", "contents", "input_messages", "output_messages", "input")
_INNER: Final = ("update", "output", "message", "new_message", "content", "response", "inputs", "prompt")
_LC_OUTER: Final = frozenset({"human", "ai", "tool", "system", "constructor", "AIMessageChunk", "HumanMessageChunk"})


def parsed(value: Any) -> Any:
    """Return the JSON value that a text holds, where it holds one; anything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"', " ", "\n"):
        try:
            return decode(value)
        except JsonError:
            return value
    return value


def items_of(value: Any) -> list[Item]:
    """Return the items of all messages that a value holds, in their order; none where it holds no message."""
    return list(_items(parsed(value), 0))


def _items(value: Any, depth: int) -> Iterator[Item]:
    if depth > 6:
        return
    if isinstance(value, list):
        if len(value) == 2 and all(isinstance(each, str) for each in value) and value[0] in _ROLES:
            yield Said(_ROLES[value[0]], value[1])
            return
        inner = value[0] if value and isinstance(value[0], list) and _is_batch(value) else None
        for each in value if inner is None else inner:
            yield from _items(parsed(each), depth + 1)
    elif isinstance(value, dict):
        found = message_items(value)
        yield from found if found is not None else _wrapped(value, depth)


_ROLES: Final = {
    "system": "system", "user": "user", "human": "user", "ai": "assistant", "assistant": "assistant",
    "model": "assistant",
}  # fmt: skip


def _is_batch(value: list[Any]) -> bool:
    """Whether a list holds lists of messages (LangChain's batches), of which the first counts."""
    return all(isinstance(each, list) and (not each or isinstance(each[0], dict)) for each in value)


def _wrapped(value: dict[str, Any], depth: int) -> Iterator[Item]:
    generations = as_list(value.get("generations"))
    if generations:
        first = as_objects(generations[0]) or as_objects(generations)
        for generation in first[:1]:
            message = parsed(generation.get("message"))
            if isinstance(message, dict):
                yield from _items(message, depth + 1)
            elif as_text(generation.get("text")):
                yield from (Turn(), Said("assistant", generation["text"]))
        return
    for key in _LISTS:
        if isinstance(value.get(key), list):
            yield from _items(value[key], depth + 1)
            return
    for key in _INNER:
        inner = parsed(value.get(key))
        if isinstance(inner, (dict, list)):
            yield from _items(inner, depth + 1)
            return


def message_items(message: dict[str, Any]) -> list[Item] | None:
    """Return the items of one message or whole response, None where the object is none."""
    kind = as_word(message.get("type"))
    if openai_chat.is_response(message):
        return _chat_response(message)
    if message.get("object") == "response" or (isinstance(message.get("output"), list) and "usage" in message):
        return openai_responses.response_items(message)
    if isinstance(message.get("parts"), list):
        if pydantic_ai.is_message(message):
            return pydantic_ai.items(message)
        return _parts_items(message)
    if isinstance(as_object(message.get("content")).get("parts"), list):
        return _parts_items({"role": "model", **message["content"]})
    if kind in _LC_OUTER and langchain.is_message(message):
        return langchain.items(message)
    if "toolCallId" in message and "toolName" in message:
        return ai_sdk.items({"role": "assistant", "content": [{**message, "type": "tool-call"}]})
    if ai_sdk.is_certain(message):
        return ai_sdk.items(message)
    if "role" not in message and openai_responses.is_message(message) and openai_responses.is_certain(message):
        return openai_responses.items(message)
    if "role" not in message:
        return None
    return _role_items(message)


def _role_items(message: dict[str, Any]) -> list[Item] | None:
    content = parsed(message.get("content"))
    if isinstance(content, (dict, list)) and as_word(message.get("role")) != "tool":
        content = [content] if isinstance(content, dict) else content
        message = {**message, "content": content}
    if anthropic_messages.is_message(message) and anthropic_messages.is_certain(message):
        return anthropic_messages.items(message)
    if openai_responses.is_message(message) and openai_responses.is_certain(message):
        found = openai_responses.items(message)
        return [Turn(), *found] if message.get("role") == "assistant" else found
    if message.get("type") == "tool" or "additional_kwargs" in message:
        return langchain.items({**message, "type": message["role"]})
    message = {key: value for key, value in message.items() if key != "type"}
    calls = [_flat_call(each) for each in as_objects(message.get("tool_calls")) if "function" not in each]
    role = as_word(message.get("role"))
    if role not in openai_chat.ROLES and role not in _ROLES:
        return [Remark(f"a message of role {role[:40]!r} was left out")]
    role = _ROLES.get(role, role)
    try:
        return openai_chat.items({**message, "role": role, **({"tool_calls": []} if calls else {})}) + calls
    except ValueError:
        return anthropic_messages.items(message)


def _flat_call(call: dict[str, Any]) -> Item:
    """A call whose name and arguments stand beside its id, as indexed attributes write it."""
    given = call.get("arguments", call.get("args", ABSENT))
    name, call_id = as_text(call.get("name")), as_name(call.get("id"))
    return Called(name, call_id, args_text=given) if isinstance(given, str) else Called(name, call_id, given)


def _chat_response(message: dict[str, Any]) -> list[Item]:
    """A chat.completion; wrappers that add up a stream leave its last chunk in the place of the reason."""
    choices = as_objects(message.get("choices"))
    reason = choices[0].get("finish_reason")
    if isinstance(reason, dict):
        choices = [{**choices[0], "finish_reason": reason.get("finish_reason")}, *choices[1:]]
    try:
        return openai_chat.response_items({**message, "choices": choices})
    except ValueError:
        return anthropic_messages.response_items(as_object(choices[0].get("message")))


def _parts_items(message: dict[str, Any]) -> list[Item]:
    """A message made of parts: those of the OpenTelemetry conventions (`type`), or Gemini's (`function_call` …)."""
    role = _ROLES.get(as_word(message.get("role")), as_word(message.get("role")) or "user")
    found: list[Item] = [Turn(finish_reason=as_text(message.get("finish_reason")))] if role == "assistant" else []
    for part in as_objects(message.get("parts")):
        kind = as_word(part.get("type"))
        if kind in REASONING_PARTS or part.get("thought") is True:
            continue
        text = as_text(part.get("content")) if kind == "text" and "content" in part else as_text(part.get("text"))
        gemini_call = as_object(part.get("function_call", part.get("functionCall")))
        gemini_answer = as_object(part.get("function_response", part.get("functionResponse")))
        if kind in ("tool_call", "server_tool_call"):
            found.append(_part_call(part))
        elif kind in ("tool_call_response", "server_tool_call_response"):
            found.append(_part_answer(part))
        elif gemini_call:
            name, call_id = as_text(gemini_call.get("name")), as_name(gemini_call.get("id"))
            found.append(Called(name, call_id, gemini_call.get("args", {})))
        elif gemini_answer:
            name, call_id = as_text(gemini_answer.get("name")), as_name(gemini_answer.get("id"))
            found.append(Answered(call_id, gemini_answer.get("response", ABSENT), tool_name=name))
        elif text is not None:
            found.append(Said(role, text))
        elif kind and kind != "text":
            found.append(Remark(f"a part of type {kind:.40} has no text and was left out"))
    return found


def _part_call(part: dict[str, Any]) -> Called:
    name, call_id = as_text(part.get("name")), as_name(part.get("id"))
    given = part.get("arguments", as_object(part.get("server_tool_call")).get("arguments", ABSENT))
    return Called(name, call_id, args_text=given) if isinstance(given, str) else Called(name, call_id, given)


def _part_answer(part: dict[str, Any]) -> Answered:
    """The conventions' schema says `response`, their example `result`."""
    call_id = as_name(part.get("id"))
    value = part.get("response", part.get("result", ABSENT))
    has_failed = part.get("is_error") is True
    return Answered(call_id, value, "error" if has_failed else "ok", "tool_error" if has_failed else None)
