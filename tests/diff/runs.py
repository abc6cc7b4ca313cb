"""Runs for properties: a plan of what an agent does, and its rendering to events under one draw of ids, clock and folder.

The plan is fixed, everything that a run may not be judged by is drawn anew by `render(plan, draw)`: call ids, uuids, the
clock, latencies, the working folder and the order in which members of a batch arrive.
"""

import random
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.model.event import (
    AnyEvent,
    Decision,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace

PROFILE = Profile(name="default@1")
TOOLS = {"get": "read", "list": "read", "search": "read", "write": "write", "pay": "write", "notify": None}


@dataclass(frozen=True)
class Step:
    """One operation. ids: places of earlier steps whose result ids it takes; failures: waits in ms before each retry."""

    tool: str
    args: dict[str, Any]
    uses: tuple[int, ...] = ()
    has_key: bool = False
    failures: tuple[int, ...] = ()
    status: str = "ok"
    decision: str | None = None


@dataclass(frozen=True)
class Turn:
    """Steps of one turn; more than one are a batch where is_batch."""

    steps: tuple[Step, ...]
    is_batch: bool = False


@dataclass(frozen=True)
class Plan:
    turns: tuple[Turn, ...]
    escalates_after: int | None = None
    outcome: str = "success"
    stop_reason: str = "final_answer"
    description: str = field(default="", compare=False)

    def steps(self) -> list[Step]:
        return [step for turn in self.turns for step in turn.steps]


@st.composite
def plans(draw: st.DrawFn, *, most_turns: int = 7) -> Plan:
    """Plans in which all steps differ in more than ids, so that every mutation has one meaning."""
    turns: list[Turn] = []
    number = 0
    for _ in range(draw(st.integers(1, most_turns))):
        is_batch = draw(st.booleans())
        steps: list[Step] = []
        start = number
        for _ in range(draw(st.integers(2 if is_batch else 1, 3))):
            uses = draw(st.lists(st.integers(0, start - 1), max_size=2, unique=True)) if start else []
            tool = draw(st.sampled_from(sorted(TOOLS)))
            args: dict[str, Any] = {
                "n": number,
                "text": draw(st.text(max_size=6)),
                "nested": {"list": [number, "a", None]},
            }
            failures = draw(st.lists(st.integers(300, 4000), max_size=2)) if draw(st.integers(0, 3)) == 0 else []
            status = "error" if draw(st.integers(0, 5)) == 0 else "ok"
            decision = "abort" if status == "error" and draw(st.booleans()) else None
            has_key = TOOLS[tool] == "write" and draw(st.booleans())
            steps.append(Step(tool, args, tuple(uses), has_key, tuple(failures), status, decision))
            number += 1
        turns.append(Turn(tuple(steps), is_batch))
    return Plan(tuple(turns), draw(st.none() | st.integers(0, number)))


def render(plan: Plan, draw: int) -> Trace:
    """Return the run of a plan; equal `draw`, equal bytes."""
    data = b"".join(encode_event(event) for event in events_of(plan, draw))
    return read_trace(data, f"run-{draw}")


def events_of(plan: Plan, draw: int) -> list[AnyEvent]:
    return _Rendering(draw).run(plan)


class _Rendering:
    def __init__(self, draw: int) -> None:
        self.random = random.Random(draw)
        self.now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.random.randrange(10_000_000))
        self.cwd = f"/srv/{'abcdef'[draw % 6]}{draw % 1000}/job"
        self.events: list[AnyEvent] = []
        self.ids: list[dict[str, str]] = []
        self.turn = 0

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def add(self, kind: type, **fields: Any) -> None:
        ts = self.now.isoformat(timespec="microseconds").replace("+00:00", "Z")
        self.events.append(kind(seq=len(self.events), ts=ts, **fields))

    def wait(self, ms: float) -> None:
        self.now += timedelta(milliseconds=ms)

    def run(self, plan: Plan) -> list[AnyEvent]:
        self.add(TraceStart, format="goldentrace/1", trace_id=self.uuid(), scenario_id="plan", cwd=self.cwd)
        self.add(Message, role="user", text="Do it.")
        count = 0
        if plan.escalates_after == 0:
            self.add(Decision, decision="escalate", reason="unsure")
        for turn in plan.turns:
            self.turn += 1
            self.add(ModelTurn, turn=self.turn, model="m")
            self.wait(self.random.uniform(50, 300))
            if turn.is_batch:
                self.batch(turn.steps)
            else:
                for step in turn.steps:
                    self.serial(step)
            before, count = count, count + len(turn.steps)
            if plan.escalates_after is not None and before < plan.escalates_after <= count:
                self.add(Decision, decision="escalate", reason="unsure")
        self.add(TraceEnd, outcome=plan.outcome, stop_reason=plan.stop_reason, events=len(self.events))
        return self.events

    def call(self, step: Step, call_id: str, key: str | None, **more: Any) -> None:
        args = dict(step.args)
        for n, source in enumerate(step.uses):
            args[f"ref{n}"] = self.ids[source]["id"]
        args["path"] = f"{self.cwd}/out/{step.args['n']}.txt"
        if key is not None:
            args["idempotency_key"] = key
        access = TOOLS.get(step.tool)
        self.add(
            ToolCall, turn=self.turn, call_id=call_id, tool_name=step.tool, args=encode_raw(args), access=access, **more
        )

    def result(self, step: Step, call_id: str, status: str, made: dict[str, str], **more: Any) -> None:
        body = {
            "request_id": "req_" + self.uuid()[:8] + "a1",
            "items": [{"kind": f"k{step.args['n']}", **made}],
            "id": made["id"],
        }
        self.add(ToolResult, turn=self.turn, call_id=call_id, status=status, result=encode_raw(body), **more)

    def serial(self, step: Step) -> None:
        call_id, key = "call_" + self.uuid()[:8] + "z9", self.uuid() if step.has_key else None
        made = {"id": self.uuid()}
        self.call(step, call_id, key)
        self.wait(self.random.uniform(20, 200))
        self.finish(step, call_id, key, made)
        self.ids.append(made)

    def finish(self, step: Step, call_id: str, key: str | None, made: dict[str, str]) -> None:
        attempt = 1
        first_id = call_id
        for wait_ms in step.failures:
            self.result(step, call_id, "error", {"id": self.uuid()}, error_class="server_error", http_status=503)
            delay = round(wait_ms * self.random.uniform(1, 1.03))
            self.add(Decision, decision="retry", call_id=call_id, by="harness", reason="server_error", delay_ms=delay)
            self.wait(delay)
            attempt += 1
            call_id = "call_" + self.uuid()[:8] + "z9"
            self.call(step, call_id, key, attempt=attempt, op_id=first_id, origin="harness")
            self.wait(self.random.uniform(20, 200))
        if step.status == "ok":
            self.result(step, call_id, "ok", made)
        else:
            self.result(step, call_id, step.status, made, error_class="bad_request", http_status=400)
        if step.decision is not None:
            self.add(Decision, decision=step.decision, call_id=call_id, reason="bad_request")

    def batch(self, steps: tuple[Step, ...]) -> None:
        order = list(range(len(steps)))
        self.random.shuffle(order)
        calls = {n: ("call_" + self.uuid()[:8] + "z9", self.uuid() if steps[n].has_key else None) for n in order}
        made = {n: {"id": self.uuid()} for n in order}
        for n in order:
            self.call(steps[n], *calls[n], batch=f"b{self.turn}")
        self.random.shuffle(order)
        for n in order:
            self.wait(self.random.uniform(20, 200))
            self.finish(steps[n], *calls[n], made[n])
        self.ids.extend(made[n] for n in range(len(steps)))


def change_step(plan: Plan, place: int, **fields: Any) -> Plan:
    """Return the plan with one step changed."""
    return replace_steps(plan, {place: [replace(plan.steps()[place], **fields)]})


def replace_steps(plan: Plan, places: dict[int, list[Step]]) -> Plan:
    """Return the plan with steps replaced by none, one or more; references to removed or shifted steps follow."""
    new_place: dict[int, int] = {}
    count = 0
    for n in range(len(plan.steps())):
        new_place[n] = count
        count += len(places[n]) if n in places else 1
    turns: list[Turn] = []
    n = 0
    for turn in plan.turns:
        steps: list[Step] = []
        for step in turn.steps:
            for one in places.get(n, [step]):
                steps.append(replace(one, uses=tuple(new_place[use] for use in one.uses)))
            n += 1
        turns.append(Turn(tuple(steps), turn.is_batch and len(steps) > 1))
    return replace(plan, turns=tuple(turn for turn in turns if turn.steps))
