"""offtrack's baselines and capture files: steps of a run, calls without ids, parallel ones in named groups.

A baseline holds several runs. Payloads that offtrack cut down to a stub are absent, their size and digest are kept.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from goldentrace.model.event import ABSENT, ErrorClass, Outcome, Status, StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_number, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source

NAME: Final = "offtrack"
STUB: Final = "__offtrack_truncated__"
TOOL: Final = "tool_call"
_STATUS: Final[dict[str, tuple[Status, ErrorClass | None]]] = {
    "ok": ("ok", None), "error": ("error", "tool_error"), "timeout": ("timeout", "timeout"),
}  # fmt: skip
_ENDS: Final[dict[str, tuple[Outcome, StopReason]]] = {
    "timeout": ("failed", "wall_clock_limit"), "error": ("failed", "unknown"), "partial": ("partial", "unknown"),
}  # fmt: skip
_ABSENT: Final = {
    "call_ids": "offtrack keeps none", "times": "the steps carry no times", "usage": "the steps carry no token counts",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether it is a baseline, or lines of a capture."""
    if head.has_key("offtrack_schema"):
        return True
    events = head.objects
    return bool(events) and all(as_word(event.get("ev")) in ("step", "end") for event in events)


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per trajectory of a baseline, or the one of a capture."""
    captured: list[dict[str, Any]] = []
    end = ""
    for _, value in document.records():
        record = as_object(value)
        if record.get("ev") == "step":
            captured.append(record)
        elif record.get("ev") == "end":
            end = as_word(record.get("status"))
        for trajectory in as_objects(record.get("trajectories")):
            yield _read_trajectory(document, as_object(record.get("baseline")), trajectory)
    if captured:
        yield _read_steps(TraceBuilder(document, NAME, absent=_ABSENT), captured, end)


def _read_trajectory(document: Document, baseline: dict[str, Any], trajectory: dict[str, Any]) -> Trace:
    attributes = {"kind": trajectory.get("kind"), "attempt": trajectory.get("attempt"), "baseline": baseline}
    builder = TraceBuilder(
        document, NAME, trace_id=as_name(trajectory.get("trajectory_id")), attributes=attributes, absent=_ABSENT,
        scenario_id=as_name(trajectory.get("task_key")), ts=clock.utc(trajectory.get("started_at")),
    )  # fmt: skip
    return _read_steps(builder, as_objects(trajectory.get("steps")), as_word(trajectory.get("status")))


def _read_steps(builder: TraceBuilder, steps: list[dict[str, Any]], end: str) -> Trace:
    has_final = False
    for _, same in groupby(enumerate(steps), key=lambda entry: _group(*entry)):
        members = [step for _, step in same]
        has_final = members[-1].get("type") == "final_answer"
        if members[0].get("type") == TOOL:
            _append_tools(builder, members)
        else:
            _append_other(builder, members[0])
    outcome, reason = _ENDS.get(end, ("unknown", "final_answer" if has_final else "unknown"))
    return builder.finish(outcome, reason)


def _group(index: int, step: dict[str, Any]) -> tuple[Any, ...]:
    """Tool calls that follow one another in one group are one batch; everything else stands alone."""
    group = as_name(step.get("parallel_group", step.get("group")))
    return ("batch", group) if group is not None and step.get("type") == TOOL else ("single", index)


def _append_tools(builder: TraceBuilder, steps: list[dict[str, Any]]) -> None:
    asked = []
    for step in steps:
        args, cut = _payload(step.get("args"))
        batch = as_name(step.get("parallel_group", step.get("group")))
        ts = clock.utc(step.get("started_at", step.get("t0")))
        asked.append(builder.call(as_text(step.get("name")), args=args, batch=batch, ts=ts, extra={"args_cut": cut}))
    for call_id, step in zip(asked, steps, strict=True):
        value, cut = _payload(step.get("result"))
        status, reason = _STATUS.get(as_word(step.get("status")), ("ok", None))
        extra = {"result_cut": cut, "status": "unknown" if step.get("status") == "unknown" else None}
        ts = clock.utc(step.get("ended_at", step.get("t1")))
        builder.result(call_id, value=value, status=status, error_class=reason, ts=ts, extra=extra)


def _append_other(builder: TraceBuilder, step: dict[str, Any]) -> None:
    kind = as_word(step.get("type"))
    ts = clock.utc(step.get("ended_at", step.get("t1")))
    if kind == "llm_call":
        counts = as_object(step.get("usage")) or step
        usage = Usage(
            input_tokens=as_count(counts.get("tokens_in")), output_tokens=as_count(counts.get("tokens_out")),
            cost_usd=as_number(step.get("cost_usd")),
        )  # fmt: skip
        builder.turn(model=as_text(step.get("model")), usage=None if usage == Usage() else usage, ts=ts)
    elif kind == "final_answer":
        builder.message("assistant", as_text(step.get("result")), ts=ts)
    else:
        builder.note(f"a step of type {kind} was left out")


def _payload(value: Any) -> tuple[Any, dict[str, Any] | None]:
    """(value, None), or (absent, size and digest) where offtrack kept a stub."""
    if isinstance(value, dict) and value.get(STUB) is True:
        return ABSENT, {"size_bytes": value.get("size"), "sha256": value.get("sha256")}
    return (ABSENT if value is None else value), None


SOURCE: Final = Source(NAME, "offtrack baselines and capture files", matches, read, notes="no call ids")
