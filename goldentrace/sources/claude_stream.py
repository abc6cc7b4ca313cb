"""What Claude Code prints as `--output-format stream-json`, and recordings of the Agent SDK, which wraps the same rows.

A recording of the SDK keeps `{direction, message}`: its control requests tell who allowed a call. Rows carry no time of
their own in most versions. The last row, `result`, says how the run ended and what it cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from goldentrace.model.event import MAIN_AGENT, Outcome, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.claude_messages import STATES, Conversation, Spent, Voice, denial_fields, spent_of
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source

NAME: Final = "claude-stream"
STOPS: Final[dict[str, StopReason]] = {
    "success": "final_answer", "error_max_turns": "turn_limit", "error_max_budget_usd": "cost_limit",
}  # fmt: skip
"""subtype of the row `result`."""
_SPOKEN: Final = ("user", "assistant")
_CONTROL: Final = ("control_request", "control_response")
_FRAME: Final = frozenset({"uuid", "parentUuid", "sessionId"})


def matches(head: Head) -> bool:
    """Whether a row opens or ends such a stream, or names the call that it runs within."""
    records = [*head.objects, *as_objects(as_object(head.value).get("messages"))]
    return any(_is_row(_inner(record)) for record in records if not record.keys() >= _FRAME)


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per session of the stream. Raises: InputError with the line of what is not JSON."""
    facts = _Facts()
    for _, row in _rows(document):
        facts.collect(row)
    run: _Run | None = None
    number = 0
    for line, row in _rows(document):
        if run is not None and run.is_over and _is_opening(row) and row.get("session_id") != run.session_id:
            yield run.finish()
            run, number = None, number + 1
        if run is None:
            run = _Run(document, facts, facts.openings[number] if number < len(facts.openings) else {}, line)
        run.add(row, line)
    if run is not None and run.has_rows:
        yield run.finish()


@dataclass(slots=True)
class _Facts:
    """What later rows say of earlier ones: usage of a response, calls that were refused, the rows that open sessions (a
    prompt may stand before them)."""

    openings: list[dict[str, Any]] = field(default_factory=list)
    spent: dict[str, Spent] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def collect(self, row: dict[str, Any]) -> None:
        if _is_opening(row) and row.get("session_id") not in [each.get("session_id") for each in self.openings]:
            self.openings.append(row)
        message = as_object(row.get("message"))
        message_id = as_text(message.get("id"))
        if row.get("type") == "assistant" and message_id is not None:
            self.spent[message_id] = spent_of(message, self.spent.get(message_id))
        if row.get("type") == "result":
            denials = as_objects(row.get("permission_denials"))
            self.refused |= {name for each in denials if (name := as_name(each.get("tool_use_id"))) is not None}


class _Run:
    """One session on its way to a trace."""

    def __init__(self, document: Document, facts: _Facts, opening: dict[str, Any], line: int) -> None:
        self._conversation: Conversation | None = None
        self._document = document
        self._facts = facts
        self._line = line
        self._opening = opening
        self.session_id = opening.get("session_id")
        self._asked: dict[str, str] = {}
        self._result: dict[str, Any] = {}
        self.is_over = False
        self.has_rows = False

    def add(self, row: dict[str, Any], line: int) -> None:
        """Append one row."""
        kind, ts = as_word(row.get("type")), clock.utc(row.get("timestamp"))
        if kind in _SPOKEN:
            self._speak(row, ts, line)
        elif kind == "result":
            self._result, self.is_over, self.has_rows = row, True, True
        elif kind == "system" and row.get("subtype") == "api_retry":
            about = {
                "reason": row.get("error"), "http_status": as_count(row.get("error_status")),
                "delay_ms": row.get("retry_delay_ms"), "attempt": row.get("attempt"),
                "max_attempts": row.get("max_retries"),
            }  # fmt: skip
            self._talk.api_retry(about, self._voice(row), ts=ts, line=line)
        elif kind in _CONTROL:
            self._control(row, ts, line)

    def finish(self) -> Trace:
        result = self._result
        subtype = as_text(result.get("subtype"))
        has_failed = result.get("is_error") is True or (subtype or "").startswith("error")
        outcome: Outcome = "unknown" if subtype is None else "failed" if has_failed else "success"
        stop = self._talk.stop_reason()
        if subtype is not None:
            stop = "provider_error" if subtype == "success" and has_failed else STOPS.get(subtype, stop)
        kept = ("subtype", "total_cost_usd", "duration_ms", "duration_api_ms", "num_turns", "usage", "modelUsage")
        return self._talk.builder.finish(outcome, stop, extra={name: result.get(name) for name in kept})

    @property
    def _talk(self) -> Conversation:
        """The conversation, begun at the first row that says something."""
        if self._conversation is None:
            opening = self._opening
            session_id = as_text(opening.get("session_id"))
            builder = TraceBuilder(
                self._document, NAME, trace_id=session_id, name=session_id, cwd=as_text(opening.get("cwd")),
                states=STATES, line=self._line, ts=clock.utc(opening.get("timestamp")),
                attributes={
                    "version": opening.get("claude_code_version"), "model": opening.get("model"),
                    "tools": opening.get("tools"), "permission_mode": opening.get("permissionMode"),
                },
                absent={"times": "rows carry no time"},
            )  # fmt: skip
            self._conversation = Conversation(builder, self._facts.spent)
        return self._conversation

    def _voice(self, row: dict[str, Any]) -> Voice:
        parent = as_name(row.get("parent_tool_use_id"))
        return Voice(MAIN_AGENT) if parent is None else self._talk.voice(parent, parent)

    def _speak(self, row: dict[str, Any], ts: str | None, line: int) -> None:
        self.has_rows = True
        message, voice = as_object(row.get("message")), self._voice(row)
        if row.get("type") == "assistant":
            self._talk.assistant(message, voice, ts=ts, line=line, key=as_text(row.get("uuid")))
            return
        if row.get("isReplay") is True:
            self._talk.builder.note("a prompt that the stream repeats was left out", line)
            return
        for block in as_objects(message.get("content")) or [{}]:
            call_id = as_name(block.get("tool_use_id"))
            kind = "user-rejected" if call_id in self._facts.refused else row.get("toolDenialKind")
            fields = denial_fields(kind, row.get("tool_use_result"), is_error=block.get("is_error") is True)
            part = {**message, "content": [block]} if block else message
            self._talk.user(part, voice, ts=ts, line=line, result_fields=fields)

    def _control(self, row: dict[str, Any], ts: str | None, line: int) -> None:
        """Who allowed a call: `can_use_tool` asks, the response to it answers."""
        request, response = as_object(row.get("request")), as_object(row.get("response"))
        request_id = as_name(row.get("request_id")) or as_name(response.get("request_id")) or ""
        if request.get("subtype") == "can_use_tool":
            call_id = as_name(request.get("tool_use_id"))
            if call_id is not None:
                self._asked[request_id] = call_id
        elif request_id in self._asked:
            behavior = as_object(response.get("response")).get("behavior")
            call_id = self._asked.pop(request_id)
            if behavior in ("allow", "deny"):
                self._talk.judge(call_id, "approved" if behavior == "allow" else "denied", ts=ts, line=line)
                if behavior == "deny":
                    self._facts.refused.add(call_id)


def _rows(document: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, row) of a stream, or of a recording of one; lines are those of the records."""
    for line, record in document.records():
        value = as_object(record)
        messages = as_objects(value.get("messages"))
        if messages and "type" not in value:
            yield from ((line, _inner(message)) for message in messages)
        else:
            yield line, _inner(value)


def _inner(record: dict[str, Any]) -> dict[str, Any]:
    return as_object(record.get("message")) if "direction" in record else record


def _is_opening(row: dict[str, Any]) -> bool:
    return row.get("type") == "system" and row.get("subtype") == "init" and isinstance(row.get("session_id"), str)


def _is_row(row: dict[str, Any]) -> bool:
    kind = as_word(row.get("type"))
    if kind == "system":
        return _is_opening(row)
    if kind == "result":
        return "subtype" in row and ("total_cost_usd" in row or "num_turns" in row)
    return kind in _SPOKEN and "parent_tool_use_id" in row and isinstance(row.get("message"), dict)


SOURCE: Final = Source(
    NAME, "Claude Code stream-json output, Claude Agent SDK recordings", matches, read, states=STATES,
    notes="times only where rows carry them; denials from the result row and from control requests",
)  # fmt: skip
