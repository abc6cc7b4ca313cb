"""Files of OpenInference spans: OTLP, lists of Phoenix, flat lists (see openinference_steps for what they mean)."""

from collections.abc import Iterator
from typing import Final

from goldentrace.model.trace import Trace
from goldentrace.sources import genai_steps, openinference_steps, otlp
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.source import Source
from goldentrace.sources.spanmeaning import read_spans

NAME: Final = "openinference"


def matches(head: Head) -> bool:
    """Whether spans name a kind of OpenInference."""
    return any(openinference_steps.is_marked(each) for each in otlp.head_attributes(head))


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of a file of spans. Raises: InputError where it is damaged."""
    yield from read_spans(
        document, NAME, otlp.document_spans(document), genai_steps.step_of, openinference_steps.ABSENT_REASONS
    )


SOURCE: Final = Source(
    NAME, "OpenInference spans: OTLP (JSON, protobuf), lists of Phoenix, flat lists", matches, read,
    notes="most instrumentors give a call no id; it is matched to the response before it",
)  # fmt: skip
