"""What spans of OpenInference (Phoenix and its instrumentors) mean.

The kind of a span decides (`openinference.span.kind`). `tool.parameters` is the schema of a tool, never its arguments.
A tool's span rarely has a call id: it is matched to the call in the response before it. A handoff is a tool's span
without a name.
"""

from typing import Any, Final

from goldentrace.sources.contents import items_of, message_items, parsed
from goldentrace.sources.shapes import as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.spanmeaning import failure_of, rest_of, usage_from, with_failure, with_response
from goldentrace.sources.spans import Span
from goldentrace.sources.stepcalls import handoff_name
from goldentrace.sources.steps import Kind, Step
from goldentrace.sources.toolvalues import answered_of, called_of
from goldentrace.sources.transcript import Called, Item, Said, Turn

KIND_KEY: Final = "openinference.span.kind"
_KINDS: Final[dict[str, Kind]] = {"TOOL": "tool", "LLM": "model", "AGENT": "agent"}
_HANDOFF: Final = "handoff"
ABSENT_REASONS: Final = {
    "usage": "no span counts tokens", "times": "the spans carry no times", "arguments": "inputs were not recorded",
    "results": "outputs were not recorded",
}  # fmt: skip


def is_marked(attributes: Any) -> bool:
    """Whether attributes (flat) name the kind of an OpenInference span."""
    return KIND_KEY in as_object(attributes)


def is_span(span: Span) -> bool:
    """Whether a span is of OpenInference."""
    return isinstance(span.attributes.get(KIND_KEY), str)


def step_of(span: Span) -> Step:
    """Return what a span means."""
    kind = _KINDS.get(as_word(span.attributes.get(KIND_KEY)).upper(), "other")
    step = Step(
        kind, span.span_id or f"#{id(span)}", span.parent_id, span.name, span.started_ns, span.ended_ns, span.line,
        agent=as_text(span.get("agent.name", "graph.node.id", "gen_ai.agent.name")) if kind == "agent" else None,
        failure=failure_of(span)[0], extra={} if kind == "other" else rest_of(span),
    )  # fmt: skip
    if kind == "tool":
        return _tool(step, span)
    if kind == "model":
        return _model(step, span)
    if kind == "agent" and step.agent is None:
        step.agent = span.name.removesuffix(".run") or None
    return step


def _tool(step: Step, span: Span) -> Step:
    name = as_text(span.get("tool.name", "gen_ai.tool.name"))
    call_id = as_name(span.get("tool.id", "tool_call.id", "gen_ai.tool.call.id"))
    value = span.get("output.value")
    answer = as_object(parsed(value))
    if name is not None and answer.get("name") == name and "response" in answer:  # Google ADK
        call_id, value = call_id or as_name(answer.get("id")), answer["response"]
    if name is None and span.name.lower().startswith(_HANDOFF):
        target = as_text(value) or span.name[len(_HANDOFF) :].removeprefix(" to ").strip()
        extra = {_HANDOFF: {"from": span.get("input.value"), "to": target}}
        step.called = Called(handoff_name(target), call_id, extra=extra)
    else:
        step.called = called_of(name or span.name or None, call_id, span.get("input.value"))
    answered = answered_of(call_id, value, tool_name=name)
    if step.called.call_id is None and answered.call_id is not None:
        step.called = called_of(step.called.tool_name, answered.call_id, span.get("input.value"))
    if span.ended_ns is not None or span.started_ns is None or value is not None:
        step.answered = with_failure(answered, span)
    return step


def _model(step: Step, span: Span) -> Step:
    step.model = as_text(span.get("llm.model_name"))
    step.finish_reason = as_text(span.get("llm.finish_reason"))
    step.usage = usage_from(
        span, ("llm.token_count.prompt",), ("llm.token_count.completion",),
        ("llm.token_count.prompt_details.cache_read", "llm.token_count.prompt_details.cache_input"),
    )  # fmt: skip
    step.sent = _messages(span, "llm.input_messages") or items_of(span.get("input.value"))
    told = items_of(span.get("output.value"))
    got = _messages(span, "llm.output_messages")
    about = [item for item in told if isinstance(item, Turn)][:1]
    return with_response(step, [*about, *got] if got else told or _plain(span))


def _plain(span: Span) -> list[Item]:
    """An output that is text and nothing else."""
    value = span.get("output.value")
    is_text = isinstance(value, str) and value and value[:1] not in ("{", "[") and not value.startswith("__")
    return [Said("assistant", str(value))] if is_text else []


def _messages(span: Span, prefix: str) -> list[Item]:
    """The messages of indexed attributes."""
    listed = span.get(prefix)
    return [
        item for each in as_objects(listed) for item in _message(as_object(each.get("message", each)), prefix) or []
    ]  # fmt: skip


def _message(message: dict[str, Any], prefix: str) -> list[Item] | None:
    parts = [as_object(part.get("message_content", part)) for part in as_objects(message.get("contents"))]
    texts = [{"type": "text", "text": part["text"]} for part in parts if isinstance(part.get("text"), str)]
    calls = [as_object(each.get("tool_call", each)) for each in as_objects(message.get("tool_calls"))]
    default = "assistant" if "output" in prefix else "user"
    told: dict[str, Any] = {
        "role": as_text(message.get("role")) or default, "content": as_text(message.get("content")) or texts or "",
    }  # fmt: skip
    if calls:
        told["tool_calls"] = calls
    if message.get("tool_call_id") is not None:
        told["tool_call_id"] = message["tool_call_id"]
    return message_items(told)
