"""OpenHands: streams of actions and observations, bare or as the `history` of a benchmark's line.

An observation names the action that it answers by `cause`. Times have no zone. What the model asked for stands in the
metadata of the call; what OpenHands made of it, in the action, is kept where there is none. `finish` ends the run.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.openai_chat import usage_of
from goldentrace.sources.shapes import as_count, as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source

NAME: Final = "openhands"
TOOLS: Final = frozenset({
    "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp", "mcp", "delegate",
    "think", "task_tracking",
})  # fmt: skip
_NO_ARGUMENTS: Final = frozenset({
    "thought", "blocking", "confirmation_state", "is_confirmed", "hidden", "security_risk", "impl_source",
    "translated_ipython_code", "include_extra",
})  # fmt: skip
"""What OpenHands adds to the arguments of an action for itself."""
_STATES: Final = frozenset({"agent_state_changed", "null", "recall", "user_message", ""})


def matches(head: Head) -> bool:
    """Whether a record is an event with an action or observation, or a line of a benchmark that holds such events."""
    for record in head.objects:
        events = _flat(record["history"]) if isinstance(record.get("history"), list) else [record]
        if any(_is_event(each) for each in events[:16]):
            return True
    return any(_is_event(each) for each in _flat(as_list(head.value))[:16]) if isinstance(head.value, list) else False


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per run. Raises: InputError for what is not JSON."""
    run: _Run | None = None
    is_line_file = document.is_line_file()
    for number, record in document.records():
        line = number if is_line_file else None
        if isinstance(record, dict) and isinstance(record.get("history"), list):
            whole = _Run(document, record, line)
            for event in _flat(record["history"]):
                whole.add(event, line)
            yield whole.finish()
            continue
        run = run or _Run(document, {}, line)
        for event in _flat(record if isinstance(record, list) else [record]):
            run.add(event, line)
    if run is not None and run.has_events:
        yield run.finish()


class _Run:
    """One run on its way to a trace."""

    def __init__(self, document: Document, record: dict[str, Any], line: int | None) -> None:
        metadata, name = as_object(record.get("metadata")), as_name(record.get("instance_id"))
        self._record = record
        self._model = as_text(as_object(metadata.get("llm_config")).get("model"))
        self._builder = TraceBuilder(
            document, NAME, name=name, trace_id=name, scenario_id=name, line=line,
            attributes={
                "agent": metadata.get("agent_class"), "model": self._model,
                "max_iterations": metadata.get("max_iterations"),
            },
        )  # fmt: skip
        self._call_of: dict[str, str] = {}
        self._response: str | None = None
        self._stop: StopReason = "unknown"
        self.has_events = False

    def add(self, event: dict[str, Any], line: int | None) -> None:
        """Append one event."""
        if not _is_event(event):
            self._builder.note("a record that is no event was left out", line)
            return
        self.has_events = True
        given = event.get("timestamp")
        ts = clock.utc(given)
        if ts is not None and not clock.has_zone(given):
            self._builder.note("clock times without a zone were read as UTC", line)
        if "action" in event:
            self._act(event, ts, line)
        else:
            self._observe(event, ts, line)

    def finish(self) -> Trace:
        error = as_text(self._record.get("error"))
        if error is not None:
            self._builder.note(f"the run ended with: {error[:200]}")
        stop: StopReason = "turn_limit" if error is not None and "maximum iteration" in error else self._stop
        cost = as_object(self._record.get("metrics")).get("accumulated_cost")
        kept = {"error": error, "accumulated_cost_usd": cost, "test_result": self._record.get("test_result")}
        return self._builder.finish("unknown" if error is None else "failed", stop, extra=kept)

    def _act(self, event: dict[str, Any], ts: str | None, line: int | None) -> None:
        action, source = as_word(event.get("action")), as_word(event.get("source"))
        args, asked = as_object(event.get("args")), as_object(event.get("tool_call_metadata"))
        text = as_text(args.get("content")) or as_text(event.get("message"))
        if action in ("message", "system", "finish", "reject"):
            is_agent = source == "agent" and action != "system"
            if is_agent:
                self._turn(asked, ts, line)
                self._stop = "final_answer" if action == "finish" else "unknown"
                text = as_text(args.get("final_thought")) or as_text(args.get("message")) or text
            role = "assistant" if is_agent else "system" if action == "system" else "user"
            self._builder.message(role, text, ts=ts, line=line)
        elif source == "agent" and (asked or action in TOOLS):
            self._call(event, action, args, asked, ts, line)
        elif action not in _STATES and action not in ("change_agent_state", "condensation"):
            self._builder.note(f"an action {action!r} of {source or 'nobody'} was left out", line)

    def _turn(self, asked: dict[str, Any], ts: str | None, line: int | None) -> None:
        """One response of the model may hold several actions: they name it."""
        response = as_object(asked.get("model_response"))
        response_id = as_text(response.get("id"))
        if response_id is not None and response_id == self._response:
            return
        self._response = response_id
        reason = as_text(as_object(next(iter(as_objects(response.get("choices"))), None)).get("finish_reason"))
        self._builder.turn(
            model=as_text(response.get("model")) or self._model, usage=usage_of(response.get("usage")),
            finish_reason=reason, ts=ts, line=line,
        )  # fmt: skip

    def _call(
        self, event: dict[str, Any], action: str, args: dict[str, Any], asked: dict[str, Any], ts: str | None,
        line: int | None,
    ) -> None:  # fmt: skip
        self._turn(asked, ts, line)
        self._builder.message("assistant", as_text(args.get("thought")), ts=ts, line=line)
        call_id = as_name(asked.get("tool_call_id"))
        text = _asked_text(asked, call_id)
        told: dict[str, Any] = {"args_text": text}
        if text is None:
            told = {"args": {name: value for name, value in args.items() if name not in _NO_ARGUMENTS}}
        name = as_text(asked.get("function_name")) or as_text(args.get("name") if "mcp" in action else None) or action
        event_id = as_name(event.get("id"))
        known_id = self._builder.call(
            name, call_id=call_id or event_id, ts=ts, batch=self._response, line=line, extra={"action": action}, **told
        )
        if event_id is not None:
            self._call_of[event_id] = known_id

    def _observe(self, event: dict[str, Any], ts: str | None, line: int | None) -> None:
        kind, cause = as_word(event.get("observation")), as_name(event.get("cause"))
        asked = as_name(as_object(event.get("tool_call_metadata")).get("tool_call_id"))
        call_id = self._call_of.get(cause or "") or asked
        if call_id is None or not self._builder.has_call(call_id):
            if kind == "error":
                self._builder.message("environment", as_text(event.get("content")), ts=ts, line=line)
            elif kind not in _STATES:
                self._builder.note(f"an observation {kind!r} without an action was left out", line)
            return
        code = _exit_code(event)
        extra = {"exit_code": code, "observation": kind}
        self._builder.result(
            call_id, value=event.get("content", ABSENT), ts=ts, extra=extra, line=line, **_told(kind, event, code)
        )


def _told(kind: str, event: dict[str, Any], code: int | None) -> dict[str, Any]:
    """-1 is how OpenHands says that a command still ran when it stopped waiting."""
    if kind == "user_rejected":
        return {"status": "denied", "error_class": "denied"}
    if code == -1:
        return {"status": "timeout", "error_class": "timeout"}
    if kind == "error" or event.get("success") is False or code not in (None, 0):
        return {"status": "error", "error_class": "tool_error"}
    return {"status": "ok"}


def _exit_code(event: dict[str, Any]) -> int | None:
    extras = as_object(event.get("extras"))
    code = as_object(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    return code if code == -1 else as_count(code)


def _asked_text(asked: dict[str, Any], call_id: str | None) -> str | None:
    """The arguments as the model wrote them."""
    for choice in as_objects(as_object(asked.get("model_response")).get("choices")):
        for call in as_objects(as_object(choice.get("message")).get("tool_calls")):
            if call.get("id") == call_id:
                return as_text(as_object(call.get("function")).get("arguments"))
    return None


def _flat(history: list[Any]) -> list[dict[str, Any]]:
    """Events in their order; the first versions kept pairs of an action and its observation."""
    return [each for item in history for each in (as_objects(item) if isinstance(item, list) else as_objects([item]))]


def _is_event(event: dict[str, Any]) -> bool:
    is_kind = isinstance(event.get("action"), str) or isinstance(event.get("observation"), str)
    is_named = "args" in event or "content" in event or "extras" in event
    return is_kind and is_named and ("source" in event or "cause" in event) and "role" not in event


SOURCE: Final = Source(
    NAME, "OpenHands events and benchmark output", matches, read, notes="times without a zone, read as UTC"
)
