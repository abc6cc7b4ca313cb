"""OpenAI Responses: lists of items, requests and responses, streamed events.

A call and its result are paired on `call_id`; an item's `id` is another one. Tools that OpenAI runs itself (MCP, web
search, code interpreter …) are one item that holds both. Of a stream only whole items count: `response.completed`, else
`response.output_item.done`.
"""

from functools import partial
from typing import Any, Final

from goldentrace.model.event import ABSENT, Status, Usage
from goldentrace.sources import clock, dialect, envelope
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.literals import literal
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects, as_text, as_word, text_of_parts
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said, Turn, Verdict, rest, result_value

ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
PART_TYPES: Final = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal", "summary_text"})
FILE_TYPES: Final = frozenset({"input_image", "input_file", "input_audio"})
SILENT: Final = frozenset({"reasoning", "compaction"})
"""Hidden reasoning and what stands for it: never recorded."""
LISTED: Final = frozenset({"mcp_list_tools", "item_reference", "additional_tools", "compaction_trigger"})
_RESULT_KEYS: Final = ("output", "outputs", "results", "result")
_CALL_KEYS: Final = frozenset({
    "id", "type", "status", "call_id", "name", "arguments", "input", "namespace", "server_label", "error",
    "approval_request_id", "agent", "created_by", *_RESULT_KEYS,
})  # fmt: skip


def items(item: Message) -> list[Item]:
    """Return what one item means. Raises: ValueError never; an item of no known type is a remark.

    The Agents SDK notes in `provider_data` of which response of which model an item is, where the API is another one.
    """
    found = _items(item)
    about = as_object(item.get("provider_data"))
    response_id = as_text(about.get("response_id"))
    if response_id is None or not any(isinstance(each, Called) or _is_said(each) for each in found):
        return found
    return [Turn(as_text(about.get("model")), extra={"response_id": response_id}, response_id=response_id), *found]


def _is_said(item: Item) -> bool:
    return isinstance(item, Said) and item.role == "assistant"


def _items(item: Message) -> list[Item]:
    kind = item.get("type", "message")
    if kind == "message":
        return _message(item)
    if not isinstance(kind, str):
        return [Remark("an item without a type was left out")]
    if kind in SILENT:
        return []
    if kind in LISTED:
        return [Remark(f"an item of type {kind} was left out")]
    if kind in ("function_call", "custom_tool_call"):
        return [_function_call(item)]
    if kind.endswith("_output") and ("call_id" in item or "output" in item):
        return [_output(item, kind)]
    if kind == "mcp_approval_request":
        return [_function_call({**item, "call_id": item.get("id")})]
    if kind == "mcp_approval_response":
        return _approval(item)
    if kind.endswith("_call"):
        return _hosted(item, kind)
    return [Remark(f"an item of type {kind} was left out")]


def response_items(response: Message) -> list[Item]:
    """Return what a response adds to the conversation."""
    status = as_text(response.get("status"))
    incomplete = as_text(as_object(response.get("incomplete_details")).get("reason"))
    turn = Turn(
        as_text(response.get("model")), incomplete or status, usage_of(response.get("usage")),
        ts=clock.utc_from_epoch(response.get("created_at"), per_second=1),
    )  # fmt: skip
    return [turn, *(found for item in as_objects(response.get("output")) for found in items(item))]


def request_items(request: Message) -> list[Item]:
    """Return the items that a request sends: its instructions, then its input."""
    sent = request.get("input")
    instructions = as_text(request.get("instructions"))
    told: list[Item] = [Said("system", instructions)] if instructions else []
    if isinstance(sent, str):
        return [*told, Said("user", sent)]
    return [*told, *(found for item in as_objects(sent) for found in items(item))]


def usage_of(usage: Any) -> Usage | None:
    """Return the usage of one response, None where it counts nothing."""
    counts = as_object(usage)
    found = Usage(
        input_tokens=as_count(counts.get("input_tokens")), output_tokens=as_count(counts.get("output_tokens")),
        cached_tokens=as_count(as_object(counts.get("input_tokens_details")).get("cached_tokens")),
    )  # fmt: skip
    return None if found == Usage() else found


def is_message(record: Message) -> bool:
    """Whether an object can be an item: a message, a call, an output, reasoning."""
    kind = record.get("type", "message")
    if kind == "message":
        return as_word(record.get("role")) in ROLES and "content" in record
    if not isinstance(kind, str):
        return False
    return kind in SILENT | LISTED or kind.endswith(("_call", "_call_output")) or kind.startswith("mcp_approval_")


def is_certain(record: Message) -> bool:
    """Whether only this format writes the object so."""
    if is_response(record) or is_event(record):
        return True
    if record.get("type", "message") != "message":
        return is_message(record)
    parts = as_objects(record.get("content"))
    return is_message(record) and any(as_word(part.get("type")) in PART_TYPES for part in parts)


def is_response(record: Message) -> bool:
    """Whether an object is a whole response."""
    return record.get("object") == "response" or (isinstance(record.get("output"), list) and "status" in record)


def is_event(record: Message) -> bool:
    """Whether an object is a part of a streamed response."""
    kind = record.get("type")
    return isinstance(kind, str) and kind.startswith("response.")


def begins_stream(event: Message, _before: Message) -> bool:
    """Whether an event opens another response."""
    return event.get("type") == "response.created"


def assemble(events: list[Message]) -> Message | None:
    """Return the response that a stream ends with, or, where it was cut off, the items that were done by then."""
    base: Message = {}
    done: list[Message] = []
    for event in events:
        response = as_object(event.get("response"))
        if event.get("type") in ("response.completed", "response.incomplete", "response.failed", "response.done"):
            return {"object": "response", **response}
        base = response or base
        if event.get("type") == "response.output_item.done":
            done.append(as_object(event.get("item")))
    return {"object": "response", **base, "output": done} if base or done else None


def _message(item: Message) -> list[Item]:
    role = item.get("role")
    text = text_of_parts(item.get("content"))
    refusals = (as_text(part.get("refusal")) for part in as_objects(item.get("content")))
    said = "\n".join(part for part in (text, *refusals) if part)
    others = [part["type"] for part in as_objects(item.get("content")) if as_word(part.get("type")) in FILE_TYPES]
    if not said and not others:
        return []
    return [Said(role if isinstance(role, str) else "user", said, extra={"other_parts": others})]


def _function_call(item: Message) -> Called:
    arguments = item.get("arguments", ABSENT) if "arguments" in item else item.get("input", ABSENT)
    extra = {
        "item_id": item.get("id") if item.get("id") != item.get("call_id") else None,
        "namespace": item.get("namespace"), "server_label": item.get("server_label"),
        "item_status": item.get("status") if item.get("status") != "completed" else None,
    }  # fmt: skip
    name, call_id = as_text(item.get("name")), as_name(item.get("call_id"))
    if isinstance(arguments, str) and "arguments" in item:
        return Called(name, call_id, args_text=arguments, extra=extra)
    return Called(name, call_id, arguments, extra=extra)


def _output(item: Message, kind: str) -> Answered:
    status, extra = _shell_status(item)
    extra |= rest(item, frozenset({"id", "type", "call_id", "output", "status", "created_by", "max_output_length"}))
    call_id = as_name(item.get("call_id")) or (as_name(item.get("id")) if kind == "local_shell_call_output" else None)
    if item.get("status") == "failed":
        status = "error"
    value = result_value(item["output"]) if "output" in item else ABSENT
    if isinstance(value, str):
        value = literal(value) or value  # the Agents SDK sends `str()` of what a tool returns
    return Answered(call_id, value, status, "tool_error" if status == "error" else None, extra=extra)


def _shell_status(item: Message) -> tuple[Status, dict[str, Any]]:
    """Shell outputs state how each command ended."""
    outcomes = [as_object(part.get("outcome")) for part in as_objects(item.get("output"))]
    if any(outcome.get("type") == "timeout" for outcome in outcomes):
        return "timeout", {}
    codes = [outcome.get("exit_code") for outcome in outcomes if "exit_code" in outcome]
    return ("error" if any(codes) else "ok"), ({"exit_codes": codes} if codes else {})


def _hosted(item: Message, kind: str) -> list[Item]:
    """A tool that is no function: run by OpenAI (call and result in one item), or by the client (`call_id`)."""
    error = item.get("error")
    approved = as_name(item.get("approval_request_id"))
    call_id = as_name(item.get("call_id")) or approved or as_name(item.get("id"))
    extra = {"item_id": item.get("id") if approved else None, "server_label": item.get("server_label")}
    name = as_text(item.get("name")) or kind.removesuffix("_call")
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        called = Called(name, call_id, args_text=arguments, is_continuation=bool(approved), extra=extra)
    else:
        called = Called(name, call_id, rest(item, _CALL_KEYS), is_continuation=bool(approved), extra=extra)
    if "call_id" in item:
        return [called]
    value = next((item[key] for key in _RESULT_KEYS if item.get(key) is not None), ABSENT)
    if error is not None and error != "":
        code = as_count(as_object(error).get("code"))
        failed = Answered(call_id, error, "error", "tool_error", is_inline=True, extra={"code": code})
        return [called, failed]
    state = item.get("status")
    if state in ("in_progress", "searching", "calling", "interpreting", "generating"):
        return [called]
    if state in ("failed", "incomplete"):
        return [called, Answered(call_id, value, "error", "tool_error", is_inline=True)]
    return [called, Answered(call_id, value, is_inline=True)]


def _approval(item: Message) -> list[Item]:
    call_id = as_name(item.get("approval_request_id"))
    if call_id is None:
        return [Remark("an approval without a request was left out")]
    if item.get("approve") is True:
        return [Verdict(call_id, "approved")]
    return [Verdict(call_id, "denied"), Answered(call_id, item.get("reason", ABSENT), "denied", "denied")]


DIALECT: Final = Dialect(
    "openai-responses", items, is_message, is_certain, list_keys=("input", "items", "data"), is_strict=True,
    request_items=request_items, response_items=response_items, is_response=is_response, is_event=is_event,
    begins_stream=begins_stream, assemble=assemble,
    absent={
        "times": "items carry no clock", "usage": "only responses carry usage",
        "status": "the output of a function has no flag for failure",
    },
)  # fmt: skip

SOURCE: Final = Source(
    "openai-responses", "OpenAI Responses: items, requests and responses, streamed events",
    partial(dialect.matches, DIALECT), partial(envelope.read_messages, DIALECT),
    notes="no clock; only tools that OpenAI runs state failure",
)  # fmt: skip
