"""A small tool loop over the scripted model and a virtual clock, sound or with one defect: what the simulator runs.

It is an agent as people write them, reduced to what the tool loop needs, and it records its own run. A defect changes
the behaviour at one place and nothing else, so that a trace with it differs from the sound one by that alone. This
module must not decide which defects are interesting."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from goldentrace.codec.canonical import encode, encode_raw
from goldentrace.model.event import (
    FORMAT,
    Access,
    AnyEvent,
    Approval,
    Decision,
    ErrorClass,
    Limit,
    ModelTurn,
    Outcome,
    Status,
    StopReason,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.event import Message as MessageEvent
from goldentrace.replay.clock import VirtualClock
from goldentrace.replay.conversation import Call, Message, Reply, Result
from goldentrace.replay.recording import EventList
from goldentrace.replay.scripted_model import ProviderFailure, ScriptedModel

Defect: TypeAlias = Literal[
    "runs_malformed", "pairs_by_id", "drops_result", "runs_partial", "forgets_end", "asks_again", "uses_late_result",
    "repeats",
]  # fmt: skip
"""runs_malformed: executes a call whose arguments do not parse, with none; pairs_by_id: keeps results in a mapping by
call id; drops_result: attaches only the first result of a batch, none of a call without an id; runs_partial: executes
what arrived of a reply that was cut off; forgets_end: stops without an end when the provider is lost; asks_again:
executes what was denied before; uses_late_result: goes on with a result that came after the cancellation; repeats:
has no eye for a call that brings nothing new."""

CALL_LIMIT: Final = 8
EQUAL_RESULTS: Final = 3
"""At the third equal result of an equal call a sound agent stops."""
PROVIDER_TRIES: Final = 3
FIRST_WAIT_S: Final = 0.5
TOOL_S: Final = 0.02
DO_NOT_ASK: Final = "do not ask for it again"
RESULTS: Final[Mapping[str, dict[str, Any]]] = {
    "get_order": {"id": "ord_7Qm2xW4bT9", "amount_cents": 1250},
    "get_stock": {"sku": "A-17", "in_stock": 0},
    "charge_card": {"charge_id": "ch_3Kd8vR1nY6", "status": "succeeded"},
}
ACCESS: Final[Mapping[str, Access]] = {"get_order": "read", "get_stock": "read", "charge_card": "write"}


@dataclass(frozen=True, slots=True)
class User:
    """What the user does: the tools whose calls are denied, and the tool during whose call the run is cancelled."""

    denies: frozenset[str] = frozenset()
    cancels_at: str | None = None


NOBODY: Final = User()
"""A user who denies and cancels nothing."""


class _Ended(Exception):  # noqa: N818 (the way out of the loop)
    def __init__(self, outcome: Outcome, stop_reason: StopReason) -> None:
        super().__init__(stop_reason)
        self.outcome: Outcome = outcome
        self.stop_reason: StopReason = stop_reason


@dataclass(slots=True)
class ToolLoop:
    """One run of the agent. defect: None for the sound one."""

    model: ScriptedModel
    clock: VirtualClock
    user: User = NOBODY
    defect: Defect | None = None
    prompt: str = "Charge order A-17."
    _journal: EventList = field(init=False)
    _messages: list[Message] = field(init=False)
    _turn: int = 0
    _calls: int = 0
    _denied: set[bytes] = field(default_factory=set)
    _seen: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._journal = EventList(self.clock)
        self._messages = [Message("user", self.prompt)]

    def run(self, scenario_id: str) -> list[AnyEvent]:
        """Run to the end and return the events, from trace_start to trace_end (which one of the defects leaves out)."""
        self._put(TraceStart(format=FORMAT, scenario_id=scenario_id, seed=0, source="goldentrace-simulator"))
        self._put(MessageEvent(role="user", text=self.prompt))
        try:
            while True:
                self._take(self._ask())
        except _Ended as ended:
            if not (self.defect == "forgets_end" and ended.stop_reason == "provider_error"):
                count = len(self._journal.events)
                self._put(TraceEnd(outcome=ended.outcome, stop_reason=ended.stop_reason, events=count))
        return self._journal.events

    def _put(self, event: AnyEvent) -> None:
        self._journal.append(event)

    def _ask(self) -> Reply:
        """The next reply; a lost or refusing provider is asked again, after a wait that doubles."""
        tries = 1 if self.defect == "forgets_end" else PROVIDER_TRIES
        for number in range(1, tries + 1):
            try:
                return self.model.respond(self._messages, tools=tuple(RESULTS))
            except ProviderFailure as failure:
                if self.defect == "runs_partial" and failure.partial is not None:
                    self._execute_all(failure.partial)
                if number < tries:
                    wait_s = FIRST_WAIT_S * 2 ** (number - 1)
                    reason = "provider_lost" if failure.status is None else f"provider_{failure.status}"
                    self._put(Decision(decision="retry", by="harness", reason=reason, delay_ms=wait_s * 1000))
                    self.clock.sleep(wait_s)
        self._put(Decision(decision="abort", by="harness", reason="provider_error"))
        raise _Ended("failed", "provider_error")

    def _take(self, reply: Reply) -> None:
        self._turn += 1
        carried = [result.call_id for message in self._messages for result in message.results]
        self._put(ModelTurn(turn=self._turn, model=reply.model, finish_reason=reply.finish, input_call_ids=carried))
        if not reply.calls:
            self._put(MessageEvent(turn=self._turn, role="assistant", text=reply.text))
            is_denied = bool(self._denied)
            raise _Ended("partial" if is_denied else "success", "final_answer")
        calls, results = self._execute_all(reply)
        self._messages.append(Message("assistant", reply.text, calls))
        self._messages.append(Message("tool", results=results))

    def _execute_all(self, reply: Reply) -> tuple[tuple[Call, ...], tuple[Result, ...]]:
        """Record and execute the calls of a reply; the calls as they go back to the model, and their results."""
        batch = 1 if len(reply.calls) > 1 else None
        calls = [
            call if call.call_id is not None else replace(call, call_id=f"own-{self._turn}-{number}")
            for number, call in enumerate(reply.calls, start=1)
        ]
        for call in calls:
            self._record_call(call, batch)
        kept: dict[str, Result] = {}
        results: list[Result] = []
        for call, original in zip(calls, reply.calls, strict=True):
            assert call.call_id is not None, "a call without an id was given one"
            if self.defect == "pairs_by_id" and call.call_id in kept:
                continue
            if self.defect == "drops_result" and results:
                continue
            result = self._execute(call, call.call_id)
            kept[call.call_id] = result
            if not (self.defect == "drops_result" and original.call_id is None):
                results.append(result)
        return tuple(calls), tuple(results)

    def _record_call(self, call: Call, batch: int | None) -> None:
        self._calls += 1
        if self._calls > CALL_LIMIT:
            self._put(Limit(turn=self._turn, limit="max_tool_calls", value=self._calls, max=CALL_LIMIT))
            raise _Ended("aborted", "call_limit")
        args = call.args
        fields: dict[str, Any] = {"args_raw": call.arguments} if args is None else {"args": encode_raw(args)}
        fields |= {"turn": self._turn, "batch": batch, "access": ACCESS.get(call.tool_name)}
        self._put(ToolCall(call_id=call.call_id or "", tool_name=call.tool_name, **fields))

    def _execute(self, call: Call, call_id: str) -> Result:
        key = repr(call.key).encode()
        if call.args is None and self.defect not in ("runs_malformed", "runs_partial"):
            return self._failed(call_id, "error", "malformed_json", "the arguments are no JSON object")
        if call.tool_name in self.user.denies:
            return self._deny(call_id, key)
        self.clock.sleep(TOOL_S)
        if call.tool_name == self.user.cancels_at:
            return self._cancel(call, call_id)
        value = RESULTS[call.tool_name]
        self._put(ToolResult(turn=self._turn, call_id=call_id, status="ok", result=encode_raw(value)))
        self._seen.append(key)
        if self._seen.count(key) >= EQUAL_RESULTS and self.defect != "repeats":
            self._put(Decision(turn=self._turn, decision="abort", by="harness", call_id=call_id, reason="tool_loop"))
            raise _Ended("aborted", "tool_loop")
        return Result(call_id, encode(value).decode())

    def _deny(self, call_id: str, key: bytes) -> Result:
        is_known = key in self._denied and self.defect != "asks_again"
        if not is_known:
            self._put(Approval(turn=self._turn, call_id=call_id, verdict="denied", by="user"))
        self._denied.add(key)
        advice = "" if self.defect == "asks_again" else f"; {DO_NOT_ASK}"
        return self._failed(call_id, "denied", "denied", f"the user denied this call{advice}")

    def _cancel(self, call: Call, call_id: str) -> Result:
        self._put(ToolResult(turn=self._turn, call_id=call_id, status="cancelled", error_class="cancelled"))
        if self.defect != "uses_late_result":
            raise _Ended("aborted", "user_cancelled")
        self.clock.sleep(TOOL_S)
        value = RESULTS[call.tool_name]
        self._put(ToolResult(turn=self._turn, call_id=call_id, status="ok", result=encode_raw(value)))
        return Result(call_id, encode(value).decode())

    def _failed(self, call_id: str, status: Status, error_class: ErrorClass, text: str) -> Result:
        value = {"error": text}
        fields = {"turn": self._turn, "error_class": error_class, "result": encode_raw(value)}
        self._put(ToolResult(call_id=call_id, status=status, **fields))  # type: ignore[arg-type]
        return Result(call_id, encode(value).decode(), is_error=True)
