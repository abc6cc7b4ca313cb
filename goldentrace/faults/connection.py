"""One client connection: requests parsed by h11 within bounds, responses written as moves, leaving noticed.

Every wait has an end: for a request to begin, to arrive, for a hang. This module must not know tools or steps.
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

import h11

from goldentrace.faults.engine import Paused
from goldentrace.faults.plan import Limits
from goldentrace.faults.wire import Drip, Hang, Move, Reset, Send, Stale, Wait

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_AHEAD_BYTES: Final = 256 * 1024
"""What a client may send on while its request is being answered; beyond it, reading stops."""
DRAIN_BYTES: Final = 256 * 1024 * 1024
DRAIN_S: Final = 5.0
"""A request that is too large is read and thrown away up to here, so that its client sees the refusal instead of a
reset."""
BODY_BYTES_PER_S: Final = 50_000
"""A body gets `header_ms` and as long as it takes at this rate: whatever drips in more slowly is ended."""
LINGER_S: Final = 0.5
DRIP_TICK_S: Final = 0.02
_READ_BYTES: Final = 64 * 1024


class RequestError(Exception):
    """A request that cannot be served. status: what it is answered with, None where nothing was asked."""

    def __init__(self, status: int | None, what: str) -> None:
        super().__init__(what)
        self.status = status
        self.what = what


@dataclass(frozen=True, slots=True)
class Request:
    """headers: lower-case names, repeated ones joined by comma; target: as sent."""

    method: str
    target: str
    headers: dict[str, str]
    keeps_alive: bool


@dataclass(slots=True)
class Sent:
    """What became of a response. bytes_sent: at most; is_gone: the client left before it was complete; is_stale: the
    next request on this connection is to be broken."""

    bytes_sent: int = 0
    is_gone: bool = False
    is_stopped: bool = False
    is_closed: bool = False
    is_stale: bool = False


class Connection:
    """A served connection. pauses: where a pause registers itself, so that the end of a run ends it."""

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        number: int,
        limits: Limits,
        pauses: set[asyncio.Future[Paused]],
    ) -> None:
        self.reader, self.writer = streams
        self.number = number
        self.limits = limits
        self.pauses = pauses
        self.is_gone = False
        self._ahead = b""
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._pause: asyncio.Future[Paused] | None = None
        self._watch: asyncio.Task[None] | None = None

    # --- requests -----------------------------------------------------------------------------------------------------

    async def read_request(self) -> Request | None:
        """Return the next request's head; None where the client is done or idle for too long.

        Raises: RequestError for bytes that are no HTTP, for headers that are too large or come too slowly.
        """
        await self._unwatch()
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        data, self._ahead = self._ahead, b""
        if not data:
            data = await self._first_bytes()
        if not data:
            return None
        self._h11.receive_data(data)
        event = await self._event(monotonic() + self.limits.header_ms / 1000, "headers")
        if not isinstance(event, h11.Request):
            return None
        headers: dict[str, str] = {}
        for name, value in event.headers:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        options = headers.get("connection", "").lower()
        keeps = "close" not in options and (event.http_version == b"1.1" or "keep-alive" in options)
        return Request(event.method.decode("latin-1"), event.target.decode("latin-1"), headers, keeps)

    async def _first_bytes(self) -> bytes:
        try:
            async with asyncio.timeout(self.limits.idle_ms / 1000):
                return await self.reader.read(_READ_BYTES)
        except (TimeoutError, OSError):
            return b""

    async def _event(self, deadline_s: float, what: str) -> h11.Event | type[h11.PAUSED]:
        while True:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as error:
                raise RequestError(error.error_status_hint or 400, f"not HTTP: {error}") from None
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type) or event is h11.PAUSED, "next_event returns an event or a marker"
                return event
            if self._watch is not None:
                await self._unwatch()
            if self._ahead:
                data, self._ahead = self._ahead, b""
                self._h11.receive_data(data)
                continue
            try:
                async with asyncio.timeout(deadline_s - monotonic()):
                    data = await self.reader.read(_READ_BYTES)
            except TimeoutError:
                limit_ms = self.limits.header_ms
                raise RequestError(408, f"the {what} of a request did not arrive within {limit_ms:g} ms") from None
            except OSError:
                raise RequestError(None, "the client broke the connection amid a request") from None
            if not data:
                self.is_gone = True
                raise RequestError(None, "the client left amid a request")
            self._h11.receive_data(data)

    async def read_body(self) -> bytes:
        """Return the body of the request whose head was read.

        Raises: RequestError where it is too large (413, after the rest was thrown away), or comes too slowly.
        """
        if self._h11.they_are_waiting_for_100_continue:
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        parts: list[bytes] = []
        size = 0
        deadline_s = monotonic() + self.limits.header_ms / 1000
        while True:
            event = await self._event(deadline_s, "body")
            if isinstance(event, h11.Data):
                size += len(event.data)
                if size > self.limits.max_body_bytes:
                    await self._discard(size)
                    raise RequestError(413, f"a request of more than {self.limits.max_body_bytes} bytes")
                parts.append(bytes(event.data))
                deadline_s += len(event.data) / BODY_BYTES_PER_S
            elif isinstance(event, h11.EndOfMessage):
                self._ahead = self._h11.trailing_data[0]
                return b"".join(parts)
            else:
                raise RequestError(None, "the client left amid a request")

    async def _discard(self, size: int) -> None:
        """Throw away the rest of a request that is too large, bounded in size and time."""
        deadline_s = monotonic() + DRAIN_S
        while size < DRAIN_BYTES and monotonic() < deadline_s:
            try:
                event = await self._event(deadline_s, "rest")
            except RequestError:
                return
            if not isinstance(event, h11.Data):
                return
            size += len(event.data)

    async def peek_body(self, wait_ms: float) -> bytes | None:
        """Return the body if all of it arrives within `wait_ms`, else None: for the record of a call that is not
        read."""
        try:
            async with asyncio.timeout(wait_ms / 1000):
                return await self.read_body()
        except (TimeoutError, RequestError):
            return None

    # --- pauses -------------------------------------------------------------------------------------------------------

    async def pause(self, delay_ms: float) -> Paused:
        """Wait, unless the client goes or the run is stopped first."""
        if self.is_gone:
            return "gone"
        loop = asyncio.get_running_loop()
        self._pause = loop.create_future()
        self.pauses.add(self._pause)
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._read_ahead())
        timer = loop.call_later(delay_ms / 1000, self._end_pause, "elapsed")
        try:
            return await self._pause
        finally:
            timer.cancel()
            self.pauses.discard(self._pause)
            self._pause = None

    def cancel(self) -> None:
        """End a pause as if the client had gone: it said that it no longer waits."""
        self._end_pause("gone")

    def _end_pause(self, how: Paused) -> None:
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(how)

    async def _read_ahead(self) -> None:
        """Read while nothing is asked, because only reading shows that the client has gone."""
        while len(self._ahead) < MAX_AHEAD_BYTES:
            try:
                data = await self.reader.read(_READ_BYTES)
            except OSError:
                data = b""
            if not data:
                self.is_gone = True
                self._end_pause("gone")
                return
            self._ahead += data

    async def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None

    # --- responses ----------------------------------------------------------------------------------------------------

    async def perform(self, moves: Sequence[Move], sent: Sent | None = None) -> Sent:
        """Make the moves of a response, and say what became of it. sent: of the moves before these."""
        sent = sent if sent is not None else Sent()
        for move in moves:
            if isinstance(move, Send):
                await self._send(move.data, sent)
            elif isinstance(move, Drip):
                await self._drip(move, sent)
            elif isinstance(move, Wait | Hang):
                await self._wait(move, sent)
            elif isinstance(move, Stale):
                sent.is_stale = True
            else:
                sent.is_closed = True
                self.reset() if isinstance(move, Reset) else self.close()
            if sent.is_stopped:
                sent.is_closed = True
                self.close()
                break
        if self.is_gone:
            sent.is_closed = True
        return sent

    async def _send(self, data: bytes, sent: Sent) -> None:
        if self.writer.is_closing():
            sent.is_gone = True
            return
        self.writer.write(data)
        sent.bytes_sent += len(data)
        transport = self.writer.transport
        if transport.get_write_buffer_size():
            try:
                async with asyncio.timeout(self.limits.max_hang_ms / 1000):
                    await self.writer.drain()
            except (TimeoutError, OSError):
                sent.bytes_sent -= transport.get_write_buffer_size()
                sent.is_gone = self.is_gone = True

    async def _wait(self, move: Wait | Hang, sent: Sent) -> None:
        longest_ms = self.limits.max_hang_ms
        wanted_ms = move.delay_ms if isinstance(move, Wait) else move.duration_ms
        how = await self.pause(longest_ms if wanted_ms is None else min(wanted_ms, longest_ms))
        sent.is_stopped = how == "stopped"
        sent.is_gone = sent.is_gone or how == "gone"

    async def _drip(self, move: Drip, sent: Sent) -> None:
        """Send at the wanted rate, at most every DRIP_TICK_S: single bytes far apart, several at once where the rate is
        high."""
        tick_s = max(DRIP_TICK_S, 1 / move.bytes_per_second)
        deadline_s = monotonic() + self.limits.max_hang_ms / 1000
        begun_s = monotonic()
        done = 0
        while done < len(move.data):
            due = min(len(move.data), max(done + 1, int((monotonic() - begun_s) * move.bytes_per_second)))
            await self._send(move.data[done:due], sent)
            done = due
            if sent.is_gone or (done < len(move.data) and not await self._tick(tick_s, sent)):
                return
            if monotonic() > deadline_s:
                sent.is_stopped = True
                return

    async def _tick(self, tick_s: float, sent: Sent) -> bool:
        how = await self.pause(tick_s * 1000)
        sent.is_gone = how == "gone"
        sent.is_stopped = how == "stopped"
        return how == "elapsed"

    async def linger(self) -> None:
        """Read and throw away what still comes after a refusal: closing on unread data would reset it away (RFC 9112,
        9.6)."""
        if self.writer.can_write_eof() and not self.writer.is_closing():
            self.writer.write_eof()
        size = 0
        try:
            async with asyncio.timeout(LINGER_S):
                while size < DRAIN_BYTES and (data := await self.reader.read(_READ_BYTES)):
                    size += len(data)
        except (TimeoutError, OSError):
            return

    # --- ends ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End in order: what was written is delivered."""
        self.writer.close()

    def reset(self) -> None:
        """Break the connection with a reset."""
        reset(self.writer)

    async def end(self) -> None:
        """Leave nothing behind: the watcher stopped, the socket closed within a second."""
        await self._unwatch()
        self.writer.close()
        try:
            async with asyncio.timeout(1):
                await self.writer.wait_closed()
        except (TimeoutError, OSError):
            self.writer.transport.abort()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the peer sees a reset: a linger of zero makes close() send RST (POSIX, socket(7))."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
