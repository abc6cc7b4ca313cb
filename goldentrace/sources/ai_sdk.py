"""Vercel AI SDK model messages, and the parts of its streams (`fullStream`, UI message streams).

Messages: `tool-call` parts of an assistant, `tool-result` parts of a `tool` message. Streams: one object per part; the
parts of a step are put together, because what ended it comes last.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import dialect, envelope, httpbody
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects, as_text, as_word, text_of_parts
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Said, Transcript, Turn, Verdict

NAME: Final = "ai-sdk"
ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_CALLS: Final = frozenset({"tool-call", "tool-input-available", "tool-input-error"})
_RESULTS: Final = frozenset({"tool-result", "tool-output-available"})
_ERRORS: Final = frozenset({"tool-error", "tool-output-error"})
_STEP_ENDS: Final = frozenset({"finish-step", "step-finish", "finish", "error", "abort"})
_STREAMED: Final = _CALLS | _RESULTS | _ERRORS | _STEP_ENDS | frozenset({
    "start", "start-step", "step-start", "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta",
    "reasoning-end", "tool-input-start", "tool-input-delta", "tool-input-end", "tool-output-denied", "source", "file",
    "source-url", "raw", "response-metadata", "stream-start", "tool-approval-request", "message-metadata",
})  # fmt: skip
_CERTAIN: Final = frozenset({"tool-call", "tool-result", "tool-error"})
_ABSENT: Final = {"times": "messages and parts carry no clock", "usage": "messages carry no usage"}


def items(message: Message) -> list[Item]:
    """Return the items of one model message."""
    role, content = message.get("role"), message.get("content")
    is_model = role == "assistant"
    found: list[Item] = [Turn()] if is_model else []
    text = text_of_parts(content)
    if role != "tool" and text:
        found.append(Said(role if isinstance(role, str) else "user", text))
    return found + [item for part in as_objects(content) for item in _tool_items(part, is_inline=is_model)]


def is_message(record: Message) -> bool:
    """Whether an object can be a model message."""
    return as_word(record.get("role")) in ("system", "user", "assistant", "tool") and isinstance(
        record.get("content"), (str, list)
    )


def is_certain(record: Message) -> bool:
    """Whether only the AI SDK writes the message so."""
    parts = as_objects(record.get("content"))
    return is_message(record) and any(as_word(part.get("type")) in _CERTAIN and "toolCallId" in part for part in parts)


def matches(head: Head) -> bool:
    """Whether the head shows model messages, or the parts of a stream and nothing else."""
    return dialect.matches(DIALECT, head) or _is_stream(_streamed(head))


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of message lists, or the one of a stream. Raises: InputError where a line is no JSON."""
    if not _is_stream(_streamed(document.head)):
        yield from envelope.read_messages(DIALECT, document)
        return
    if document.head.value is None:
        parts = httpbody.sse_events(document.read().decode("utf-8", "replace"))
    else:
        parts = [
            part
            for _, value in document.records()
            for part in as_objects(value if isinstance(value, list) else [value])
        ]
    yield _read_stream(document, parts)


def _streamed(head: Head) -> list[Message]:
    if head.data.lstrip().startswith(b"data:"):
        return httpbody.sse_events(head.data.decode("utf-8", "replace"))
    return list(head.objects)


def _is_stream(parts: list[Message]) -> bool:
    kinds = [as_word(part.get("type")) for part in parts]
    has_tool = any(kind in _CALLS | _RESULTS for kind in kinds)
    has_step = any(kind in ("start", "start-step", "text-delta", "text-start") for kind in kinds)
    is_data = [kind in _STREAMED or kind.startswith("data-") for kind in kinds]
    return (has_tool or has_step) and all(is_data)


def _read_stream(document: Document, parts: list[Message]) -> Trace:
    transcript = Transcript(TraceBuilder(document, NAME, absent={**_ABSENT, "prompt": "a stream holds responses only"}))
    step: list[Message] = []
    for part in parts:
        if part.get("type") in ("start-step", "step-start") and step:
            transcript.add(_step(step))
            step = []
        step.append(part)
    transcript.add(_step(step))
    return transcript.finish()


def _step(parts: list[Message]) -> list[Item]:
    """One response of the model: how it ended, its text, its calls, then their results."""
    ending: Message = next((part for part in parts if part.get("type") in ("finish-step", "step-finish")), {})
    text = "".join(_delta(part) for part in parts if part.get("type") == "text-delta")
    found = [item for part in parts for item in _tool_items(part, is_inline=part.get("providerExecuted") is True)]
    calls = [item for item in found if isinstance(item, Called) or (isinstance(item, Answered) and item.is_inline)]
    late = [item for item in found if item not in calls]
    if not (ending or text or found):
        return []
    turn = Turn(
        as_text(as_object(ending.get("response")).get("modelId")), as_text(ending.get("finishReason")),
        _usage(ending.get("usage")), extra={"performance": ending.get("performance")},
    )  # fmt: skip
    return [turn, *([Said("assistant", text)] if text else []), *calls, *late]


def _delta(part: Message) -> str:
    return as_text(part.get("delta")) or as_text(part.get("text")) or as_text(part.get("textDelta")) or ""


def _usage(usage: Any) -> Usage | None:
    counts = as_object(usage)
    details = as_object(counts.get("inputTokenDetails"))
    found = Usage(
        input_tokens=as_count(counts.get("inputTokens", counts.get("promptTokens"))),
        output_tokens=as_count(counts.get("outputTokens", counts.get("completionTokens"))),
        cached_tokens=as_count(counts.get("cachedInputTokens", details.get("cacheReadTokens"))),
    )
    return None if found == Usage() else found


def _tool_items(part: Message, *, is_inline: bool) -> list[Item]:
    kind = as_word(part.get("type"))
    name, call_id = as_text(part.get("toolName")), as_name(part.get("toolCallId"))
    if kind in _CALLS:
        given = part.get("input", part.get("args", ABSENT))
        extra = {"error": part.get("errorText"), "provider_executed": part.get("providerExecuted")}
        if part.get("invalid") is True and isinstance(given, str):
            return [Called(name, call_id, args_text=given, extra=extra)]
        return [Called(name, call_id, given, extra=extra)]
    if kind in _ERRORS:
        value = part.get("errorText", part.get("error", ABSENT))
        return [Answered(call_id, value, "error", "tool_error", name, is_inline=is_inline)]
    if kind == "tool-output-denied":
        return [Answered(call_id, ABSENT, "denied", "denied", name)]
    if kind == "tool-approval-response" and isinstance(part.get("approved"), bool) and call_id is not None:
        return [Verdict(call_id, "approved" if part["approved"] else "denied")]
    if kind in _RESULTS and part.get("preliminary") is not True:
        return [_result(part, call_id, name, is_inline=is_inline)]
    return []


def _result(part: Message, call_id: str | None, name: str | None, *, is_inline: bool) -> Answered:
    output = part.get("output", part.get("result", ABSENT))
    wrapped = as_object(output)
    kind = wrapped.get("type")
    if part.get("isError") is True or kind in ("error-text", "error-json"):
        value = wrapped.get("value", output)
        return Answered(call_id, value, "error", "tool_error", name, is_inline=is_inline)
    if kind == "execution-denied":
        return Answered(call_id, wrapped.get("reason", ABSENT), "denied", "denied", name)
    if kind in ("text", "json", "content") and "value" in wrapped:
        output = wrapped["value"]
    return Answered(call_id, output, tool_name=name, is_inline=is_inline)


DIALECT: Final = Dialect(NAME, items, is_message, is_certain, absent=_ABSENT)

SOURCE: Final = Source(
    NAME, "Vercel AI SDK model messages and stream parts", matches, read, notes="no clock; only streams carry usage"
)
