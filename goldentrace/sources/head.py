"""The first bytes of a file, read as JSON as far as they go: what detection looks at.

A document that is longer than the head is closed where it was cut (open strings and values are dropped, open arrays and
objects end there), so that a source asks about keys and values and never about text. Must not read files.
"""

import re
from functools import cached_property
from typing import Any, Final

import msgspec

from goldentrace.codec.canonical import JsonError, decode

HEAD_BYTES: Final = 64 * 1024
WIDE_HEAD_BYTES: Final = 4 * 1024 * 1024
"""A second, wider look where nothing matched: single messages of more than 64 KiB stand at the start of real files, and
whole histories before the key that says whose file it is."""
HEAD_RECORDS: Final = 256
ZIP_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""How a zip begins, and one without members: PKWARE's APPNOTE 4.3.7 and 4.3.16."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[{}\[\],]', re.DOTALL)
_OPEN: Final = {b"{": b"}", b"[": b"]"}


class Head(msgspec.Struct, frozen=True, dict=True):
    """data: the first bytes, without a BOM; is_whole: the file has no more."""

    data: bytes
    is_whole: bool

    @cached_property
    def lines(self) -> tuple[bytes, ...]:
        """The lines that are not blank; a last line that the head cuts off is left out, unless it is the only one."""
        rows = self.data.split(b"\n")
        if not self.is_whole and len(rows) > 1:
            rows.pop()
        return tuple(row for row in rows if row.strip())

    @cached_property
    def records(self) -> tuple[Any, ...]:
        """The JSON values at the start: one per line in a line file, one after another, or the one document (cut where
        the head ends). Empty where the file is not JSON.
        """
        by_line = self._values_of_lines()
        if len(by_line) > 1:
            return by_line
        values: list[Any] = []
        position = 0
        while position < len(self.data) and len(values) < HEAD_RECORDS:
            found = outline(self.data, position)
            if found is None:
                break
            value, position = found
            values.append(value)
        return tuple(values)

    @cached_property
    def value(self) -> Any:
        """The first JSON value, None where there is none."""
        return self.records[0] if self.records else None

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """The records that are objects; where the one document is an array, its elements that are objects."""
        records = self.records
        if len(records) == 1 and isinstance(records[0], list):
            records = tuple(records[0][:HEAD_RECORDS])
        return tuple(record for record in records if isinstance(record, dict))

    @property
    def archive(self) -> str | None:
        """What kind of archive of files begins so, None where it is none. Source of tar's mark: POSIX, ustar."""
        if self.data.startswith(ZIP_MAGIC):
            return "zip"
        return "tar" if self.data[257:262] == b"ustar" else None

    @property
    def may_hide_keys(self) -> bool:
        """Whether the head shows a part of one object only, whose other keys a wider look would show."""
        return not self.is_whole and len(self.data) < WIDE_HEAD_BYTES and len(self.objects) == 1

    def has_key(self, *keys: str) -> bool:
        """Whether the one document is an object that holds all the keys."""
        return len(self.records) == 1 and isinstance(self.value, dict) and all(key in self.value for key in keys)

    def _values_of_lines(self) -> tuple[Any, ...]:
        values = []
        for row in self.lines[:HEAD_RECORDS]:
            try:
                values.append(decode(row))
            except JsonError:
                break
        return tuple(values)


def outline(data: bytes, start: int = 0) -> tuple[Any, int] | None:
    """Return the JSON array or object that begins at `start`, closed where the data ends, and the offset after it.

    None where no array or object begins there, or where what is there is not JSON.
    """
    begin = start
    while begin < len(data) and data[begin : begin + 1].isspace():
        begin += 1
    if data[begin : begin + 1] not in _OPEN:
        return None
    closers: list[bytes] = []
    safe = begin
    for token in _TOKEN.finditer(data, begin):
        mark = token.group()
        if mark == b'"':
            break
        if mark in _OPEN:
            closers.append(_OPEN[mark])
            safe = token.end()
        elif mark == b",":
            safe = token.start()
        elif len(mark) == 1 and closers:
            if closers.pop() != mark:
                return None
            safe = token.end()
            if not closers:
                break
    try:
        return decode(data[begin:safe] + b"".join(reversed(closers))), (safe if not closers else len(data))
    except JsonError:
        return None
