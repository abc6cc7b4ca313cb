"""What happens to a call between its arrival and its answer, for every transport alike.

The order is fixed: count, limits, arguments, schema, idempotency look-up, the fault before the commit, the commit, the
answer. Transports read requests and write answers; they decide nothing. This module must not open a socket.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic_ns, time, time_ns
from typing import Any, Final, Literal

from goldentrace.codec.canonical import ARGS_DIGITS, JsonError, canonical, decode, digest
from goldentrace.faults.answer import (
    Answer,
    denied_answer,
    duplicate_answer,
    expired_answer,
    refusal,
    status_answer,
)
from goldentrace.faults.call import Call, Caller
from goldentrace.faults.chaos import generator, latency_ms, new_id
from goldentrace.faults.contracts import Contract
from goldentrace.faults.drift import drifted, page
from goldentrace.faults.journal import RunJournal
from goldentrace.faults.ledger import EffectEntry, Entry, Record
from goldentrace.faults.plan import Plan, Tool
from goldentrace.faults.runs import BROKEN, EXHAUSTED, Run
from goldentrace.faults.template import fill, look_up
from goldentrace.store.clock import format_time

Paused = Literal["elapsed", "gone", "stopped"]
Pause = Callable[[float], Awaitable[Paused]]
"""Waits ms, unless the client goes or the run is stopped first."""

MAX_RUNS: Final = 1000
GRACE_MS: Final = 25
"""How long a repetition waits before it is refused as in flight: a client that closed its first request and repeats at
once may arrive before its own close does."""
SILENT: Final = frozenset(("hang", "empty_reply", "reset", "garbage", "server_exit"))
"""Faults that, before the commit, leave a call without an answer."""


class Engine:
    """The plan at work. runs: one state per run id; `default_run` is the one that requests without an id belong to."""

    def __init__(
        self, plan: Plan, *, default_run: str, journal_path: Path | None, scenario_id: str | None = None
    ) -> None:
        """Raises: InfrastructureError where the journal cannot be written."""
        self.plan = plan
        self.default_run = default_run
        self.journal_path = journal_path
        self.scenario_id = scenario_id
        self.runs: dict[str, Run] = {}
        self.pauses: set[asyncio.Future[Paused]] = set()
        self._contracts: dict[str, Contract] = {}
        self._wall: dict[str, asyncio.TimerHandle] = {}
        self.load(plan)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def load(self, plan: Plan) -> None:
        """Take a plan and forget every run; what hangs in one ends."""
        self.wake()
        self.close()
        self.plan = plan
        self._contracts = {name: Contract(tool.schema) for name, tool in plan.tools.items() if tool.schema is not None}
        self.runs = {}
        self.run(self.default_run)

    def run(self, run_id: str) -> Run | None:
        """Return the state of a run, made on first sight; None once there are too many."""
        found = self.runs.get(run_id)
        if found is None and len(self.runs) < MAX_RUNS:
            found = self.runs[run_id] = self._new_run(run_id)
        return found

    @property
    def main(self) -> Run:
        return self.runs[self.default_run]

    def reset(self, run_id: str) -> None:
        """Forget one run: counts, ledger, limits; its journal begins anew."""
        if run_id in self.runs:
            self._cancel_wall(run_id)
            self.runs[run_id].close()
        self.runs[run_id] = self._new_run(run_id)

    def _new_run(self, run_id: str) -> Run:
        path = self.journal_path
        if path is not None and run_id != self.default_run:
            path = path.with_name(f"{path.stem}.{run_id}{path.suffix}")
        journal = RunJournal(path, run_id=run_id, seed=self.plan.seed, scenario_id=self.scenario_id)
        return Run(run_id, self.plan, journal, self.wake)

    def close(self) -> None:
        """End every journal."""
        for run_id, run in self.runs.items():
            self._cancel_wall(run_id)
            run.close()

    def wake(self) -> None:
        """End every pause: the run is over."""
        for pause in list(self.pauses):
            if not pause.done():
                pause.set_result("stopped")

    def _cancel_wall(self, run_id: str) -> None:
        timer = self._wall.pop(run_id, None)
        if timer is not None:
            timer.cancel()

    # --- arrival ------------------------------------------------------------------------------------------------------

    def arrive(self, run: Run, tool: Tool, who: Caller) -> Call:
        """Count an arrival and say what it meets. A call that a limit turns away has its answer already."""
        run.total += 1
        limits = self.plan.limits
        if run.first_call_ns is None:
            run.first_call_ns = monotonic_ns()
            self._watch_wall(run)
        if limits.max_tool_calls is not None and run.total > limits.max_tool_calls:
            run.stop("max_tool_calls", run.total, limits.max_tool_calls)
        if run.limit is not None:
            call = Call(run, tool, run.counts[tool.name], EXHAUSTED, who)
            name = run.limit.limit
            call.answer = refusal(503, "limit_reached", f"the run is over: {name}", limit=name)
            return call
        n, step, is_drawn = run.next_step(tool, who.credential)
        call = Call(run, tool, n, step, who, is_drawn=is_drawn)
        if step is EXHAUSTED:
            run.fail(
                f"{tool.name}: call {n} is beyond the last step of the plan",
                f"add steps to {tool.name}, or `after_steps: ok` (or repeat)",
            )
            call.answer = refusal(
                500, "script_exhausted", f"call {n} of {tool.name} is beyond the last step of the plan"
            )
        elif step.fault == "auth_expired" and step.params.get("sticky"):
            run.expired.setdefault(tool.name, set()).add(who.credential)
        return call

    def break_off(self, run: Run, tool: Tool, who: Caller, body: bytes | None) -> Call:
        """Write down a call that met a stale connection: it reached the server, was never served, and takes no step."""
        run.total += 1
        call = Call(run, tool, run.counts[tool.name], BROKEN, who)
        self.describe(call, body)
        return call

    def _watch_wall(self, run: Run) -> None:
        wall_ms = self.plan.limits.max_wall_ms
        if wall_ms is not None:

            def fire() -> None:
                run.stop("max_wall_ms", round(run.elapsed_ms(), 3), wall_ms)

            self._wall[run.run_id] = asyncio.get_running_loop().call_later(wall_ms / 1000, fire)

    def describe(self, call: Call, body: bytes | None, more: dict[str, Any] | None = None) -> None:
        """Take in the arguments and write the tool_call event.

        body: a JSON object, empty for none; None where it never arrived; more: arguments from the path and the query.
        """
        if body is not None:
            call.has_arrived = True
            try:
                call.args = decode(body) if body.strip() else {}
            except JsonError:
                call.args_raw = body[:65536].decode("utf-8", "replace")
            if more and isinstance(call.args, dict):
                call.args = {**more, **call.args}
        self.take(call)

    def take(self, call: Call) -> None:
        """Work out digest, key and operation of a call whose arguments are set, and write its tool_call event."""
        if call.has_arrived:
            source = canonical(call.args) if call.args_raw is None else call.args_raw.encode("utf-8", "replace")
            call.digest = digest(source, ARGS_DIGITS)
        call.key = self._key(call)
        call.run.join(call)
        call.run.write_call(call)

    def _key(self, call: Call) -> str | None:
        """The idempotency key: in the arguments where the plan says so, else in the header, quoted or not."""
        rule = call.tool.idempotency
        if rule is None:
            given = call.caller.headers.get("idempotency-key")
        else:
            if rule.key is not None:
                found = look_up(call.args, rule.key)
                if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
                    return str(found)
            given = call.caller.headers.get(rule.header.lower()) if rule.header is not None else None
        return given.strip().strip('"') or None if given is not None else None

    # --- decision -----------------------------------------------------------------------------------------------------

    async def decide(self, call: Call, pause: Pause) -> Answer | None:
        """Return what a described call is answered with, None where its fault leaves it without an answer.

        Commits on the way, unless the fault strikes first. pause: how this transport waits.
        """
        if call.answer is None and not call.is_unread:
            call.answer = self._refuse(call) or await self._admit(call, pause)
        if call.answer is not None and call.answer.is_refusal:
            return call.answer
        step = call.step
        if step.phase in ("before_read", "before_commit") and step.fault != "none":
            if step.fault in SILENT:
                return None
            if step.fault == "slow" and call.has_waited:
                pass
            elif step.fault == "slow":
                waited = await pause(self.slow_ms(call))
                if waited == "stopped" or (waited == "gone" and self._is_cancelled_by_leaving(call)):
                    return None
            else:
                return await self._fault_answer(call, pause)
        if call.answer is None:
            call.answer = self.commit(call)
        if step.phase == "after_commit" and step.fault in ("status", "duplicate_header"):
            return await self._fault_answer(call, pause)
        return call.answer

    def _is_cancelled_by_leaving(self, call: Call) -> bool:
        """Ordinary services go on when their client has gone; MCP of 2026-07-28 over HTTP makes leaving a
        cancellation."""
        default = "cancel" if call.is_cancelled_by_leaving else "commit"
        return bool(call.step.params.get("on_disconnect", default) == "cancel")

    def slow_ms(self, call: Call) -> float:
        """Return how long this call's `slow` takes, drawn from its own generator."""
        dice = generator(self.plan.seed, "latency", call.tool.name, call.n)
        return min(latency_ms(call.step.params, dice), self.plan.limits.max_hang_ms)

    def _refuse(self, call: Call) -> Answer | None:
        """Turn away what no working tool would execute."""
        if call.args_raw is not None:
            return refusal(400, "malformed_arguments", "the body is not JSON")
        if not isinstance(call.args, dict):
            return refusal(400, "malformed_arguments", "the arguments are not an object")
        contract = self._contracts.get(call.tool.name)
        violations = contract.violations(call.args) if contract is not None else []
        if violations:
            return refusal(400, "invalid_arguments", "the arguments do not keep to the schema", violations=violations)
        return None

    async def _admit(self, call: Call, pause: Pause) -> Answer | None:
        """The idempotency look-up. Returns a refusal, the answer of an earlier call, or None: go on."""
        rule = call.tool.idempotency
        if rule is None:
            return None
        if call.key is None:
            if rule.missing == "allow":
                return None
            return refusal(rule.missing, "idempotency_key_missing", "this tool needs an idempotency key")
        ledger = call.run.ledger
        entry = ledger.find_key(call.tool.name, call.key)
        if entry is not None and entry.digest != call.digest and rule.mismatch != "replay":
            return refusal(
                rule.mismatch, "idempotency_key_reused", "this key was used with other arguments",
                error_class="payload_mismatch",
            )  # fmt: skip
        if entry is not None and not entry.is_settled:
            longest_ms = self.plan.limits.max_hang_ms if rule.in_flight == "wait" else GRACE_MS
            entry = await self._settled(call, pause, longest_ms)
            if entry is not None and not entry.is_settled:
                status = rule.in_flight if rule.in_flight != "wait" else 409
                return refusal(status, "idempotency_key_in_flight", "a request with this key is under way")
        if entry is not None and entry.answer is not None and (rule.replay_errors or not entry.answer.is_error):
            call.is_replay = True
            return entry.answer
        call.entry = ledger.open_key(call.tool.name, call.key, call.digest)
        return None

    async def _settled(self, call: Call, pause: Pause, longest_ms: float) -> Entry | None:
        """Wait for the call with the same key that is under way; returns what is then known of the key."""
        assert call.key is not None, "only a call with a key waits for another"
        ledger = call.run.ledger
        deadline_ns = monotonic_ns() + int(longest_ms * 1e6)
        while (entry := ledger.find_key(call.tool.name, call.key)) is not None and not entry.is_settled:
            if monotonic_ns() > deadline_ns or await pause(5) != "elapsed":
                break
        return entry

    # --- answers ------------------------------------------------------------------------------------------------------

    async def _fault_answer(self, call: Call, pause: Pause) -> Answer | None:
        """The answer that is the fault itself."""
        step = call.step
        delay_ms = step.params.get("delay_ms", 0)
        if delay_ms and await pause(min(delay_ms, self.plan.limits.max_hang_ms)) == "stopped":
            return None
        body = fill(step.params["body"], call.args, self._made(call)) if "body" in step.params else None
        if step.fault == "status":
            answer = status_answer(step, body, time())
        elif step.fault == "duplicate_header":
            answer = duplicate_answer(step, body)
        elif step.fault == "auth_expired":
            answer = expired_answer(step)
        else:
            answer = denied_answer(step)
        if call.entry is not None:  # settled before the answer leaves: its receiver may repeat at once
            call.run.ledger.settle_key(
                call.tool.name, call.key or "", call.entry, answer if step.params.get("saved") else None
            )
        call.answer = answer
        return answer

    def commit(self, call: Call) -> Answer:
        """Let the call take effect: ledger, effect events, the stored answer. Returns the tool's own answer."""
        tool, run = call.tool, call.run
        if tool.lookup is not None:
            return self._looked_up(call)
        made = self._made(call)
        answer = Answer(200, fill(call.step.params.get("result", tool.result), call.args, made))
        effects = [
            EffectEntry(name, fill(value, call.args, made), call.key, tool.name, call.n)
            for name, value in tool.effect_record.items()
        ]
        run.ledger.commit(Record(tool.name, call.key, answer, call.args), effects)
        run.write_effects(effects)
        call.is_committed = True
        if call.entry is not None and not call.step.params.get("saved"):
            run.ledger.settle_key(tool.name, call.key or "", call.entry, answer)
        return answer

    def _looked_up(self, call: Call) -> Answer:
        tool = call.tool
        found = call.run.ledger.look_up(tool.lookup or "", tool.by, call.args)
        if found is not None:
            return Answer(200, found.answer.value)
        if tool.not_found == "ok":
            return Answer(200, {"found": False})
        return Answer(
            404, {"error": {"type": "not_found", "message": "there is no such record"}}, error_class="not_found"
        )

    def shaped(self, call: Call, answer: Answer) -> Answer:
        """Return the answer with what the fault does to its value: schema drift, a truncated page, the next page."""
        if answer.is_error:
            return answer
        value = answer.value
        pages = call.tool.pages
        if pages is not None:
            step = call.step if call.step.fault == "truncated_page" else None
            value = page(value, pages, look_up(call.args, pages.argument), step)
        if call.step.fault == "schema_drift":
            value = drifted(value, call.step.params)
        return Answer(answer.status, value, answer.headers) if value is not answer.value else answer

    def _made(self, call: Call) -> dict[str, Callable[[], Any]]:
        parts = (call.run.run_id, call.tool.name, call.n)
        seed = self.plan.seed

        def uuid() -> str:
            digits = new_id(seed, *parts, "uuid") + new_id(seed, *parts, "uuid", "tail")
            return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:30]}"

        return {
            "new_id": lambda: new_id(seed, *parts), "new_uuid": uuid, "n": lambda: call.n, "key": lambda: call.key,
            "now": lambda: format_time(time_ns()),
        }  # fmt: skip

    def abandon(self, call: Call) -> None:
        """Give back the key of a call that ended without taking effect."""
        if call.entry is not None:
            call.run.ledger.settle_key(call.tool.name, call.key or "", call.entry, None)
