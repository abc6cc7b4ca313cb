"""MCP over stdin and stdout: one JSON-RPC message a line, several calls under way at once.

Nothing but messages may reach stdout. The end of stdin ends the server; the fault `server_exit` ends the process at
once.
"""

import asyncio
import os
import sys
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode, encode
from goldentrace.faults.call import Call
from goldentrace.faults.chaos import generator
from goldentrace.faults.connection import DRIP_TICK_S, Sent
from goldentrace.faults.engine import Engine, Paused
from goldentrace.faults.kinds import STDIO
from goldentrace.faults.mcp import PARSE_ERROR, Message, RpcError, check_modern, envelope, read_message, reply_to
from goldentrace.faults.mcp_call import Decided, McpCalls
from goldentrace.faults.outcome import outcome
from goldentrace.faults.runs import Run
from goldentrace.faults.wire import garbage

EXIT_CODE: Final = 1
"""What `server_exit` leaves: a crash, to whoever waits for the process."""


class StdioHandler:
    """Serves one client over a pair of pipes, all of it as the default run."""

    def __init__(self, engine: Engine, calls: McpCalls) -> None:
        self.engine = engine
        self.calls = calls
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._output = sys.stdout.buffer

    async def serve(self) -> None:
        """Answer messages until stdin ends; calls under way are then abandoned."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=self.engine.plan.limits.max_body_bytes)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        try:
            while True:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.IncompleteReadError:
                    return
                except asyncio.LimitOverrunError:
                    limit = self.engine.plan.limits.max_body_bytes
                    self.engine.main.fail(f"a message of more than {limit} bytes", "send smaller messages")
                    return
                await self._take(line)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            transport.close()

    async def _take(self, line: bytes) -> None:
        run = self.engine.main
        try:
            message = _message(line)
            if message.kind == "notification" and message.method == "notifications/cancelled":
                self.calls.cancel(run, message)
            if message.kind != "request":
                return
            if message.is_modern:
                check_modern(message, self.engine.plan, None)
            if message.method == "tools/call":
                self._start(run, message)
                return
            payload = encode(envelope(message, reply_to(message, self.engine.plan)))
        except RpcError as error:
            payload = encode(error.envelope())
        await self._write(payload + b"\n")

    def _start(self, run: Run, message: Message) -> None:
        """Count the call now, in the order of the lines, and serve it beside the others."""
        arrived = self.calls.arrive(run, message, STDIO, 1, {})
        task = asyncio.get_running_loop().create_task(self._serve(run, message, arrived))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, run: Run, message: Message, arrived: Call | bytes) -> None:
        if isinstance(arrived, bytes):
            await self._write(arrived + b"\n")
            return
        call, wait = arrived, _Wait(self.engine)
        self.calls.begin(call, message, wait.cancel)
        try:
            decided = await self.calls.decide(call, message, wait.pause)
            sent = await self._send(decided, wait)
            run.write_result(call, outcome(call, sent, is_http=False))
        finally:
            self.calls.end(call, message)
            self.engine.abandon(call)
            run.write_result(call, outcome(call, Sent(is_stopped=True), is_http=False))

    async def _send(self, decided: Decided, wait: "_Wait") -> Sent:
        call, sent = decided.call, Sent()
        step = call.step
        is_faulty = decided.answer is None or not decided.answer.is_refusal
        dice = generator(self.engine.plan.seed, "wire", call.tool.name, call.n)
        if is_faulty and step.fault == "server_exit":
            self._exit(call)
        if is_faulty and step.fault == "garbage":
            await self._write(garbage(step, dice).replace(b"\n", b"\r") + b"\n")
        elif is_faulty and step.fault == "hang":
            wanted_ms = step.params.get("duration_ms", self.engine.plan.limits.max_hang_ms)
            how = await wait.pause(min(wanted_ms, self.engine.plan.limits.max_hang_ms))
            sent.is_stopped, sent.is_gone = how == "stopped", how == "gone"
        elif is_faulty and step.fault == "slow" and step.phase not in ("before_read", "before_commit"):
            how = await wait.pause(self.engine.slow_ms(call))
            sent.is_stopped, sent.is_gone = how == "stopped", how == "gone"
        if not sent.is_stopped and step.fault not in ("garbage", "hang"):
            for payload in decided.payloads:
                rate = step.params["bytes_per_second"] if is_faulty and step.fault == "drip" else None
                await self._write(payload + b"\n", rate)
                sent.bytes_sent += len(payload) + 1
        return sent

    def _exit(self, call: Call) -> None:
        """Crash: the journal is whole up to here, the process is gone."""
        call.run.write_result(call, outcome(call, Sent(), is_http=False))
        self.engine.close()
        os._exit(EXIT_CODE)

    async def _write(self, data: bytes, bytes_per_second: float | None = None) -> None:
        """Write one line whole: two calls never mix on stdout."""
        async with self._lock:
            if bytes_per_second is None:
                await self._put(data)
                return
            step = max(1, int(bytes_per_second * DRIP_TICK_S))
            for start in range(0, len(data), step):
                await self._put(data[start : start + step])
                await asyncio.sleep(max(DRIP_TICK_S, 1 / bytes_per_second))

    async def _put(self, data: bytes) -> None:
        """Write in a thread: a client that does not read must not stop the others' deadlines."""
        try:
            await asyncio.to_thread(self._put_now, data)
        except OSError:
            os._exit(EXIT_CODE)  # nobody reads any more; stdin would end next

    def _put_now(self, data: bytes) -> None:
        self._output.write(data)
        self._output.flush()


class _Wait:
    """The pauses of one call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._future: asyncio.Future[Paused] | None = None
        self._is_cancelled = False

    async def pause(self, delay_ms: float) -> Paused:
        if self._is_cancelled:
            return "gone"
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Paused] = loop.create_future()
        self._future = future
        self._engine.pauses.add(future)
        timer = loop.call_later(delay_ms / 1000, self._end, "elapsed")
        try:
            return await future
        finally:
            timer.cancel()
            self._engine.pauses.discard(future)

    def cancel(self) -> None:
        self._is_cancelled = True
        self._end("gone")

    def _end(self, how: Paused) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(how)


def _message(line: bytes) -> Message:
    try:
        value: Any = decode(line)
    except JsonError:
        raise RpcError(PARSE_ERROR, "Parse error") from None
    return read_message(value)
