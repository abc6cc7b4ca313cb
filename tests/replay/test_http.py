"""The small HTTP server, spoken to with bare sockets."""

import asyncio
import socket
import struct
from collections.abc import Callable

import pytest

from goldentrace.replay.http import MAX_BODY_BYTES, HttpReply, HttpRequest, LoopbackServer

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], "asyncio.Future[object]"]


def echo(request: HttpRequest) -> HttpReply:
    return HttpReply(200, (("x-method", request.method),), request.body or request.path.encode())


def exchange(*requests: bytes, handler: Callable[[HttpRequest], HttpReply] = echo, **options: float) -> list[bytes]:
    """Return what a server answers to bytes that are sent one after another over one connection, and its last words."""

    async def run() -> list[bytes]:
        server = LoopbackServer(handler, **options)  # type: ignore[arg-type]
        port = await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answers = []
        try:
            for data in requests:
                writer.write(data.replace(b"PORT", str(port).encode()))
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                length = next(
                    (int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")), 0
                )
                answers.append(
                    head + await asyncio.wait_for(reader.read(length) if length else asyncio.sleep(0, b""), 10)
                )
            writer.write_eof()
            answers.append(await asyncio.wait_for(reader.read(), 10))
        finally:
            writer.close()
            await server.stop()
        return answers

    return asyncio.run(run())


GET = b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 5\r\n\r\nhello"


def test_a_connection_serves_several_requests() -> None:
    first, second, rest = exchange(GET, POST)
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert first.endswith(b"/a"), "the query is left out"
    assert b"x-method: POST" in second
    assert second.endswith(b"hello")
    assert rest == b""


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: localhost.evil.example:PORT\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT@evil.example\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415),
    ],
)
def test_what_is_refused(request_bytes: bytes, status: int) -> None:
    answer, rest = exchange(request_bytes)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert rest == b"", "and the connection ends"


@pytest.mark.parametrize("host", [b"127.0.0.1:PORT", b"localhost:PORT", b"LOCALHOST", b"127.0.0.1"])
def test_this_machine_is_served_under_its_names(host: bytes) -> None:
    assert exchange(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")[0].startswith(b"HTTP/1.1 200 ")


def test_a_body_beyond_the_limit_is_refused_while_it_comes() -> None:
    async def run() -> bytes:
        server = LoopbackServer(echo)
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.start())
        try:
            head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES * 2)
            writer.write(head)
            block = b"x" * (1 << 20)
            for _ in range(MAX_BODY_BYTES // len(block) + 1):
                writer.write(block)
                await writer.drain()
            return await asyncio.wait_for(reader.readline(), 10)
        finally:
            writer.close()
            await server.stop()

    assert asyncio.run(run()).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_asks_whether_to_go_on_is_told_to() -> None:
    async def run() -> list[bytes]:
        server = LoopbackServer(echo)
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.start())
        try:
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            first = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            writer.write(b"hi")
            return [first, await asyncio.wait_for(reader.readuntil(b"hi"), 10)]
        finally:
            writer.close()
            await server.stop()

    go_on, answer = asyncio.run(run())
    assert go_on.startswith(b"HTTP/1.1 100 ")
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_chunks_leave_as_they_are() -> None:
    pieces = ["ß".encode()[:1], "ß".encode()[1:], b"end"]
    _, rest = exchange(GET, handler=lambda _: HttpReply(200, (), iter(pieces)))
    assert rest == b"1\r\n\xc3\r\n1\r\n\x9f\r\n3\r\nend\r\n0\r\n\r\n"


def test_a_cut_ends_before_what_was_announced() -> None:
    whole, rest = exchange(GET, handler=lambda _: HttpReply(200, (), b"half", "close", announced_bytes=8))
    assert b"content-length: 8" in whole.lower()
    assert whole.endswith(b"half")
    assert rest == b""
    _, streamed = exchange(GET, handler=lambda _: HttpReply(200, (), iter([b"half"]), "close"))
    assert streamed == b"4\r\nhalf\r\n", "no last chunk"


def test_a_reset_is_one() -> None:
    async def run() -> None:
        server = LoopbackServer(lambda _: HttpReply(None, cut="reset"))
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.start())
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()
            await server.stop()

    asyncio.run(run())


def test_a_silent_client_is_let_go() -> None:
    async def run() -> bytes:
        server = LoopbackServer(echo, idle_s=0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.start())
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: local")
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()
            await server.stop()

    assert asyncio.run(run()) == b""


def test_connections_are_bounded_in_number() -> None:
    async def run() -> tuple[int, bytes, bytes]:
        server = LoopbackServer(echo, max_connections=2)
        port = await server.start()
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for _, writer in kept:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        served = [await asyncio.wait_for(reader.readline(), 10) for reader, _ in kept]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return server.refused_connections, served[1], await asyncio.wait_for(reader.read(), 10)
        finally:
            for _, open_writer in [*kept, (reader, writer)]:
                open_writer.close()
            await server.stop()

    refused, served, last = asyncio.run(run())
    assert (served, last) == (b"HTTP/1.1 200 OK\r\n", b"")
    assert refused == 1


def test_a_client_that_leaves_during_a_delay_is_noticed_at_once() -> None:
    async def run() -> list[str]:
        gone: list[str] = []
        noticed = asyncio.Event()

        def notice(request: HttpRequest) -> None:
            gone.append(request.path)
            noticed.set()

        server = LoopbackServer(lambda _: HttpReply(200, delay_ms=60_000), on_disconnect=notice)
        _, writer = await asyncio.open_connection("127.0.0.1", await server.start())
        writer.write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.wait_for(noticed.wait(), 10)
        await server.stop()
        return gone

    assert asyncio.run(run()) == ["/slow"]


def test_only_this_machine_is_bound() -> None:
    async def run() -> str:
        server = LoopbackServer(echo)
        await server.start()
        assert server._server is not None
        host: str = server._server.sockets[0].getsockname()[0]
        await server.stop()
        return host

    assert asyncio.run(run()) == "127.0.0.1"


def test_stopping_ends_open_connections() -> None:
    async def run() -> bytes:
        server = LoopbackServer(echo)
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.start())
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"/"), 10)
        await server.stop()
        try:
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n/"), 10)
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()

    assert asyncio.run(run()) == b""


def test_a_client_that_resets_does_no_harm() -> None:
    async def run() -> bytes:
        server = LoopbackServer(echo)
        port = await server.start()
        rude = socket.create_connection(("127.0.0.1", port))
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        rude.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhal")
        rude.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return await asyncio.wait_for(reader.readline(), 10)
        finally:
            writer.close()
            await server.stop()

    assert asyncio.run(run()).startswith(b"HTTP/1.1 200 ")
