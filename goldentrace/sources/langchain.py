"""LangChain and LangGraph message lists in their three encodings.

`messages_to_dict` (`{type, data}`), `dumpd` (`{lc, type: constructor, kwargs}`) and `model_dump` (`{type, content}`)
hold the same fields. A tool message states failure in `status`.
"""

from functools import partial
from typing import Any, Final

from goldentrace.model.event import Usage
from goldentrace.sources import dialect, envelope, openai_chat
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects, as_text, text_of_parts
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said, Turn, result_value

ROLES: Final = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system", "tool": "tool",
    "developer": "system", "function": "tool", "chat": "chat",
}  # fmt: skip
_CERTAIN: Final = frozenset({"human", "ai"})


def items(message: Message) -> list[Item]:
    """Return the items of one message, whatever its encoding."""
    fields, kind = _unwrapped(message)
    role = ROLES.get(kind, "")
    content = fields.get("content")
    if role == "tool":
        has_failed = fields.get("status") == "error"
        extra = {"artifact": fields.get("artifact")}
        return [
            Answered(
                as_name(fields.get("tool_call_id")), result_value(content), "error" if has_failed else "ok",
                "tool_error" if has_failed else None, as_text(fields.get("name")), extra=extra,
            )
        ]  # fmt: skip
    text = text_of_parts(content)
    if role == "assistant":
        return [_turn(fields), *([Said("assistant", text)] if text else []), *_calls(fields)]
    if not role:
        return [Remark(f"a message of type {kind} was left out")]
    return [Said(as_text(fields.get("role")) or "user" if role == "chat" else role, text)]


def is_message(record: Message) -> bool:
    """Whether an object is a message in one of the encodings."""
    fields, kind = _unwrapped(record)
    return kind in ROLES and "content" in fields and ("role" not in record or kind == "chat")


def is_certain(record: Message) -> bool:
    """Whether only LangChain writes the object so."""
    fields, kind = _unwrapped(record)
    if not is_message(record):
        return False
    return fields is not record or kind in _CERTAIN or (kind == "tool" and "tool_call_id" in fields)


def _unwrapped(record: Message) -> tuple[Message, str]:
    """(fields, type) of a message; chunks of a stream count as what they are chunks of."""
    kind = record.get("type")
    fields = record
    if kind == "constructor":
        fields = as_object(record.get("kwargs"))
        path = record.get("id")
        named = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
        kind = fields.get("type") or named
    elif isinstance(record.get("data"), dict):
        fields = record["data"]
    if not isinstance(kind, str):
        return fields, ""
    plain = kind.removesuffix("Chunk").removesuffix("Message")
    return fields, plain.lower()


def _turn(fields: Message) -> Turn:
    about = as_object(fields.get("response_metadata"))
    reason = as_text(about.get("finish_reason")) or as_text(about.get("stop_reason"))
    model = as_text(about.get("model_name")) or as_text(about.get("model"))
    return Turn(model, reason, _usage(fields, about), extra={"message_name": fields.get("name")})


def _usage(fields: Message, about: Message) -> Usage | None:
    counts = as_object(fields.get("usage_metadata"))
    if not counts:
        return openai_chat.usage_of(about.get("token_usage"))
    found = Usage(
        input_tokens=as_count(counts.get("input_tokens")), output_tokens=as_count(counts.get("output_tokens")),
        cached_tokens=as_count(as_object(counts.get("input_token_details")).get("cache_read")),
    )  # fmt: skip
    return None if found == Usage() else found


def _calls(fields: Message) -> list[Called]:
    """Parsed calls, then those whose arguments did not parse; older dumps have the provider's own list only."""
    called = [
        Called(as_text(each.get("name")), as_name(each.get("id")), each.get("args", {}))
        for each in as_objects(fields.get("tool_calls"))
    ]
    for each in as_objects(fields.get("invalid_tool_calls")):
        text = each.get("args")
        extra = {"error": each.get("error")}
        name, call_id = as_text(each.get("name")), as_name(each.get("id"))
        called.append(Called(name, call_id, args_text=text if isinstance(text, str) else None, extra=extra))
    if called:
        return called
    raw: Any = as_object(fields.get("additional_kwargs"))
    found = openai_chat.items({"role": "assistant", **{key: raw.get(key) for key in ("tool_calls", "function_call")}})
    return [item for item in found if isinstance(item, Called)]


DIALECT: Final = Dialect(
    "langchain", items, is_message, is_certain,
    absent={"times": "messages carry no clock", "usage": "no message carries usage_metadata"},
)  # fmt: skip

SOURCE: Final = Source(
    "langchain", "LangChain messages: messages_to_dict, dumpd, model_dump", partial(dialect.matches, DIALECT),
    partial(envelope.read_messages, DIALECT), notes="no clock",
)  # fmt: skip
