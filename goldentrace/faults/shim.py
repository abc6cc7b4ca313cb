"""Faults that strike before a request exists: connection refused, a name that does not resolve. In the client's
process.

The server cannot make these: it never hears of them. So the plan's `connect:` list is carried out where the connection
is made, by a shim over `socket` (every Python client that uses it: httpx, requests, aiohttp, the SDKs) or, for Node,
over `net` (connect_shim.cjs). Only connections to the tool server are touched. The names of goldentrace's other rooms
must not be imported here: the shim runs inside the agent.
"""

import errno
import json
import os
import runpy
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ENVIRONMENT: Final = "GOLDENTRACE_CONNECT_FAULTS"
"""JSON: {"port": PORT, "faults": [["connect_refused", 2], ["dns", 1]]}, read by the Python and the Node shim."""
HOSTS: Final = ("127.0.0.1", "localhost")
NODE_SHIM: Final = Path(__file__).with_name("connect_shim.cjs")


class ConnectShim:
    """The queue of faults; `met` lists what each connection met, in order. Safe for threads."""

    def __init__(self, port: int, faults: Sequence[tuple[str, int]]) -> None:
        self.port = port
        self.met: list[str] = []
        self._queue = [fault for fault, times in faults for _ in range(times)]
        self._lock = threading.Lock()
        self._connect = socket.socket.connect
        self._connect_ex = socket.socket.connect_ex
        self._getaddrinfo = socket.getaddrinfo

    def install(self) -> None:
        """Put the shim in place, for the whole process."""
        shim = self

        def connect(sock: socket.socket, address: Any) -> None:
            shim.strike(address)
            shim._connect(sock, address)

        def connect_ex(sock: socket.socket, address: Any) -> int:
            try:
                shim.strike(address)
            except OSError as error:
                return error.errno or errno.ECONNREFUSED
            return shim._connect_ex(sock, address)

        def getaddrinfo(host: Any, port: Any, *more: Any, **named: Any) -> Any:
            if shim.is_ours(host, port) and shim._take("dns"):
                raise _unknown_name()
            return shim._getaddrinfo(host, port, *more, **named)

        socket.socket.connect = connect  # type: ignore[method-assign, assignment]
        socket.socket.connect_ex = connect_ex  # type: ignore[method-assign, assignment]
        socket.getaddrinfo = getaddrinfo

    def remove(self) -> None:
        """Take the shim away."""
        socket.socket.connect = self._connect  # type: ignore[method-assign]
        socket.socket.connect_ex = self._connect_ex  # type: ignore[method-assign]
        socket.getaddrinfo = self._getaddrinfo

    def is_ours(self, host: Any, port: Any) -> bool:
        """Is this the tool server's address?"""
        return str(host) in HOSTS and str(port) == str(self.port)

    def strike(self, address: Any) -> None:
        """Raise what the next connection to the server meets, if it meets anything."""
        if not isinstance(address, tuple) or len(address) < 2 or not self.is_ours(address[0], address[1]):
            return
        fault = self._take(None)
        if fault == "connect_refused":
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        if fault == "dns":  # a client that was given an address has no name to look up
            raise _unknown_name()

    def _take(self, wanted: str | None) -> str | None:
        """The next fault, taken off the queue; None if there is none, or another one than wanted."""
        with self._lock:
            if not self._queue:
                if wanted is None:
                    self.met.append("none")
                return None
            if wanted is not None and self._queue[0] != wanted:
                return None
            fault = self._queue.pop(0)
            self.met.append(fault)
            return fault


def _unknown_name() -> socket.gaierror:
    return socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@contextmanager
def connect_faults(port: int, faults: Sequence[tuple[str, int]]) -> Iterator[ConnectShim]:
    """Let the next connections to 127.0.0.1:port fail: pairs of `connect_refused`, `dns` or `none` and how often."""
    shim = ConnectShim(port, faults)
    shim.install()
    try:
        yield shim
    finally:
        shim.remove()


def install_from_environment() -> ConnectShim | None:
    """Install what GOLDENTRACE_CONNECT_FAULTS asks for; None where it asks for nothing."""
    text = os.environ.get(ENVIRONMENT)
    if not text:
        return None
    given = json.loads(text)
    shim = ConnectShim(int(given["port"]), [(str(fault), int(times)) for fault, times in given["faults"]])
    shim.install()
    return shim


def run_script(arguments: list[str]) -> None:
    """Install the shim and run a Python script as if it had been started by itself: `python -m
    goldentrace.faults.shim`."""
    if not arguments:
        sys.stderr.write("usage: python -m goldentrace.faults.shim SCRIPT [ARGUMENT...]\n")
        raise SystemExit(3)
    install_from_environment()
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    run_script(sys.argv[1:])
