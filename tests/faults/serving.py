"""A served plan and the plainest clients for it: http.client for whole requests, a socket for broken ones."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goldentrace.faults import FaultsHandle, start_faults
from goldentrace.model.event import AnyEvent

TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """One HTTP connection, kept alive."""

    server: FaultsHandle
    timeout_s: float = TIMEOUT_S
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = urlsplit(self.server.url)
        self.connection = HTTPConnection(place.hostname or "", place.port, timeout=self.timeout_s)

    def call(self, tool: str, arguments: Any = None, **headers: str) -> Response:
        return self.request("POST", f"/tools/{tool}", arguments if arguments is not None else {}, **headers)

    def request(self, method: str, path: str, value: Any = None, **headers: str) -> Response:
        body = value if isinstance(value, bytes) else None if value is None else json.dumps(value).encode()
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.connection.request(method, path, body=body, headers={**self.headers, **named})
        answer = self.connection.getresponse()
        return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def close(self) -> None:
        self.connection.close()


@contextmanager
def served(folder: Path, plan: str, **options: Any) -> Iterator[FaultsHandle]:
    """Serve a plan from a file in `folder`; what a test leaves open ends with it."""
    path = folder / "plan.yaml"
    path.write_text(plan)
    with start_faults(path, **options) as server:
        yield server


def connect(server: FaultsHandle, timeout_s: float = TIMEOUT_S) -> socket.socket:
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=timeout_s)


def read_all(sock: socket.socket) -> bytes:
    """Read until the server closes; a reset ends it too."""
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        data += b"<reset>"
    return data


def kinds(events: list[AnyEvent]) -> list[str]:
    """The events as `type` words, results with their status."""
    return [
        f"{event.__struct_config__.tag}:{event.status}"
        if hasattr(event, "status")
        else str(event.__struct_config__.tag)
        for event in events
    ]
