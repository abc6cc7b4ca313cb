"""Langfuse traces: `{trace, observations}`, a trace with its observations inside, or observations alone.

Observations are unsorted, and many values are JSON inside a string. Tools are of the type `TOOL`; older SDKs log them
as `SPAN`, which is taken for a tool where its output is a tool message, where its attributes say so, or where a
response called it by its name. Where a trace came by OpenTelemetry, the attributes of its spans stand in the metadata.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from goldentrace.model.event import ABSENT, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import genai_steps, openinference_steps
from goldentrace.sources.contents import items_of, parsed
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_number, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.spanmeaning import absence, with_response
from goldentrace.sources.spans import Span
from goldentrace.sources.steps import History, Kind, Step, failure_class, nanoseconds
from goldentrace.sources.steptrace import TraceInfo, has_activity, read_steps
from goldentrace.sources.toolvalues import answered_of, called_of
from goldentrace.sources.transcript import Called, Item, Said, Turn

NAME: Final = "langfuse"
_TYPES: Final = frozenset({
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
_KINDS: Final[dict[str, Kind]] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_PREFIX: Final = "execute_tool "
ABSENT_REASONS: Final = {
    "usage": "no observation counts tokens", "times": "the observations carry no times",
    "arguments": "inputs were not recorded", "results": "outputs were not recorded",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether there are observations, alone or with their trace."""
    return any(
        _is_observation(record) or any(_is_observation(each) for each in _observations(record))
        for record in head.objects
    )


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of a file. Raises: InputError where it is damaged."""
    loose: dict[str, list[tuple[int | None, dict[str, Any]]]] = {}
    has_lines = document.is_line_file()
    for line, value in document.records():
        place = line if has_lines else None
        for record in as_objects(value if isinstance(value, list) else [value]):
            if _is_observation(record):
                loose.setdefault(as_name(record.get("traceId")) or "trace", []).append((place, record))
            elif "observations" in record or "trace" in record:
                about = as_object(record.get("trace")) or record
                yield from _trace(document, about, [(place, each) for each in _observations(record)])
    for trace_id, found in loose.items():
        yield from _trace(document, {"id": trace_id}, found)


def _is_observation(record: Mapping[str, Any]) -> bool:
    has_place = "startTime" in record and ("traceId" in record or "parentObservationId" in record)
    return has_place and as_word(record.get("type")) in _TYPES


def _observations(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return as_objects(record.get("observations")) or as_objects(as_object(record.get("trace")).get("observations"))


def _trace(
    document: Document, about: Mapping[str, Any], found: list[tuple[int | None, dict[str, Any]]]
) -> Iterator[Trace]:
    history = History()
    steps = [history.keep(_step(each, line, number)) for number, (line, each) in enumerate(found)]
    _find_old_tools(steps, [each for _, each in found])
    if not has_activity(steps):
        return
    trace_id = as_name(about.get("id"))
    given = parsed(parsed(about.get("input")))
    prompt: list[Item] = [item for item in items_of(given) if isinstance(item, Said)]
    text = as_text(given) or as_text(as_object(given).get("prompt"))
    attributes = {
        "trace_name": about.get("name"), "session_id": about.get("sessionId"), "tags": about.get("tags"),
        "release": about.get("release"), "environment": about.get("environment"), "scores": _scores(about),
    }  # fmt: skip
    info = TraceInfo(
        trace_id, name=trace_id, attributes=attributes, absent=absence(steps, ABSENT_REASONS),
        prompt=tuple(prompt) or ((Said("user", text),) if text else ()),
    )  # fmt: skip
    yield read_steps(document, NAME, steps, info)


def _scores(about: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": each.get("name"), "value": each.get("value")} for each in as_objects(about.get("scores"))]


def _step(each: dict[str, Any], line: int | None, number: int) -> Step:
    """An observation; what it does not say, the attributes of the span that it came from may."""
    metadata = as_object(parsed(each.get("metadata")))
    attributes = as_object(parsed(metadata.get("attributes")))
    name = as_text(each.get("name")) or ""
    level = as_word(each.get("level"))
    span = Span(
        None, as_name(each.get("id")) or f"#{number}", as_name(each.get("parentObservationId")), name,
        nanoseconds(each.get("startTime")), nanoseconds(each.get("endTime")), "error" if level == "ERROR" else "",
        as_text(each.get("statusMessage")), attributes, line=line,
    )  # fmt: skip
    base = genai_steps.step_of(span)
    kind = _KINDS.get(as_word(each.get("type")), "other")
    if (
        kind == "other"
        and base.kind == "tool"
        and (openinference_steps.is_span(span) or "gen_ai.tool.name" in attributes)
    ):
        kind = "tool"
    step = replace(
        base, kind=kind, agent=base.agent or (name if kind == "agent" else None),
        failure=base.failure if level == "ERROR" else None,
        extra={} if kind == "other" else {**base.extra, "observation_id": span.span_id, "level": level or None},
    )  # fmt: skip
    if kind == "tool":
        return _tool(step, each)
    return _model(step, each) if kind == "model" else step


def _tool(step: Step, each: dict[str, Any]) -> Step:
    given, value = parsed(each.get("input")), parsed(each.get("output"))
    name = step.called.tool_name or step.name.removeprefix(_PREFIX) or None
    own = answered_of(None, value, tool_name=name)
    call_id = step.called.call_id or own.call_id
    called = called_of(name, call_id, given, has_input=True, extra=step.called.extra)
    if given in (None, "", {}) and step.called.args is not ABSENT:
        called = replace(step.called, tool_name=name, call_id=call_id)
    step.called = called
    before = step.answered
    has_value = value not in (None, "", {})
    if not has_value and before is not None and before.value is not ABSENT:
        own = replace(own, value=before.value)
    if step.ended_ns is None and not has_value and step.failure is None:
        step.answered = None
        return step
    if own.status == "ok" and before is not None and before.status != "ok":
        own = replace(own, status=before.status, error_class=before.error_class, extra={**before.extra, **own.extra})
    if own.status == "ok" and step.failure is not None:
        status, error_class = failure_class(None)
        own = replace(own, status=status, error_class=error_class, extra={**own.extra, "error": step.failure})
    step.answered = replace(own, call_id=call_id)
    return step


def _model(step: Step, each: dict[str, Any]) -> Step:
    told = _response(each.get("output")) or step.got
    usage = step.usage
    step.model = as_text(each.get("model")) or step.model
    step.usage = _usage(each) or usage
    step.sent = items_of(parsed(parsed(each.get("input")))) or step.sent
    names = parsed(each.get("toolCallNames"))
    if not any(isinstance(item, Called) for item in told) and names:
        told = [*told, *_listed_calls(each, names)]
    return with_response(step, told)


def _response(output: Any) -> list[Item]:
    value = parsed(parsed(output))
    found = items_of(value)
    if not found and isinstance(value, dict):
        found = items_of([{"role": "assistant", **value}])
    if not found and isinstance(value, str) and value:
        return [Turn(), Said("assistant", value)]
    return found


def _listed_calls(each: dict[str, Any], names: Any) -> list[Item]:
    """The calls that Langfuse found in a response."""
    calls = [as_object(parsed(call)) for call in parsed(each.get("toolCalls")) or []]
    return [
        called_of(as_text(name), as_name(call.get("id")), call.get("arguments"))
        for name, call in zip(names if isinstance(names, list) else [], calls, strict=False)
    ]


def _usage(each: dict[str, Any]) -> Usage | None:
    counts = as_object(parsed(each.get("usageDetails"))) or as_object(parsed(each.get("usage")))
    cached = ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read")
    found = Usage(
        input_tokens=as_count(counts.get("input")), output_tokens=as_count(counts.get("output")),
        cached_tokens=next((as_count(counts[key]) for key in cached if key in counts), None),
        cost_usd=as_number(each.get("totalCost")) or None,
    )  # fmt: skip
    return None if found == Usage() else found


def _find_old_tools(steps: list[Step], observations: list[dict[str, Any]]) -> None:
    """Spans of older SDKs that are tools: their output is a tool message, or a response called them by name."""
    called = {item.tool_name for step in steps for item in step.got if isinstance(item, Called)}
    for step, each in zip(steps, observations, strict=True):
        if step.kind != "other" or as_word(each.get("type")) != "SPAN":
            continue
        answer = answered_of(None, parsed(parsed(each.get("output"))))
        if answer.call_id is not None or (step.name and step.name in called):
            step.kind = "tool"
            step.extra = {"observation_id": step.step_id}
            _tool(step, each)


SOURCE: Final = Source(
    NAME, "Langfuse traces with their observations", matches, read,
    notes="times to the millisecond; most tools have no call id",
)  # fmt: skip
