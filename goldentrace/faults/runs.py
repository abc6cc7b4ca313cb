"""The state of one run: how often each tool was called, its ledger, its limits, its failures, its journal.

Steps are counted here, by the server and per tool: a client that counted them itself would race with its own retries.
This module must not know a transport.
"""

from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Final

from goldentrace.faults.call import Call, Operation, Outcome
from goldentrace.faults.chaos import draw
from goldentrace.faults.journal import Failure, RunJournal
from goldentrace.faults.kinds import PHASES
from goldentrace.faults.ledger import EffectEntry, Ledger
from goldentrace.faults.plan import NONE, Plan, Step, Tool
from goldentrace.model.event import ABSENT, Effect, Limit, Origin, ToolCall, ToolResult

MAX_NOTED: Final = 100
"""Failures kept word for word; more are counted."""
MAX_LOG: Final = 10_000
"""Calls kept for the admin interface; the journal has all."""
EXHAUSTED: Final = Step("exhausted", PHASES[1])
"""What a call beyond the last step meets."""
BROKEN: Final = Step("reset", PHASES[0])
"""What a call meets that comes in over a stale connection."""
STICKY: Final = Step("auth_expired", PHASES[1], params={"sticky": True})


class Run:
    """One run of an agent against the plan. on_stop: called once when a limit ends the run."""

    def __init__(self, run_id: str, plan: Plan, journal: RunJournal, on_stop: Callable[[], None]) -> None:
        self.run_id = run_id
        self.plan = plan
        self.journal = journal
        self.ledger = Ledger()
        self.counts: dict[str, int] = dict.fromkeys(plan.tools, 0)
        self.total = 0
        self.answered = 0
        self.failures: list[Failure] = []
        self.failure_count = 0
        self.refused_connections = 0
        self.limit: Limit | None = None
        self.first_call_ns: int | None = None
        self.met: dict[str, list[Step]] = {name: [] for name in plan.tools}
        self.expired: dict[str, set[str | None]] = {}
        self.log: deque[dict[str, Any]] = deque(maxlen=MAX_LOG)
        self._on_stop = on_stop
        self._operations: dict[tuple[str, ...], Operation] = {}

    # --- which step ---------------------------------------------------------------------------------------------------

    def next_step(self, tool: Tool, credential: str | None) -> tuple[int, Step, bool]:
        """Count an arrival. Returns its number, what it meets, and whether that was drawn.

        A call with a credential that a sticky `auth_expired` has refused takes no step.
        """
        if credential in self.expired.get(tool.name, ()):
            return self.counts[tool.name], STICKY, False
        self.counts[tool.name] += 1
        n = self.counts[tool.name]
        step, is_drawn = self._step(tool, n)
        self.met[tool.name].append(step)
        return n, step, is_drawn

    def _step(self, tool: Tool, n: int) -> tuple[Step, bool]:
        left = n
        for step in tool.steps:
            if left <= step.times:
                return step, False
            left -= step.times
        if tool.chaos is not None:
            return draw(tool.chaos, tool.name, n), True
        if not tool.steps or tool.after_steps == "ok":
            return NONE, False
        return (tool.steps[-1] if tool.after_steps == "repeat" else EXHAUSTED), False

    # --- what ends or spoils a run ------------------------------------------------------------------------------------

    def fail(self, what: str, next_step: str = "") -> None:
        """Note why this run has no verdict."""
        self.failure_count += 1
        if self.failure_count <= MAX_NOTED:
            self.failures.append(Failure(what, next_step))

    def stop(self, name: str, value: float, maximum: float) -> None:
        """Note that a limit fired, which ends the run; only the first one counts."""
        if self.limit is None:
            self.limit = Limit(limit=name, value=value, max=maximum, extra=self._extra())
            self.journal.write(self.limit)
            self._on_stop()

    def refuse_connection(self, maximum: int) -> None:
        """Note a connection beyond the maximum. It ends nothing: the others go on."""
        self.refused_connections += 1
        if self.refused_connections == 1:
            self.journal.write(Limit(limit="max_connections", value=maximum + 1, max=maximum, extra=self._extra()))

    # --- events -------------------------------------------------------------------------------------------------------

    def join(self, call: Call) -> None:
        """Find the operation that a call is an attempt of, by call id, idempotency key, or what an SDK says.

        An equal call after an answered one is a new operation: somebody asked again. Equal arguments alone join nothing
        here; that is for the reader of the trace, who also knows the turns.
        """
        who = call.caller
        tool = call.tool.name
        ways: list[tuple[str, ...]] = []
        if who.call_id is not None:
            ways.append(("id", tool, who.call_id))
        if call.key is not None:
            ways.append(("key", tool, call.key, call.digest))
        ways.append(("sdk", tool, call.digest))
        usable = ways if who.retries else ways[:-1]
        found = next((op for way in usable if (op := self._operations.get(way)) and not op.is_answered), None)
        if found is None:
            call_id = who.call_id or f"call_{self.total}"
            found = Operation(call_id)
        found.attempts += 1
        call.op = found
        call.call_id = who.call_id or f"call_{self.total}"
        call.attempt = who.attempt or max(found.attempts, (who.retries or 0) + 1)
        for way in ways:
            self._operations[way] = found

    def write_call(self, call: Call) -> None:
        """Write the tool_call event of an arrival."""
        assert call.op is not None, "join comes first"
        who = call.caller
        known: dict[str, Any] = {
            "n": call.n, "connection": who.connection, "transport": who.transport, "fault": call.step.fault,
            "phase": call.step.phase, "body_digest": call.digest or None, "retry_count": who.retries,
            "given_call_id": True if who.call_id else None, "is_drawn": call.is_drawn or None,
        }  # fmt: skip
        self.journal.write(
            ToolCall(
                call_id=call.call_id,
                tool_name=call.tool.name,
                args=self.journal.raw(call.args) if call.has_arrived and call.args_raw is None else ABSENT,
                args_raw=None if call.args_raw is None else self.journal.text(call.args_raw),
                attempt=call.attempt,
                op_id=call.op.op_id if call.op.op_id != call.call_id else None,
                origin=self._origin(call),
                access=call.tool.access,
                idempotency_key=call.key,
                extra=self._extra(**known),
            ),
            call.started_ns,
        )

    def _origin(self, call: Call) -> Origin:
        """Who asked: what the request says, an SDK that counts its retries, else the harness for any later attempt."""
        if call.caller.origin is not None:
            return call.caller.origin
        if call.caller.retries:
            return "sdk"
        return "harness" if call.op is not None and call.op.attempts > 1 else "model"

    def write_result(self, call: Call, outcome: Outcome) -> None:
        """Write the tool_result event of a call, once."""
        if call.is_finished:
            return
        call.is_finished = True
        self.answered += 1
        answer = call.answer
        if call.op is not None:
            call.op.is_answered = outcome.status in ("ok", "denied")
        is_told = outcome.http_status is not None or outcome.has_result
        owed_ms = answer.owed_ms if answer is not None and is_told else None
        known: dict[str, Any] = {
            "bytes_sent": outcome.bytes_sent, "is_gone": outcome.is_gone or None,
            "is_committed": call.is_committed or None, "is_replay": call.is_replay or None,
            "elapsed_ms": call.elapsed_ms(),
            **(answer.notes if answer is not None and answer.notes else {}),
        }  # fmt: skip
        self.journal.write(
            ToolResult(
                call_id=call.call_id,
                attempt=call.attempt,
                status=outcome.status,
                error_class=outcome.error_class,
                http_status=outcome.http_status,
                owed_ms=owed_ms,
                sent=True,
                result=self.journal.raw(outcome.result) if outcome.has_result else ABSENT,
                extra=self._extra(**known),
            )
        )
        self.log.append({
            "tool": call.tool.name, "n": call.n, "fault": call.step.fault, "phase": call.step.phase,
            "call_id": call.call_id, "attempt": call.attempt, "status": outcome.status,
            "error_class": outcome.error_class, "http_status": outcome.http_status, "owed_ms": owed_ms,
            "connection": call.caller.connection,
            "is_committed": call.is_committed, "is_replay": call.is_replay, "is_gone": outcome.is_gone,
            "bytes_sent": outcome.bytes_sent,
        })  # fmt: skip

    def write_effects(self, effects: list[EffectEntry]) -> None:
        """Write one effect event per entry."""
        for entry in effects:
            extra = self._extra(tool=entry.tool, n=entry.n)
            value = self.journal.raw(entry.value)
            self.journal.write(Effect(name=entry.name, key=entry.key, value=value, extra=extra))

    def _extra(self, **known: Any) -> dict[str, Any]:
        return {"server": {"run": self.run_id, **{name: value for name, value in known.items() if value is not None}}}

    def elapsed_ms(self) -> float:
        """Return ms since the first call of the run, 0 before it."""
        return 0.0 if self.first_call_ns is None else (monotonic_ns() - self.first_call_ns) / 1e6

    def close(self) -> None:
        """End the journal."""
        self.journal.close(None if self.limit is None else self.limit.limit, self.failures)
