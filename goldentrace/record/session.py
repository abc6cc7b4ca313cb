"""What one recorder writes with: the journal, the payloads, the limits and the calls, behind one guard.

Everything that is recorded passes here. A mistake in the recorder is said once on stderr, and the trace stays
incomplete; the agent never sees it. Only LimitReached gets through: it is meant for the agent. This module must not
call a tool.
"""

import atexit
import itertools
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from goldentrace.model.event import (
    ABSENT,
    AnyEvent,
    Limit,
    Outcome,
    StopReason,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
    Usage,
)
from goldentrace.record.calls import Call, Calls, Scope
from goldentrace.record.failures import Failure, classify, failure_in_result
from goldentrace.record.limits import Execution, LimitReached, Meter
from goldentrace.record.payloads import Payloads, Written
from goldentrace.record.tools import Binder, Tool
from goldentrace.record.turn import Turn
from goldentrace.store.clock import Clock, Moment, read_clock
from goldentrace.store.journal import Journal, say_on_stderr

TRACE_VARIABLE = "GOLDENTRACE_TRACE"
MAX_COMPLAINTS = 10
"""Different lines on stderr; each is said once. More would only bury the agent's own output."""


class Guard:
    """`with guard:` keeps a mistake in the recorder away from the agent."""

    def __init__(self, on_mistake: Callable[[Exception], None]) -> None:
        self._on_mistake = on_mistake

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False  # nothing, or a limit, an interrupt, a cancellation: the agent's own
        self._on_mistake(error)
        return True


class Session:
    """One recorder at work.

    path: FILE of the run, None records nothing (limits hold all the same); header: the trace_start of a new file;
    is_new_run: see `Journal`.
    """

    def __init__(
        self,
        path: Path | None,
        header: TraceStart,
        *,
        clock: Clock,
        payloads: Payloads,
        meter: Meter,
        agent: str,
        is_new_run: bool,
    ) -> None:
        self.path = path
        self.is_recording = path is not None
        self.is_active = self.is_recording or not meter.limits.is_empty
        self.payloads = payloads
        self.calls = Calls(agent)
        self.guard = Guard(self.note_mistake)
        self.stop_reason: StopReason | None = None
        self._header = header
        self._clock = clock
        self._meter = meter
        self._has_limits = not meter.limits.is_empty
        self._is_new_run = is_new_run
        self._journal: Journal | None = None
        self._is_opened = False
        self._is_closed = False
        self._has_set_variable = False
        self._turns = itertools.count(1)
        self._started_ns = clock.monotonic_ns()
        self._fired: set[tuple[str, str]] = set()
        self._said: set[str] = set()
        _LIVE.add(self)

    # --- the file ---------------------------------------------------------------------------------------------------

    def open(self) -> Journal | None:
        """Open the journal, if it is not open; the run's clock starts with it."""
        with self.calls.lock:
            if not self._is_opened and self.path is not None and not self._is_closed:
                self._is_opened = True  # also if it fails: a mistake in there must not make a file for every event
                self._started_ns = self._clock.monotonic_ns()
                self._journal = Journal(
                    self.path, self._header, clock=self._clock, is_new_run=self._is_new_run, say=self.say
                )
                if TRACE_VARIABLE not in os.environ:
                    os.environ[TRACE_VARIABLE] = str(self.path)  # processes that the agent starts are part of the run
                    self._has_set_variable = True
                atexit.register(self.close_at_exit)
        return self._journal

    def append(self, event: AnyEvent, at: Moment | None = None) -> None:
        """Write one event."""
        journal = self._journal or self.open()
        if journal is not None:
            journal.append(event, at)

    def end(self, event: TraceEnd) -> None:
        """Write the last event."""
        journal = self.open()
        if journal is not None:
            journal.end(event)

    def close(self, unended: TraceEnd) -> None:
        """Close the file; unended: its last event, if none was stated."""
        with self.calls.lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._has_set_variable and os.environ.get(TRACE_VARIABLE) == str(self.path):
                del os.environ[TRACE_VARIABLE]
        if self._journal is not None:
            self._journal.close(unended)
            atexit.unregister(self.close_at_exit)

    def close_at_exit(self) -> None:
        """The interpreter ends and nobody closed the recorder: after an unhandled exception the run has failed."""
        outcome: Outcome = "failed" if getattr(sys, "last_value", None) is not None else "unknown"
        self.close(TraceEnd(outcome=outcome, stop_reason=self.stop_reason or "unknown"))

    def reset_process(self) -> None:
        """After a fork: no lock that somebody else held."""
        self.calls.reset_process()
        self.payloads.reset_lock()
        self._meter.reset_lock()

    def now(self) -> Moment:
        """Return what the clocks show."""
        return read_clock(self._clock)

    # --- mistakes ---------------------------------------------------------------------------------------------------

    def note_mistake(self, error: Exception) -> None:
        """Say that something could not be recorded, here and at the end of the trace, which is incomplete then."""
        text = str(error) or type(error).__name__
        why = f"an event could not be recorded: {text}"
        self.say(f"{why}; the trace stays incomplete, the agent goes on")
        if self._journal is not None:
            try:
                why = self.payloads.text(" ".join(why.split()))
            except Exception:  # noqa: BLE001 - perhaps the very redaction that failed
                why = f"an event could not be recorded: {type(error).__name__}"
            self._journal.note_lack(why)

    def say(self, text: str) -> None:
        """Write one line to stderr, once."""
        line = " ".join(text.split())
        if line not in self._said and len(self._said) < MAX_COMPLAINTS:
            self._said.add(line)
            say_on_stderr(line if line.isprintable() else line.encode("unicode_escape").decode("ascii"))

    # --- limits -----------------------------------------------------------------------------------------------------

    def take_turn(self) -> None:
        """Count a turn. Raises: LimitReached, after writing that it fired."""
        if self._has_limits:
            try:
                self._meter.take_turn(self._ms_since(self._started_ns))
            except LimitReached as reached:
                raise self.stopped(reached, self.calls.scope()) from None

    def take_usage(self, usage: Usage, turn: Turn) -> None:
        """Count what a turn used. Raises: LimitReached, after writing the turn and that it fired."""
        if self._has_limits:
            try:
                self._meter.take_usage(usage)
            except LimitReached as reached:
                with self.guard:
                    turn.write()
                raise self.stopped(reached, turn.inner) from None

    def next_turn(self) -> int:
        """Return the number of a turn that is written now."""
        return next(self._turns)

    def remaining_ms(self, call: Call) -> tuple[float, str] | None:
        """Return how long an attempt may run and which limit says so."""
        if not self._has_limits:
            return None
        elapsed_ms = self._ms_since(call.operation.started_ns)
        return self._meter.remaining_ms(call.tool_name, elapsed_ms, self._ms_since(self._started_ns))

    def out_of_time(self, call: Call, name: str) -> LimitReached:
        """Return the limit that ended a running attempt, after writing that it fired."""
        limits = self._meter.limits
        if name == "max_wall_ms":
            reached = LimitReached(name, self._ms_since(self._started_ns), limits.max_wall_ms or 0)
        else:
            allowed_ms = limits.of_tool(call.tool_name).max_elapsed_ms or 0
            value = self._ms_since(call.operation.started_ns)
            reached = LimitReached(name, value, allowed_ms, tool_name=call.tool_name)
        return self.stopped(reached, self.calls.scope())

    def stopped(self, reached: LimitReached, scope: Scope) -> LimitReached:
        """Write that a limit fired, once for each limit and tool, and return the exception to raise."""
        self.stop_reason = reached.stop_reason
        key = (reached.limit, reached.tool_name or "")
        if key not in self._fired:
            self._fired.add(key)
            with self.guard:
                extra = {"tool_name": reached.tool_name} if reached.tool_name else None
                place = self.place(scope)
                self.append(Limit(limit=reached.limit, value=reached.value, max=reached.maximum, extra=extra, **place))
        return reached

    def turn_number(self, turn: Turn | None) -> int | None:
        """Return the number of a turn, whose line is written by then; None outside of any."""
        if turn is None:
            return None
        turn.write()
        return turn.number

    def _ms_since(self, mono_ns: int) -> float:
        return round((self._clock.monotonic_ns() - mono_ns) / 1e6, 3)

    # --- calls ------------------------------------------------------------------------------------------------------

    def begin_call(self, tool: Tool, binder: Binder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Write that a tool is called and return the call. Raises: LimitReached."""
        with self.guard:
            arguments = binder.bind(args, kwargs)
            resource, key = binder.resource(arguments), binder.idempotency_key(arguments)
            scope = self.calls.scope()
            encoded = self.payloads.raw(binder.recorded(arguments)) if self.is_recording else ABSENT
            at = self.now()
            call = self.calls.begin(scope, tool.name, encoded, at.mono_ns)
            call.access, call.is_destructive = tool.access, tool.is_destructive
            call.resource = None if resource is None else self.payloads.text(resource)
            call.idempotency_key = None if key is None else self.payloads.text(key)
            self.announce(scope, call, at)
            return call
        return self.calls.unrecorded(tool.name)

    def announce(self, scope: Scope, call: Call, at: Moment, *, args_raw: str | None = None) -> None:
        """Count an attempt and write that it starts. Raises: LimitReached."""
        if self._has_limits:
            execution = Execution(
                tool_name=call.tool_name,
                attempt=call.attempt,
                is_by_model=call.origin == "model",
                is_write=call.access == "write",
                is_destructive=call.is_destructive,
                elapsed_ms=(at.mono_ns - call.operation.started_ns) / 1e6,
                wall_ms=(at.mono_ns - self._started_ns) / 1e6,
            )
            try:
                self._meter.take_execution(execution)
            except LimitReached as reached:
                raise self.stopped(reached, scope) from None
        self.calls.count(scope, call)
        operation = call.operation
        event = ToolCall(
            call_id=call.call_id,
            tool_name=call.tool_name,
            args=call.args,
            args_raw=args_raw,
            attempt=call.attempt,
            op_id=operation.op_id if call.attempt > 1 or operation.op_id != call.call_id else None,
            origin=call.origin,
            batch=call.batch,
            parent=call.parent,
            access=call.access,  # type: ignore[arg-type] # checked where the tool was described
            resource=call.resource,
            idempotency_key=call.idempotency_key,
            turn=self.turn_number(call.turn),
            agent=call.agent,
        )
        self.append(event, at)
        if call.access == "write" and self._journal is not None:
            self._journal.sync()

    def begin_try(self, call: Call) -> None:
        """Let a tool's own retry loop try again: the first try is the call itself. Raises: LimitReached."""
        call.tries += 1
        if call.tries == 1:
            return
        at = self.now()
        if call.is_open:
            self.write_result(call, Failure(error_class="unknown"), Written(), at)
        before = call.attempt, call.origin
        call.attempt, call.origin = call.operation.attempts + 1, call.operation.next_by
        try:
            self.announce(self.calls.scope(), call, at)
        except LimitReached:
            call.attempt, call.origin = before  # it did not begin, so it has no result either
            raise
        call.is_failed = False
        call.is_open = True

    def finish_call(self, call: Call, value: Any) -> None:
        """Write what a call returned; an answer that says it is an error is one."""
        with self.guard:
            if call.is_open:
                at = self.now()
                failure = failure_in_result(value, at.time_ns)
                written = self.payloads.result(value) if self.is_recording else Written()
                self.write_result(call, failure or Failure("ok"), written, at)

    def fail_call(self, call: Call, error: BaseException, partial: Any = None) -> None:
        """Write how a call failed. partial: what a stream had given until then."""
        with self.guard:
            if call.is_open:
                at = self.now()
                written = Written() if partial is None or not self.is_recording else self.payloads.result(partial)
                self.write_result(call, classify(error, at.time_ns), written, at, error_text=_text_of(error))

    def write_result(
        self, call: Call, how: Failure, written: Written, at: Moment, *, error_text: str | None = None
    ) -> None:
        """Write the result of an attempt. how: its status `ok` is no failure."""
        self.calls.end(call, is_failed=how.status != "ok")
        event = ToolResult(
            call_id=call.call_id,
            attempt=call.attempt if call.attempt > 1 else None,
            status=how.status,
            error_class=None if how.status == "ok" else how.error_class,
            http_status=how.http_status,
            owed_ms=how.owed_ms,
            sent=how.sent,
            result=written.value,
            result_hash=written.digest,
            result_bytes=written.size_bytes,
            turn=self.turn_number(call.turn),
            agent=call.agent,
            extra=None if error_text is None else {"error": self.payloads.text(error_text)},
        )
        self.append(event, at)

    def record_end(self, call: Call, how: Failure, value: Any, at: Moment, error: BaseException | None) -> None:
        """Write the end of a call as its recorder states it. value: ABSENT where there is none."""
        written = Written() if value is ABSENT else self.payloads.result(value)
        text = None if error is None else _text_of(error)
        self.write_result(call, how, written, at, error_text=text)

    def place(self, scope: Scope) -> dict[str, Any]:
        """Return where an event stands, as fields."""
        return {"turn": self.turn_number(scope.turn), "agent": scope.agent}

    def enter_call(self, call: Call) -> Scope:
        """Let the running code stand within a call, and return where it stood."""
        before = self.calls.scope()
        self.calls.move_to(Scope(agent=before.agent, turn=before.turn, call=call))
        return before

    def leave_call(self, call: Call, before: Scope) -> None:
        """Let the running code stand where it stood, with this call as the last one."""
        self.calls.move_to(
            Scope(
                before.agent, before.turn, before.call, call, before.batch, before.origin, before.given_id, before.retry
            )
        )


def _text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


_LIVE: weakref.WeakSet[Session] = weakref.WeakSet()


def _after_fork() -> None:
    for session in list(_LIVE):
        session.reset_process()


os.register_at_fork(after_in_child=_after_fork)
