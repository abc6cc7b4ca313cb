"""Traces written in a few words, for tests of the pure layers."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from goldentrace.codec.canonical import encode_raw
from goldentrace.model.event import (
    ABSENT,
    AnyEvent,
    Approval,
    Decision,
    Effect,
    Limit,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def clock(second: float) -> str:
    """The time stamp of an event so many seconds after nine o'clock."""
    return (START + timedelta(seconds=second)).isoformat(timespec="microseconds").replace("+00:00", "Z")


class AlikeByBytes:
    """Calls ask for the same where their arguments are written alike; for `normalize.operations.group`. asked: how
    often."""

    def __init__(self) -> None:
        self.asked = 0

    def shape(self, call: ToolCall) -> bytes:
        self.asked += 1
        return bytes(call.args)

    def sources(self, _: ToolCall) -> tuple[str, ...]:
        return ()

    def known_until(self, _: int) -> tuple[str, ...]:
        return ()

    def is_known(self, _: str) -> bool:
        return False


class Run:
    """Collects events; every `call` has its result behind it unless told otherwise. second: offset of the next event."""

    def __init__(self, **start: Any) -> None:
        self.events: list[AnyEvent] = []
        self.second: float | None = 0.0
        self.count = 0
        self.turn_number: int | None = None
        self.add(TraceStart, format="goldentrace/1", **start)

    def add(self, kind: type, **fields: Any) -> "Run":
        if self.second is not None:
            fields.setdefault("ts", clock(self.second))
        if self.turn_number is not None and kind is not TraceStart:
            fields.setdefault("turn", self.turn_number)
        self.events.append(kind(seq=len(self.events), **fields))
        return self

    def at(self, second: float | None) -> "Run":
        self.second = second
        return self

    def turn(self, **fields: Any) -> "Run":
        self.turn_number = (self.turn_number or 0) + 1
        return self.add(ModelTurn, **fields)

    def say(self, text: str, role: str = "user") -> "Run":
        return self.add(Message, role=role, text=text)

    def call(
        self,
        tool: str,
        args: Any = None,
        result: Any = None,
        status: str | None = "ok",
        id: str | None = None,  # noqa: A002 - the word of the domain
        **fields: Any,
    ) -> "Run":
        """One attempt and its result; status None leaves the call open; result `ABSENT` records none."""
        self.count += 1
        call_id = id or f"c{self.count}"
        ended = {k: fields.pop(k) for k in ("error_class", "http_status", "owed_ms", "sent") if k in fields}
        raw = ABSENT if args is None else encode_raw(args)
        self.add(ToolCall, call_id=call_id, tool_name=tool, args=raw, **fields)
        if status is not None:
            self.result(call_id, result, status, **ended)
        return self

    def result(self, call_id: str, result: Any = None, status: str = "ok", **fields: Any) -> "Run":
        raw = ABSENT if result is ABSENT else encode_raw(result)
        return self.add(ToolResult, call_id=call_id, status=status, result=raw, **fields)

    def decide(self, decision: str, call_id: str | None = None, **fields: Any) -> "Run":
        return self.add(Decision, decision=decision, call_id=call_id, **fields)

    def approve(self, call_id: str, verdict: str = "approved", **fields: Any) -> "Run":
        return self.add(Approval, call_id=call_id, verdict=verdict, **fields)

    def effect(self, name: str, **fields: Any) -> "Run":
        return self.add(Effect, name=name, **fields)

    def limit(self, name: str, **fields: Any) -> "Run":
        return self.add(Limit, limit=name, **fields)

    def end(self, outcome: str = "success", stop_reason: str = "final_answer") -> Trace:
        self.add(TraceEnd, outcome=outcome, stop_reason=stop_reason)
        return Trace(self.events, "run.jsonl")

    def cut(self, why: str = "cut off") -> Trace:
        return Trace(self.events, "run.jsonl", incomplete=why)


def normal(trace: Trace, profile: Profile | Mapping[str, Any] | None = None, **options: Any) -> NormalTrace:
    """Normalize under a profile given as keys."""
    if not isinstance(profile, Profile):
        import msgspec

        profile = msgspec.convert({"name": "test@1", **(profile or {})}, Profile)
    return normalize(trace, profile, "h:test", **options)


def args_of(trace: Trace, place: int = -1, profile: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The written arguments of one operation."""
    return normal(trace, profile).operations[place].args
