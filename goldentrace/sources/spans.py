"""Spans of OpenTelemetry and of what is modelled on them, from every file that keeps them.

OTLP (JSON and protobuf), the console dump of the SDKs, flat lists, lists of Phoenix, nested spans of TRAIL. Ids are
kept as they stand (hex; never through protobuf's own JSON, which reads them as base64), without `0x`. A status that is
not set is not an error. Must not know what an attribute means.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from goldentrace.sources.contents import parsed
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.steps import nanoseconds

MAX_KEY_PARTS: Final = 24
SPAN_LISTS: Final = ("spans", "data", "traces")
_ISO_PARTS: Final = {"D": 86_400, "H": 3_600, "M": 60, "S": 1}


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """name and attributes of one event of a span."""

    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """status: `ok`, `error` or, where it is not set, empty. attributes: flat, dotted keys."""

    trace_id: str | None
    span_id: str | None
    parent_id: str | None
    name: str
    started_ns: int | None
    ended_ns: int | None
    status: str
    message: str | None
    attributes: Mapping[str, Any]
    events: tuple[SpanEvent, ...] = ()
    line: int | None = None
    scope: str | None = None
    resource: Mapping[str, Any] = field(default_factory=dict)

    def get(self, *keys: str) -> Any:
        """The first of these attributes that is there; one that was kept as an object is put together again."""
        for key in keys:
            found = self.attributes.get(key)
            if found is not None:
                return found
            if any(name.startswith(f"{key}.") for name in self.attributes) and (tree := self.tree(key)):
                return tree
        return None

    def tree(self, prefix: str) -> Any:
        """What stands below a prefix, as objects and arrays; numbers in keys are sorted as numbers."""
        start = f"{prefix}."
        below = {key[len(start) :]: value for key, value in self.attributes.items() if key.startswith(start)}
        return _nested(below) if below else None


def spans_of(value: Any, line: int | None = None) -> Iterator[Span]:
    """Yield the spans that one JSON value of a file holds, in whichever of the shapes."""
    if isinstance(value, list):
        for each in value:
            yield from spans_of(each, line)
    elif isinstance(value, dict):
        wrapped = value.get("resourceSpans", value.get("resource_spans"))
        if isinstance(wrapped, list):
            yield from _otlp(wrapped, line)
        elif is_span(value):
            yield from _plain(value, line)
        else:
            for key in SPAN_LISTS:
                if isinstance(value.get(key), list):
                    yield from spans_of(value[key], line)


def is_span(value: Mapping[str, Any]) -> bool:
    """Whether an object is one span by itself."""
    has_name = "name" in value or "span_name" in value
    has_attributes = any(isinstance(value.get(key), dict) for key in ("attributes", "span_attributes"))
    return has_name and (has_attributes or any(key.startswith("attributes.") for key in value))


def document_spans(document: Document) -> Iterator[Span]:
    """Yield the spans of a JSON file. Raises: InputError where it is none."""
    has_lines = document.is_line_file()
    for line, value in document.records():
        yield from spans_of(value, line if has_lines else None)


def _otlp(resources: Iterable[Any], line: int | None) -> Iterator[Span]:
    for holder in as_objects(list(resources)):
        resource = _pairs(as_object(holder.get("resource")).get("attributes"))
        scopes = holder.get("scopeSpans", holder.get("scope_spans", holder.get("instrumentationLibrarySpans")))
        for scoped in as_objects(scopes):
            scope = as_text(as_object(scoped.get("scope")).get("name"))
            for span in as_objects(scoped.get("spans")):
                yield _otlp_span(span, line, scope, resource)


def _otlp_span(span: dict[str, Any], line: int | None, scope: str | None, resource: Mapping[str, Any]) -> Span:
    status = as_object(span.get("status"))
    code = status.get("code")
    events = tuple(
        SpanEvent(as_text(each.get("name")) or "", _pairs(each.get("attributes")))
        for each in as_objects(span.get("events"))
    )
    return Span(
        _hex_id(span.get("traceId", span.get("trace_id"))), _hex_id(span.get("spanId", span.get("span_id"))),
        _hex_id(span.get("parentSpanId", span.get("parent_span_id"))), as_text(span.get("name")) or "",
        nanoseconds(span.get("startTimeUnixNano", span.get("start_time_unix_nano"))),
        nanoseconds(span.get("endTimeUnixNano", span.get("end_time_unix_nano"))),
        _status(code), as_text(status.get("message")), _pairs(span.get("attributes")), events, line, scope, resource,
    )  # fmt: skip


def _plain(span: dict[str, Any], line: int | None) -> Iterator[Span]:
    """A span whose attributes are an object (console, Phoenix, flat lists, TRAIL), then the spans within it."""
    waiting: list[tuple[dict[str, Any], str | None]] = [(span, None)]
    while waiting:
        each, outer_id = waiting.pop()
        found = _plain_span(each, line, outer_id)
        yield found
        inner = as_objects(each.get("child_spans"))
        waiting += [(child, found.span_id) for child in reversed(inner)]


def _plain_span(span: dict[str, Any], line: int | None, outer_id: str | None) -> Span:
    context = as_object(span.get("context"))
    status = span.get("status_code", span.get("statusCode", span.get("status")))
    message = span.get("status_message", span.get("statusMessage"))
    if isinstance(status, dict):
        message = status.get("description", status.get("message", message))
        status = status.get("status_code", status.get("code"))
    given: dict[str, Any] = {}
    for name in ("attributes", "span_attributes"):
        given |= as_object(span.get(name))
    given |= {key[11:]: item for key, item in span.items() if key.startswith("attributes.") and item is not None}
    kind = span.get("span_kind")
    if isinstance(kind, str) and kind.isupper() and "openinference.span.kind" not in given:
        given["openinference.span.kind"] = kind
    started = nanoseconds(_first(span, "start_time", "startTime", "timestamp", "started_at"))
    ended = nanoseconds(_first(span, "end_time", "endTime", "ended_at"))
    if ended is None and started is not None:
        passed_ns = _duration_ns(span.get("duration"))
        ended = None if passed_ns is None else started + passed_ns
    events = tuple(
        SpanEvent(as_text(each.get("name", each.get("Name"))) or "", _flat(_event_attributes(each)))
        for each in as_objects(parsed(span.get("events")))
    )
    return Span(
        _hex_id(_first(context, "trace_id", "traceId") or _first(span, "trace_id", "traceId", "context.trace_id")),
        _hex_id(_first(context, "span_id", "spanId") or _first(span, "span_id", "spanId", "context.span_id")),
        _hex_id(_first(span, "parent_id", "parent_span_id", "parentId", "parentSpanId")) or outer_id,
        as_text(_first(span, "name", "span_name")) or "", started, ended, _status(status), as_text(message),
        _flat(given), events, line, as_text(span.get("scope_name")),
        as_object(as_object(span.get("resource")).get("attributes", span.get("resource_attributes"))),
    )  # fmt: skip


def _event_attributes(event: dict[str, Any]) -> dict[str, Any]:
    return as_object(event.get("attributes", event.get("Attributes")))


def _first(values: Mapping[str, Any], *keys: str) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)


def _hex_id(value: Any) -> str | None:
    """An id without `0x`; all zeros is how OTLP writes none."""
    name = as_name(value)
    if name is None:
        return None
    name = name.removeprefix("0x")
    return name if name.strip("0") else None


def _status(code: Any) -> str:
    """UNSET is neither: an instrumentation sets OK hardly ever, so a span without a status did not fail."""
    if isinstance(code, str):
        code = code.rsplit(".", 1)[-1].removeprefix("STATUS_CODE_").upper()
    return "error" if code in (2, "2", "ERROR") else "ok" if code in (1, "1", "OK") else ""


def _pairs(attributes: Any) -> dict[str, Any]:
    """OTLP's list of keys and typed values."""
    return {
        pair["key"]: _typed(pair.get("value"), 0) for pair in as_objects(attributes) if isinstance(pair.get("key"), str)
    }


def _typed(value: Any, depth: int) -> Any:
    holder = as_object(value)
    for kind, inner in holder.items():
        kind = kind.replace("_", "").lower()  # noqa: PLW2901 (protobuf's JSON writes int_value or intValue)
        if kind == "intvalue":
            text = str(inner)
            return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 24 else inner
        if kind == "arrayvalue" and depth < 64:
            return [_typed(each, depth + 1) for each in as_list(as_object(inner).get("values"))]
        if kind == "kvlistvalue" and depth < 64:
            pairs = as_objects(as_object(inner).get("values"))
            return {as_word(pair.get("key")): _typed(pair.get("value"), depth + 1) for pair in pairs}
        return inner
    return None


def _flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with dotted keys, from objects within objects and lists of objects (Phoenix)."""
    flat: dict[str, Any] = {}
    waiting: list[tuple[str, Any, int]] = [(key, value, 0) for key, value in reversed(list(attributes.items()))]
    while waiting:
        key, value, depth = waiting.pop()
        if isinstance(value, dict) and value and depth < MAX_KEY_PARTS:
            waiting += [(f"{key}.{name}", item, depth + 1) for name, item in reversed(value.items())]
        elif depth < MAX_KEY_PARTS and _is_list_of_objects(value):
            waiting += [(f"{key}.{index}", item, depth + 1) for index, item in reversed(list(enumerate(value)))]
        else:
            flat[key] = value
    return flat


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


class _Node(dict[str, Any]):
    """An object that stands for a part of a key, not a value of its own."""


def _nested(below: Mapping[str, Any]) -> Any:
    root = _Node()
    for key, value in below.items():
        place = root
        *path, last = key.split(".", MAX_KEY_PARTS)
        for part in path:
            inner = place.setdefault(part, _Node())
            if not isinstance(inner, _Node):
                inner = place[part] = _Node()
            place = inner
        place.setdefault(last, value)
    return _with_arrays(root)


def _with_arrays(value: Any) -> Any:
    if not isinstance(value, _Node):
        return value
    if value and all(key.isascii() and key.isdigit() and len(key) < 10 for key in value):
        return [_with_arrays(value[key]) for key in sorted(value, key=int)]
    return {key: _with_arrays(item) for key, item in value.items()}


def _duration_ns(value: Any) -> int | None:
    """An ISO 8601 duration such as `PT1M2.25S` in ns."""
    text = as_text(value)
    if text is None or not text.startswith("P") or len(text) > 40:
        return None
    total_s, number = 0.0, ""
    for mark in text[1:].replace("T", ""):
        if mark in _ISO_PARTS and number:
            try:
                total_s += float(number) * _ISO_PARTS[mark]
            except ValueError:
                return None
            number = ""
        elif mark.isascii() and (mark.isdigit() or mark == "."):
            number += mark
        else:
            return None
    return round(total_s * 1_000_000) * 1000 if total_s < 10**9 else None
