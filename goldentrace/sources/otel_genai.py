"""Files of OpenTelemetry spans that follow the conventions for generative AI, or a dialect of them: see genai_steps."""

from collections.abc import Iterator
from typing import Final

from goldentrace.model.trace import Trace
from goldentrace.sources import genai_steps, openinference_steps, otlp
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.source import Source
from goldentrace.sources.spanmeaning import read_spans

NAME: Final = "otel-genai"
ABSENT_REASONS: Final = {
    "usage": "no span counts tokens", "times": "the spans carry no times",
    "arguments": "recording of content is off", "results": "recording of content is off",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether spans carry attributes of these conventions, and none of OpenInference."""
    found = otlp.head_attributes(head)
    return any(genai_steps.is_span_of(each) for each in found) and not any(
        openinference_steps.is_marked(each) for each in found
    )


def may_match(head: Head) -> bool:
    """Whether it is a file of spans at all: the first ones may be of no agent."""
    return bool(otlp.head_attributes(head))


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of a file of spans. Raises: InputError where it is damaged."""
    yield from read_spans(document, NAME, otlp.document_spans(document), genai_steps.step_of, ABSENT_REASONS)


SOURCE: Final = Source(
    NAME, "OpenTelemetry GenAI spans: OTLP (JSON, protobuf), console dumps, flat lists", matches, read,
    may_match=may_match, notes="arguments and results only where the recording of content was on",
)  # fmt: skip
