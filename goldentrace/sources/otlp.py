"""Files of spans: JSON in any framing, and OTLP protobuf, plain or with a length before each message.

Protobuf needs the optional opentelemetry-proto. Must not know what an attribute means.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from goldentrace.errors import InputError
from goldentrace.sources import spans
from goldentrace.sources.document import Document
from goldentrace.sources.head import HEAD_RECORDS, Head
from goldentrace.sources.shapes import as_objects
from goldentrace.sources.spans import SPAN_LISTS, Span, is_span, spans_of

NEXT_STEP: Final = "pip install goldentrace[otlp], or export the spans as JSON"
_LENGTH_BYTES: Final = 4
_WORDS: Final = (
    "gen_ai.", "openinference.span.kind", "traceloop.", "ai.operationId", "mcp.method.name", "tool_arguments",
)  # fmt: skip


def head_attributes(head: Head) -> list[Mapping[str, Any]]:
    """Return the attributes of the spans at the start of a file, empty where it holds none.

    Of protobuf, which a head may cut off, the words that stand in it count as keys of one span.
    """
    if is_protobuf(head.data):
        return [{word: "" for word in _WORDS if word.encode() in head.data}]
    values = head.records
    if len(values) == 1 and isinstance(values[0], list):
        values = tuple(values[0])
    objects = [each for each in values if isinstance(each, dict)]
    if not objects or not all(_may_hold_spans(each) for each in objects):
        return []
    found = (span.attributes for each in objects for span in spans_of(each))
    return list(itertools.islice(found, HEAD_RECORDS * 16))


def _may_hold_spans(value: dict[str, Any]) -> bool:
    """Whether an object is a span, OTLP, or a plain list of spans; traces of other formats have other keys beside."""
    if "resourceSpans" in value or "resource_spans" in value:
        return True
    if "child_spans" in value or "run_type" in value:
        return False
    if is_span(value):
        return True
    lists = [as_objects(value.get(key)) for key in SPAN_LISTS if key in value]
    return any(inner and all(is_span(each) and "child_spans" not in each for each in inner) for inner in lists)


def is_protobuf(data: bytes) -> bool:
    """Whether bytes begin as OTLP protobuf does, plain or with a length of four bytes before it."""
    body = data[_LENGTH_BYTES:] if data[:1] == b"\0" else data
    if body[:1] != b"\n":
        return False
    found = _varint(body, 1)
    return found is not None and found[0] > 2 and body[found[1] : found[1] + 1] in (b"\x0a", b"\x12")


def document_spans(document: Document) -> Iterator[Span]:
    """Yield the spans of a file. Raises: InputError where it is damaged or nothing here can read it."""
    if not is_protobuf(document.head.data):
        yield from spans.document_spans(document)
        return
    for message in _messages(document):
        yield from spans_of(_decoded(document, message))


def _messages(document: Document) -> Iterator[bytes]:
    data = document.read()
    if data[:1] != b"\0":
        yield data
        return
    place = 0
    while place < len(data):
        size_bytes = int.from_bytes(data[place : place + _LENGTH_BYTES], "big")
        place += _LENGTH_BYTES
        if place + size_bytes > len(data):
            raise InputError(
                "the last message is cut off", where=document.where(), next_step="copy or export the file again"
            )
        yield data[place : place + size_bytes]
        place += size_bytes


def _decoded(document: Document, data: bytes) -> dict[str, Any]:
    """One export request in the shape of OTLP's JSON, ids in hex."""
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        raise InputError("is OTLP protobuf", where=document.where(), next_step=NEXT_STEP) from None
    request = TracesData()
    try:
        request.ParseFromString(data)
    except DecodeError:
        raise InputError(
            "is no OTLP protobuf", where=document.where(), next_step="copy or export the file again"
        ) from None
    return {"resourceSpans": [_resource_spans(each) for each in request.resource_spans]}


def _resource_spans(each: Any) -> dict[str, Any]:
    return {
        "resource": {"attributes": _pairs(each.resource.attributes)},
        "scopeSpans": [
            {"scope": {"name": scoped.scope.name}, "spans": [_span(span) for span in scoped.spans]}
            for scoped in each.scope_spans
        ],
    }


def _span(span: Any) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(), "spanId": span.span_id.hex(), "parentSpanId": span.parent_span_id.hex(),
        "name": span.name, "startTimeUnixNano": span.start_time_unix_nano, "endTimeUnixNano": span.end_time_unix_nano,
        "attributes": _pairs(span.attributes), "status": {"code": span.status.code, "message": span.status.message},
        "events": [{"name": event.name, "attributes": _pairs(event.attributes)} for event in span.events],
    }  # fmt: skip


def _pairs(pairs: Any) -> list[dict[str, Any]]:
    return [{"key": pair.key, "value": _value(pair.value)} for pair in pairs]


def _value(value: Any) -> dict[str, Any]:
    kind = value.WhichOneof("value")
    if kind is None:
        return {}
    if kind == "array_value":
        return {"arrayValue": {"values": [_value(each) for each in value.array_value.values]}}
    if kind == "kvlist_value":
        return {"kvlistValue": {"values": _pairs(value.kvlist_value.values)}}
    found = getattr(value, kind)
    return {kind: found.hex() if isinstance(found, bytes) else found}


def _varint(data: bytes, place: int) -> tuple[int, int] | None:
    """(value, offset after it)."""
    value = shift = 0
    for offset in range(place, min(place + 10, len(data))):
        value |= (data[offset] & 0x7F) << shift
        if not data[offset] & 0x80:
            return value, offset + 1
        shift += 7
    return None
