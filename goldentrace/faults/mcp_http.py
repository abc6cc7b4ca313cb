"""MCP over Streamable HTTP: one POST, one answer, as JSON or as a stream of one event. Stateless: no session id.

The answer is an ordinary HTTP response, so every fault of the wire applies to it.
"""

from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode, encode
from goldentrace.faults.answer import Answer
from goldentrace.faults.chaos import generator
from goldentrace.faults.connection import Connection, Request, Sent
from goldentrace.faults.engine import Engine
from goldentrace.faults.kinds import MCP_HTTP
from goldentrace.faults.mcp import (
    HTTP_STATUS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    RpcError,
    check_modern,
    envelope,
    read_message,
    reply_to,
    sse_body,
)
from goldentrace.faults.mcp_call import Decided, McpCalls
from goldentrace.faults.outcome import outcome
from goldentrace.faults.plan import NONE
from goldentrace.faults.runs import Run
from goldentrace.faults.wire import SSE_TYPE, Close, Move, Reply, moves, plain, unanswered

_SHAPED_BEFORE: Final = frozenset(("malformed_json", "bad_utf8", "wrong_id", "duplicate_result", "out_of_order"))
"""Faults that were worked into the payload; on the wire they are ordinary responses."""


class McpHttp:
    """Answers what is posted to /mcp."""

    def __init__(self, engine: Engine, calls: McpCalls) -> None:
        self.engine = engine
        self.calls = calls

    async def answer(self, connection: Connection, request: Request, run: Run, body: bytes) -> bool:
        """Answer one request; returns whether the connection goes on."""
        is_last = not request.keeps_alive
        if request.method != "POST":  # no stream of the server's own, no session to end
            return await _write(connection, Reply(405, (("Allow", "POST"),), b"{}", is_last=is_last))
        try:
            message = _message(body)
            if message.kind == "request" and (message.is_modern or _is_modern_version(request)):
                check_modern(message, self.engine.plan, request.headers)
            if message.kind != "request":
                if message.method == "notifications/cancelled":
                    self.calls.cancel(run, message)
                return await _write(connection, Reply(202, (), b"", is_last=is_last))
            if message.method == "tools/call":
                return await self._call(connection, request, run, message)
            payload = encode(envelope(message, reply_to(message, self.engine.plan)))
        except RpcError as error:
            is_modern = _is_modern_version(request) or error.code in (PARSE_ERROR, INVALID_REQUEST)
            status = HTTP_STATUS.get(error.code, 200) if is_modern else 200
            return await _write(connection, Reply(status, (), encode(error.envelope()), is_last=is_last))
        return await _write(connection, self._reply(request, [payload], is_last=is_last))

    def _reply(self, request: Request, payloads: list[bytes], *, is_last: bool) -> Reply:
        """As JSON or as events: as the plan says, or as two messages need, if the client takes events."""
        wants_sse = self.engine.plan.mcp_reply == "sse" or len(payloads) > 1
        if wants_sse and SSE_TYPE in request.headers.get("accept", ""):
            return Reply(200, (), sse_body(payloads), SSE_TYPE, is_open_ended=True)
        return Reply(200, (), payloads[0], is_last=is_last)

    async def _call(self, connection: Connection, request: Request, run: Run, message: Message) -> bool:
        arrived = self.calls.arrive(run, message, MCP_HTTP, connection.number, request.headers)
        is_last = not request.keeps_alive
        if isinstance(arrived, bytes):
            return await _write(connection, self._reply(request, [arrived], is_last=is_last))
        call = arrived
        self.calls.begin(call, message, connection.cancel)
        try:
            decided = await self.calls.decide(call, message, connection.pause)
            sent = await self._send(connection, request, decided, is_last=is_last)
            run.write_result(call, outcome(call, sent, is_http=_is_http(decided.answer)))
        finally:
            self.calls.end(call, message)
            self.engine.abandon(call)
            run.write_result(call, outcome(call, Sent(is_stopped=True), is_http=True))
        return not sent.is_closed and not sent.is_stale

    async def _send(self, connection: Connection, request: Request, decided: Decided, *, is_last: bool) -> Sent:
        call = decided.call
        dice = generator(self.engine.plan.seed, "wire", call.tool.name, call.n)
        answer = decided.answer
        if answer is None:
            last = unanswered(call.step, dice)
            sent = await connection.perform(last[:-1])
            return await connection.perform(_quiet_end(request) if call.is_cancelled else last[-1:], sent)
        step = NONE if answer.is_refusal or call.step.fault in _SHAPED_BEFORE else call.step
        if answer.is_error and answer.mcp == "http" and not answer.is_refusal:
            reply = Reply(answer.status, answer.headers, encode(answer.value), is_last=is_last)
        else:
            reply = self._reply(request, decided.payloads, is_last=is_last)
        return await connection.perform(moves(step, reply, self.engine.slow_ms(call), dice))


def _quiet_end(request: Request) -> list[Move]:
    """End the response to a request that was cancelled: without an answer, but whole, so that the session goes on."""
    if SSE_TYPE in request.headers.get("accept", ""):
        return plain(Reply(200, (), b"", SSE_TYPE, is_open_ended=True))
    return [Close()]


def _is_http(answer: Answer | None) -> bool:
    """Does the answer's status stand on the wire? A failure inside a result goes out as 200."""
    return answer is None or not answer.is_error or answer.mcp == "http"


def _message(body: bytes) -> Message:
    try:
        value: Any = decode(body)
    except JsonError:
        raise RpcError(PARSE_ERROR, "Parse error") from None
    return read_message(value)


def _is_modern_version(request: Request) -> bool:
    """A request that names a version without handshake must carry its envelope."""
    return request.headers.get("mcp-protocol-version", "") >= "2026"


async def _write(connection: Connection, reply: Reply) -> bool:
    sent = await connection.perform(plain(reply))
    return not sent.is_closed
