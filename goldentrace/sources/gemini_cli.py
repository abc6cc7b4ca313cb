"""Gemini CLI chats: one JSON document, or JSON lines of a header, messages and changes (`$set`, `$rewindTo`).

In lines, a message is written again when it changes: the last form counts, at its first place. What the CLI calls
success is success, also for a command that failed: that is what the file says. Thoughts are dropped.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, ErrorClass, Status, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects, as_text, as_word, text_of_parts
from goldentrace.sources.source import Source

NAME: Final = "gemini-cli"
MODEL_TYPES: Final = ("gemini", "model", "assistant")
KNOWN_TYPES: Final = (*MODEL_TYPES, "user", "info", "error", "warning")
STATUSES: Final[dict[str, tuple[Status, ErrorClass | None]]] = {
    "success": ("ok", None), "error": ("error", "tool_error"), "cancelled": ("cancelled", "cancelled"),
}  # fmt: skip
"""Status of a finished call (CoreToolCallStatus); one that was still waiting has no result."""


def matches(head: Head) -> bool:
    """Whether a record is the frame of a chat: its project and its messages, or the header of a file of lines."""
    first = head.objects[0] if head.objects else {}
    has_frame = {"sessionId", "projectHash"} <= first.keys()
    kinds = {as_word(each.get("type")) for each in as_objects(first.get("messages"))}
    has_messages = "sessionId" in first and not kinds.isdisjoint(("gemini", "model"))
    return has_messages or (has_frame and ("messages" in first or "startTime" in first))


def read(document: Document) -> Iterator[Trace]:
    """Yield the one chat. Raises: InputError for what is not JSON."""
    chat = _Chat(is_line_file=document.is_line_file())
    for line, record in document.records():
        chat.add(record, line)
    yield chat.write(document)


class _Chat:
    """Messages by their id, in the order of their first rows."""

    def __init__(self, *, is_line_file: bool) -> None:
        self._header: dict[str, Any] = {}
        self._messages: dict[str, tuple[dict[str, Any], int | None]] = {}
        self._is_line_file = is_line_file
        self._unknown = 0
        self._rewound = 0

    def add(self, record: Any, line: int) -> None:
        """Take one record."""
        row = as_object(record)
        place = line if self._is_line_file else None
        if isinstance(row.get("$set"), dict):
            self._set(row["$set"], place)
        elif "$rewindTo" in row:
            self._rewind(as_name(row["$rewindTo"]) or "")
        elif "type" in row:
            self._put(row, place)
        elif "sessionId" in row:
            self._set(row, place)
        else:
            self._unknown += 1

    def write(self, document: Document) -> Trace:
        """Return the trace of the chat."""
        header = self._header
        session_id = as_text(header.get("sessionId"))
        builder = TraceBuilder(
            document, NAME, trace_id=session_id, name=session_id, ts=clock.utc(header.get("startTime")),
            attributes={"kind": header.get("kind"), "summary": header.get("summary"), "meta": header.get("meta")},
        )  # fmt: skip
        if self._unknown:
            builder.note(f"{self._unknown} records that are neither message nor change were left out")
        if self._rewound:
            builder.note(f"{self._rewound} messages that a rewind left behind were left out")
        is_answer = False
        for message, line in self._messages.values():
            is_answer = _append(builder, message, line)
        is_over = is_answer and not builder.has_open_calls
        return builder.finish(
            stop_reason="final_answer" if is_over else "unknown", ts=clock.utc(header.get("lastUpdated"))
        )

    def _set(self, values: dict[str, Any], line: int | None) -> None:
        self._header |= {name: value for name, value in values.items() if name != "messages"}
        if isinstance(values.get("messages"), list):
            self._messages.clear()
            for message in as_objects(values["messages"]):
                self._put(message, line)

    def _put(self, message: dict[str, Any], line: int | None) -> None:
        key = as_name(message.get("id")) or f"message {len(self._messages)}"
        self._messages[key] = (message, line)

    def _rewind(self, message_id: str) -> None:
        """Drop a message and all after it."""
        keys = list(self._messages)
        if message_id in self._messages:
            for key in keys[keys.index(message_id) :]:
                del self._messages[key]
                self._rewound += 1


def _append(builder: TraceBuilder, message: dict[str, Any], line: int | None) -> bool:
    """Append a message; return whether it is an answer of the model that asks for nothing."""
    kind, ts = as_word(message.get("type")), clock.utc(message.get("timestamp"))
    content = message.get("content")
    text = text_of_parts([content] if isinstance(content, dict) else content) or text_of_parts(message.get("parts"))
    if kind not in MODEL_TYPES:
        if kind not in KNOWN_TYPES:
            builder.note(f"a message of type {kind!r} was left out", line)
            return False
        builder.message("user" if kind == "user" else "system", text, ts=ts, line=line)
        return False
    builder.turn(model=as_text(message.get("model")), usage=_usage(message.get("tokens")), ts=ts, line=line)
    builder.message("assistant", text, ts=ts, line=line)
    calls = as_objects(message.get("toolCalls"))
    ids = [
        builder.call(
            as_text(call.get("name")), call_id=as_name(call.get("id")), args=call.get("args", ABSENT), ts=ts,
            extra={"agent_id": call.get("agentId")}, line=line,
        )
        for call in calls
    ]  # fmt: skip
    for call_id, call in zip(ids, calls, strict=True):
        _answer(builder, call_id, call, line)
    return bool(text) and not calls


def _answer(builder: TraceBuilder, call_id: str, call: dict[str, Any], line: int | None) -> None:
    status = STATUSES.get(as_word(call.get("status")))
    value = _value(call.get("result"))
    if status is None and value is ABSENT:
        return
    told, error_class = status or ("ok", None)
    builder.result(
        call_id, value=value, status=told, error_class=error_class, ts=clock.utc(call.get("timestamp")), line=line
    )


def _value(result: Any) -> Any:
    """What the model got: the output of the one response of a function, or all that there is."""
    if result is None:
        return ABSENT
    responses = [as_object(each.get("functionResponse")).get("response") for each in as_objects(result)]
    if len(responses) != 1 or responses[0] is None:
        return result
    inner = as_object(responses[0])
    return next(iter(inner.values())) if set(inner) in ({"output"}, {"error"}) else responses[0]


def _usage(value: Any) -> Usage | None:
    """Thoughts are output that was paid for; input includes what came from the cache."""
    tokens = as_object(value)
    output, thoughts = as_count(tokens.get("output")), as_count(tokens.get("thoughts"))
    found = Usage(
        input_tokens=as_count(tokens.get("input")), output_tokens=None if output is None else output + (thoughts or 0),
        cached_tokens=as_count(tokens.get("cached")),
    )  # fmt: skip
    return None if found == Usage() else found


SOURCE: Final = Source(
    NAME, "Gemini CLI chats: JSON, JSON lines", matches, read, notes="status is what the CLI says, not the exit code"
)
