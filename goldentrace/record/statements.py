"""What an agent says of itself while it runs: its decisions, messages, effects, and calls that cannot be wrapped.

Each method writes one event and never raises, except that `call` may raise LimitReached. This module must not open
files.
"""

import sys
from collections.abc import Sequence
from typing import Any, Literal, get_args

from goldentrace.model.event import (
    ABSENT,
    DECISION_KINDS,
    Access,
    Approval,
    Decision,
    DecisionKind,
    Effect,
    ErrorClass,
    Limit,
    Message,
    Origin,
    Status,
    Verdict,
)
from goldentrace.record.calls import Call, Operation
from goldentrace.record.failures import Failure, classify
from goldentrace.record.limits import STOP_REASONS
from goldentrace.record.payloads import is_reasoning_role
from goldentrace.record.session import Session
from goldentrace.record.tools import make_tool
from goldentrace.record.wrap import call_of


class Statements:
    """The part of a `Recorder` that writes what it is told."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(  # noqa: PLR0913 - the fields of the event
        self,
        tool_name: str,
        args: Any = None,
        *,
        call_id: str | None = None,
        attempt: int | None = None,
        op_id: str | None = None,
        origin: Origin | None = None,
        batch: str | int | None = None,
        parent: str | None = None,
        access: Access | None = None,
        resource: str | None = None,
        idempotency_key: str | None = None,
        args_raw: str | None = None,
        destructive: bool = False,
    ) -> str:
        """Record that a call starts, where a tool cannot be wrapped, and return its id for `result`.

        args_raw: the text as the model sent it, where it did not parse. Raises: LimitReached.
        """
        session = self._session
        with session.guard:
            scope = session.calls.scope()
            raw = session.payloads.raw(args) if args_raw is None or args is not None else ABSENT
            at = session.now()
            call = session.calls.begin(scope, tool_name, raw, at.mono_ns)
            call.access = make_tool(tool_name, access=access).access
            call.is_destructive = destructive
            call.resource = None if resource is None else session.payloads.text(resource)
            call.idempotency_key = None if idempotency_key is None else session.payloads.text(idempotency_key)
            call.origin, call.batch, call.parent = origin or call.origin, batch or call.batch, parent or call.parent
            if call_id is not None or op_id is not None:
                session.calls.name(call, call_id, op_id)
            call.attempt = attempt or call.attempt
            text = None if args_raw is None else session.payloads.text(args_raw)
            session.announce(scope, call, at, args_raw=text)
            return call.call_id
        return call_id or session.calls.new_id("call")

    def result(  # noqa: PLR0913 - the fields of the event
        self,
        call_id: str,
        result: Any = ABSENT,
        *,
        status: Status | None = None,
        error: BaseException | None = None,
        error_class: ErrorClass | None = None,
        http_status: int | None = None,
        owed_ms: float | None = None,
        sent: bool | None = None,
        attempt: int | None = None,
    ) -> None:
        """Record how a call ended. status: default `ok`; with an exception what it means, unless said here."""
        session = self._session
        with session.guard:
            at = session.now()
            known = Failure("ok") if error is None else classify(error, at.time_ns)
            how = Failure(
                status or known.status,
                error_class or known.error_class,
                http_status if http_status is not None else known.http_status,
                owed_ms if owed_ms is not None else known.owed_ms,
                sent if sent is not None else known.sent,
            )
            check("status", how.status, get_args(Status))
            call = session.calls.find(call_id)
            if call is None:
                scope = session.calls.scope()
                call = Call(call_id, "", Operation(call_id, at.mono_ns))
                call.agent, call.turn = scope.agent, scope.turn
            call.attempt = attempt or call.attempt
            session.record_end(call, how, result, at, error)

    def decision(
        self,
        kind: DecisionKind,
        call_id: str | None = None,
        *,
        reason: str | None = None,
        delay_ms: float | None = None,
        by: Origin = "harness",
        of: Literal["call", "turn"] = "call",
    ) -> None:
        """Record a decision: retry, reconcile, fallback, abort, escalate, finish. delay_ms: the wait that is asked for.

        Without call_id it is about the call whose exception is being handled, else about the one that ended last here,
        else about the one that this code runs within; `finish` is about the run. After `retry` the next call of that
        tool is the next attempt of that operation, asked for by `by`. of: `turn` where what is tried again is
        everything that the turn asked for, what had succeeded too, as a framework does that retries a whole node: each
        next equal call of the turn is the next attempt of its own operation.
        """
        session = self._session
        with session.guard:
            check("decision", kind, DECISION_KINDS)
            check("origin", by, get_args(Origin))
            check("of", of, ("call", "turn") if kind == "retry" else ("call",))
            scope = session.calls.scope()
            if call_id is not None:
                call = session.calls.find(call_id)
            elif kind == "finish":
                call = None
            else:
                must_have_failed = kind not in ("retry", "fallback")
                handled = call_of(sys.exc_info()[1])
                call = session.calls.subject(scope, handled, must_have_failed=must_have_failed)
            session.append(
                Decision(
                    decision=kind,
                    call_id=call_id or (call.call_id if call is not None else None),
                    by=by,
                    reason=None if reason is None else session.payloads.text(reason),
                    delay_ms=delay_ms,
                    **session.place(scope),
                )
            )
            if of == "turn":
                session.calls.expect_turn_again(scope, call, by)
            elif kind == "retry" and call is not None:
                call.operation.next_by = by
                if not call.is_open:
                    session.calls.expect_retry(scope, call)

    def message(self, role: str, content: Any) -> None:
        """Record a text of a role (user, system, assistant …). content: a string, or content blocks of a provider.

        Hidden reasoning, as a role or as a block, is dropped.
        """
        session = self._session
        with session.guard:
            if not is_reasoning_role(role):
                text = session.payloads.message(role, content)
                session.append(Message(role=role, text=text, **session.place(session.calls.scope())))

    def approval(self, call_id: str, verdict: Verdict, *, by: str | None = None) -> None:
        """Record that a person or a policy allowed (`approved`) or refused (`denied`) a call."""
        session = self._session
        with session.guard:
            check("verdict", verdict, get_args(Verdict))
            session.append(Approval(call_id=call_id, verdict=verdict, by=by, **session.place(session.calls.scope())))

    def effect(self, name: str, key: str | None = None, value: Any = ABSENT) -> None:
        """Record a side effect as the tool's own ledger saw it."""
        session = self._session
        with session.guard:
            raw = ABSENT if value is ABSENT else session.payloads.raw(value)
            shown = None if key is None else session.payloads.text(key)
            session.append(Effect(name=name, key=shown, value=raw, **session.place(session.calls.scope())))

    def limit(self, name: str, value: float | None = None, max: float | None = None) -> None:  # noqa: A002 - the field
        """Record that a stop condition of the agent's own fired; `end` gives its reason. value, max: reached and
        allowed."""
        session = self._session
        with session.guard:
            session.stop_reason = STOP_REASONS.get(name, session.stop_reason)
            session.append(Limit(limit=name, value=value, max=max, **session.place(session.calls.scope())))


def check(what: str, value: str, allowed: Sequence[str]) -> None:
    """Raises: ValueError for a word that the format does not have."""
    if value not in allowed:
        raise ValueError(f"{what} {value!r} is none of {', '.join(allowed)}")
