"""A tools/call on its way through the engine, for both MCP transports: in comes a message, out come payloads and moves.

What the transports share: which calls are under way, cancellation, answers out of order. This module must not write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from goldentrace.codec.canonical import encode
from goldentrace.faults.answer import Answer
from goldentrace.faults.call import Call, caller
from goldentrace.faults.engine import Engine, Pause
from goldentrace.faults.kinds import KINDS, Transport
from goldentrace.faults.mcp import INVALID_PARAMS as INVALID
from goldentrace.faults.mcp import Message, RequestId, call_arguments, call_envelope, other_id, rpc_error
from goldentrace.faults.runs import Run
from goldentrace.faults.wire import broken_body

ORDER_MS: Final = 1000
"""How long an answer that is to be overtaken waits for another one, by default."""
_ORDER_TICK_MS: Final = 5


@dataclass(frozen=True, slots=True)
class Underway:
    """A call that can still be cancelled."""

    call: Call
    cancel: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Decided:
    """A call that was decided. payloads: the JSON-RPC messages to send, one as a rule, none where the fault answers
    nothing; answer: what they carry."""

    call: Call
    answer: Answer | None
    payloads: list[bytes]


class McpCalls:
    """The calls of all runs that are under way over MCP."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._underway: dict[tuple[str, RequestId], Underway] = {}

    def cancel(self, run: Run, message: Message) -> None:
        """Take in `notifications/cancelled`: the call's wait ends, and it takes no effect any more."""
        found = self._underway.get((run.run_id, message.params.get("requestId")))
        if found is not None:
            found.call.is_cancelled = not found.call.is_committed
            found.call.is_cancelled_by_leaving = True
            found.cancel()

    def arrive(
        self, run: Run, message: Message, transport: Transport, connection: int, headers: dict[str, str]
    ) -> Call | bytes:
        """Count a tools/call and write it down; the payload of an error where it names no tool. Raises: RpcError."""
        plan = self.engine.plan
        tool, arguments = call_arguments(message, plan)
        if tool is None:
            name = message.params["name"]
            run.fail(f"tools/call names {name!r}, which is no tool of the plan", f"tools: {', '.join(plan.tools)}")
            return encode(rpc_error(message.request_id, INVALID, f"Unknown tool: {name}"))
        call = self.engine.arrive(run, tool, caller(transport, connection, headers, message.meta))
        call.args = arguments
        call.has_arrived = True
        call.is_cancelled_by_leaving = message.is_modern
        assert transport in KINDS.get(call.step.fault, KINDS["none"]).transports, "checked when the server started"
        self.engine.take(call)
        return call

    def begin(self, call: Call, message: Message, cancel: Callable[[], None]) -> None:
        """Let a call be cancelled until `end`. cancel: ends its wait."""
        self._underway[call.run.run_id, message.request_id] = Underway(call, cancel)

    def end(self, call: Call, message: Message) -> None:
        """The call is answered, or never will be."""
        place = (call.run.run_id, message.request_id)
        found = self._underway.get(place)
        if found is not None and found.call is call:  # a reused id may belong to a later call already
            del self._underway[place]

    async def decide(self, call: Call, message: Message, pause: Pause) -> Decided:
        """Return what to send for a call that has arrived. pause: how this call waits."""
        answer = await self.engine.decide(call, pause)
        if answer is None or call.is_cancelled:
            return Decided(call, None, [])
        call.answer = answer = self.engine.shaped(call, answer)
        fault = call.step.fault if not answer.is_refusal else "none"
        if fault == "out_of_order":
            await self._overtaken(call, pause)
        response = call_envelope(message, answer)
        if fault == "wrong_id":
            response["id"] = other_id(message.request_id)
        payload = encode(response)
        if fault in ("malformed_json", "bad_utf8"):
            payload = broken_body(fault, payload)
        return Decided(call, answer, [payload, payload] if fault == "duplicate_result" else [payload])

    async def _overtaken(self, call: Call, pause: Pause) -> None:
        """Wait until another answer of the run has been sent, or for the step's `delay_ms`."""
        sent_before = call.run.answered
        left_ms = call.step.params.get("delay_ms", ORDER_MS)
        while call.run.answered == sent_before and left_ms > 0 and await pause(_ORDER_TICK_MS) == "elapsed":
            left_ms -= _ORDER_TICK_MS
