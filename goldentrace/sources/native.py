"""goldentrace's own events, so that every reader of traces takes them by the same door."""

from collections.abc import Iterator

from goldentrace.codec.trace import read_trace
from goldentrace.model.event import DECISION_KINDS
from goldentrace.model.trace import Trace
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.source import Source


def matches(head: Head) -> bool:
    """Whether the first line is a trace_start."""
    return isinstance(head.value, dict) and head.value.get("type") == "trace_start"


def read(document: Document) -> Iterator[Trace]:
    """Yield the one trace. Raises: InputError naming line and field."""
    yield read_trace(document.read(), document.name)


SOURCE = Source("goldentrace", "goldentrace/1 events, JSON lines", matches, read, states=DECISION_KINDS)
