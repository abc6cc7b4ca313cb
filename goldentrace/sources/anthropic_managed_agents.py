"""Sessions of Anthropic's managed agents: the events of a session, bare or as logged by call of the client.

A log holds `["client.beta.sessions.events.stream", event]` per line; what the client sent comes back in the stream, so
`send` is not read. A request to the model is a span, whose end (with its usage) comes after the calls that it made.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from goldentrace.model.event import ABSENT, StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import anthropic_messages, clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_list, as_name, as_object, as_text, as_word, text_of_parts
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import rest, result_value

NAME: Final = "anthropic-managed-agents"
CALLS: Final = frozenset({"agent.tool_use", "agent.custom_tool_use", "agent.mcp_tool_use"})
RESULTS: Final = frozenset({"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"})
STOPS: Final[dict[str, StopReason]] = {
    "end_turn": "final_answer", "max_tokens": "token_limit", "retries_exhausted": "provider_error",
}  # fmt: skip
_HIDDEN: Final = frozenset({"agent.thinking", "session.status_running", "session.thread_status_running"})
_LOGGED: Final = ("client.beta.sessions.", "client.beta.agents.")
_CALL_KEYS: Final = frozenset({"id", "type", "name", "input", "processed_at", "session_thread_id"})
_RESULT_KEYS: Final = frozenset({
    "id", "type", "content", "is_error", "processed_at", "tool_use_id", "mcp_tool_use_id", "custom_tool_use_id",
    "session_thread_id",
})  # fmt: skip


def matches(head: Head) -> bool:
    """Whether a record is a logged call of the client, or an event of a session."""
    records = [*head.records, *as_list(head.value)] if len(head.records) == 1 else list(head.records)
    for record in records:
        if isinstance(record, list) and isinstance(next(iter(record), None), str) and record[0].startswith(_LOGGED):
            return True
        event = as_object(record)
        if "processed_at" in event and as_word(event.get("type")).partition(".")[0] in ("agent", "session", "span"):
            return True
    return False


def read(document: Document) -> Iterator[Trace]:
    """Yield the one session. Raises: InputError for what is not JSON."""
    facts = _Facts()
    for _, name, value in _events(document):
        facts.collect(name, value)
    run = _Run(document, facts)
    count = 0
    for line, name, value in _events(document):
        if name is None:
            count += 1
            run.add(value, line)
    if count:
        yield run.finish()


@dataclass(slots=True)
class _Facts:
    """What a run is, and what the ends of its requests to the model say."""

    session: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Usage | None] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)

    def collect(self, name: str | None, value: dict[str, Any]) -> None:
        if name is not None and name.endswith("sessions.create"):
            self.session = value
        kind = value.get("type")
        request_id = as_text(value.get("model_request_start_id"))
        if kind == "span.model_request_end" and request_id is not None:
            self.usage[request_id] = anthropic_messages.usage_of(value.get("model_usage"))
            if value.get("is_error") is True:
                self.failed.add(request_id)
        elif kind == "user.tool_confirmation" and value.get("result") == "deny":
            self.denied.add(as_name(value.get("tool_use_id")) or "")


class _Run:
    """One session on its way to a trace."""

    def __init__(self, document: Document, facts: _Facts) -> None:
        agent = as_object(facts.session.get("agent"))
        session_id = as_text(facts.session.get("id"))
        self._facts = facts
        self._model = as_text(as_object(agent.get("model")).get("id"))
        self._builder = TraceBuilder(
            document, NAME, trace_id=session_id, name=session_id,
            attributes={"agent": agent.get("name"), "tools": agent.get("tools")},
        )  # fmt: skip
        self._builder.message("system", as_text(agent.get("system")))
        self._seen: set[str] = set()
        self._request: str | None = None
        self._is_turn_open = False
        self._stop: StopReason = "unknown"

    def add(self, event: dict[str, Any], line: int) -> None:
        """Append one event; one that a stream delivers again is left out."""
        kind, ts = as_word(event.get("type")), clock.utc(event.get("processed_at"))
        event_id = as_text(event.get("id"))
        if event_id is not None and event_id in self._seen:
            self._builder.note("an event that repeats an earlier one was left out", line)
            return
        self._seen |= {event_id} if event_id else set()
        if kind == "span.model_request_start":
            self._request = event_id
            if event_id not in self._facts.failed:
                self._open(ts, line)
        elif kind == "span.model_request_end":
            if event.get("is_error") is True:
                self._builder.note("a request to the model failed", line)
        elif kind in CALLS:
            self._call(event, ts, line)
        elif kind in RESULTS:
            self._result(event, ts, line)
        elif kind == "user.tool_confirmation":
            self._confirm(event, ts, line)
        elif kind in ("agent.message", "user.message"):
            self._say(kind.partition(".")[0], event, ts, line)
        else:
            self._note_state(kind, event, line)

    def finish(self) -> Trace:
        return self._builder.finish(stop_reason="unknown" if self._builder.has_open_calls else self._stop)

    def _open(self, ts: str | None, line: int) -> None:
        usage = self._facts.usage.get(self._request or "")
        self._builder.turn(model=self._model, usage=usage, ts=ts, line=line)
        self._is_turn_open = True

    def _say(self, role: str, event: dict[str, Any], ts: str | None, line: int) -> None:
        is_agent = role == "agent"
        if is_agent and not self._is_turn_open:
            self._open(ts, line)
        self._is_turn_open = is_agent
        text = text_of_parts(event.get("content"))
        self._builder.message("assistant" if is_agent else "user", text, ts=ts, line=line)

    def _call(self, event: dict[str, Any], ts: str | None, line: int) -> None:
        if not self._is_turn_open:
            self._open(ts, line)
        kind = as_word(event.get("type"))
        extra = {**rest(event, _CALL_KEYS), "event": kind if kind != "agent.tool_use" else None}
        self._builder.call(
            as_text(event.get("name")), call_id=as_name(event.get("id")), args=event.get("input", ABSENT), ts=ts,
            batch=self._request, extra=extra, line=line,
        )  # fmt: skip

    def _result(self, event: dict[str, Any], ts: str | None, line: int) -> None:
        names = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
        call_id = next((name for key in names if (name := as_name(event.get(key))) is not None), None)
        told: dict[str, Any] = {"status": "ok"}
        if event.get("is_error") is True:
            told = {"status": "error", "error_class": "tool_error"}
            if call_id in self._facts.denied:
                told = {"status": "denied", "error_class": "denied"}
        self._builder.result(
            call_id, value=result_value(event.get("content", ABSENT)), ts=ts, extra=rest(event, _RESULT_KEYS),
            line=line, **told,
        )  # fmt: skip
        self._is_turn_open = False

    def _confirm(self, event: dict[str, Any], ts: str | None, line: int) -> None:
        call_id, verdict = as_name(event.get("tool_use_id")), event.get("result")
        if call_id is not None and verdict in ("allow", "deny"):
            extra = {"message": event.get("deny_message")}
            self._builder.approval(
                call_id, "approved" if verdict == "allow" else "denied", by="user", ts=ts, extra=extra, line=line
            )

    def _note_state(self, kind: str, event: dict[str, Any], line: int) -> None:
        if kind == "session.status_idle":
            self._stop = STOPS.get(as_word(as_object(event.get("stop_reason")).get("type")), "unknown")
        elif kind == "session.error":
            self._stop = "provider_error"
            self._builder.note(f"the session failed: {as_text(as_object(event.get('error')).get('type'))}", line)
        elif kind == "user.interrupt":
            self._stop = "user_cancelled"
        elif kind not in _HIDDEN and not kind.startswith(("session.", "agent.thread", "span.")):
            self._builder.note(f"an event of type {kind!r} was left out", line)


def _events(document: Document) -> Iterator[tuple[int, str | None, dict[str, Any]]]:
    """(line, name of the call whose answer it is, value); the name is None for an event of the session."""
    for line, record in document.records():
        values = record if isinstance(record, list) and not _is_logged(record) else [record]
        for value in values:
            if _is_logged(value):
                name, answer = value[0], as_object(value[1] if len(value) > 1 else None)
                if name.endswith(("events.stream", "events.list")):
                    yield line, None, answer
                elif not name.endswith("events.send"):
                    yield line, name, answer
            elif isinstance(value, dict):
                yield line, None, value


def _is_logged(record: Any) -> bool:
    return isinstance(record, list) and bool(record) and isinstance(record[0], str) and record[0].startswith(_LOGGED)


SOURCE: Final = Source(
    NAME, "Sessions of Anthropic's managed agents: events, bare or logged by the client", matches, read
)
