"""Rows of a Claude Code session, read by their frame: messages and copies of results inside stay bytes until asked for.

A session holds each result twice, so reading everything would cost twice the time. Must not interpret messages.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import JsonError, decode, encode_raw
from goldentrace.errors import InputError
from goldentrace.model.event import ABSENT
from goldentrace.model.trace import Note
from goldentrace.sources.document import REPAIR, Document
from goldentrace.sources.shapes import as_object, as_text


class Row(msgspec.Struct, gc=False, rename="camel"):
    """The frame of one row; a field of the wrong type is met where it is used."""

    type: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    logical_parent_uuid: Any = None
    timestamp: Any = None
    session_id: Any = None
    is_sidechain: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    agent_id: Any = None
    subtype: Any = None
    tool_denial_kind: Any = None
    message: Raw = ABSENT
    tool_use_result: Raw = ABSENT


class ResultCopy(msgspec.Struct, gc=False, rename="camel"):
    """What a row's own copy of a result says beyond the block that the model got."""

    agent_id: Any = None
    status: Any = None
    interrupted: Any = None
    total_duration_ms: Any = None
    duration_ms: Any = None
    total_tokens: Any = None


_ROWS: Final = msgspec.json.Decoder(Row)
_COPIES: Final = msgspec.json.Decoder(ResultCopy)
_KEYS: Final = {each.name: each.encode_name for each in msgspec.structs.fields(Row)}
_RAW: Final = ("message", "tool_use_result")


def rows(document: Document) -> Iterator[tuple[int, bytes, Row | None]]:
    """Yield (line, bytes, row) of every line, None for JSON that is no object; a torn last line is told in `torn`.

    Raises: InputError with the line for anything that is not JSON.
    """
    for line, data in document.lines():
        try:
            yield line, data, _row(data)
        except JsonError as error:
            if not data.endswith(b"\n"):
                document.torn = Note(f"the last line is torn ({len(data)} bytes dropped)", line)
                return
            raise InputError(str(error), where=document.where(line), next_step=REPAIR) from None


def message_of(row: Row, document: Document, line: int) -> dict[str, Any]:
    """Return the message of a row. Raises: InputError with the line."""
    return as_object(document.decode(bytes(row.message), line)) if row.message != ABSENT else {}


def copy_of(row: Row) -> ResultCopy | str:
    """Return the row's own copy of a result, its text where it is text."""
    begin = bytes(memoryview(row.tool_use_result)[:1])
    if begin == b'"':
        return as_text(decoded(row.tool_use_result)) or ""
    try:
        return _COPIES.decode(row.tool_use_result) if begin == b"{" else ResultCopy()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ResultCopy()


def decoded(raw: Raw) -> Any:
    """Return the value of a part, None where it is none."""
    try:
        return decode(raw)
    except JsonError:
        return None


def _row(data: bytes) -> Row | None:
    try:
        return _ROWS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = decode(data)  # a number out of range or a lone surrogate, which that decoder refuses
    if not isinstance(value, dict):
        return None
    fields = {name: value[key] for name, key in _KEYS.items() if key in value}
    return Row(**{name: encode_raw(given) if name in _RAW else given for name, given in fields.items()})
