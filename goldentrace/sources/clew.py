"""Clew's own traces: one object with spans, a tool's call and result in one span, model calls beside them.

Its readers of benchmarks make times up, because those files have none: such times are not taken.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects, as_text
from goldentrace.sources.source import Source

NAME: Final = "clew"
MADE_UP_TIMES: Final = frozenset({"toolathlon_jsonl"})
"""Values of metadata.source for which Clew counts seconds by position (clew/ingest/toolathlon.py)."""


def matches(head: Head) -> bool:
    """Whether it is one object with a trace id and spans as Clew names them."""
    if not head.has_key("trace_id", "spans"):
        return False
    spans = as_objects(head.value["spans"])
    return bool(spans) and {"agent_or_node_id", "span_kind"} <= spans[0].keys()


def read(document: Document) -> Iterator[Trace]:
    """Yield the one trace, or one per line."""
    for line, value in document.records():
        if isinstance(value, dict) and isinstance(value.get("spans"), list):
            yield _read_trace(document, value, line)


def _read_trace(document: Document, found: dict[str, Any], line: int) -> Trace:
    about = as_object(found.get("metadata"))
    is_timed = about.get("source") not in MADE_UP_TIMES if isinstance(about.get("source"), str) else True
    absent = {"status": "the format has no flag for a failed tool", "usage": "no model call was recorded"}
    builder = TraceBuilder(
        document, NAME, trace_id=as_name(found.get("trace_id")), scenario_id=as_name(about.get("task_name")),
        attributes={key: value for key, value in about.items() if key != "llm_calls"}, line=line,
        absent=absent if is_timed else {**absent, "times": "they were made up: the file that Clew read has none"},
    )  # fmt: skip
    spans = as_objects(found["spans"])
    tools = [span for span in spans if span.get("span_kind") == "tool"]
    models = [span for span in spans if span.get("span_kind") == "llm"] or as_objects(about.get("llm_calls"))
    moments = [(_time(span, "start_time"), 0, span) for span in models]
    moments += [(_time(span, "start_time"), 1, span) for span in tools]
    moments += [(_time(span, "end_time"), 2, span) for span in tools]
    for moment, kind, span in sorted(moments, key=lambda entry: (entry[0] or "", entry[1])):
        _append(builder, span, kind, moment if is_timed else None)
    return builder.finish()


def _time(span: dict[str, Any], name: str) -> str | None:
    return clock.utc(span.get(name))


def _append(builder: TraceBuilder, span: dict[str, Any], kind: int, ts: str | None) -> None:
    call_id = as_name(span.get("span_id"))
    if kind == 0:
        usage = Usage(
            input_tokens=as_count(span.get("input_tokens")), output_tokens=as_count(span.get("output_tokens")),
            cached_tokens=as_count(span.get("input_tokens_cache_read")),
        )  # fmt: skip
        builder.turn(model=as_text(span.get("model")), usage=None if usage == Usage() else usage, ts=ts)
    elif kind == 1:
        builder.call(
            as_text(span.get("agent_or_node_id")), call_id=call_id, args_text=as_text(span.get("input_text")), ts=ts
        )
    else:
        text = span.get("raw_output_text") if span.get("raw_output_text") is not None else span.get("output_text")
        builder.result(call_id, value=text, ts=ts)


SOURCE: Final = Source(NAME, "Clew traces (its native format)", matches, read, notes="no failed-tool flag")
