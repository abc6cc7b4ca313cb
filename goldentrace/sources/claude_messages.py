"""Messages of Claude Code, as its sessions and its streams carry them, appended to a trace.

One response of the model is spread over several rows with the same `message.id`, each of which repeats its usage: it is
one turn. Calls of one response were asked for together, whenever the rows of their results were written. Must not know
how rows are kept in a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from goldentrace.model.event import MAIN_AGENT, StopReason, Usage, Verdict
from goldentrace.sources import anthropic_messages
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.shapes import as_count, as_name, as_number, as_object, as_text
from goldentrace.sources.transcript import CONTEXT_REASONS, LENGTH_REASONS, Answered, Called, Remark, Said, Turn

STATES: Final = ("retry",)
"""Waits before the next request to the model are recorded; what the model repeats by itself is not."""
INTERRUPTED: Final = "[Request interrupted by user"
REJECTED: Final = ("User rejected tool use", "Error: The user doesn't want to", "The user doesn't want to")
"""What Claude Code itself writes where a person stops it or refuses a call, in versions without `toolDenialKind`."""
AGENT_TOOLS: Final = ("Task", "Agent")


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks: an agent of the session, and the call that it runs within, if it is a subagent."""

    agent: str = MAIN_AGENT
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What the last row of a response says about all of it."""

    usage: Usage | None = None
    finish_reason: str | None = None


class Conversation:
    """Rows on their way to a trace.

    spent: message id -> Spent, collected before, since a turn is appended at the first row of its response.
    """

    def __init__(self, builder: TraceBuilder, spent: Mapping[str, Spent]) -> None:
        self.builder = builder
        self.spent: dict[str, Spent] = dict(spent)
        self._turns: dict[tuple[str, str], int] = {}
        self._types: dict[str, str] = {}
        self._names: dict[str, int] = {}
        self._voices: dict[str, Voice] = {}
        self._judged: set[str] = set()
        self._stop: StopReason = "unknown"
        self._is_answer = False

    def voice(self, key: str, call_id: str | None, agent_type: str | None = None) -> Voice:
        """Return the voice of a subagent: its type, with an ordinal where there are several. key: tells it apart."""
        if key not in self._voices:
            kind = agent_type or self._types.get(call_id or "") or "subagent"
            self._names[kind] = self._names.get(kind, 0) + 1
            number = self._names[kind]
            self._voices[key] = Voice(kind if number == 1 else f"{kind}-{number}", call_id)
        return self._voices[key]

    def assistant(
        self, message: Mapping[str, Any], voice: Voice, *, ts: str | None, line: int | None, key: str | None = None
    ) -> None:
        """Append one row of a response. key: tells responses apart where the message has no id."""
        message_id = as_text(message.get("id"))
        for item in anthropic_messages.items({**message, "role": "assistant"}):
            if isinstance(item, Turn):
                self._open(item, voice, message_id or key, ts, line)
            elif isinstance(item, Said):
                turn = self._turns.get((voice.agent, message_id or key or ""))
                self.builder.message("assistant", item.text, turn=turn, agent=voice.agent, ts=ts, line=line)
                self._note_answer(voice)
            elif isinstance(item, Called):
                self._call(item, voice, message_id or key, ts, line)
            elif isinstance(item, Answered):
                self._answer(item, {"ts": ts}, line)
            elif isinstance(item, Remark):
                self.builder.note(item.text, line)

    def user(
        self, message: Mapping[str, Any], voice: Voice, *, ts: str | None, line: int | None, role: str = "user",
        result_fields: Mapping[str, Any] | None = None, extra: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Append a row of the user's side: a prompt, or results. role: who wrote its text; result_fields: of a result,
        where the row says more than the block does; extra: of its text.
        """
        for item in anthropic_messages.items({**message, "role": "user"}):
            if isinstance(item, Said):
                self.builder.message(role, item.text, agent=voice.agent, ts=ts, extra=extra, line=line)
                if voice.agent == MAIN_AGENT:
                    is_stop = item.text.startswith(INTERRUPTED)
                    self._stop, self._is_answer = ("user_cancelled" if is_stop else "unknown"), False
            elif isinstance(item, Answered):
                self._answer(item, {"ts": ts, **(result_fields or {})}, line)
            elif isinstance(item, Remark):
                self.builder.note(item.text, line)

    def api_retry(self, about: Mapping[str, Any], voice: Voice, *, ts: str | None, line: int | None) -> None:
        """Append the decision to ask the model again. about: reason, delay_ms, attempt, max_attempts, http_status."""
        self.builder.decision(
            "retry", by="harness", agent=voice.agent, ts=ts, line=line, reason=as_text(about.get("reason")),
            delay_ms=as_number(about.get("delay_ms")),
            extra={name: about.get(name) for name in ("attempt", "max_attempts", "http_status", "retry_after")},
        )  # fmt: skip

    def judge(self, call_id: str, verdict: Verdict, *, ts: str | None, line: int | None) -> None:
        """Append what a person answered when they were asked for permission."""
        self._judged.add(call_id)
        self.builder.approval(call_id, verdict, by="user", ts=ts, line=line)

    def api_failure(self, text: str, voice: Voice, *, ts: str | None, line: int | None) -> None:
        """Append that the provider gave no answer: Claude Code says so in the place of one."""
        self.builder.message("system", text, agent=voice.agent, ts=ts, line=line, extra={"is_api_error": True})
        if voice.agent == MAIN_AGENT:
            self._stop, self._is_answer = "provider_error", False

    def stop_reason(self) -> StopReason:
        """How the session ended, as far as its last row says."""
        return "final_answer" if self._is_answer and not self.builder.has_open_calls else self._stop

    def _open(self, turn: Turn, voice: Voice, key: str | None, ts: str | None, line: int | None) -> None:
        if key is None or (voice.agent, key) not in self._turns:
            spent = self.spent.get(key or "") or Spent(turn.usage, turn.finish_reason)
            self._turns[voice.agent, key or ""] = self.builder.turn(
                model=turn.model, usage=spent.usage, finish_reason=spent.finish_reason, agent=voice.agent, ts=ts,
                extra={**turn.extra, "parent": voice.parent}, line=line,
            )  # fmt: skip
        if voice.agent == MAIN_AGENT:
            reason = self.spent[key].finish_reason if key in self.spent else turn.finish_reason
            self._is_answer = False
            self._stop = "unknown"
            if reason in LENGTH_REASONS:
                self._stop = "token_limit"
            elif reason in CONTEXT_REASONS:
                self._stop = "context_limit"

    def _note_answer(self, voice: Voice) -> None:
        if voice.agent == MAIN_AGENT and self._stop == "unknown":
            self._is_answer = True

    def _call(self, called: Called, voice: Voice, key: str | None, ts: str | None, line: int | None) -> None:
        turn = self._turns.get((voice.agent, key or ""))
        call_id = self.builder.call(
            called.tool_name, call_id=called.call_id, args=called.args, args_text=called.args_text, ts=ts, turn=turn,
            agent=voice.agent, parent=voice.parent, batch=key, extra=called.extra, line=line,
        )  # fmt: skip
        if called.tool_name in AGENT_TOOLS:
            kind = as_text(as_object(called.args).get("subagent_type"))
            if kind is not None:
                self._types[call_id] = kind
        if voice.agent == MAIN_AGENT:
            self._is_answer = False

    def _answer(self, answered: Answered, fields: Mapping[str, Any], line: int | None) -> None:
        told: dict[str, Any] = {"status": answered.status, "error_class": answered.error_class, **fields}
        extra = {**answered.extra, **(told.pop("extra", None) or {})}
        if told["status"] == "denied" and answered.call_id is not None and answered.call_id not in self._judged:
            by = "user" if str(extra.get("denial", "user")).startswith("user") else "policy"
            self.builder.approval(answered.call_id, "denied", by=by, ts=told.get("ts"), line=line)
        self.builder.result(answered.call_id, value=answered.value, extra=extra, line=line, **told)
        self._is_answer = self._is_answer and answered.is_inline


def denial_fields(kind: Any, copy: Any, *, is_error: bool) -> dict[str, Any]:
    """Return the fields of a result that a person or policy refused, none where it was not refused.

    kind: toolDenialKind; copy: toolUseResult where it is text.
    """
    has_text = is_error and isinstance(copy, str) and copy.startswith(REJECTED)
    if as_text(kind) is None and not has_text:
        return {}
    return {"status": "denied", "error_class": "denied", "extra": {"denial": as_text(kind) or "user-rejected"}}


def spent_of(message: Mapping[str, Any], before: Spent | None) -> Spent:
    """Return what is known of a response after another of its rows."""
    usage = anthropic_messages.usage_of(message.get("usage"))
    reason = as_text(message.get("stop_reason"))
    if before is None:
        return Spent(usage, reason)
    return Spent(usage or before.usage, reason or before.finish_reason)


def api_error_reason(error: Any) -> tuple[str, int | None]:
    """Return (reason, HTTP status) of what a request to the model failed with, in the words of error classes."""
    told = as_object(error)
    status = as_count(told.get("status")) or None
    if status == 429:
        return "rate_limited", status
    if status is not None and status >= 500:
        return "server_error", status
    inner = as_object(as_object(told.get("error")).get("error"))
    kind = as_text(inner.get("type")) or as_text(told.get("type"))
    known = {"rate_limit_error": "rate_limited", "overloaded_error": "server_error", "api_error": "server_error"}
    if kind is not None:
        return known.get(kind, kind), status
    is_network = told.get("isNetworkDown") is True or bool(as_object(told.get("connection")))
    return ("connect" if is_network else as_name(told.get("code")) or "unknown"), status
