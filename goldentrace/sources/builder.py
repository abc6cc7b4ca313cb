"""Builds one trace event by event: what every importer would otherwise do by itself, and differently.

It pairs a result with the nearest earlier open call of its id, holds results that come before their call, keeps reused
ids, names calls that have no id, keeps arguments that do not parse, answers what is left open with `unfinished`, and
remembers what the source never said. It must not interpret text: whether a result failed is what the importer passes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Unpack

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import MAX_DEPTH, TOO_DEEP, JsonError, decode, encode_raw, is_deeper, may_be_deeper
from goldentrace.model.event import (
    ABSENT,
    FORMAT,
    MAIN_AGENT,
    AnyEvent,
    Approval,
    Decision,
    DecisionKind,
    Limit,
    Message,
    ModelTurn,
    Outcome,
    Status,
    StopReason,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
    Verdict,
)
from goldentrace.model.trace import Note, Trace
from goldentrace.sources.document import Document
from goldentrace.sources.eventlog import EventLog
from goldentrace.sources.fields import (
    CallFields,
    Common,
    DecisionFields,
    ResultFields,
    StartFields,
    TurnFields,
    read_arguments,
)
from goldentrace.sources.pairing import Pairing, Waiting

NO_LINE: Final = 0
"""Line of an event whose place in the file is not known, as in one JSON document."""
UNNAMED_TOOL: Final = "unknown"
FIELD_DEPTH: Final = MAX_DEPTH - 1
"""Levels of the value of a field: the line of an event, which is what is read again, is one more."""


class TraceBuilder:
    """One trace under construction. Call the methods in the order of the file, `finish` last and once.

    source: name of the importer; name: short name of the trace within the file; states: decision kinds that the source
    states itself; absent: what the format never records, name -> reason (dropped where the contrary turns up).
    """

    def __init__(
        self, document: Document, source: str, *, name: str | None = None, states: Iterable[str] = (),
        attributes: Mapping[str, Any] | None = None, absent: Mapping[str, str] | None = None, line: int | None = None,
        **start: Unpack[StartFields],
    ) -> None:  # fmt: skip
        self._document = document
        self._source = source
        self._absent = dict(absent or {})
        self._notes: dict[str, Note] = {}
        self._turns = 0
        self._turn_of: dict[str, int] = {}
        self._calls = 0
        self._pairing = Pairing()
        self._due: list[tuple[ToolResult, int]] = []
        self._events = EventLog()
        self._taken = 0
        self._lines: list[int] = []
        described = _kept({"name": name, **(attributes or {})})
        self._append(TraceStart(format=FORMAT, source=source, states=list(states), attributes=described, **start), line)

    @property
    def turns(self) -> int:
        """How many turns there are so far: the number of the last one."""
        return self._turns

    @property
    def calls(self) -> int:
        """How many calls there are so far."""
        return self._calls

    @property
    def has_open_calls(self) -> bool:
        """Whether a call waits for its result."""
        return self._pairing.has_open

    def has_call(self, call_id: str) -> bool:
        """Whether a call of that id was appended, open or answered."""
        return self._pairing.has_seen(call_id)

    def is_open(self, call_id: str) -> bool:
        """Whether a call of that id waits for its result."""
        return self._pairing.is_open(call_id)

    def turn(self, *, line: int | None = None, **fields: Unpack[TurnFields]) -> int:
        """Open a turn (one response of the model) and return its number, which is unique over all agents."""
        self._settle()
        self._turns += 1
        event = ModelTurn(turn=self._turns, **_with_extra(fields))
        self._turn_of[event.agent] = self._turns
        self._see(usage=event.usage, models=event.model, finish_reasons=event.finish_reason)
        self._append(event, line)
        return self._turns

    def call(
        self, tool_name: str | None, *, call_id: str | None = None, args: Any = ABSENT, args_text: str | None = None,
        line: int | None = None, **fields: Unpack[CallFields],
    ) -> str:  # fmt: skip
        """Append a call and return its id, made up where the source has none.

        args: the value, or args_text: the arguments as text; neither where the source does not record them.
        """
        self._calls += 1
        known_id = call_id or self._synthetic_id("call")
        raw, text = read_arguments(args_text) if args_text is not None else (self._raw(args, line), None)
        filled = _with_extra(fields)
        if filled.get("turn") is None:
            filled["turn"] = self._turn_of.get(filled.get("agent", MAIN_AGENT))
        event = ToolCall(call_id=known_id, tool_name=tool_name or UNNAMED_TOOL, args=raw, args_raw=text, **filled)
        if not tool_name:
            self.note("a call without a tool name", line)
        self._see(times=event.ts, arguments=raw != ABSENT or text)
        self._append(event, line)
        position = self._pairing.open(event, line or NO_LINE)
        if position is not None:
            self._move_early(position, event)
        return known_id

    def result(
        self, call_id: str | None = None, *, value: Any = ABSENT, status: Status = "ok", tool_name: str | None = None,
        line: int | None = None, **fields: Unpack[ResultFields],
    ) -> str:  # fmt: skip
        """Append a result and return the id of its call.

        value: the result, ABSENT where it is not recorded; without call_id it answers the earliest open call of
        tool_name, or of any tool where no name is known either.
        """
        answered = self._pairing.take(call_id, tool_name)
        known_id = answered.call_id if answered else call_id or self._synthetic_id("result")
        filled = _with_extra(fields)
        if answered is not None:
            filled = {**answered.fields(), **{name: item for name, item in filled.items() if item is not None}}
        event = ToolResult(call_id=known_id, status=status, result=self._raw(value, line), **filled)
        self._see(times=event.ts, results=event.result != ABSENT, status=status not in ("ok", "unfinished"))
        self._settle()
        if answered is None:
            is_second = self._pairing.keep_early(known_id, len(self._events))
            self.note(f"a {'second result for' if is_second else 'result without an earlier'} call {known_id}", line)
        self._append(event, line)
        return known_id

    def message(
        self, role: str, text: str | None, *, turn: int | None = None, line: int | None = None, **fields: Unpack[Common]
    ) -> None:
        """Append what a role said; nothing where there is no text. Hidden reasoning must not be passed.

        turn: of an assistant's message, default its last.
        """
        if not text:
            return
        self._settle()
        filled = _with_extra(fields)
        if turn is None and role == "assistant":
            turn = self._turn_of.get(filled.get("agent", MAIN_AGENT))
        event = Message(role=role, text=text, turn=turn, **filled)
        self._append(event, line)

    def decision(self, decision: DecisionKind, *, line: int | None = None, **fields: Unpack[DecisionFields]) -> None:
        """Append a decision that the source states."""
        self._settle()
        filled = _with_extra(fields)
        event = Decision(decision=decision, turn=self._turn_of.get(filled.get("agent", MAIN_AGENT)), **filled)
        self._append(event, line)

    def approval(
        self, call_id: str, verdict: Verdict, *, by: str | None = None, line: int | None = None,
        **fields: Unpack[Common],
    ) -> None:  # fmt: skip
        """Append the verdict of a person or policy about a call."""
        self._settle()
        self._append(Approval(call_id=call_id, verdict=verdict, by=by, **_with_extra(fields)), line)

    def limit(
        self, limit: str, *, value: float | None = None, maximum: float | None = None, line: int | None = None,
        **fields: Unpack[Common],
    ) -> None:  # fmt: skip
        """Append a limit that fired."""
        self._settle()
        self._append(Limit(limit=limit, value=value, max=maximum, **_with_extra(fields)), line)

    def note(self, text: str, line: int | None = None) -> None:
        """Say something once about what was accepted."""
        self._notes.setdefault(text, Note(text, line or None))

    def absent(self, name: str, reason: str) -> None:
        """Say why something is not recorded in this trace."""
        self._absent[name] = reason

    def finish(
        self, outcome: Outcome = "unknown", stop_reason: StopReason = "unknown", *, line: int | None = None,
        **fields: Unpack[Common],
    ) -> Trace:  # fmt: skip
        """Answer open calls with `unfinished`, append trace_end and return the trace."""
        self._settle()
        for waiting in self._pairing.unanswered():
            self._append(ToolResult(call_id=waiting.call_id, status="unfinished", **waiting.fields()), waiting.line)
        if self._pairing.has_synthetic_ids:
            self._absent["call_ids"] = "calls without an id were numbered"
        count = len(self._events) - self._taken
        self._append(TraceEnd(outcome=outcome, stop_reason=stop_reason, events=count, **_with_extra(fields)), line)
        events, lines = self._events.close(self._lines)
        torn = self._document.torn
        notes = (*self._notes.values(), *([torn] if torn else []))
        reason = torn.text if torn else None
        return Trace(events, self._document.name, lines, reason, notes, self._source, dict(self._absent))

    def _append(self, event: AnyEvent, line: int | None) -> None:
        self._events.append(self._bounded(event, line))
        self._lines.append(line or NO_LINE)

    def _bounded(self, event: AnyEvent, line: int | None) -> AnyEvent:
        """The event without what in `extra` or `attributes` nests too deeply to be read again."""
        for field in ("extra", "attributes"):
            values = getattr(event, field, None)
            if values and is_deeper(values, FIELD_DEPTH):
                self.note(f"a value was left out: {TOO_DEEP}", line)
                kept = {name: value for name, value in values.items() if not is_deeper(value, FIELD_DEPTH - 1)}
                event = msgspec.structs.replace(event, **{field: kept or None})
        return event

    def _see(self, **seen: Any) -> None:
        """Drop the reasons for the absence of what is there after all."""
        if self._absent:
            for name, value in seen.items():
                if value:
                    self._absent.pop(name, None)

    def _synthetic_id(self, kind: str) -> str:
        number = self._calls if kind == "call" else len(self._events)
        return self._pairing.make_id(kind, number)

    def _raw(self, value: Any, line: int | None) -> Raw:
        try:
            raw = value if isinstance(value, Raw) else encode_raw(value)
            if may_be_deeper(bytes(raw), FIELD_DEPTH):
                decode(raw, FIELD_DEPTH)
        except JsonError as error:
            self.note(f"a value was left out: {error}", line)
            return ABSENT
        return raw

    def _move_early(self, position: int, call: ToolCall) -> None:
        result = self._events.take(position)
        if isinstance(result, ToolResult):
            self._taken += 1
            self._due.append((_placed(result, call), self._lines[position]))

    def _settle(self) -> None:
        """Append the early results whose calls have come, after the whole batch of calls."""
        if self._due:
            due, self._due = self._due, []
            for result, line in due:
                self._append(result, line)


def _placed(result: ToolResult, call: ToolCall) -> ToolResult:
    values = {name: getattr(result, name) for name in result.__struct_fields__}
    extra = {**(result.extra or {}), "came_before_call": True}
    return ToolResult(**{**values, **Waiting.of(call, NO_LINE).fields(), "extra": extra})


def _with_extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, "extra": _kept(fields["extra"])} if fields.get("extra") is not None else dict(fields)


def _kept(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is not empty; None where nothing is left."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})} or None
