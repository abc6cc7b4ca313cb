"""The fault server: start to first answer, and serial requests on loopback with the journal written.

The client is a bare socket, so that the server is what is measured. Targets: 0.4 s to the first answer, and 1,500
requests a second, each with schema check, idempotency look-up, ledger and three journal events.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from timing import Command, Row

from goldentrace.faults import FaultsHandle, start_faults

PLAN = """
plan: bench
tools:
  charge_card:
    access: write
    schema: {type: object, required: [amount_cents]}
    idempotency: {key: /idempotency_key}
    result: {charge_id: "{new_id}", status: succeeded}
    effect_record: {charge: "{/amount_cents}"}
  read_order: {access: read, result: {order: 17, status: open}}
"""
START_S = 0.4
REQUESTS = 3000
PER_SECOND = 1500


def rows(folder: Path) -> Iterator[Row]:
    """Yield start-up, then reads and writes over one connection."""
    plan = folder / "plan.yaml"
    plan.write_text(PLAN)
    yield Row(
        "start to first answer",
        lambda: first_answer(plan),
        Command(["python3", "-c", "import asyncio"]),
        "python -c 'import asyncio'",
        targets={"seconds": START_S},
    )
    for tool in ("read_order", "charge_card"):
        with start_faults(plan) as server:
            yield Row(
                f"{REQUESTS} × {tool}, serial",
                lambda tool=tool, server=server: call_often(server, tool),
                amount=REQUESTS,
                unit="requests",
                repeat=5,
                targets={"seconds": REQUESTS / PER_SECOND},
            )


def first_answer(plan: Path) -> None:
    """Start a server, have one call answered, stop it."""
    with start_faults(plan) as server, connect(server) as sock:
        assert b" 200 " in exchange(sock, request("read_order", {}))


def call_often(server: FaultsHandle, tool: str) -> None:
    """Call a tool REQUESTS times, each with a key of its own."""
    server.reset()
    with connect(server) as sock:
        for number in range(REQUESTS):
            arguments = {"amount_cents": number, "idempotency_key": f"key-{number}"}
            assert b" 200 " in exchange(sock, request(tool, arguments))[:20]


def connect(server: FaultsHandle) -> socket.socket:
    """Return a socket that waits for no full packet."""
    place = urlsplit(server.url)
    sock = socket.create_connection((place.hostname or "", place.port or 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def request(tool: str, arguments: dict[str, object]) -> bytes:
    """Return one whole request."""
    body = json.dumps(arguments).encode()
    lines = [f"POST /tools/{tool} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def exchange(sock: socket.socket, data: bytes) -> bytes:
    """Send a request, return the whole response."""
    sock.sendall(data)
    answer = b""
    while True:
        answer += sock.recv(65536)
        head, gap, body = answer.partition(b"\r\n\r\n")
        if gap and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            return answer
