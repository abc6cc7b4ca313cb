"""The calls of a run while they happen: where code stands (turn, agent, call), which attempt of what it starts, how it
ends.

A `Scope` is carried by a context variable, so that tasks, and threads that copy their context, know where they belong.
A `Call` is one attempt from its start to its result. This module must not call a tool.
"""

import contextvars
import itertools
import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from goldentrace.model.event import MAIN_AGENT, Origin

if TYPE_CHECKING:
    from goldentrace.record.turn import Turn

MAX_REMEMBERED_CALLS: Final = 10_000
MAX_REMEMBERED_BYTES: Final = 16 << 20
"""Calls, and bytes of their arguments, that a decision may still name by id; an agent decides about what it has just
seen, and what it forgot must not fill its memory."""


class Operation:
    """What all attempts of one call share. next_by: who asks for the next attempt, as the last retry decision said."""

    __slots__ = ("attempts", "next_by", "op_id", "started_ns")

    def __init__(self, op_id: str, started_ns: int) -> None:
        self.op_id = op_id
        self.started_ns = started_ns
        self.attempts = 0
        self.next_by: Origin = "harness"


class Call:
    """One attempt. turn: the one whose block it is in; asked_in: that, else its agent's latest one; tries: how often
    its tool's own retry loop has begun a try (`Recorder.attempt`)."""

    __slots__ = (
        "access", "agent", "args", "asked_in", "attempt", "batch", "call_id", "idempotency_key", "is_destructive",
        "is_failed", "is_open", "operation", "origin", "parent", "resource", "tool_name", "tries", "turn",
    )  # fmt: skip

    def __init__(self, call_id: str, tool_name: str, operation: Operation) -> None:
        self.call_id = call_id
        self.tool_name = tool_name
        self.operation = operation
        self.attempt = 1
        self.agent = MAIN_AGENT
        self.turn: Turn | None = None
        self.asked_in: Turn | None = None
        self.args = Raw(b"")
        self.access: str | None = None
        self.is_destructive = False
        self.resource: str | None = None
        self.idempotency_key: str | None = None
        self.batch: str | int | None = None
        self.parent: str | None = None
        self.origin: Origin = "model"
        self.is_open = True
        self.is_failed = False
        self.tries = 0


class Retry:
    """A decision to try a call again that no call has followed yet."""

    __slots__ = ("call", "is_taken")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.is_taken = False


class GivenId:
    """A call id that the provider gave. The first call takes it; after a failure that tool's next call is its next
    attempt."""

    __slots__ = ("call", "call_id")

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.call: Call | None = None


class Scope(msgspec.Struct, frozen=True):
    """Where code stands. call: the call that it runs within; last: the call that ended last here."""

    agent: str = MAIN_AGENT
    turn: Any = None
    call: Call | None = None
    last: Call | None = None
    batch: str | None = None
    origin: Origin | None = None
    given_id: GivenId | None = None
    retry: Retry | None = None


class Calls:
    """The calls of one recorder: gives ids, joins attempts, finds the call that a decision is about."""

    def __init__(self, agent: str) -> None:
        self._default = Scope(agent=agent)
        self._scope: contextvars.ContextVar[Scope] = contextvars.ContextVar("goldentrace_scope")
        self.open_turns: list[Turn] = []
        self._remembered: OrderedDict[str, Call] = OrderedDict()
        self._remembered_bytes = 0
        self._named: dict[str, Operation] = {}
        self._latest_turns: dict[str, Turn] = {}
        self._waiting: dict[tuple[str, str], list[Retry]] = {}
        self._last_failed: dict[str, Call] = {}
        self.reset_process()

    def reset_process(self) -> None:
        """After a fork: a lock that nobody holds, and ids that the parent will not give too."""
        self.lock = threading.RLock()
        self._token = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def scope(self) -> Scope:
        """Return where the running code stands.

        A thread that was started without its starter's context stands in the open turn, if only one is open.
        """
        scope = self._scope.get(None)
        if scope is not None:
            return scope
        turns = self.open_turns
        return turns[0].inner if len(turns) == 1 else self._default

    def move_to(self, scope: Scope) -> None:
        """Make the running code stand there."""
        self._scope.set(scope)

    def enter_turn(self, turn: "Turn") -> None:
        """Note that a turn of its agent begins: what follows belongs to it until the next one."""
        self.open_turns.append(turn)
        self._latest_turns[turn.inner.agent] = turn

    def _turn_of(self, scope: Scope) -> "Turn | None":
        """The turn that asked for what starts here: a framework runs tools outside of the block around the model."""
        turn: Turn | None = scope.turn
        return turn if turn is not None else self._latest_turns.get(scope.agent)

    def new_id(self, kind: str) -> str:
        """Return an id that no other process of the run gives."""
        return f"{kind}-{self._token}-{next(self._numbers)}"

    def begin(self, scope: Scope, tool_name: str, args: Raw, now_ns: int) -> Call:
        """Return the call that starts here: the next attempt of an operation that is being tried again, or a new one.

        It is not counted yet (`count`): a limit may still stop it.
        """
        given = scope.given_id
        asked_in = self._turn_of(scope)
        asked_by = scope.origin or _origin_in(scope)
        before = self._tried_again(scope, asked_in, tool_name, args)
        if before is not None:
            call = Call(before.call_id, tool_name, before.operation)
            call.attempt = before.operation.attempts + 1
            call.origin = before.operation.next_by
        else:
            call_id = self.new_id("call") if given is None or given.call is not None else given.call_id
            call = Call(call_id, tool_name, Operation(call_id, now_ns))
            call.origin = asked_by
        call.args = args
        call.agent = scope.agent
        call.turn, call.asked_in = scope.turn, asked_in
        call.batch = scope.batch
        if call.batch is None and asked_in is not None and asked_by == "model":
            call.batch = asked_in.batch
        call.parent = (scope.call.call_id or None) if scope.call is not None else None
        return call

    def name(self, call: Call, call_id: str | None, op_id: str | None) -> None:
        """Give a call the ids that its recorder states, before it is counted."""
        if op_id is None:
            call.call_id = call_id or call.call_id
            if call.attempt == 1:
                call.operation = Operation(call.call_id, call.operation.started_ns)
            return
        known = self._remembered.get(op_id)
        call.operation = known.operation if known else self._named.get(op_id) or call.operation
        if call.operation.op_id != op_id:
            self._named[op_id] = call.operation = Operation(op_id, call.operation.started_ns)
        call.call_id = call_id or op_id
        call.attempt = call.operation.attempts + 1

    def unrecorded(self, tool_name: str) -> Call:
        """Return a call that could not be recorded: nothing is written of it any more."""
        call = Call("", tool_name, Operation("", 0))
        call.is_open = False
        return call

    def count(self, scope: Scope, call: Call) -> None:
        """Have the call started: what led to it is used up, and later decisions may name it."""
        call.operation.attempts = max(call.attempt, call.operation.attempts)
        given = scope.given_id
        if given is not None and given.call_id == call.call_id:
            given.call = call
        for retry in (scope.retry, *self._waiting.get((call.agent, call.tool_name), ())):
            if retry is not None and retry.call.operation is call.operation:
                retry.is_taken = True
        with self.lock:
            self._forget(self._remembered.pop(call.call_id, None))
            self._remembered[call.call_id] = call
            self._remembered_bytes += memoryview(call.args).nbytes
            while len(self._remembered) > MAX_REMEMBERED_CALLS or (
                self._remembered_bytes > MAX_REMEMBERED_BYTES and len(self._remembered) > 1
            ):
                self._forget(self._remembered.popitem(last=False)[1])

    def _forget(self, call: Call | None) -> None:
        if call is not None:
            self._remembered_bytes -= memoryview(call.args).nbytes

    def end(self, call: Call, *, is_failed: bool) -> None:
        """Note how an attempt ended."""
        call.is_open = False
        call.is_failed = is_failed
        if is_failed:
            self._last_failed[call.agent] = call
        elif self._last_failed.get(call.agent) is call:
            del self._last_failed[call.agent]

    def find(self, call_id: str) -> Call | None:
        """Return the latest call of an id."""
        return self._remembered.get(call_id)

    def subject(self, scope: Scope, handled: Call | None, *, must_have_failed: bool) -> Call | None:
        """Return the call that a decision without an id is about.

        In this order: the call whose exception is being handled; the one that ended last in this context; the one that
        this code runs within; the agent's last one that failed. must_have_failed: only one of these that did (or runs
        still).
        """
        within = scope.call.call_id if scope.call is not None else None
        if handled is not None and handled.parent == within:
            return handled  # else it is handled further out, by whoever called this code
        for call in (scope.last, scope.call, self._last_failed.get(scope.agent)):
            if call is not None and (call.is_failed or call.is_open or not must_have_failed):
                return call
        return None

    def expect_retry(self, scope: Scope, call: Call) -> None:
        """Take the next call of that tool in this turn for the next attempt: any in this context, one with equal
        arguments elsewhere. What the model decides to try again may come in a later turn."""
        self.move_to(msgspec.structs.replace(scope, retry=self._wait_for(call)))

    def expect_turn_again(self, scope: Scope, call: Call | None, by: Origin) -> None:
        """Take the next call that equals one of this turn, made beside `call`, for its next attempt. by: who asks."""
        agent, turn, parent = scope.agent, self._turn_of(scope), None
        if call is not None:
            agent, turn, parent = call.agent, call.asked_in, call.parent
        with self.lock:
            made = [one for one in self._remembered.values() if one.asked_in is turn]
        for one in made:
            if (one.agent, one.parent) == (agent, parent):
                one.operation.next_by = by
                self._wait_for(one)

    def _wait_for(self, call: Call) -> Retry:
        """Expect the next attempt of a call, and no other one that can no longer come."""
        retry = Retry(call)
        place = (call.agent, call.tool_name)
        with self.lock:
            others = [
                other
                for other in self._waiting.get(place, ())
                if not other.is_taken
                and other.call.operation is not call.operation
                and (other.call.asked_in is call.asked_in or other.call.operation.next_by == "model")
            ]
            self._waiting[place] = [*others, retry]
        return retry

    def _tried_again(self, scope: Scope, asked_in: "Turn | None", tool_name: str, args: Raw) -> Call | None:
        """The earlier attempt of what is called here; None where this is another call."""

        def is_due(retry: Retry, *, is_near: bool) -> bool:
            call = retry.call
            if retry.is_taken or call.tool_name != tool_name:
                return False
            if call.asked_in is not asked_in and call.operation.next_by != "model":
                return False
            return is_near or bytes(call.args) == bytes(args)

        if scope.retry is not None and is_due(scope.retry, is_near=True):
            return scope.retry.call
        for retry in self._waiting.get((scope.agent, tool_name), ()):
            if is_due(retry, is_near=False):
                return retry.call
        asked = scope.given_id.call if scope.given_id is not None else None
        return asked if asked is not None and asked.is_failed and asked.tool_name == tool_name else None


def _origin_in(scope: Scope) -> Origin:
    """Who asks for a call, where nobody said: the model; the harness, where a tool calls another one without a model
    turn."""
    is_within = scope.call is not None and scope.call.turn is scope.turn
    return "harness" if is_within else "model"
