"""What the dialects of message lists have in common: the items a message consists of, and how they become events.

A dialect turns one message into items; a Transcript appends them to a trace and opens a turn wherever the model speaks
after someone else did. Must not know any dialect.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from goldentrace.model import event
from goldentrace.model.event import ABSENT, ErrorClass, Origin, Outcome, Status, StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.shapes import as_list, as_object

_REASONING: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
LENGTH_REASONS: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
CONTEXT_REASONS: Final = frozenset({"model_context_window_exceeded", "context_length_exceeded"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One response of the model begins. input_call_ids: as in ModelTurn, where the request is known; response_id: of
    the response, where each of its items names it: all of them together are one turn."""

    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    input_call_ids: list[str] | None = None
    ts: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """Text of a role. Reasoning is never one."""

    role: str
    text: str
    ts: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call. args: its value, or args_text: its text, neither where not recorded; asked_by: the name of who asks
    where it is not the agent (a simulated user with tools of its own);
    is_continuation: no new call where its id is open already (an approved one that now runs).
    """

    tool_name: str | None
    call_id: str | None = None
    args: Any = field(default_factory=lambda: ABSENT)
    args_text: str | None = None
    origin: Origin = "model"
    asked_by: str | None = None
    is_continuation: bool = False
    ts: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    """A result. is_inline: it is part of the model's own response (tools that the provider runs)."""

    call_id: str | None
    value: Any = field(default_factory=lambda: ABSENT)
    status: Status = "ok"
    error_class: ErrorClass | None = None
    tool_name: str | None = None
    http_status: int | None = None
    is_inline: bool = False
    ts: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person or policy allowed or denied a call."""

    call_id: str
    verdict: event.Verdict
    ts: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is no event, to be said once."""

    text: str


Item: TypeAlias = Turn | Said | Called | Answered | Verdict | Remark


class Transcript:
    """Items in the order of a conversation, appended to a trace."""

    def __init__(self, builder: TraceBuilder) -> None:
        self.builder = builder
        self._is_turn_open = False
        self._last: Turn | None = None
        self._pending: set[str | None] = set()
        self._has_spoken = False
        self._is_answered_since = False
        self.last_call_id: str | None = None

    def add(self, items: Iterable[Item], *, line: int | None = None, message_index: int | None = None) -> None:
        """Append items. message_index: 0-based position of their message in the file's list, kept in `extra`."""
        place: dict[str, Any] = {} if message_index is None else {"message_index": message_index}
        for item in items:
            if isinstance(item, Turn):
                self._open_turn(item, line)
            elif isinstance(item, Said):
                self._say(item, line)
            elif isinstance(item, Called):
                self._call(item, line, place)
            elif isinstance(item, Answered):
                self._answer(item, line, place)
            elif isinstance(item, Verdict):
                self.builder.approval(item.call_id, item.verdict, ts=item.ts, line=line)
            else:
                self.builder.note(item.text, line)

    def finish(
        self, outcome: Outcome = "unknown", stop_reason: StopReason | None = None, *, ts: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Trace:  # fmt: skip
        """Return the trace. stop_reason: None where the file does not say; then the last turn does, if it can."""
        return self.builder.finish(outcome, stop_reason or self.stop_reason(), ts=ts, extra=extra)

    def stop_reason(self) -> StopReason:
        """How the last turn ended, if nothing came after it: the provider's reason, or text without a call."""
        if self._is_answered_since or not self.builder.turns:
            return "unknown"
        reason = self._last.finish_reason if self._last else None
        if reason in LENGTH_REASONS:
            return "token_limit"
        if reason in CONTEXT_REASONS:
            return "context_limit"
        return "final_answer" if self._has_spoken and not self._pending else "unknown"

    def _open_turn(self, turn: Turn, line: int | None) -> None:
        is_same = turn.response_id is not None and self._last is not None and self._last.response_id == turn.response_id
        if is_same and self._is_turn_open:
            return
        self.builder.turn(
            model=turn.model, finish_reason=turn.finish_reason, usage=turn.usage, ts=turn.ts, extra=turn.extra,
            input_call_ids=turn.input_call_ids, line=line,
        )  # fmt: skip
        self._last = turn
        self._is_turn_open, self._has_spoken, self._is_answered_since = True, False, False
        self._pending = set()

    def _say(self, said: Said, line: int | None) -> None:
        if said.role == "assistant":
            if not self._is_turn_open:
                self._open_turn(Turn(ts=said.ts), line)
            said = replace(said, text=without_reasoning(said.text))
            self._has_spoken = self._has_spoken or bool(said.text)
        elif said.text:
            self._is_turn_open, self._is_answered_since = False, True
        self.builder.message(said.role, said.text, ts=said.ts, extra=said.extra, line=line)

    def _call(self, called: Called, line: int | None, place: Mapping[str, Any]) -> None:
        if called.is_continuation and called.call_id is not None and self.builder.is_open(called.call_id):
            return
        if called.asked_by is None and not self._is_turn_open:
            self._open_turn(Turn(ts=called.ts), line)
        fields: dict[str, Any] = {"ts": called.ts, "origin": called.origin, "extra": {**called.extra, **place}}
        if called.asked_by is not None:
            fields["agent"] = called.asked_by
        self.last_call_id = self.builder.call(
            called.tool_name, call_id=called.call_id, args=called.args, args_text=called.args_text, line=line, **fields
        )
        if called.asked_by is None:
            self._pending.add(self.last_call_id)

    def _answer(self, answered: Answered, line: int | None, place: Mapping[str, Any]) -> None:
        if answered.is_inline:
            self._pending.discard(answered.call_id)
        else:
            self._is_turn_open, self._is_answered_since = False, True
        self.builder.result(
            answered.call_id, value=answered.value, status=answered.status, error_class=answered.error_class,
            tool_name=answered.tool_name, ts=answered.ts, http_status=answered.http_status,
            extra={**answered.extra, **place}, line=line,
        )  # fmt: skip


def without_reasoning(text: str) -> str:
    """Return what a model said without the reasoning that some put into their text between `<think>` marks.

    A text that only ends it (the mark that begins it stood in the prompt) or only begins it is cut there.
    """
    if "think>" not in text:
        return text
    spoken = _REASONING.sub("", text)
    _, _, after = spoken.rpartition("</think>")
    return after.partition("<think>")[0].strip()


def result_value(content: Any) -> Any:
    """Return a result as it is worth comparing: the text of a single text part, anything else as it is."""
    parts = as_list(content)
    if len(parts) == 1:
        part = as_object(parts[0])
        if part.get("type") in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
            return part["text"]
    return content


def rest(message: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return what a message holds beyond the keys that were read or must not be kept."""
    return {name: value for name, value in message.items() if name not in known}
