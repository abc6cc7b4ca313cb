"""Vercel AI SDK UI messages (`useChat`): messages made of parts, a tool's call and result in one part.

`step-start` separates the responses of the model within one message. What a part's `state` says decides whether there
is a result; the results of one step come after all of its calls. AI SDK 4 kept the same in `toolInvocations`.
"""

from functools import partial
from typing import Any, Final

from goldentrace.model.event import ABSENT
from goldentrace.sources import clock, dialect, envelope
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.shapes import as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Said, Turn, Verdict

ROLES: Final = frozenset({"system", "user", "assistant"})


def items(message: Message) -> list[Item]:
    """Return the items of one message: of an assistant's, a turn per step."""
    role = message.get("role")
    ts = clock.utc(message.get("createdAt")) or clock.utc(as_object(message.get("metadata")).get("createdAt"))
    parts = as_objects(message.get("parts")) or _old_parts(message)
    if role != "assistant":
        text = "\n".join(filter(None, (as_text(part.get("text")) for part in parts))) or as_text(message.get("content"))
        return [Said(role if isinstance(role, str) else "user", text or "", ts)]
    found: list[Item] = []
    step: list[Message] = []
    for part in parts:
        if part.get("type") == "step-start":
            found += _step(step, ts)
            step = []
        else:
            step.append(part)
    return found + _step(step, ts)


def is_message(record: Message) -> bool:
    """Whether an object is a UI message."""
    if as_word(record.get("role")) not in ROLES:
        return False
    parts = as_objects(record.get("parts"))
    return isinstance(record.get("toolInvocations"), list) or any(_is_part(part) for part in parts)


def _is_part(part: Message) -> bool:
    kind = part.get("type")
    if not isinstance(kind, str):
        return False
    if kind in ("text", "reasoning"):
        return "text" in part
    return kind in ("step-start", "tool-invocation") or (_is_tool(kind) and "toolCallId" in part)


def _is_tool(kind: Any) -> bool:
    return isinstance(kind, str) and (kind == "dynamic-tool" or kind.startswith("tool-")) and kind != "tool-invocation"


def _old_parts(message: Message) -> list[Message]:
    text = as_text(message.get("content"))
    invoked = [
        {"type": "tool-invocation", "toolInvocation": each} for each in as_objects(message.get("toolInvocations"))
    ]
    return [*invoked, *([{"type": "text", "text": text}] if text else [])]


def _step(parts: list[Message], ts: str | None) -> list[Item]:
    calls: list[Item] = []
    results: list[Item] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text" and as_text(part.get("text")):
            calls.append(Said("assistant", part["text"], ts))
        elif kind == "tool-invocation":
            _add_tool(_current(as_object(part.get("toolInvocation"))), calls, results)
        elif _is_tool(kind):
            _add_tool(part, calls, results)
    return [Turn(ts=ts), *calls, *results] if calls or results else []


def _current(old: Message) -> Message:
    """An invocation of AI SDK 4 in today's words."""
    states = {"partial-call": "input-streaming", "call": "input-available", "result": "output-available"}
    state = old.get("state")
    return {
        "type": "dynamic-tool", "toolName": old.get("toolName"), "toolCallId": old.get("toolCallId"),
        "input": old.get("args"), "state": states.get(state, state) if isinstance(state, str) else None,
        "output": old.get("result", ABSENT),
    }  # fmt: skip


def _add_tool(part: Message, calls: list[Item], results: list[Item]) -> None:
    kind = part.get("type")
    name = as_text(part.get("toolName")) or (kind.removeprefix("tool-") if isinstance(kind, str) else None)
    call_id, state = as_name(part.get("toolCallId")), part.get("state")
    is_inline = part.get("providerExecuted") is True
    given = part.get("input", part.get("rawInput", ABSENT))
    extra = {"provider_executed": is_inline or None, "state": state if state == "input-streaming" else None}
    calls.append(Called(name, call_id, given, extra=extra))
    approval = as_object(part.get("approval"))
    if call_id is not None and isinstance(approval.get("approved"), bool):
        results.append(Verdict(call_id, "approved" if approval["approved"] else "denied"))
    answer = None
    if state == "output-available" and part.get("preliminary") is not True:
        answer = Answered(call_id, part.get("output", ABSENT), tool_name=name, is_inline=is_inline)
    elif state == "output-error":
        answer = Answered(call_id, part.get("errorText", ABSENT), "error", "tool_error", name, is_inline=is_inline)
    elif state == "output-denied":
        answer = Answered(call_id, approval.get("reason", ABSENT), "denied", "denied", name)
    if answer is not None:
        (calls if is_inline else results).append(answer)


DIALECT: Final = Dialect(
    "vercel-ui", items, is_message, is_message,
    absent={
        "times": "parts carry no clock", "usage": "UI messages carry no usage",
        "finish_reasons": "UI messages carry no finish reason",
    },
)  # fmt: skip

SOURCE: Final = Source(
    "vercel-ui", "Vercel AI SDK UI messages (useChat)", partial(dialect.matches, DIALECT),
    partial(envelope.read_messages, DIALECT), notes="no clock, no usage",
)  # fmt: skip
