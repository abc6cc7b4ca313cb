"""A small HTTP/1.1 server on 127.0.0.1: h11 parses and frames, asyncio moves the bytes, and a reply may be cut
anywhere.

Bounded in connections, sizes and time; a Host header that is not this machine's is refused, so that no page in a
browser reaches it by a name of its own. This module must not know what is served."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Literal

import h11

MAX_BODY_BYTES: Final = 32 << 20
"""Anthropic's own limit on a request (API documentation, "request size limits"); OpenAI states none this low."""
MAX_HEAD_BYTES: Final = 64 << 10
MAX_CONNECTIONS: Final = 64
IDLE_S: Final = 120.0
"""How long a connection may be silent, between requests or inside one."""
LINGER_S: Final = 1.0
LINGER_BYTES: Final = 2 * MAX_BODY_BYTES
_BLOCK_BYTES: Final = 64 << 10
_LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """headers: names in lower case, of repeated ones the last; path: without the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpReply:
    """body: bytes, or chunks for a streamed reply; cut: the connection ends after the body, although more was
    announced.

    status None, with a cut, sends nothing at all; announced_bytes: the Content-Length, where it is not that of the
    body."""

    status: int | None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | Iterable[bytes] = b""
    cut: Literal["close", "reset"] | None = None
    delay_ms: float = 0
    announced_bytes: int | None = None


Handler = Callable[[HttpRequest], HttpReply]


class _Refusal(Exception):  # noqa: N818 (an answer, not a fault)
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(slots=True)
class LoopbackServer:
    """Serves one handler. handler: called on the event loop, one request at a time; it must not block.

    on_disconnect: told when the client went away before the reply was whole.
    """

    handler: Handler
    on_disconnect: Callable[[HttpRequest], None] = lambda _request: None
    port: int = 0
    idle_s: float = IDLE_S
    max_connections: int = MAX_CONNECTIONS
    refused_connections: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> int:
        """Bind 127.0.0.1 and return the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=_BLOCK_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def stop(self) -> None:
        """Close the socket and end every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        if len(self._tasks) >= self.max_connections:
            self.refused_connections += 1
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._serve(_Connection(reader, writer, self.idle_s))
        except (OSError, TimeoutError, asyncio.CancelledError, h11.ProtocolError):
            pass  # the client is gone, silent or speaks no HTTP, or the server stops: nothing is owed any more
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, connection: "_Connection") -> None:
        while True:
            try:
                request = await connection.receive()
            except _Refusal as refusal:
                await connection.refuse(refusal)
                await connection.drain()
                return
            if request is None:
                return
            reply = self.handler(request)
            try:
                if reply.delay_ms:
                    await connection.wait(reply.delay_ms / 1000)
                is_open = await connection.send(reply, is_head=request.method == "HEAD")
            except (OSError, asyncio.CancelledError):
                self.on_disconnect(request)
                raise
            if not is_open:
                return


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle_s: float) -> None:
        self._reader = reader
        self._writer = writer
        self._idle_s = idle_s
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._port: int = writer.get_extra_info("sockname")[1]

    async def receive(self) -> HttpRequest | None:
        """The next request, None where the client is done. Raises: _Refusal."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Request):
                head = event
                self._check_head(event)
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BODY_BYTES:
                    raise _Refusal(413, f"a request body of more than {MAX_BODY_BYTES} bytes")
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                target = head.target.decode("latin-1")
                return HttpRequest(head.method.decode("latin-1"), target.partition("?")[0], headers, bytes(body))
            else:
                return None

    async def _next_event(self) -> object:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise _Refusal(error.error_status_hint, str(error)) from None
            if event is not h11.NEED_DATA:
                return event
            async with asyncio.timeout(self._idle_s):
                self._http.receive_data(await self._reader.read(_BLOCK_BYTES))

    def _check_head(self, request: h11.Request) -> None:
        headers = dict(request.headers)
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
        if name not in _LOCAL_NAMES or port not in ("", str(self._port)):
            raise _Refusal(421, "this server answers to 127.0.0.1 and localhost alone")
        if headers.get(b"content-encoding", b"identity").lower() not in (b"identity", b""):
            raise _Refusal(415, "a compressed request body is not taken")

    async def refuse(self, refusal: _Refusal) -> None:
        """Answer in plain text and close."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        text = refusal.text.encode()
        headers = [
            ("content-type", "text/plain; charset=utf-8"),
            ("content-length", str(len(text))),
            ("connection", "close"),
        ]
        head = self._http.send(
            h11.Response(status_code=refusal.status, headers=headers, reason=_reason(refusal.status))
        )
        await self._write(head + self._http.send(h11.Data(data=text)) + self._http.send(h11.EndOfMessage()))

    async def drain(self) -> None:
        """Read what the client still sends, within bounds: closing on unread bytes resets, and the answer is lost."""
        self._writer.write_eof()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                for _ in range(LINGER_BYTES // _BLOCK_BYTES):
                    if not await self._reader.read(_BLOCK_BYTES):
                        return

    async def wait(self, delay_s: float) -> None:
        """Wait, unless the client goes away. Raises: ConnectionResetError where it does."""
        closed = asyncio.ensure_future(self._reader.read(1))  # a client that waits for a reply sends nothing
        try:
            done, _ = await asyncio.wait({closed}, timeout=delay_s)
        finally:
            if not closed.done():
                closed.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await closed
        if done:
            self._http.receive_data(closed.result())
            if not closed.result():
                raise ConnectionResetError("the client went away while it was kept waiting")

    async def send(self, reply: HttpReply, *, is_head: bool = False) -> bool:
        """Send a reply; whether the connection can be used again."""
        if reply.status is None:
            return self._end(reply)
        headers = list(reply.headers)
        if isinstance(reply.body, bytes):
            headers.append(
                ("content-length", str(len(reply.body) if reply.announced_bytes is None else reply.announced_bytes))
            )
        await self._write(
            self._http.send(h11.Response(status_code=reply.status, headers=headers, reason=_reason(reply.status)))
        )
        chunks: Iterable[bytes] = reply.body if not isinstance(reply.body, bytes) else (reply.body,)
        if not is_head:
            for chunk in chunks:
                if chunk:
                    await self._write(self._http.send(h11.Data(data=chunk)))
                    await asyncio.sleep(0)  # others get their turn; each chunk leaves as it is
        if reply.cut is not None:
            return self._end(reply)
        await self._write(self._http.send(h11.EndOfMessage()))
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def _end(self, reply: HttpReply) -> bool:
        """End the connection at once, by FIN or by RST (SO_LINGER of 0 s: the kernel drops what is unsent and
        resets)."""
        if reply.cut == "reset":
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        return False

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            async with asyncio.timeout(self._idle_s):
                await self._writer.drain()


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
