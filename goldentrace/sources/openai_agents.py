"""OpenAI Agents SDK: the spans of its traces (`trace.span`), and the states of runs that it saves (`RunState`).

Spans come in the order in which they ended and hold no call id; the text of an error is redacted, and a failed tool has
an output like any other beside it. A state holds the items of a run with their ids and no times. The lists of
`to_input_list()` are items of Responses, see openai_responses.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import openai_agents_state
from goldentrace.sources.contents import items_of
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_number, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.spanmeaning import absence, with_response
from goldentrace.sources.stepcalls import handoff_name
from goldentrace.sources.steps import History, Step, nanoseconds
from goldentrace.sources.steptrace import TraceInfo, has_activity, read_steps
from goldentrace.sources.toolvalues import answered_of, called_of
from goldentrace.sources.transcript import Answered, Called

NAME: Final = "openai-agents"
_OBJECTS: Final = frozenset({"trace", "trace.span"})
_MAX_TURNS: Final = "Max turns exceeded"
"""What the SDK writes on the agent's span when it stops a run (run.py)."""
ABSENT_REASONS: Final = {
    "usage": "no span counts tokens", "arguments": "recording of inputs is off",
    "results": "recording of outputs is off",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether there are traces or spans of the SDK, by themselves or in a batch (`data`)."""
    batches = [each for record in head.objects for each in as_objects(record.get("data"))]
    return any(_is_ours(each) for each in (*head.objects, *batches))


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of a file. Raises: InputError where it is damaged."""
    about: dict[str | None, dict[str, Any]] = {}
    spans: dict[str | None, list[tuple[int | None, dict[str, Any]]]] = {}
    has_lines = document.is_line_file()
    for line, value in document.records():
        for each in _objects(value):
            if each.get("object") == "trace":
                about[as_name(each.get("id"))] = each
            elif each.get("object") == "trace.span":
                spans.setdefault(as_name(each.get("trace_id")), []).append((line if has_lines else None, each))
    for trace_id, found in spans.items():
        history = History()
        steps = [history.keep(_step(span, line, number)) for number, (line, span) in enumerate(found)]
        if has_activity(steps):
            yield read_steps(document, NAME, steps, _info(trace_id, about.get(trace_id, {}), found, steps))


def _is_ours(record: dict[str, Any]) -> bool:
    return as_word(record.get("object")) in _OBJECTS and ("span_data" in record or "workflow_name" in record)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    for each in as_objects(value if isinstance(value, list) else [value]):
        inner = each.get("data")
        if isinstance(inner, list):
            yield from as_objects(inner)
        else:
            yield each


def _info(
    trace_id: str | None, trace: dict[str, Any], spans: list[tuple[int | None, dict[str, Any]]], steps: list[Step]
) -> TraceInfo:
    errors = [as_object(span.get("error")) for _, span in spans]
    stopped = next((error for error in errors if error.get("message") == _MAX_TURNS), None)
    most = None if stopped is None else as_count(as_object(stopped.get("data")).get("max_turns"))
    reason: StopReason | None = None if stopped is None else "turn_limit"
    guardrails = [
        {"name": data.get("name"), "triggered": data.get("triggered")}
        for _, span in spans if (data := as_object(span.get("span_data"))).get("type") == "guardrail"
    ]  # fmt: skip
    return TraceInfo(
        trace_id, name=trace_id, absent=absence(steps, ABSENT_REASONS),
        attributes={key: trace.get(key) for key in ("workflow_name", "group_id", "metadata")},
        limits=() if stopped is None else (("max_turns", None, None if most is None else float(most)),),
        stop_reason=reason, extra={"guardrails": guardrails},
    )  # fmt: skip


def _step(span: dict[str, Any], line: int | None, number: int) -> Step:
    data = as_object(span.get("span_data"))
    kind = as_word(data.get("type"))
    inner = as_object(data.get("data"))
    error = as_object(span.get("error"))
    step = Step(
        "other", as_name(span.get("id")) or f"#{number}", as_name(span.get("parent_id")),
        as_text(data.get("name")) or kind,
        nanoseconds(span.get("started_at")), nanoseconds(span.get("ended_at")), line,
        failure=as_text(error.get("message")) or ("failed" if error else None),
    )  # fmt: skip
    if kind in ("function", "handoff"):
        return _tool(step, data, error)
    if kind == "agent":
        step.kind, step.agent = "agent", as_text(data.get("name"))
    elif kind in ("generation", "response"):
        step.kind = "model"
        response = as_object(data.get("response"))
        step.model = as_text(data.get("model")) or as_text(response.get("model"))
        step.usage = _usage(data.get("usage"))
        step.sent = items_of(data.get("input"))
        step.extra = {"span_id": step.step_id, "response_id": data.get("response_id")}
        return with_response(step, items_of(data.get("output")) or items_of(response))
    elif kind == "custom" and inner.get("sdk_span_type", data.get("name")) == "turn":
        step.kind, step.is_guess = "model", True
        step.agent = as_text(inner.get("agent_name"))
        step.usage = _usage(inner.get("usage"))
        step.failure = None  # the turn of a failed tool is no failed request
    return step


def _tool(step: Step, data: dict[str, Any], error: dict[str, Any]) -> Step:
    step.kind = "tool"
    step.extra = {"span_id": step.step_id, "mcp_data": data.get("mcp_data")}
    if data.get("type") == "handoff":
        target = as_text(data.get("to_agent"))
        extra = {"handoff": {"from": data.get("from_agent"), "to": target}}
        step.called = Called(handoff_name(target or ""), None, extra=extra)
        answered = answered_of(None, target)
    else:
        step.called = called_of(as_text(data.get("name")), None, data.get("input"))
        answered = answered_of(None, data.get("output"))
    if step.ended_ns is None and data.get("output") is None and not error:
        return step
    if error:
        told = {**answered.extra, "error": error.get("message"), "error_data": error.get("data")}
        answered = Answered(None, answered.value, "error", "tool_error", extra=told)
    step.answered = answered
    return step


def _usage(value: Any) -> Usage | None:
    counts = as_object(value)
    details = as_object(counts.get("input_tokens_details"))
    found = Usage(
        input_tokens=as_count(counts.get("input_tokens", counts.get("prompt_tokens"))),
        output_tokens=as_count(counts.get("output_tokens", counts.get("completion_tokens"))),
        cached_tokens=as_count(counts.get("cached_input_tokens", details.get("cached_tokens"))),
        cost_usd=as_number(counts.get("cost")),
    )
    return None if found == Usage() else found


SOURCES: Final = (
    Source(
        NAME, "OpenAI Agents SDK: spans of traces", matches, read, notes="no call ids; the texts of errors are redacted"
    ),
    openai_agents_state.SOURCE,
)
