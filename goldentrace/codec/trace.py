"""Reads one file of `goldentrace/1` events, strictly and by bytes, and writes event lines.

Well-formed files take the fast path: one typed decode of all lines. Anything unusual (an unknown type or field, a torn
tail, damage) takes the slow path, line by line, which either accepts and notes it or raises an error that names the
line. What is refused: no line, a line that is no object, a wrong field type, a second trace_start, anything after
trace_end, invalid UTF-8, NaN, a NUL run, a gap in `seq`, a wrong checksum. This module must not normalize.
"""

import hashlib
import re
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import MAX_DEPTH, TOO_DEEP, JsonError, decode, encode, encode_raw, may_be_deeper
from goldentrace.codec.surrogates import listed_places, readable
from goldentrace.errors import InputError, Where
from goldentrace.model.event import EVENT_TYPES, FORMAT, AnyEvent, Event, TraceEnd, TraceStart
from goldentrace.model.trace import Note, Trace

BOM: Final = b"\xef\xbb\xbf"
_DECODER: Final = msgspec.json.Decoder(AnyEvent)
_FIELDS_DECODER: Final = msgspec.json.Decoder(dict[str, Raw])
_ENCODER: Final = msgspec.json.Encoder()
_FIELD_IN_MESSAGE: Final = re.compile(r" - at `(?P<pointer>\$[^`]*)`")
_REQUIRED: Final = {
    name: [field.name for field in msgspec.structs.fields(kind) if field.required] for name, kind in EVENT_TYPES.items()
}
NO_END: Final = "there is no trace_end: the run was cut off while it was recorded"
RE_RECORD: Final = "record the run again, or repair the line"


def read_trace(data: bytes, path: str) -> Trace:
    """Return the trace that the bytes of one file hold.

    Accepted and noted: a BOM, CRLF, blank lines, unknown event types, unknown fields (kept in `extra`), a torn last
    line and a missing trace_end (both make the trace incomplete; so does a trace_end that says why it is, which is not
    among the events). path: as people know the file, for messages. Raises: InputError naming file, line and field for
    anything else that is not `goldentrace/1`.
    """
    body = data.removeprefix(BOM)
    if not body.strip():
        raise InputError("the trace is empty", where=Where(path), next_step="record a run into it first")
    events = _decode_all(body)
    lines: list[int] | None = None
    notes: list[Note] = []
    torn: str | None = None
    if events is None:
        events, lines, notes, torn = _decode_each(body, path)
    return _checked(events, lines, notes, torn, path, body)


def encode_event(event: Event) -> bytes:
    """Return one line, LF included, for an event."""
    try:
        return _ENCODER.encode(event) + b"\n"
    except UnicodeEncodeError:
        fields = {name: value for name in event.__struct_fields__ if (value := getattr(event, name)) is not None}
        kind = {"type": event.__struct_config__.tag}
        return (
            encode({**kind, **{k: decode(v) if isinstance(v, Raw) else v for k, v in fields.items() if v != Raw()}})
            + b"\n"
        )


def _too_deep(row: bytes, where: Where) -> InputError:
    """The error for a line that nests too deeply, with the field that does where that can be told."""
    try:
        fields = _FIELDS_DECODER.decode(row)
    except (msgspec.DecodeError, RecursionError):
        fields = {}
    deep = [name for name, value in fields.items() if _is_too_deep(bytes(value), MAX_DEPTH - 1)]
    pointer = f"$.{deep[0]}" if len(deep) == 1 else None
    return InputError(TOO_DEEP, where=Where(where.path, where.line, pointer), next_step="flatten the value, or drop it")


def _decode_all(body: bytes) -> list[AnyEvent] | None:
    """All events of a file without a blank line and without anything unusual, else None."""
    if not body.endswith(b"\n") or b"\0" in body:
        return None
    if not body.isascii():
        try:
            body.decode("utf-8")  # Raw values pass through msgspec unchecked
        except UnicodeDecodeError:
            return None
    try:
        events = _DECODER.decode_lines(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(events) != body.count(b"\n"):  # a blank line is no event, and shifts the others
        return None
    long_rows = [row for row in BytesIO(body) if len(row) > 2 * MAX_DEPTH]  # each level opens and closes
    return None if any(map(_is_too_deep, long_rows)) else events


def _is_too_deep(row: bytes, max_depth: int = MAX_DEPTH) -> bool:
    """Does a line nest beyond what those who walk values take? msgspec passes arguments and results by unread."""
    if not may_be_deeper(row, max_depth):
        return False
    try:
        decode(row, max_depth)
    except JsonError as error:
        return str(error) == TOO_DEEP
    return False


def _decode_each(body: bytes, path: str) -> tuple[list[AnyEvent], list[int], list[Note], str | None]:
    events: list[AnyEvent] = []
    lines: list[int] = []
    notes: list[Note] = []
    rows = body.split(b"\n")
    last = len(rows) - 1  # what follows the final LF: empty where the file is whole
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        where = Where(path, number)
        try:
            event = _decode_line(row, where, notes)
        except InputError:
            if number - 1 == last and not _is_json(row):
                torn = f"the last line is torn ({len(row)} bytes dropped)"
                notes.append(Note(torn, number))
                if not events:
                    raise
                return events, lines, notes, torn
            raise
        if event is not None:
            events.append(event)
            lines.append(number)
    return events, lines, notes, None


def _is_json(row: bytes) -> bool:
    try:
        decode(row)
    except JsonError:
        return False
    return True


def _decode_line(row: bytes, where: Where, notes: list[Note]) -> AnyEvent | None:
    """One event; None for a type that this version does not know (noted)."""
    _refuse_damage(row, where)
    if _is_too_deep(row):
        raise _too_deep(row, where)
    try:
        row.decode("utf-8")
        return _DECODER.decode(row)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start} of the line)", where=where, next_step=RE_RECORD) from None
    except RecursionError:
        raise _too_deep(row, where) from None
    except msgspec.ValidationError as error:
        return _decode_loosely(row, where, notes, error)
    except msgspec.DecodeError:
        return _decode_value(row, where, notes)


def _decode_loosely(row: bytes, where: Where, notes: list[Note], error: msgspec.ValidationError) -> AnyEvent | None:
    """An object that is no known event as it stands: an unknown type, or unknown fields that go to `extra`."""
    try:
        fields = _FIELDS_DECODER.decode(row)
        kind = decode(fields["type"]) if "type" in fields else None
    except RecursionError:
        raise _too_deep(row, where) from None
    except (msgspec.DecodeError, JsonError):
        return _decode_value(row, where, notes)
    if not isinstance(kind, str):
        raise InputError(
            "an event without a `type`", where=where, next_step="`goldentrace schema trace` prints the format"
        )
    if kind not in EVENT_TYPES:
        notes.append(Note(f"event type {kind!r} is not known and was left out", where.line))
        return None
    known = EVENT_TYPES[kind]
    unknown = [name for name in fields if name != "type" and name not in known.__struct_fields__]
    if not unknown:
        raise _wrong_field(error, where, kind)
    try:
        extra = {**decode(fields.get("extra", Raw(b"{}"))), **{name: decode(fields[name]) for name in unknown}}
        kept = {name: value for name, value in fields.items() if name not in unknown and name != "extra"}
        line = encode({**{name: Raw(bytes(value)) for name, value in kept.items()}, "extra": extra})
        notes.append(Note(f"unknown fields kept in extra: {', '.join(unknown)}", where.line))
        return _DECODER.decode(line)
    except msgspec.ValidationError as second:
        raise _wrong_field(second, where, kind) from None
    except (JsonError, TypeError) as second:
        raise InputError(str(second), where=where, next_step=RE_RECORD) from None


def read_line(row: bytes, where: Where, decoder: Any, kind: str, next_step: str) -> Any:
    """Return one line of a golden, typed; every damage is an error that says that the golden is not readable."""
    try:
        return _decode_strictly(row, where, decoder)
    except InputError as error:
        raise InputError(f"{kind} is not readable: {error.what}", where=error.where, next_step=next_step) from None


def _decode_strictly(row: bytes, where: Where, decoder: Any) -> Any:
    _refuse_damage(row, where)
    if _is_too_deep(row):
        raise _too_deep(row, where)
    try:
        row.decode("utf-8")
        return decoder.decode(row)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start} of the line)", where=where) from None
    except RecursionError:
        raise _too_deep(row, where) from None
    except msgspec.ValidationError as error:
        raise _wrong_field(error, where, "golden") from None
    except msgspec.DecodeError:
        return _convert_strictly(row, where, decoder)


def _convert_strictly(row: bytes, where: Where, decoder: Any) -> Any:
    """A line that msgspec cannot parse: damaged, or with a lone surrogate, which arguments may name or hold."""
    try:
        value = decode(row)
    except JsonError as error:
        raise InputError(str(error), where=where) from None
    try:
        return _converted(value, decoder)
    except msgspec.ValidationError as error:
        raise _wrong_field(error, where, "golden") from None


def _converted(value: Any, decoder: Any) -> Any:
    try:
        return msgspec.convert(value, decoder.type)
    except UnicodeEncodeError:  # in a key, or where only some words may stand: no such word holds a surrogate
        return msgspec.convert(readable(value), decoder.type)


def _refuse_damage(row: bytes, where: Where) -> None:
    if b"\0" in row:
        raise InputError(
            "a run of NUL bytes: the file was damaged after it was written", where=where, next_step=RE_RECORD
        )
    if row.startswith((b"<<<<<<< ", b"=======", b">>>>>>> ", b"|||||||")):
        raise InputError("conflict marker", where=where, next_step="resolve the merge, then run the command again")


def _decode_value(row: bytes, where: Where, notes: list[Note]) -> AnyEvent | None:
    """A line that msgspec cannot parse: damaged, or with a lone surrogate somewhere.

    Arguments and results keep theirs; in all other fields they are replaced.
    """
    try:
        value: Any = decode(row)
    except JsonError as error:
        raise InputError(str(error), where=where, next_step=RE_RECORD) from None
    if not isinstance(value, dict):
        raise InputError("a line that is no JSON object", where=where, next_step=RE_RECORD)
    try:
        raw_fields = ("value",) if value.get("type") == "effect" else ("args", "result")
        kept = {name: encode_raw(item) for name, item in value.items() if name in raw_fields}
        plain = encode({readable(name): readable(item) for name, item in value.items() if name not in raw_fields})
    except (JsonError, RecursionError):
        raise _too_deep(row, where) from None
    outside = {name: item for name, item in value.items() if name not in raw_fields}
    if places := listed_places(outside):
        notes.append(Note(f"lone surrogates were replaced at {places}", where.line))
    event = _decode_line(plain, where, notes)
    if event is None:
        return None
    own = {name: item for name, item in kept.items() if name in event.__struct_fields__}
    return msgspec.structs.replace(event, **own) if own else event


def _wrong_field(error: msgspec.ValidationError, where: Where, kind: str) -> InputError:
    found = _FIELD_IN_MESSAGE.search(str(error))
    text = _FIELD_IN_MESSAGE.sub("", str(error))
    pointer = found["pointer"] if found else "$"
    choices = _choices(kind, pointer) if "enum" in text else []
    listed = f": one of {', '.join(choices)}" if choices else ""
    return InputError(
        f"not a valid {kind} event: {text[:1].lower()}{text[1:]}{listed}",
        where=Where(where.path, where.line, pointer),
        next_step="`goldentrace schema trace` prints what each event holds",
    )


def _choices(kind: str, pointer: str) -> list[str]:
    """What a field of an event may be, where it is one of a few words."""
    event = EVENT_TYPES.get(kind)
    fields = msgspec.structs.fields(event) if event is not None else ()
    types = [field.type for field in fields if f"$.{field.encode_name}" == pointer]
    words: list[str] = []
    while types:
        one = types.pop()
        if get_origin(one) is Literal:
            words += [str(word) for word in get_args(one)]
        else:
            types += get_args(one)
    return words


def _checked(
    events: list[AnyEvent], lines: list[int] | None, notes: list[Note], torn: str | None, path: str, body: bytes
) -> Trace:
    def place(index: int) -> Where:
        return Where(path, index + 1 if lines is None else lines[index])

    if not events or not isinstance(events[0], TraceStart):
        raise InputError(
            "the first event is no trace_start", where=place(0) if events else Where(path),
            next_step="a trace begins with a trace_start line; `goldentrace formats` lists what else can be imported",
        )  # fmt: skip
    start = events[0]
    if start.format != FORMAT:
        raise InputError(
            f"format {start.format!r} is not {FORMAT!r}", where=Where(path, place(0).line, "$.format"),
            next_step="use a version of goldentrace that knows it",
        )  # fmt: skip
    kinds = list(map(type, events))
    if kinds.count(TraceStart) > 1:
        raise InputError(
            "a second trace_start",
            where=place(kinds.index(TraceStart, 1)),
            next_step="split the file: one run, one file",
        )
    if TraceEnd in kinds[:-1]:
        raise InputError(
            "an event after trace_end",
            where=place(kinds.index(TraceEnd) + 1),
            next_step="split the file: one run, one file",
        )
    _check_sequence(events, place)
    end = events[-1]
    if isinstance(end, TraceEnd):
        _check_end(
            end, len(events) - 1 + sum("was left out" in note.text for note in notes), body, place(len(events) - 1)
        )
        incomplete = torn or end.incomplete
        if end.incomplete is not None:  # it says why there is no end
            events, lines = events[:-1], None if lines is None else lines[:-1]
    else:
        incomplete = torn or NO_END
    return Trace(events, path, lines, incomplete, tuple(notes))


def _check_sequence(events: list[AnyEvent], place: Callable[[int], Where]) -> None:
    """Lines without `seq` count by position; a gap between two numbered lines is an event that was lost."""
    first = events[0].seq
    if first is not None and [event.seq for event in events] == list(range(first, first + len(events))):
        return
    before: int | None = None
    position = 0
    for index, event in enumerate(events):
        seq = event.seq
        if seq is None:
            continue
        if before is not None:
            if seq <= before:
                raise InputError(
                    f"seq {seq} follows {before}: lines are out of order", where=place(index), next_step=RE_RECORD
                )
            if seq - before > (place(index).line or 0) - position:
                raise InputError(
                    f"events are missing between seq {before} and {seq}", where=place(index), next_step=RE_RECORD
                )
        before, position = seq, place(index).line or 0


def _check_end(end: TraceEnd, events_before: int, body: bytes, where: Where) -> None:
    if end.events is not None and end.events != events_before:
        raise InputError(
            f"trace_end counts {end.events} events before it, {events_before} are there",
            where=where,
            next_step=RE_RECORD,
        )
    if end.sha256 is not None:
        earlier = body[: body.rstrip(b"\r\n").rfind(b"\n") + 1]
        if hashlib.sha256(earlier).hexdigest() != end.sha256:
            raise InputError(
                "the checksum in trace_end is not that of the lines before it", where=where, next_step=RE_RECORD
            )
