"""What the tests of sources share: reading a value as a file, and looking at the events that come out."""

import json
from typing import Any

from goldentrace.codec.canonical import decode
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.model.event import Message, ModelTurn, ToolCall, ToolResult
from goldentrace.model.trace import Trace
from goldentrace.sources.document import Document
from goldentrace.sources.registry import document_traces


def document_of(value: Any) -> Document:
    """A document over bytes, text, a list of JSON lines (a tuple) or one JSON value."""
    if isinstance(value, tuple):
        value = "".join(json.dumps(line) + "\n" for line in value)
    if isinstance(value, str):
        value = value.encode()
    return Document.of(value if isinstance(value, bytes) else json.dumps(value).encode(), "file")


def read_all(value: Any, format_name: str | None = None) -> list[Trace]:
    """The traces of a file; each one was checked to be a `goldentrace/1` trace that reads back as itself."""
    traces = list(document_traces(document_of(value), format_name))
    for trace in traces:
        data = b"".join(encode_event(event) for event in trace.events)
        assert read_trace(data, "again").events == trace.events
        assert trace.lines is not None
        assert len(trace.lines) == len(trace.events)
    return traces


def read_one(value: Any, format_name: str | None = None) -> Trace:
    (trace,) = read_all(value, format_name)
    return trace


def calls(trace: Trace) -> list[tuple[str, Any]]:
    """(tool, arguments) of every call, in order; None where the arguments did not parse."""
    return [(each.tool_name, decode(each.args) if bytes(each.args) else None) for each in trace.calls()]


def results(trace: Trace) -> list[tuple[str, str, Any]]:
    """(call id, status, value) of every result, in order; None where there is no value."""
    return [(each.call_id, each.status, decode(each.result) if bytes(each.result) else None) for each in trace.results()]


def turns(trace: Trace) -> list[ModelTurn]:
    return [event for event in trace.events if isinstance(event, ModelTurn)]


def said(trace: Trace) -> list[tuple[str, str | None]]:
    """(role, text) of every message."""
    return [(event.role, event.text) for event in trace.events if isinstance(event, Message)]


def shape(trace: Trace) -> list[str]:
    """The kinds of events between start and end, a call and a result with its call id."""
    words = []
    for event in trace.events[1:-1]:
        kind = str(event.__struct_config__.tag)
        words.append(f"{kind} {event.call_id}" if isinstance(event, (ToolCall, ToolResult)) else kind)
    return words
