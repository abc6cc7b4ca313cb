"""What the dialects of spans have in common: how a span fails, what of it has no field, how a file becomes traces."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from goldentrace.model.event import Usage
from goldentrace.model.trace import Trace
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_count, as_name, as_number, as_text
from goldentrace.sources.spans import Span
from goldentrace.sources.steps import Step, failure_class
from goldentrace.sources.steptrace import TraceInfo, has_activity, read_steps
from goldentrace.sources.toolvalues import HIDDEN
from goldentrace.sources.transcript import Answered, Item, Said, Turn

_READ: Final = (
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt.", "gen_ai.completion.", "gen_ai.tool.call.",
    "gen_ai.tool.name", "gen_ai.operation.name", "gen_ai.usage.", "gen_ai.system_instructions",
    "gen_ai.tool.definitions", "tool_arguments", "tool_response", "ai.toolCall.", "ai.prompt", "ai.response.text",
    "ai.response.toolCalls", "ai.response.object", "ai.result.", "ai.usage.", "logfire.", "llm.input_messages",
    "llm.output_messages", "llm.token_count.", "llm.tools", "llm.prompts", "input.value", "output.value",
    "input.mime_type", "output.mime_type", "traceloop.entity.input", "traceloop.entity.output", "events",
    "model_request_parameters", "openinference.span.kind", "tool.name", "tool.id", "pydantic_ai.all_messages",
    "all_messages_events", "gen_ai.event.", "llm.request.functions.", "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response",
)  # fmt: skip
_SECRET_WORDS: Final = ("reasoning", "thinking", "thought")


def rest_of(span: Span) -> dict[str, Any]:
    """Return the attributes that have no field, without what repeats messages and without hidden reasoning."""
    left = {
        key: value for key, value in span.attributes.items()
        if not key.startswith(_READ) and (isinstance(value, (int, float)) or not any(w in key for w in _SECRET_WORDS))
    }  # fmt: skip
    return {"span_id": span.span_id, "attributes": left}


def failure_of(span: Span) -> tuple[str | None, Any]:
    """Return (what went wrong, the name of its type), (None, None) where the span did not fail.

    A span failed where its status says so, where it names an `error.type`, or where it recorded an exception and does
    not call itself OK.
    """
    exception = next((each for each in span.events if each.name == "exception"), None)
    kind = span.attributes.get("error.type")
    has_failed = span.status == "error" or kind is not None or (exception is not None and span.status != "ok")
    if not has_failed:
        return None, None
    about = exception.attributes if exception is not None else {}
    named = about.get("exception.type") or kind or span.attributes.get("exception.type")
    text = span.message or as_text(about.get("exception.message")) or as_text(kind) or "failed"
    return text, named


def with_failure(answered: Answered, span: Span) -> Answered:
    """Return the result with the failure of its span: the flag of the result itself counts too."""
    text, named = failure_of(span)
    if text is None:
        return answered
    http = as_count(span.get("http.response.status_code", "http.status_code"))
    status, error_class = failure_class(named, http)
    extra = {**answered.extra, "error": text, "error_type": named}
    return replace(answered, status=status, error_class=error_class, extra=extra)


def usage_from(span: Span, given: tuple[str, ...], made: tuple[str, ...], cached: tuple[str, ...]) -> Usage | None:
    """Return the usage that these attributes count, None where they count nothing."""
    found = Usage(
        input_tokens=as_count(span.get(*given)), output_tokens=as_count(span.get(*made)),
        cached_tokens=as_count(span.get(*cached)),
        cost_usd=as_number(span.get("operation.cost", "gen_ai.usage.cost", "llm.cost.total")),
    )  # fmt: skip
    return None if found == Usage() else found


def with_response(step: Step, got: Iterable[Item]) -> Step:
    """Give a model's step its response, and what only the response says about how it ended."""
    step.got = list(got)
    for item in step.got:
        if isinstance(item, Turn):
            step.model = step.model or item.model
            step.finish_reason = step.finish_reason or item.finish_reason
            step.usage = step.usage or item.usage
    return step


def read_spans(
    document: Document, source: str, spans: Iterable[Span], step_of: Callable[[Span], Step], absent: dict[str, str]
) -> Iterator[Trace]:
    """Yield the traces of spans that may belong to many, in the order in which the traces first appear."""
    steps: dict[str | None, list[Step]] = {}
    roots: dict[str | None, Span] = {}
    conversations: dict[str | None, str] = {}
    for span in spans:
        steps.setdefault(span.trace_id, []).append(step_of(span))
        if span.parent_id is None:
            roots.setdefault(span.trace_id, span)
        conversation = as_name(span.get("gen_ai.conversation.id", "session.id"))
        if conversation is not None:
            conversations.setdefault(span.trace_id, conversation)
    kept = {trace_id: found for trace_id, found in steps.items() if has_activity(found)}
    idle = len(steps) - len(kept)
    for number, (trace_id, found) in enumerate(kept.items()):
        root = roots.get(trace_id)
        prompt = as_text(root.get("input.value")) if root is not None else None
        info = TraceInfo(
            trace_id, name=trace_id, absent=absence(found, absent),
            attributes=_described(root, conversations.get(trace_id)), prompt=prompt_of(root, prompt),
            notes=(f"{idle} traces without a call or a response were left out",) if idle and not number else (),
        )  # fmt: skip
        steps[trace_id] = []
        yield read_steps(document, source, found, info)


def absence(steps: Iterable[Step], absent: Mapping[str, str]) -> dict[str, str]:
    """Return the reasons of absence that concern these steps, with what the instrumentation hid."""
    found = dict(absent)
    tools = [step for step in steps if step.kind == "tool"]
    if not tools:
        found = {name: reason for name, reason in found.items() if name == "usage"}
    for step in tools:
        if step.called.extra.get("arguments") == HIDDEN:
            found["arguments"] = HIDDEN
        if step.answered is not None and step.answered.extra.get("result") == HIDDEN:
            found["results"] = HIDDEN
    return found


def prompt_of(root: Span | None, text: str | None) -> tuple[Item, ...]:
    """Return what the run was given, where its outermost span says it in plain text."""
    if root is None or not text or text[:1] in ("{", "[") or text.startswith("__"):
        return ()
    return (Said("user", text),)


def _described(root: Span | None, conversation: str | None) -> dict[str, Any]:
    if root is None:
        return {"conversation_id": conversation}
    return {
        "root_span": root.name, "conversation_id": conversation, "service_name": root.resource.get("service.name"),
        "scope": root.scope,
    }  # fmt: skip
