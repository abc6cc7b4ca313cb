"""Plain HTTP: which tool a request calls, and how its answer is written.

`POST /tools/NAME` with a JSON object, or the tool's own route; `/runs/ID/…` or the header X-Goldentrace-Run names the
run. Requests for another host or from a web page are refused. This module must not decide what a call meets.
"""

import difflib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from goldentrace.codec.canonical import encode
from goldentrace.faults.answer import Answer, refusal
from goldentrace.faults.call import RUN_HEADER, Call, caller
from goldentrace.faults.chaos import generator
from goldentrace.faults.connection import Connection, Request, RequestError, Sent
from goldentrace.faults.engine import Engine
from goldentrace.faults.kinds import HTTP, KINDS
from goldentrace.faults.outcome import outcome
from goldentrace.faults.plan import Plan, Tool
from goldentrace.faults.runs import Run
from goldentrace.faults.wire import Reply, Send, moves, plain, unanswered

RUN_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
LOCAL_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))
PEEK_MS: Final = 50
"""How long a call that is never read is watched for its body, only to write down what it asked."""

McpHandler = Callable[[Connection, Request, Run, bytes], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Route:
    """A tool's own path, split; `{name}` takes one segment."""

    method: str
    parts: tuple[str, ...]
    tool: Tool

    def match(self, method: str, path: str) -> dict[str, Any] | None:
        """Return the arguments that the path gives, None where it is another path."""
        given = path.split("/")
        if method != self.method or len(given) != len(self.parts):
            return None
        arguments: dict[str, Any] = {}
        for want, part in zip(self.parts, given, strict=True):
            if want.startswith("{") and want.endswith("}") and part:
                arguments[want[1:-1]] = unquote(part)
            elif want != part:
                return None
        return arguments


def routes_of(plan: Plan) -> list[Route]:
    """Return the routes of a plan's tools, literal ones before those that take arguments."""
    found: list[Route] = []
    for tool in plan.tools.values():
        if tool.route is not None:
            method, _, path = tool.route.partition(" ")
            found.append(Route(method, tuple(path.split("/")), tool))
    return sorted(found, key=lambda route: sum(part.startswith("{") for part in route.parts))


def find_tool(plan: Plan, method: str, path: str) -> tuple[Tool, dict[str, Any]] | None:
    """Return the tool that a request calls, and the arguments in its path."""
    if method == "POST" and path.startswith("/tools/"):
        tool = plan.tools.get(unquote(path.removeprefix("/tools/")))
        if tool is not None:
            return tool, {}
    for route in routes_of(plan):
        arguments = route.match(method, path)
        if arguments is not None:
            return route.tool, arguments
    return None


class HttpHandler:
    """Serves connections of plain HTTP; what is for MCP goes to `mcp`."""

    def __init__(self, engine: Engine, mcp: McpHandler) -> None:
        self.engine = engine
        self.mcp = mcp

    async def serve(self, connection: Connection) -> None:
        """Answer the requests of one connection until it ends."""
        try:
            while True:
                request = await connection.read_request()
                if request is None or not await self._answer(connection, request):
                    return
        except RequestError as error:
            await self._reject(connection, self.engine.main, error)

    async def _reject(self, connection: Connection, run: Run, error: RequestError) -> None:
        if error.status is None:
            return  # it left: nothing was asked
        run.fail(f"connection {connection.number}: {error.what}", "send a whole HTTP/1.1 request")
        answer = refusal(error.status, "bad_request", error.what)
        await connection.perform([Send(Reply(answer.status, (), encode(answer.value), is_last=True).whole())])
        await connection.linger()

    async def _answer(self, connection: Connection, request: Request) -> bool:
        """Answer one request; returns whether the connection goes on."""
        target = urlsplit(request.target)
        named, path = _split_run(target.path)
        run_id = named or request.headers.get(RUN_HEADER) or self.engine.default_run
        run = self.engine.run(run_id) if RUN_ID.fullmatch(run_id) else None
        problem = check_origin(request)
        if problem is None and run is None:
            problem = refusal(404, "unknown_run", "the run id is not usable, or there are too many runs")
        if problem is not None or run is None:
            assert problem is not None, "without a run there is a problem"
            self.engine.main.fail(f"{request.method} {path}: {problem.value['error']['message']}")
            await self._simply(connection, problem, is_last=True)
            return False
        try:
            return await self._dispatch(connection, request, run, path, dict(parse_qsl(target.query)))
        except RequestError as error:
            await self._reject(connection, run, error)
            return False

    async def _dispatch(
        self, connection: Connection, request: Request, run: Run, path: str, query: dict[str, str]
    ) -> bool:
        plan = self.engine.plan
        if path == "/mcp":
            return await self.mcp(connection, request, run, await connection.read_body())
        if path == "/tools" and request.method == "GET":
            await connection.read_body()
            return await self._simply(connection, Answer(200, _listing(plan)), is_last=not request.keeps_alive)
        found = find_tool(plan, request.method, path)
        if found is not None:
            tool, arguments = found
            return await self._call(connection, request, run, tool, {**query, **arguments} if tool.route else {})
        near = difflib.get_close_matches(path.removeprefix("/tools/"), plan.tools, n=1)
        run.fail(
            f"{request.method} {path} matches no tool of the plan",
            f"did you mean {near[0]!r}?" if near else f"tools: {', '.join(plan.tools)}",
        )
        await connection.read_body()
        message = f"the plan has nothing at {request.method} {path}"
        return await self._simply(
            connection, refusal(404, "unmatched_request", message), is_last=not request.keeps_alive
        )

    async def _simply(self, connection: Connection, answer: Answer, *, is_last: bool) -> bool:
        """Write an answer without a fault."""
        reply = Reply(answer.status, answer.headers, encode(answer.value), is_last=is_last)
        sent = await connection.perform(plain(reply))
        return not sent.is_closed

    # --- tools --------------------------------------------------------------------------------------------------------

    async def _call(self, connection: Connection, request: Request, run: Run, tool: Tool, more: dict[str, Any]) -> bool:
        engine = self.engine
        call = engine.arrive(run, tool, caller(HTTP, connection.number, request.headers))
        if HTTP not in KINDS.get(call.step.fault, KINDS["none"]).transports:
            run.fail(f"{tool.name}: the fault {call.step.fault} needs MCP", "call the tool over /mcp")
            call.answer = refusal(500, "unusable_fault", f"{call.step.fault} needs MCP")
        call.is_unread = call.answer is None and call.step.phase == "before_read" and call.step.fault != "slow"
        if call.is_unread:
            engine.describe(call, await connection.peek_body(PEEK_MS), more)
        else:
            engine.describe(call, await self._body(connection, call, more), more)
        try:
            answer = await engine.decide(call, connection.pause)
            sent = await self._write(connection, request, call, answer)
            run.write_result(call, outcome(call, sent, is_http=True))
        finally:
            engine.abandon(call)
            run.write_result(call, outcome(call, Sent(is_stopped=True), is_http=True))
        if sent.is_stale:
            await self._break_next(connection)
        return not sent.is_closed and not sent.is_stale and not call.is_unread

    async def _body(self, connection: Connection, call: Call, more: dict[str, Any]) -> bytes:
        """The whole body; a call whose body cannot be read is written down all the same."""
        try:
            if call.step.fault == "slow" and call.step.phase == "before_read" and call.answer is None:
                await connection.pause(self.engine.slow_ms(call))
                call.has_waited = True
            return await connection.read_body()
        except RequestError as error:
            if error.status is not None:
                call.answer = refusal(error.status, "bad_request", error.what)
            self.engine.describe(call, None, more)
            call.run.write_result(call, outcome(call, Sent(is_gone=error.status is None), is_http=True))
            raise

    async def _write(self, connection: Connection, request: Request, call: Call, answer: Answer | None) -> Sent:
        dice = generator(self.engine.plan.seed, "wire", call.tool.name, call.n)
        if answer is None:
            return await connection.perform(unanswered(call.step, dice))
        call.answer = answer = self.engine.shaped(call, answer)
        reply = Reply(
            answer.status, answer.headers, encode(answer.value), is_last=call.is_unread or not request.keeps_alive
        )
        if call.is_unread:  # closing on what was not read would reset the answer away
            sent = await connection.perform([Send(reply.whole())])
            await connection.linger()
            sent.is_closed = True
            return sent
        if answer.is_refusal:
            return await connection.perform(plain(reply))
        return await connection.perform(moves(call.step, reply, self.engine.slow_ms(call), dice))

    async def _break_next(self, connection: Connection) -> None:
        """Break the next request on this connection unanswered, and write it down: it takes no step of the plan."""
        request = await connection.read_request()
        if request is None:
            return
        named, path = _split_run(urlsplit(request.target).path)
        run = self.engine.run(named or request.headers.get(RUN_HEADER) or self.engine.default_run)
        found = find_tool(self.engine.plan, request.method, path)
        if run is not None and found is not None:
            who = caller(HTTP, connection.number, request.headers)
            call = self.engine.break_off(run, found[0], who, await connection.peek_body(PEEK_MS))
            run.write_result(call, outcome(call, Sent(), is_http=True))
        connection.reset()


def check_origin(request: Request) -> Answer | None:
    """Return the refusal of a request that a web page or a rebound name may have made, None for an honest one."""
    host = request.headers.get("host", "")
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    if name.lower() not in LOCAL_HOSTS:
        return refusal(403, "foreign_host", f"the Host header names {host[:80]!r}, not this machine")
    origin = request.headers.get("origin")
    if origin is not None and (urlsplit(origin).hostname or "") not in ("127.0.0.1", "localhost", "::1"):
        return refusal(403, "foreign_origin", f"requests from {origin[:80]!r} are refused")
    return None


def _split_run(path: str) -> tuple[str | None, str]:
    """The run id of `/runs/ID/rest` and `/rest`."""
    if path.startswith("/runs/"):
        run_id, _, rest = path.removeprefix("/runs/").partition("/")
        return run_id, f"/{rest}"
    return None, path


def _listing(plan: Plan) -> dict[str, Any]:
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.schema or {"type": "object"}}
            for tool in plan.tools.values()
        ]
    }
