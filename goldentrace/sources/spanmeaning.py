"""What the dialects of spans have in common: how a span fails, what of it has no field, how a file becomes traces."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from goldentrace.model.event import Usage
from goldentrace.model.trace import Trace
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_count, as_name, as_number, as_text
from goldentrace.sources.spans import Span
from goldentrace.sources.steps import History, Step, failure_class
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
        input_tokens=_count(span.get(*given)), output_tokens=_count(span.get(*made)),
        cached_tokens=_count(span.get(*cached)),
        cost_usd=as_number(span.get("operation.cost", "gen_ai.usage.cost", "llm.cost.total")),
    )  # fmt: skip
    return None if found == Usage() else found


def _count(value: Any) -> int | None:
    """TRAIL writes every attribute as text."""
    is_digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20
    return as_count(int(value) if is_digits else value)


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
    found: dict[str | None, _Gathered] = {}
    for span in spans:
        found.setdefault(span.trace_id, _Gathered()).add(span, step_of)
    idle = sum(not has_activity(each.steps) for each in found.values())
    for trace_id in list(found):
        gathered = found.pop(trace_id)
        if not has_activity(gathered.steps):
            continue
        notes = gathered.notes + ((f"{idle} traces without a call or a response were left out",) if idle else ())
        idle = 0
        info = TraceInfo(
            trace_id, name=trace_id, absent=absence(gathered.steps, absent), attributes=gathered.described(),
            prompt=gathered.prompt(), notes=notes,
        )  # fmt: skip
        yield read_steps(document, source, gathered.steps, info)


class _Gathered:
    """What a file holds about one trace: the steps, and of the outermost span what describes the run."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.notes: tuple[str, ...] = ()
        self._root: Span | None = None
        self._conversation: str | None = None
        self._seen: dict[str, bytes] = {}
        self._history = History()

    def add(self, span: Span, step_of: Callable[[Span], Step]) -> None:
        """Take a span in; one that an exporter sent twice counts once."""
        if span.span_id is not None:
            content = _content(span)
            if self._seen.get(span.span_id) == content:
                self.notes = ("spans that stand in the file twice were read once",)
                return
            self._seen.setdefault(span.span_id, content)
        self.steps.append(self._history.keep(step_of(span)))
        if span.parent_id is None and self._root is None:
            self._root = span
        self._conversation = self._conversation or as_name(span.get("gen_ai.conversation.id", "session.id"))

    def described(self) -> dict[str, Any]:
        """The attributes of the trace."""
        if self._root is None:
            return {"conversation_id": self._conversation}
        return {
            "root_span": self._root.name, "conversation_id": self._conversation, "scope": self._root.scope,
            "service_name": self._root.resource.get("service.name"),
        }  # fmt: skip

    def prompt(self) -> tuple[Item, ...]:
        """What the run was given, where its outermost span says it in plain text."""
        text = None if self._root is None else as_text(self._root.get("input.value"))
        is_plain = text is not None and text[:1] not in ("{", "[") and not text.startswith("__")
        return (Said("user", text),) if text is not None and is_plain else ()


def _content(span: Span) -> bytes:
    """What makes a span the same one when an exporter sends it again."""
    about = (span.name, span.started_ns, span.ended_ns, span.status, sorted(span.attributes), span.attributes)
    return hashlib.sha256(repr(about).encode("utf-8", "surrogatepass")).digest()


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
