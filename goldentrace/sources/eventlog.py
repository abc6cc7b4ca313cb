"""The events of a trace while it is built: in memory while they are few, in a temporary file from some size on.

A session of hundreds of megabytes is imported in bounded memory by this. What comes out behaves like a list that nobody
changes. Must not interpret events.
"""

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, cast, overload

import msgspec
from msgspec import Raw

from goldentrace.codec.trace import encode_event
from goldentrace.model.event import AnyEvent, Message, ToolCall, ToolResult

MEMORY_BYTES: Final = 64 << 20
"""Payload (arguments, results, texts) up to which the events stay in memory; everything smaller is faster that way."""
READ_BYTES: Final = 1 << 20

_DECODER: Final = msgspec.json.Decoder(AnyEvent)


class EventLog:
    """Append-only, except that an early event can be taken out again."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._size_bytes = 0
        self._events: list[AnyEvent | None] = []
        self._spooled: _Spool | None = None

    def __len__(self) -> int:
        return len(self._spooled) if self._spooled is not None else len(self._events)

    def append(self, event: AnyEvent) -> None:
        if self._spooled is not None:
            self._spooled.append(event)
            return
        self._events.append(event)
        self._size_bytes += _payload_bytes(event)
        if self._size_bytes > self._memory_bytes:
            self._spooled = _Spool()
            for each in self._events:
                self._spooled.append(each)
            self._events = []

    def take(self, position: int) -> AnyEvent | None:
        """Take an event out and return it; the positions of the others stay as they are."""
        if self._spooled is not None:
            return self._spooled.take(position)
        event, self._events[position] = self._events[position], None
        return event

    def close(self, lines: list[int]) -> tuple[list[AnyEvent], list[int]]:
        """Return the events without those taken out, and of `lines` those of the events that are left."""
        if self._spooled is not None:
            kept = [position for position in range(len(self)) if not self._spooled.is_taken(position)]
            whole = kept if len(kept) < len(self) else None
            places = lines if whole is None else [lines[position] for position in whole]
            return cast("list[AnyEvent]", SpooledEvents(self._spooled, whole)), places
        pairs = [(event, line) for event, line in zip(self._events, lines, strict=True) if event is not None]
        return [event for event, _ in pairs], [line for _, line in pairs]


class SpooledEvents(Sequence[Any]):
    """Events in a temporary file, read when they are asked for; the file goes when nobody holds them."""

    def __init__(self, spool: "_Spool", positions: list[int] | None) -> None:
        self._spool = spool
        self._positions = positions

    def __len__(self) -> int:
        return len(self._spool) if self._positions is None else len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        return self._spool.read(number if self._positions is None else self._positions[number])

    def __iter__(self) -> Iterator[Any]:
        if self._positions is None:
            return self._spool.read_all()
        return (self._spool.read(position) for position in self._positions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, SpooledEvents)) or len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class _Spool:
    """Lines in a temporary file. The few events that a line does not hold as they are (lone surrogates) stay here."""

    def __init__(self) -> None:
        # It lives as long as the events do.
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=READ_BYTES)  # noqa: SIM115
        self._starts = array("q", [0])
        self._is_at_end = True
        self._odd: dict[int, AnyEvent | None] = {}

    def __len__(self) -> int:
        return len(self._starts) - 1

    def append(self, event: AnyEvent | None) -> None:
        line = b"" if event is None else encode_event(event)
        if event is None or not _is_faithful(line):
            self._odd[len(self)] = event
        if not self._is_at_end:
            self._file.seek(self._starts[-1])
            self._is_at_end = True
        self._file.write(line)
        self._starts.append(self._starts[-1] + len(line))

    def take(self, position: int) -> AnyEvent | None:
        event = self.read(position)
        self._odd[position] = None
        return event

    def is_taken(self, position: int) -> bool:
        return position in self._odd and self._odd[position] is None

    def read(self, position: int) -> AnyEvent | None:
        if position in self._odd:
            return self._odd[position]
        self._seek(self._starts[position])
        return _DECODER.decode(self._file.read(self._starts[position + 1] - self._starts[position]))

    def read_all(self) -> Iterator[AnyEvent | None]:
        """Every event; the file is read block by block, and whoever reads elsewhere meanwhile does no harm."""
        position = 0
        while position < len(self):
            start, last = self._starts[position], position + 1
            while last < len(self) and self._starts[last + 1] - start <= READ_BYTES:
                last += 1
            self._seek(start)
            block = self._file.read(self._starts[last] - start)
            for number in range(position, last):
                if number in self._odd:
                    yield self._odd[number]
                else:
                    yield _DECODER.decode(block[self._starts[number] - start : self._starts[number + 1] - start])
            position = last

    def _seek(self, offset: int) -> None:
        self._file.seek(offset)
        self._is_at_end = False


def _payload_bytes(event: AnyEvent) -> int:
    if isinstance(event, ToolResult):
        return _raw_bytes(event.result)
    if isinstance(event, ToolCall):
        return _raw_bytes(event.args) + len(event.args_raw or "")
    return len(event.text or "") if isinstance(event, Message) else 0


def _raw_bytes(raw: Raw) -> int:
    return len(memoryview(raw))


def _is_faithful(line: bytes) -> bool:
    if b"\\u" not in line:
        return True
    try:
        _DECODER.decode(line)
    except msgspec.DecodeError:
        return False
    return True
