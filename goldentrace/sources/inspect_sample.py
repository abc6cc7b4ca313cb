"""One sample of an Inspect log, as inspect_ai gives it, into a trace.

Must not import inspect_ai: its values are told by their fields, so that a version with more kinds of events is read
too.
"""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from goldentrace.model.event import ABSENT, MAIN_AGENT, ErrorClass, Outcome, Status, StopReason, Usage, Verdict
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_count, as_text
from goldentrace.sources.transcript import CONTEXT_REASONS, LENGTH_REASONS

ERRORS: Final[dict[str, tuple[Status, ErrorClass]]] = {
    "timeout": ("timeout", "timeout"), "approval": ("denied", "denied"), "parsing": ("error", "schema"),
    "file_not_found": ("error", "not_found"), "permission": ("error", "auth"),
    "is_a_directory": ("error", "bad_request"),
}  # fmt: skip
"""ToolCallError.type of inspect_ai; any other is a plain error of the tool."""
LIMITS: Final[dict[str, StopReason]] = {
    "message": "turn_limit", "turn": "turn_limit", "time": "wall_clock_limit", "working": "wall_clock_limit",
    "token": "token_limit", "cost": "cost_limit", "context": "context_limit", "operator": "user_cancelled",
}  # fmt: skip
VERDICTS: Final[dict[str, Verdict]] = {
    "approve": "approved",
    "modify": "approved",
    "reject": "denied",
    "terminate": "denied",
}
SCORES: Final[dict[Any, Outcome]] = {"C": "success", "I": "failed", "P": "partial", "N": "failed"}
"""Inspect's own grades (correct, incorrect, partial, no answer); other scores are no verdict."""


class SampleReader:
    """A sample on its way to a trace."""

    def __init__(self, document: Document, evaluation: Any, sample: Any) -> None:
        self._sample = sample
        self._events = list(sample.events or [])
        self._tools = [event for event in self._events if event.event == "tool"]
        self._waiting: dict[str, deque[Any]] = {}
        for event in self._tools:
            self._waiting.setdefault(event.id, deque()).append(event)
        self._call_of: dict[int, str] = {}
        self._running: list[tuple[Any, str]] = []
        self._spans = {event.id: event for event in self._events if event.event == "span_begin"}
        self._tool_of_span = dict(self._matched_spans())
        self._stop: StopReason = "unknown"
        self._is_answer = False
        task = str(evaluation.task)
        name = f"{task}_{sample.id}_epoch-{sample.epoch}"
        self._builder = TraceBuilder(
            document, "inspect", name=name, trace_id=as_text(getattr(sample, "uuid", None)) or name,
            scenario_id=str(sample.id),
            attributes={
                "task": task, "model": str(evaluation.model), "epoch": sample.epoch, "run_id": evaluation.run_id,
                "scores": {key: score.value for key, score in (sample.scores or {}).items()},
            },
        )  # fmt: skip

    def read(self) -> Trace:
        """Return the trace. Raises: whatever a value of an unexpected kind raises; the caller tells it."""
        if self._tools or any(event.event == "model" for event in self._events):
            self._say_input()
            for event in self._events:
                self._answer_until(event.timestamp)
                self._add(event)
            self._answer_until(None)
        else:
            self._builder.note("the log keeps no events: messages were read")
            for message in self._sample.messages or []:
                self._message(message)
        limit = getattr(self._sample, "limit", None)
        if limit is not None:
            self._stop, self._is_answer = LIMITS.get(str(limit.type), "unknown"), False
        is_over = self._is_answer and not self._builder.has_open_calls
        error = self._sample.error.message if self._sample.error is not None else None
        return self._builder.finish(
            self._outcome(), "final_answer" if is_over else self._stop, extra={"error": error},
            ts=_ts(getattr(self._sample, "completed_at", None)),
        )  # fmt: skip

    def _outcome(self) -> Outcome:
        if self._sample.error is not None:
            return "failed"
        found = [score.value for score in (self._sample.scores or {}).values()]
        told: set[Outcome] = {SCORES[value] for value in found if isinstance(value, str) and value in SCORES}
        return told.pop() if len(told) == 1 and len(found) == 1 else "unknown"

    def _say_input(self) -> None:
        given = self._sample.input
        for message in given if isinstance(given, list) else []:
            self._builder.message(message.role, message.text)
        if isinstance(given, str):
            self._builder.message("user", given)

    def _add(self, event: Any) -> None:
        kind = event.event
        if kind == "model":
            self._model(event)
        elif kind == "tool":
            self._tool(event)
        elif kind == "approval":
            verdict = VERDICTS.get(str(event.decision))
            if verdict is not None:
                extra = {"decision": event.decision, "explanation": event.explanation}
                self._builder.approval(
                    event.call.id,
                    verdict,
                    by=event.approver,
                    ts=_ts(event.timestamp),
                    extra=extra,
                )
        elif kind == "sample_limit":
            limit = event.limit
            self._builder.limit(
                str(event.type), maximum=limit if isinstance(limit, (int, float)) else None, ts=_ts(event.timestamp)
            )

    def _model(self, event: Any) -> None:
        if event.error is not None or getattr(event, "pending", None):
            self._builder.note("a request to the model failed")
            return
        agent, parent = self._place(event)
        output = event.output
        ts = _ts(event.completed) or _ts(event.timestamp)
        self._builder.turn(
            model=event.model, finish_reason=str(output.stop_reason) if output.choices else None,
            usage=_usage(output.usage), ts=ts, agent=agent, extra={"retries": event.retries, "cache": event.cache},
        )  # fmt: skip
        message = output.choices[0].message if output.choices else None
        if message is None:
            return
        self._builder.message("assistant", message.text, ts=ts, agent=agent)
        for call in message.tool_calls or []:
            self._call(call, ts, agent, parent)
        if agent == MAIN_AGENT:
            reason = str(output.stop_reason)
            self._is_answer = bool(message.text) and not message.tool_calls
            self._stop = "token_limit" if reason in LENGTH_REASONS else "unknown"
            self._stop = "context_limit" if reason in CONTEXT_REASONS else self._stop
            self._is_answer = self._is_answer and self._stop == "unknown"

    def _call(self, call: Any, ts: str | None, agent: str, parent: str | None) -> None:
        waiting = self._waiting.get(call.id)
        ran = waiting.popleft() if waiting else None
        call_id = self._builder.call(
            call.function, call_id=call.id, args=call.arguments, ts=_ts(ran.timestamp) if ran is not None else ts,
            agent=agent, parent=parent, extra={"parse_error": call.parse_error},
        )  # fmt: skip
        if ran is not None:
            self._call_of[id(ran)] = call_id

    def _tool(self, event: Any) -> None:
        call_id = self._call_of.get(id(event))
        if call_id is None:  # nobody's response asks for it: an agent of its own code ran it
            agent, parent = self._place(event)
            call_id = self._builder.call(
                event.function, call_id=event.id, args=event.arguments, ts=_ts(event.timestamp), agent=agent,
                parent=parent, origin="harness",
            )  # fmt: skip
        if event.pending:
            return
        self._is_answer = False
        self._running.append((event, call_id))
        if event.completed is None:
            self._answer_until(event.timestamp)

    def _answer_until(self, moment: datetime | None) -> None:
        """Append the results that were there at a moment (None: all).

        A tool's event stands where it began, and what ran within it follows.
        """
        over = [each for each in self._running if moment is None or (each[0].completed or moment) <= moment]
        over.sort(key=lambda each: each[0].completed or each[0].timestamp)
        self._running = [each for each in self._running if not any(each is other for other in over)]
        for event, call_id in over:
            self._answer(event, call_id)

    def _answer(self, event: Any, call_id: str) -> None:
        told: dict[str, Any] = {"status": "ok"}
        if event.error is not None:
            status, error_class = ERRORS.get(str(event.error.type), ("error", "tool_error"))
            told = {"status": status, "error_class": error_class}
        elif event.failed:
            told = {"status": "error", "error_class": "tool_error"}
        error = event.error.message if event.error is not None else None
        seconds = event.working_time
        extra = {"error": error, "working_ms": None if seconds is None else round(seconds * 1000, 3)}
        self._builder.result(call_id, value=_plain(event.result), ts=_ts(event.completed), extra=extra, **told)

    def _message(self, message: Any) -> None:
        if message.role == "assistant":
            self._builder.turn(model=message.model)
            self._builder.message("assistant", message.text)
            for call in message.tool_calls or []:
                self._builder.call(call.function, call_id=call.id, args=call.arguments)
            self._is_answer = bool(message.text) and not message.tool_calls
        elif message.role == "tool":
            status, error_class = (
                ("ok", None) if message.error is None else ERRORS.get(str(message.error.type), ("error", "tool_error"))
            )
            self._builder.result(message.tool_call_id, value=message.text, status=status, error_class=error_class)  # type: ignore[arg-type]
            self._is_answer = False
        else:
            self._builder.message(message.role, message.text)

    def _matched_spans(self) -> Iterator[tuple[str, Any]]:
        """(id of a tool's span, its tool event): the span begins below the one in which the event stands."""
        waiting = list(self._tools)
        for span in self._spans.values():
            if span.type == "tool":
                found = next(
                    (tool for tool in waiting if tool.function == span.name and tool.span_id == span.parent_id), None
                )
                if found is not None:
                    waiting.remove(found)
                    yield span.id, found

    def _place(self, event: Any) -> tuple[str, str | None]:
        """(agent, call that it runs within): what stands in the span of a tool is the work of a subagent."""
        span_id, agent = event.span_id, None
        for _ in range(len(self._spans)):
            span = self._spans.get(span_id)
            if span is None:
                break
            if span.type == "agent" and agent is None:
                agent = as_text(span.name)
            if span_id in self._tool_of_span:
                tool = self._tool_of_span[span_id]
                return agent or tool.function, self._call_of.get(id(tool), tool.id)
            span_id = span.parent_id
        return MAIN_AGENT, None


def _usage(usage: Any) -> Usage | None:
    """input_tokens here include those from the cache; inspect_ai counts them apart where the total says so."""
    if usage is None:
        return None
    fresh, output, total = as_count(usage.input_tokens), as_count(usage.output_tokens), as_count(usage.total_tokens)
    cached = as_count(usage.input_tokens_cache_read)
    written = as_count(usage.input_tokens_cache_write) or 0
    whole = fresh
    if fresh is not None and output is not None and total == fresh + output + (cached or 0) + written:
        whole = total - output
    return Usage(input_tokens=whole, output_tokens=output, cached_tokens=cached)


def _plain(result: Any) -> Any:
    """A result is a value of JSON, or content parts."""
    if isinstance(result, list):
        return [_plain(each) for each in result]
    return (
        result.model_dump(exclude_none=True)
        if hasattr(result, "model_dump")
        else result
        if result is not None
        else ABSENT
    )


def _ts(value: Any) -> str | None:
    return clock.utc(value.isoformat() if isinstance(value, datetime) else value)
