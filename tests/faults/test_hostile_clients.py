"""Clients that misbehave: each is bounded, told, and noted; nothing hangs and nobody else suffers."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from goldentrace.faults import FaultsHandle
from goldentrace.model.event import Limit
from tests.faults.serving import Client, connect, read_all

Serve = Callable[..., FaultsHandle]
Open = Callable[..., Client]
PLAN = "plan: p\ntools: {a: {effect_record: {e: 1}}}\nlimits: {%s}\n"
CALL = b"POST /tools/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def memory_kb(pid: int) -> int:
    """The largest memory that a process ever had."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("VmHWM")).split()[1])


def ask(sock: socket.socket) -> bytes:
    sock.sendall(CALL)
    return sock.recv(65536)


def test_of_a_thousand_connections_64_are_served_and_the_others_refused_and_noted(
    serve: Serve, client: Open, sockets: ExitStack
) -> None:
    server = serve(PLAN % "")
    opened = [sockets.enter_context(connect(server)) for _ in range(64)]
    assert all(b" 200 " in ask(sock) for sock in opened)
    refused = 0
    for _ in range(936):
        try:
            with connect(server) as sock:
                sock.sendall(CALL)
                refused += sock.recv(100) == b""
        except (ConnectionResetError, BrokenPipeError):
            refused += 1
    assert refused == 936
    assert all(b" 200 " in ask(sock) for sock in opened), "those that were there first are served on"
    limits = [event for event in server.events() if isinstance(event, Limit)]
    assert [(limit.limit, limit.value, limit.max) for limit in limits] == [("max_connections", 65, 64)]
    assert server._admin("GET", "verify", None)["refused_connections"] == 936
    opened[0].close()
    time.sleep(0.1)
    assert client(server).call("a").status == 200, "a place that became free is taken"


def test_a_thousand_connections_at_once_leave_the_server_able(serve: Serve, client: Open, sockets: ExitStack) -> None:
    server = serve(PLAN % "max_connections: 8")
    for _ in range(1000):
        sock = sockets.enter_context(socket.socket())
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", int(server.url.rpartition(":")[2])))
    sockets.close()
    time.sleep(0.3)
    assert client(server).call("a").status == 200


def test_a_request_of_100_mb_is_refused_and_takes_no_memory(serve: Serve, client: Open) -> None:
    server = serve(PLAN % "max_body_bytes: 1000000")
    before_kb = memory_kb(server.pid)
    begun = time.monotonic()
    answer = client(server, timeout_s=20).request("POST", "/tools/a", b"x" * 100_000_000)
    assert time.monotonic() - begun < 10
    assert answer.status == 413
    assert memory_kb(server.pid) - before_kb < 20_000
    assert "more than 1000000 bytes" in server.failures()[0].what
    assert server.effects() == []


def test_a_body_without_a_length_is_bounded_too(serve: Serve) -> None:
    server = serve(PLAN % "max_body_bytes: 1000")
    with connect(server) as sock:
        sock.sendall(b"POST /tools/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(4):
            sock.sendall(b"200\r\n" + b"x" * 512 + b"\r\n")
        sock.sendall(b"0\r\n\r\n")
        assert b" 413 " in read_all(sock)


@pytest.mark.parametrize(
    "start", [b"P", b"POST /tools/a HTTP/1.1\r\nHost: 127.0.0.1\r\n", CALL[:-1]], ids=["one byte", "headers", "body"]
)
def test_a_request_that_never_comes_whole_is_ended_and_noted(serve: Serve, start: bytes) -> None:
    server = serve(PLAN % "header_ms: 200")
    begun = time.monotonic()
    with connect(server) as sock:
        sock.sendall(start)
        assert b" 408 " in read_all(sock)
    assert time.monotonic() - begun < 3
    assert "did not arrive within 200 ms" in server.failures()[0].what


def test_headers_that_drip_in_do_not_buy_time(serve: Serve) -> None:
    server = serve(PLAN % "header_ms: 400")
    begun = time.monotonic()
    with connect(server) as sock:
        sock.sendall(b"POST /tools/a HTTP/1.1\r\n")
        try:
            for number in range(100):
                sock.sendall(b"X-%d: y\r\n" % number)
                time.sleep(0.05)
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert time.monotonic() - begun < 3


def test_a_client_that_never_closes_is_closed(serve: Serve) -> None:
    server = serve(PLAN % "idle_ms: 200")
    with connect(server) as silent, connect(server) as served:
        assert b" 200 " in ask(served)
        begun = time.monotonic()
        assert read_all(silent) == b""
        assert read_all(served) == b""
        assert time.monotonic() - begun < 3
    assert server.failures() == [], "an idle connection is nobody's fault"


def test_no_hang_outlasts_its_bound(serve: Serve) -> None:
    server = serve("plan: p\ntools: {a: {steps: [{fault: hang}]}}\nlimits: {max_hang_ms: 200}\n")
    begun = time.monotonic()
    with connect(server) as sock:
        sock.sendall(CALL)
        assert read_all(sock) == b""
    assert time.monotonic() - begun < 3


def test_a_client_that_does_not_read_holds_nothing_up(serve: Serve, client: Open) -> None:
    text = "plan: p\ntools:\n  big: {result: %s}\n  a: {}\nlimits: {max_hang_ms: 300}\n"
    server = serve(text % ("[" + ", ".join(["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"] * 20000) + "]"))
    with connect(server) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(8):
            sock.sendall(CALL.replace(b"/a", b"/big"))
        assert client(server).call("a").status == 200
        time.sleep(0.5)
        assert client(server).call("a").status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n", b" 400 "),
        (b"HELLO\r\n\r\n", b" 400 "),
        (b"POST /tools/a HTTP/1.1\r\n\r\n", b" 400 "),
        (b"POST /tools/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", b" 400 "),
        (b"POST /tools/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b" 400 "),
        (b"POST /tools/a HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", b" 431 "),
    ],
)
def test_what_is_no_http_is_told_so_and_noted(serve: Serve, client: Open, data: bytes, status: bytes) -> None:
    server = serve(PLAN % "")
    with connect(server) as sock:
        sock.sendall(data)
        assert status in read_all(sock)
    assert "not HTTP" in server.failures()[0].what
    assert client(server).call("a").status == 200


def test_a_client_that_leaves_amid_a_request_is_written_down_and_does_nothing(serve: Serve) -> None:
    server = serve(PLAN % "")
    with connect(server) as sock:
        sock.sendall(CALL[:-1])
    time.sleep(0.1)
    assert [(call["status"], call["is_gone"]) for call in server.calls()] == [("cancelled", True)]
    assert server.effects() == []
    assert server.failures() == []


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "10.0.0.1:80", "", "localhost:x"])
def test_other_host_headers_are_refused(serve: Serve, client: Open, host: str) -> None:
    server = serve(PLAN % "")
    answer = client(server).call("a", Host=host)
    assert (answer.status, answer.value["error"]["type"]) == (403, "foreign_host")
    assert server.effects() == []
    assert "Host header" in server.failures()[0].what


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:9"])
def test_this_machine_by_any_name_is_served(serve: Serve, client: Open, host: str) -> None:
    assert client(serve(PLAN % "")).call("a", Host=host).status == 200


def test_a_web_page_of_another_site_is_refused(serve: Serve, client: Open) -> None:
    server = serve(PLAN % "")
    assert client(server).call("a", Origin="https://evil.test").status == 403
    assert client(server).call("a", Origin="http://localhost:3000").status == 200


def test_pipelined_requests_are_answered_in_order(serve: Serve) -> None:
    server = serve('plan: p\ntools: {a: {result: "{/n}", steps: [{fault: slow, delay_ms: 50}], after_steps: ok}}\n')
    with connect(server) as sock:
        bodies = [b'{"n":%d}' % number for number in range(5)]
        sock.sendall(b"".join(CALL[:-3].replace(b": 2", b": 7") + b"\n" + body for body in bodies))
        sock.sendall(CALL.replace(b"Host", b"Connection: close\r\nHost"))
        data = read_all(sock)
    answers = [int(part.partition(b"\r\n\r\n")[2] or b"-1") for part in data.split(b"HTTP/1.1 200 OK")[1:6]]
    assert answers == [0, 1, 2, 3, 4]


def test_a_client_that_waits_for_100_continue_is_told_to_go_on(serve: Serve) -> None:
    server = serve(PLAN % "")
    with connect(server) as sock:
        sock.sendall(CALL[:-2].replace(b"Host", b"Connection: close\r\nExpect: 100-continue\r\nHost"))
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"{}")
        assert b" 200 " in read_all(sock)


def test_http_1_0_is_answered_and_closed(serve: Serve) -> None:
    server = serve(PLAN % "")
    with connect(server) as sock:
        sock.sendall(CALL.replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert b"Connection: close" in read_all(sock)


def test_a_reset_amid_a_hang_is_noticed(serve: Serve) -> None:
    import struct

    server = serve("plan: p\ntools: {a: {steps: [{fault: hang}]}}\n")
    sock = connect(server)
    sock.sendall(CALL)
    time.sleep(0.1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    time.sleep(0.1)
    assert [call["is_gone"] for call in server.calls()] == [True]
