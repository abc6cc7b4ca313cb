"""Toolathlon: runs of long tasks, in the two layouts that are published.

One file per run, `{pass, failure?, messages}`; or one line per run, `{modelname_run, task_name, task_status, …}` where
most values are JSON inside strings and `tool_calls` is the catalogue of tools, not the calls: those stand in the
messages, as in Chat Completions.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.errors import InputError
from goldentrace.model.event import Outcome, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources import clock, envelope, openai_chat
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_list, as_name, as_object
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Transcript

NAME: Final = "toolathlon"
NESTED: Final = ("task_status", "config", "messages", "tool_calls", "key_stats", "agent_cost")
"""Values that are JSON inside strings in the line layout (dataset card of hkust-nlp/Toolathlon-Trajectories)."""
_STOPS: Final[dict[Any, StopReason]] = {
    "done": "final_answer", "max_turn_exceeded": "turn_limit", "timeout": "wall_clock_limit",
}  # fmt: skip
_ABSENT: Final = {**openai_chat.DIALECT.absent, "usage": "token counts are given for whole runs only"}


def matches(head: Head) -> bool:
    """Whether the first record is a run of either layout."""
    first = head.objects[0] if head.objects else {}
    is_line = "modelname_run" in first and "task_status" in first
    return is_line or (head.has_key("pass", "messages") and isinstance(first.get("messages"), list))


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per run. Raises: InputError for a line whose inner JSON is damaged."""
    for line, value in document.records():
        for run in value if isinstance(value, list) else [value]:
            if isinstance(run, dict) and "modelname_run" in run:
                yield _read_line(document, run, line)
            elif isinstance(run, dict) and isinstance(run.get("messages"), list):
                yield _read_file(document, run)


def _read_file(document: Document, run: dict[str, Any]) -> Trace:
    outcome = _outcome(run.get("pass"))
    builder = TraceBuilder(
        document, NAME, attributes={"pass": run.get("pass"), "failure": run.get("failure")}, absent=_ABSENT
    )
    return _told(builder, document, as_list(run["messages"]), None).finish(outcome)


def _read_line(document: Document, run: dict[str, Any], line: int) -> Trace:
    inner = {name: _unpacked(document, run[name], name, line) for name in NESTED if name in run}
    status = as_object(inner.get("task_status"))
    model, task = as_name(run.get("modelname_run")), as_name(run.get("task_name"))
    kept = {name: inner.get(name) for name in ("task_status", "key_stats", "agent_cost")}
    start, end = run.get("initial_run_time"), run.get("completion_time")
    builder = TraceBuilder(
        document, NAME, name="_".join(part for part in (task, model) if part) or None, absent=_ABSENT, line=line,
        trace_id=as_name(run.get("request_id")), scenario_id=task, ts=clock.utc(start),
        attributes={**kept, "model": model, "tools": inner.get("tool_calls")},
    )  # fmt: skip
    if clock.utc(start) and not clock.has_zone(start):
        builder.note("clock times without a zone were read as UTC", line)
    messages = inner.get("messages")
    if not isinstance(messages, list):
        builder.note("the run has no messages", line)
    transcript = _told(builder, document, as_list(messages), line)
    stop = _STOPS.get(status.get("running")) if isinstance(status.get("running"), str) else None
    return transcript.finish(_outcome(status.get("evaluation")), stop, ts=clock.utc(end))


def _told(builder: TraceBuilder, document: Document, messages: list[Any], line: int | None) -> Transcript:
    transcript = Transcript(builder)
    for index, message in enumerate(messages):
        if isinstance(message, dict):
            items = envelope.items_of(openai_chat.DIALECT, document, message, line=line, index=index)
            transcript.add(items, line=line, message_index=index)
    return transcript


def _unpacked(document: Document, value: Any, name: str, line: int) -> Any:
    """The value of a string that holds JSON; `None` (Python's) where a run was lost."""
    if not isinstance(value, str) or value in ("", "None"):
        return None if isinstance(value, str) else value
    try:
        return decode(value)
    except JsonError as error:
        raise InputError(
            f"{name} holds no JSON: {error}", where=document.where(line, f"$.{name}"),
            next_step="take the line out, or export the file again",
        ) from None  # fmt: skip


def _outcome(passed: Any) -> Outcome:
    if isinstance(passed, bool):
        return "success" if passed else "failed"
    return "unknown"


SOURCE: Final = Source(
    NAME, "Toolathlon runs: one file per run, or one line per run", matches, read,
    notes="no clock per call, no failed-tool flag; pass (evaluation) gives the outcome",
)  # fmt: skip
