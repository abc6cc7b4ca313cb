"""The fault-injecting tool server as a process: sockets on 127.0.0.1, an end for every connection, an end with its
parent.

Assembles the rooms; what a call meets is decided in engine.py, how it looks on the wire in wire.py. This module must
not print or exit.
"""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from goldentrace.errors import ConfigError, InfrastructureError, Where
from goldentrace.faults.admin import MAX_CONNECTIONS as MAX_ADMIN_CONNECTIONS
from goldentrace.faults.admin import AdminHandler
from goldentrace.faults.connection import Connection, reset
from goldentrace.faults.engine import Engine
from goldentrace.faults.http import RUN_ID, HttpHandler
from goldentrace.faults.kinds import KINDS, STDIO
from goldentrace.faults.mcp_call import McpCalls
from goldentrace.faults.mcp_http import McpHttp
from goldentrace.faults.mcp_stdio import StdioHandler
from goldentrace.faults.parent import ParentWatch
from goldentrace.faults.plan import Plan, load_plan

HOST: Final = "127.0.0.1"
BACKLOG: Final = 1024
STOP_S: Final = 2.0
"""How long connections get to end once the server stops; then they are broken."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """port and admin_port: 0 for any free one, admin_port None for no admin interface; scenario_id: for the journal's
    head; parent_pipe: a file descriptor that ends with the parent; outlives_parent: go on when the parent is gone."""

    port: int = 0
    admin_port: int | None = 0
    transport: Literal["http", "stdio"] = "http"
    run_id: str = "run"
    journal_path: Path | None = None
    scenario_id: str | None = None
    parent_pipe: int | None = None
    outlives_parent: bool = False


class Handler(Protocol):
    async def serve(self, connection: Connection) -> None: ...


class FaultServer:
    """One server, its plan and its runs."""

    def __init__(self, plan: Plan, options: ServerOptions) -> None:
        """Raises: ConfigError for a plan that the transport cannot show, InfrastructureError for the journal."""
        if not RUN_ID.fullmatch(options.run_id):
            raise ConfigError(
                f"the run id {options.run_id!r} is not usable", next_step="use up to 64 letters, digits, . _ -"
            )
        self.options = options
        check_transport(plan, options.transport)
        self.engine = Engine(
            plan, default_run=options.run_id, journal_path=options.journal_path, scenario_id=options.scenario_id
        )
        self.port = 0
        self.admin_port: int | None = None
        self._connections = 0
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._open_admin = 0
        self._listeners: list[asyncio.Server] = []
        self._stopped = asyncio.Event()
        self._calls = McpCalls(self.engine)
        self._http = HttpHandler(self.engine, McpHttp(self.engine, self._calls).answer)
        self._admin = AdminHandler(self.engine, self.urls, self._check_loaded, self.stop)

    def urls(self) -> dict[str, Any]:
        """Return where the server listens: url, mcp_url, admin_url; pid; connect: what the client-side shim is to
        do."""
        is_http = self.options.transport == "http"
        base = f"http://{HOST}:{self.port}" if is_http else None
        return {
            "url": base, "mcp_url": f"{base}/mcp" if is_http else None,
            "admin_url": None if self.admin_port is None else f"http://{HOST}:{self.admin_port}", "pid": os.getpid(),
            "connect": [[item.fault, item.times] for item in self.engine.plan.connect],
        }  # fmt: skip

    async def start(self) -> None:
        """Open the sockets. Raises: InfrastructureError where a port cannot be had."""
        if self.options.transport == "http":
            self.port = await self._listen(self._accept, self.options.port)
        if self.options.admin_port is not None:
            self.admin_port = await self._listen(self._accept_admin, self.options.admin_port)

    async def _listen(self, accept: Callable[..., None], port: int) -> int:
        try:
            listener = await asyncio.start_server(accept, HOST, port, backlog=BACKLOG)
        except OSError as error:
            why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror}"
            raise InfrastructureError(f"port {port} {why}", next_step="use port 0 to take a free one") from None
        except OverflowError:
            raise ConfigError(f"{port} is no port", next_step="use a number from 0 to 65535") from None
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limits = self.engine.plan.limits
        self._connections += 1
        if len(self._open) - self._open_admin >= limits.max_connections:
            self.engine.main.refuse_connection(limits.max_connections)
            reset(writer)
            return
        connection = Connection((reader, writer), self._connections, limits, self.engine.pauses)
        self._serve(self._http, connection)

    def _accept_admin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open_admin >= MAX_ADMIN_CONNECTIONS:
            reset(writer)
            return
        connection = Connection((reader, writer), 0, self.engine.plan.limits, set())
        self._open_admin += 1
        task = self._serve(self._admin, connection)
        task.add_done_callback(lambda _: self._count_admin(-1))

    def _count_admin(self, by: int) -> None:
        self._open_admin += by

    def _serve(self, handler: Handler, connection: Connection) -> asyncio.Task[None]:
        async def whole() -> None:
            try:
                await handler.serve(connection)
            except ConnectionError:
                connection.is_gone = True  # the client broke off while an answer was written
            finally:
                await connection.end()

        task = asyncio.get_running_loop().create_task(whole())
        self._open[task] = connection.writer
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._open[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.engine.main.fail(f"the fault server failed: {type(error).__name__}: {error}", "report this as a bug")

    def _check_loaded(self, plan: Plan) -> None:
        check_transport(plan, self.options.transport)

    def stop(self) -> None:
        """Ask the server to end."""
        self._stopped.set()

    async def wait(self) -> None:
        """Serve until `stop`, then leave nothing behind."""
        try:
            if self.options.transport == "stdio":
                await self._serve_stdio()
            else:
                await self._stopped.wait()
        finally:
            await self._close()

    async def _serve_stdio(self) -> None:
        loop = asyncio.get_running_loop()
        serving = loop.create_task(StdioHandler(self.engine, self._calls).serve())
        stopping = loop.create_task(self._stopped.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (serving, stopping):
            task.cancel()
        await asyncio.gather(serving, stopping, return_exceptions=True)

    async def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self.engine.wake()
        tasks = dict(self._open)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_S)
        for writer in tasks.values():
            if not writer.is_closing():
                reset(writer)
        self.engine.close()


def check_transport(plan: Plan, transport: Literal["http", "stdio"]) -> None:
    """Raise ConfigError for a fault that the transport cannot show at all."""
    for tool in plan.tools.values():
        drawn = [step for step, _ in tool.chaos.faults] if tool.chaos is not None else []
        for step in (*tool.steps, *drawn):
            shown = KINDS[step.fault].transports
            if (STDIO in shown) if transport == "stdio" else (shown - {STDIO}):
                continue
            other = "HTTP" if transport == "stdio" else "MCP over stdio"
            raise ConfigError(
                f"{tool.name}: the fault {step.fault} needs {other}",
                where=Where(plan.path, pointer=f"$.tools.{tool.name}"),
                next_step="serve the plan over that transport, or use another fault",
            )  # fmt: skip


async def run_server(plan: Plan, options: ServerOptions, announce: Callable[[dict[str, Any]], None]) -> FaultServer:
    """Serve until stopped by a signal, the admin interface, the end of stdin or of the parent.

    announce: called once, when the sockets are open, with `FaultServer.urls`. Returns the server, for its last state.
    """
    server = FaultServer(plan, options)
    await server.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    watch = ParentWatch(server.stop, options.parent_pipe)
    if not options.outlives_parent:
        watch.start()
    try:
        announce(server.urls())
        await server.wait()
    finally:
        watch.stop()
    return server


def serve(
    plan_path: Path, options: ServerOptions, *, host: str = HOST, seed: int | None = None,
    announce: Callable[[dict[str, Any]], None] | None = None,
) -> FaultServer:  # fmt: skip
    """Serve a plan until stopped; what `goldentrace serve faults` does.

    host: 127.0.0.1, or a name for it; seed: in place of the plan's. Returns the server after its end.
    Raises: ConfigError for the plan, the host or a port number, InfrastructureError for a port or the journal.
    """
    if host not in (HOST, "localhost"):
        raise ConfigError(
            f"the fault server does not listen on {host}", next_step=f"it binds {HOST} only; leave the host out"
        )
    plan = load_plan(plan_path, seed=seed)
    return asyncio.run(run_server(plan, options, announce or announce_on_stderr))


def announce_on_stderr(urls: dict[str, Any]) -> None:
    """Say where the server listens: on stderr, because over stdio stdout belongs to the protocol."""
    for name in ("url", "mcp_url", "admin_url"):
        if urls[name] is not None:
            sys.stderr.write(f"{name.removesuffix('_url') if name != 'url' else 'tools'}: {urls[name]}\n")
    sys.stderr.flush()
