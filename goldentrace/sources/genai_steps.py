"""What spans of OpenTelemetry's conventions for generative AI mean, in the dialects of the frameworks that follow them.

Old and new attribute names, indexed attributes (`gen_ai.prompt.0.content`), messages in events, Traceloop, Strands,
pydantic-ai before and after it followed the conventions, the Vercel AI SDK, spans of MCP.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.sources import openinference_steps
from goldentrace.sources.contents import items_of, message_items, parsed
from goldentrace.sources.shapes import as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.spanmeaning import failure_of, rest_of, usage_from, with_failure, with_response
from goldentrace.sources.spans import Span
from goldentrace.sources.steps import Kind, Step
from goldentrace.sources.toolvalues import answered_of, called_of
from goldentrace.sources.transcript import Answered, Called, Item, Said, Turn

_MODEL_OPERATIONS: Final = frozenset({"chat", "generate_content", "text_completion", "completion"})
_AGENT_OPERATIONS: Final = frozenset({"invoke_agent"})
_VERCEL_MODELS: Final = (".doGenerate", ".doStream")
_VERCEL_OUTER: Final = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
_MARKS: Final = ("gen_ai.", "traceloop.", "ai.operationId", "mcp.method.name", "tool_arguments", "llm.request.type")
_GIVEN: Final = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "ai.usage.inputTokens", "ai.usage.promptTokens",
    "llm.usage.prompt_tokens",
)  # fmt: skip
_MADE: Final = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "ai.usage.outputTokens",
    "ai.usage.completionTokens", "llm.usage.completion_tokens",
)  # fmt: skip
_CACHED: Final = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "ai.usage.cachedInputTokens",
    "ai.usage.inputTokenDetails.cacheReadTokens", "gen_ai.usage.details.cache_read_tokens",
)  # fmt: skip
_MESSAGE_EVENTS: Final = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip
"""Events of the conventions before 1.37, one per message."""
_CHOICE: Final = "gen_ai.choice"


def is_span_of(attributes: Any) -> bool:
    """Whether attributes (an object, flat) are of these conventions."""
    return any(key.startswith(_MARKS) for key in as_object(attributes))


def step_of(span: Span) -> Step:
    """Return what a span means; a file may mix these spans with those of OpenInference, which are read as such."""
    if openinference_steps.is_span(span):
        return openinference_steps.step_of(span)
    kind = _kind(span)
    step = Step(
        kind, span.span_id or f"#{id(span)}", span.parent_id, span.name, span.started_ns, span.ended_ns, span.line,
        agent=as_text(span.get("gen_ai.agent.name", "agent_name", "traceloop.agent.name")),
        failure=failure_of(span)[0], extra={} if kind == "other" else rest_of(span),
    )  # fmt: skip
    if kind == "tool":
        return _tool(step, span)
    if kind == "model":
        step.is_guess = as_word(span.attributes.get("ai.operationId")) in _VERCEL_OUTER  # the whole loop of a call
        return _model(step, span)
    if kind == "agent":
        step.agent = step.agent or as_text(span.get("traceloop.entity.name")) or span.name.removeprefix("invoke_agent ")
    return step


def _kind(span: Span) -> Kind:
    operation = as_word(span.attributes.get("gen_ai.operation.name"))
    traceloop = as_word(span.attributes.get("traceloop.span.kind"))
    vercel = as_word(span.attributes.get("ai.operationId"))
    has_tool = as_text(span.attributes.get("gen_ai.tool.name")) is not None
    is_mcp = span.attributes.get("mcp.method.name") == "tools/call"
    if operation == "execute_tool" or traceloop == "tool" or vercel == "ai.toolCall" or is_mcp:
        return "tool"
    if has_tool and ("gen_ai.tool.call.id" in span.attributes or span.name.startswith("running tool")):
        return "tool"
    if operation in _MODEL_OPERATIONS or vercel.endswith(_VERCEL_MODELS) or vercel in _VERCEL_OUTER:
        return "model"
    if as_word(span.attributes.get("llm.request.type")) in ("chat", "completion"):
        return "model"
    if operation in _AGENT_OPERATIONS or traceloop == "agent":
        return "agent"
    has_agent_name = "agent_name" in span.attributes or "gen_ai.agent.name" in span.attributes
    return "agent" if not operation and has_agent_name and span.name.endswith("agent run") else "other"


def _tool(step: Step, span: Span) -> Step:
    name = as_text(span.get("gen_ai.tool.name", "ai.toolCall.name", "mcp.tool.name", "traceloop.entity.name"))
    name = name or span.name.removeprefix("execute_tool ").removeprefix("tools/call ").removesuffix(".tool")
    call_id = as_name(span.get("gen_ai.tool.call.id", "ai.toolCall.id"))
    given = span.get(
        "gen_ai.tool.call.arguments", "tool_arguments", "ai.toolCall.args", "ai.toolCall.input",
        "gcp.vertex.agent.tool_call_args", "traceloop.entity.input",
    )  # fmt: skip
    value = span.get(
        "gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "ai.toolCall.output",
        "gcp.vertex.agent.tool_response", "traceloop.entity.output",
    )  # fmt: skip
    told = _told(span)
    asked = next((item for item in told if isinstance(item, Called)), None)
    answer = next((item for item in told if isinstance(item, Answered)), None)
    step.called = called_of(name or None, call_id, given)
    if given is None and asked is not None:
        step.called = Called(name or None, call_id or asked.call_id, asked.args, asked.args_text)
    answered = answered_of(call_id, value if value is not None or answer is None else answer.value)
    has_ended = span.ended_ns is not None or span.started_ns is None
    if has_ended or value is not None:
        step.answered = with_failure(_stated(answered, span), span)
        if step.called.call_id is None and answered.call_id is not None:
            step.called = called_of(name or None, answered.call_id, given)
    return step


def _stated(answered: Answered, span: Span) -> Answered:
    """Strands states the status of a tool in an attribute."""
    if span.attributes.get("gen_ai.tool.status") != "error":
        return answered
    return Answered(answered.call_id, answered.value, "error", "tool_error", answered.tool_name, extra=answered.extra)


def _told(span: Span) -> list[Item]:
    """The messages in the events of a tool's span (Strands)."""
    found: list[Item] = []
    for event in span.events:
        for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
            found += items_of(event.attributes.get(key))
        if event.name == "gen_ai.tool.message":
            name, call_id = as_text(event.attributes.get("name")), as_name(event.attributes.get("id"))
            found.append(called_of(name, call_id, event.attributes.get("content")))
        elif event.name == _CHOICE:
            found.append(answered_of(as_name(event.attributes.get("id")), event.attributes.get("message")))
    return found


def _model(step: Step, span: Span) -> Step:
    step.model = as_text(span.get("gen_ai.response.model", "ai.response.model", "gen_ai.request.model", "ai.model.id"))
    step.usage = usage_from(span, _GIVEN, _MADE, _CACHED)
    reasons = parsed(span.get("gen_ai.response.finish_reasons", "ai.response.finishReason", "ai.finishReason"))
    step.finish_reason = as_text(as_list(reasons)[0]) if as_list(reasons) else as_text(reasons)
    step.sent = [*_system(span), *_sent(span)]
    return with_response(step, _got(span))


def _system(span: Span) -> list[Item]:
    told = parsed(span.get("gen_ai.system_instructions", "system_prompt"))
    if isinstance(told, str):
        return [Said("system", told)] if told else []
    texts = [as_text(part.get("content")) or as_text(part.get("text")) for part in as_objects(told)]
    return [Said("system", text) for text in texts if text]


def _sent(span: Span) -> list[Item]:
    for value in (span.get("gen_ai.input.messages"), *_in_events(span, "gen_ai.input.messages")):
        found = items_of(value)
        if found:
            return found
    for value in (span.tree("gen_ai.prompt"), span.get("ai.prompt.messages"), span.get("ai.prompt")):
        found = items_of(value)
        if found:
            return found
    return [item for each in _old_events(span) if each[0] != _CHOICE for item in message_items(each[1]) or []]


def _got(span: Span) -> list[Item]:
    for value in (span.get("gen_ai.output.messages"), *_in_events(span, "gen_ai.output.messages")):
        found = items_of(value)
        if found:
            return found
    completions = span.tree("gen_ai.completion")
    if completions:
        as_assistant = [{"role": "assistant", **each} for each in as_objects(completions)]
        reason = next((as_text(each.get("finish_reason")) for each in as_assistant), None)
        return [Turn(finish_reason=reason), *items_of(as_assistant)]
    text = as_text(span.get("ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object"))
    calls = items_of(span.get("ai.response.toolCalls", "ai.result.toolCalls"))
    if text or calls:
        return [*([Said("assistant", text)] if text else []), *calls]
    return [item for each in _old_events(span) if each[0] == _CHOICE for item in message_items(each[1]) or []]


def _in_events(span: Span, key: str) -> Iterator[Any]:
    for event in span.events:
        if key in event.attributes:
            yield event.attributes[key]


def _old_events(span: Span) -> Iterator[tuple[str, dict[str, Any]]]:
    """(event, message) of one event per message: on the span itself, or in pydantic-ai's attribute `events`."""
    listed = [(as_word(each.get("event.name")), each) for each in as_objects(parsed(span.attributes.get("events")))]
    for name, about in (*((event.name, dict(event.attributes)) for event in span.events), *listed):
        if name == _CHOICE:
            message = parsed(about.get("message"))
            content = {"content": message} if not isinstance(message, dict) or "role" not in message else message
            calls = {"tool_calls": parsed(about["tool_calls"])} if "tool_calls" in about else {}
            yield name, {"content": "", **calls, **content, "role": "assistant"}
        elif name in _MESSAGE_EVENTS:
            calls = {"tool_calls": parsed(about["tool_calls"])} if "tool_calls" in about else {}
            message = {"content": about.get("content", ""), "role": about.get("role", _MESSAGE_EVENTS[name]), **calls}
            answers = {"tool_call_id": about["id"]} if "id" in about and name == "gen_ai.tool.message" else {}
            yield name, {**message, **answers}
