"""What the tests of span formats share: small spans in the shape of OTLP's JSON, and what is asked of the events."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from goldentrace.model.event import ToolCall, ToolResult
from goldentrace.model.trace import Trace
from goldentrace.sources.registry import read_traces

FIXTURES = Path(__file__).with_name("fixtures")
START_NS = 1_767_261_600 * 10**9
"""2026-01-01T10:00:00Z"""


def fixture(module: str, name: str) -> list[Trace]:
    return list(read_traces(FIXTURES / module / name))


def one(module: str, name: str) -> Trace:
    (trace,) = fixture(module, name)
    return trace


def span(name: str, span_id: str, start_ms: float, end_ms: float | None, attributes: dict[str, Any], *, parent: str | None = None, status: Any = None, events: Any = (), trace: str = "aa") -> dict[str, Any]:
    """A span of OTLP's JSON; attributes that are no text become what their type is there."""
    made = {
        "traceId": trace, "spanId": span_id, "name": name, "startTimeUnixNano": str(START_NS + int(start_ms * 10**6)),
        "attributes": [{"key": key, "value": typed(value)} for key, value in attributes.items()],
        "events": [{"name": kind, "attributes": [{"key": key, "value": typed(value)} for key, value in about.items()]} for kind, about in events],
    }  # fmt: skip
    if end_ms is not None:
        made["endTimeUnixNano"] = str(START_NS + int(end_ms * 10**6))
    if parent is not None:
        made["parentSpanId"] = parent
    if status is not None:
        made["status"] = status
    return made


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(each) for each in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "demo"}, "spans": list(spans)}]}]}


def tool(span_id: str, start_ms: float, end_ms: float | None, name: str = "find", args: Any = None, result: Any = "ok", call_id: str | None = None, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more.pop("attributes", {})}
    if args is not None:
        attributes["gen_ai.tool.call.arguments"] = args
    if result is not None:
        attributes["gen_ai.tool.call.result"] = result
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    return span(f"execute_tool {name}", span_id, start_ms, end_ms, attributes, **more)


def chat(span_id: str, start_ms: float, end_ms: float, sent: Any = (), got: Any = None, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **more.pop("attributes", {})}
    if sent:
        attributes["gen_ai.input.messages"] = json.dumps(list(sent))
    if got is not None:
        attributes["gen_ai.output.messages"] = json.dumps([got])
    return span("chat m", span_id, start_ms, end_ms, attributes, **more)


def said(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]}


def asks(call_id: str | None, name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "arguments": arguments, **({"id": call_id} if call_id else {})}


def tells(call_id: str, value: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": call_id, "response": value}


def statuses(trace: Trace) -> list[tuple[str, str, str | None]]:
    """(call id, status, error class) of every result."""
    return [(each.call_id, each.status, each.error_class) for each in trace.results()]


def order(trace: Trace) -> list[str]:
    """Calls as `+id`, results as `-id`, in the order of the trace."""
    return [f"{'+' if isinstance(event, ToolCall) else '-'}{event.call_id}" for event in trace.events if isinstance(event, (ToolCall, ToolResult))]


def duration_ms(trace: Trace, call_id: str) -> float:
    times = {type(event): datetime.fromisoformat(event.ts or "") for event in trace.events if isinstance(event, (ToolCall, ToolResult)) and event.call_id == call_id}
    return (times[ToolResult] - times[ToolCall]).total_seconds() * 1000
