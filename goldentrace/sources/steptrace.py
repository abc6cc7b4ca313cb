"""From the steps of one trace to its events, in the order of time.

A response of a model opens a turn; a tool's span is a call at its start and a result at its end. Requests carry the
whole history again: of them only what nobody said before is taken, and results that no span recorded. Calls never come
from the history. Must not know any format.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goldentrace.model.event import ABSENT, Outcome, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.stepcalls import Calls
from goldentrace.sources.steps import PROMPT_ROLES, Step, timestamp
from goldentrace.sources.steptree import StepTree
from goldentrace.sources.transcript import (
    CONTEXT_REASONS,
    LENGTH_REASONS,
    Answered,
    Called,
    Item,
    Remark,
    Said,
    Verdict,
    without_reasoning,
)

_RESULT, _TURN, _CALL = range(3)
"""At equal times: what ended comes before what begins."""


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """What a file says about one trace beside its steps. prompt: what the run was given, where no request says it;
    limits: (name, value, maximum) of what stopped it; stop_reason: None where the last step tells; extra: of its end.
    """

    trace_id: str | None
    name: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    prompt: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[tuple[str, float | None, float | None], ...] = ()
    stop_reason: StopReason | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Entry:
    """place: (time, rank, order, sub-order); run: the span that shows this attempt of a tool's step."""

    place: tuple[int, int, int, int]
    step: Step
    run: Step
    attempt: int = 1
    is_end: bool = False


def has_activity(steps: Iterable[Step]) -> bool:
    """Whether any of the steps is a model's or a tool's."""
    return any(step.kind in ("model", "tool") for step in steps)


def read_steps(document: Document, source: str, steps: Iterable[Step], info: TraceInfo) -> Trace:
    """Return the trace of the steps of one trace, given in the order of the file."""
    return _Reader(document, source, StepTree(steps), info).read()


class _Reader:
    """One trace on its way from steps to events."""

    def __init__(self, document: Document, source: str, tree: StepTree, info: TraceInfo) -> None:
        self._tree = tree
        self._info = info
        self._calls = Calls(tree)
        attributes = {**info.attributes, "agent_name": tree.main_agent}
        starts = [step.started_ns for step in (*tree.roots, *tree.steps) if step.started_ns is not None]
        self._builder = TraceBuilder(
            document, source, name=info.name, trace_id=info.trace_id, attributes=attributes, absent=info.absent,
            ts=timestamp(min(starts)) if starts else None,
        )  # fmt: skip
        for note in info.notes:
            self._builder.note(note)
        self._numbers: dict[int, int] = {}
        self._told: Counter[tuple[str, str]] = Counter()
        self._carried: set[str] = set()
        self._failed_requests: list[Any] = []
        self._last_failed: Step | None = None
        self._call_ids: dict[int, str] = {}
        self._with_span: set[str] = set()
        self._first_run: dict[int, int] = {}
        for step in tree.steps:
            if step.kind != "tool" or step.started_ns is None:
                continue
            asked = self._calls.turn_of.get(id(step)) or self._calls.latest_before(step)
            if asked is not None:
                self._first_run.setdefault(id(asked), step.started_ns)
        self._has_prompt = False

    def read(self) -> Trace:
        for entry in self._entries():
            if entry.step.kind == "model":
                self._model(entry.step)
            elif entry.is_end:
                self._result(entry.step, entry.run, entry.attempt)
            else:
                self._tool(entry.step, entry.run, entry.attempt)
        if self._tree.others:
            self._builder.note(f"{self._tree.others} spans that are no model's, tool's or agent's were left out")
        for name, value, maximum in self._info.limits:
            self._builder.limit(name, value=value, maximum=maximum)
        outcome, stop_reason = self._ending()
        extra = {"failed_requests": self._failed_requests, **self._info.extra}
        ends = [step.ended_ns for step in (*self._tree.roots, *self._tree.steps) if step.ended_ns is not None]
        return self._builder.finish(
            outcome, self._info.stop_reason or stop_reason, ts=timestamp(max(ends)) if ends else None, extra=extra
        )

    def _entries(self) -> list[_Entry]:
        """What happens when. A span without a duration is one entry right after another: call, result."""
        found: list[_Entry] = []
        now = 0
        for order, step in enumerate(self._tree.steps):
            now = now if step.started_ns is None else step.started_ns
            if step.kind == "model":
                found.append(_Entry((now, _TURN, order, 0), step, step))
                continue
            runs = self._tree.attempts.get(id(step)) or [step]
            for number, run in enumerate(runs, start=1):
                begins = max(now, run.started_ns or now) if number > 1 else now
                found.append(_Entry((begins, _CALL, order, 2 * number), step, run, number))
                ends = step if number == len(runs) else run
                if ends.answered is None:
                    continue
                if ends.ended_ns is not None and ends.ended_ns > begins:
                    found.append(_Entry((ends.ended_ns, _RESULT, -order, 2 * number), step, ends, number, is_end=True))
                else:
                    found.append(_Entry((begins, _CALL, order, 2 * number + 1), step, ends, number, is_end=True))
        return sorted(found, key=lambda entry: entry.place)

    def _model(self, step: Step) -> None:
        agent, started = self._tree.agent(step), timestamp(step.started_ns)
        if not self._has_prompt and not any(_is_prompt(item) for item in step.sent):
            self._say(self._info.prompt, agent, started, step.line)
        self._say(step.sent, agent, started, step.line)
        carried = self._carry(step, started)
        if step.failure is not None and not any(isinstance(item, (Said, Called)) for item in step.got):
            self._failed_requests.append({"error": step.failure, "model": step.model, "ts": started, **step.extra})
            self._last_failed = step
            return
        self._last_failed = None
        arrived = timestamp(self._arrival(step))
        number = self._builder.turn(
            model=step.model, finish_reason=step.finish_reason, usage=step.usage, input_call_ids=carried or None,
            ts=arrived, agent=agent, line=step.line, extra={**step.extra, "failed_requests": self._failed_requests},
        )  # fmt: skip
        self._failed_requests = []
        self._numbers[id(step)] = number
        for item in step.got:
            if isinstance(item, Said) and item.role == "assistant":
                self._builder.message(
                    "assistant", without_reasoning(item.text), turn=number, agent=agent, ts=arrived, line=step.line
                )
            elif isinstance(item, Remark):
                self._builder.note(item.text, step.line)
        self._without_span(step, number, arrived)

    def _without_span(self, step: Step, number: int, arrived: str | None) -> None:
        """Calls of a response that no span ran: hosted tools, output tools, tools that nobody traced, cut-off runs."""
        agent = self._tree.agent(step)
        inline = [item for item in step.got if isinstance(item, Answered)]
        for asked in self._calls.unclaimed(step):
            call_id = self._builder.call(
                asked.tool_name, call_id=asked.call_id, args=asked.args, args_text=asked.args_text, turn=number,
                agent=agent, ts=arrived, line=step.line, batch=number if id(step) in self._calls.batches else None,
                extra={**asked.extra, "has_span": False},
            )  # fmt: skip
            for item in inline:
                if item.call_id == call_id:
                    self._answer(item, arrived, step.line)
        for verdict in step.got:
            if isinstance(verdict, Verdict):
                self._builder.approval(verdict.call_id, verdict.verdict, agent=agent, ts=arrived, line=step.line)

    def _tool(self, step: Step, run: Step, attempt: int) -> None:
        asked = self._calls.turn_of.get(id(step))
        model = asked or self._calls.latest_before(step)
        number = None if model is None else self._numbers.get(id(model))
        outer = self._tree.enclosing(step, "tool")
        called = step.called
        fields: dict[str, Any] = {"agent": self._tree.agent(step), "line": run.line, "ts": timestamp(run.started_ns)}
        if number is not None:
            fields["turn"] = number
        if asked is not None and id(asked) in self._calls.batches:
            fields["batch"] = number
        if outer is not None and id(outer) in self._call_ids:
            fields["parent"] = self._call_ids[id(outer)]
        if attempt > 1:
            known: str | None = self._call_ids[id(step)]
            fields |= {"attempt": attempt, "op_id": known, "origin": "harness"}
        else:
            known, fields["origin"] = called.call_id, called.origin
        extra = {**called.extra, **(step.extra if run is step or attempt == 1 else {}), **run.extra}
        self._call_ids[id(step)] = self._builder.call(
            called.tool_name, call_id=known, args=called.args, args_text=called.args_text, extra=extra, **fields
        )
        self._with_span.add(self._call_ids[id(step)])

    def _result(self, step: Step, run: Step, attempt: int) -> None:
        if run.answered is not None:
            known = self._call_ids[id(step)]
            self._answer(run.answered, timestamp(run.ended_ns), run.line, known, attempt if attempt > 1 else None)

    def _answer(
        self, item: Answered, ts: str | None, line: int | None, call_id: str | None = None, attempt: int | None = None
    ) -> None:
        known = call_id or item.call_id
        value, extra = item.value, dict(item.extra)
        told = self._calls.answers.get(known or "")
        if value is ABSENT and told is not None:
            value, extra["value_from"] = told.value, "request"
        fields: dict[str, Any] = {} if attempt is None else {"attempt": attempt}
        self._builder.result(
            known, value=value, status=item.status, error_class=item.error_class, tool_name=item.tool_name, ts=ts,
            line=line, extra=extra, **fields,
        )  # fmt: skip

    def _say(self, items: Iterable[Item], agent: str, ts: str | None, line: int | None) -> None:
        """Append what users and the system say in a request and did not say in one before."""
        counted: Counter[tuple[str, str]] = Counter()
        for item in items:
            if isinstance(item, Said) and item.role in PROMPT_ROLES and item.text:
                mark = (item.role, item.text)
                counted[mark] += 1
                if counted[mark] > self._told[mark]:
                    self._told[mark] += 1
                    self._builder.message(item.role, item.text, agent=agent, ts=ts, line=line)
                self._has_prompt = self._has_prompt or item.role == "user"

    def _carry(self, step: Step, ts: str | None) -> list[str]:
        """The calls whose results a request carries for the first time; results without a span are appended."""
        carried: list[str] = []
        for item in step.sent:
            if not isinstance(item, Answered) or item.call_id is None or item.call_id in self._carried:
                continue
            self._carried.add(item.call_id)
            if not self._builder.has_call(item.call_id):
                self._builder.note("results of an earlier conversation stand in the requests and were left out")
                continue
            carried.append(item.call_id)
            if self._builder.is_open(item.call_id) and item.call_id not in self._with_span:
                self._answer(item, ts, step.line)
        return carried

    def _arrival(self, step: Step) -> int | None:
        """When the response was there: at the end of the span, or where a tool ran while it streamed, before that."""
        if step.ended_ns is None:
            return step.started_ns
        first = self._first_run.get(id(step), step.ended_ns)
        return max(min(step.ended_ns, first), step.started_ns or 0)

    def _ending(self) -> tuple[Outcome, StopReason]:
        has_failed = any(step.failure is not None for step in self._tree.roots)
        outcome: Outcome = "failed" if has_failed else "unknown"
        if self._last_failed is not None:
            return outcome, "provider_error"
        last = self._tree.steps[-1] if self._tree.steps else None
        if last is None or last.kind != "model":
            is_error = last is not None and last.answered is not None and last.answered.status != "ok"
            return outcome, "tool_error" if has_failed and is_error else "unknown"
        if last.finish_reason in LENGTH_REASONS:
            return outcome, "token_limit"
        if last.finish_reason in CONTEXT_REASONS:
            return outcome, "context_limit"
        has_spoken = any(isinstance(item, Said) and item.text for item in last.got)
        has_called = any(isinstance(item, Called) for item in last.got)
        return outcome, "final_answer" if has_spoken and not has_called and not has_failed else "unknown"


def _is_prompt(item: Item) -> bool:
    return isinstance(item, Said) and item.role == "user"
