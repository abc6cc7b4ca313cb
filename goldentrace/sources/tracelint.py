"""tracelint's own traces: one object per run, or one per line, with steps that are messages, calls and results.

Its status `unknown` (its reader could not decide) has no counterpart: such a result is `ok`, with the word in `extra`.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said, Transcript, Turn, rest

NAME: Final = "tracelint"
KINDS: Final = frozenset({"message", "tool_call", "tool_result"})
_TIMED: Final = frozenset({"timestamp", "model", "tokens_in", "tokens_out"})
_ABSENT: Final = {"times": "the steps carry no timestamp", "usage": "the steps carry no token counts"}


def matches(head: Head) -> bool:
    """Whether the first record is a run with steps of tracelint's kinds."""
    first = head.objects[0] if head.objects else {}
    steps = as_objects(first.get("steps"))
    return "run_id" in first and bool(steps) and all(as_word(step.get("type")) in KINDS for step in steps)


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per run."""
    for line, value in document.records():
        for run in value if isinstance(value, list) else [value]:
            if isinstance(run, dict) and isinstance(run.get("steps"), list):
                yield _read_run(document, run, line)


def _read_run(document: Document, run: dict[str, Any], line: int) -> Trace:
    builder = TraceBuilder(
        document, NAME, trace_id=as_name(run.get("run_id")), attributes={"final": run.get("final")}, absent=_ABSENT,
        line=line,
    )  # fmt: skip
    transcript = Transcript(builder)
    for index, step in enumerate(as_list(run["steps"])):
        if isinstance(step, dict):
            transcript.add(_items(step), message_index=index)
    has_final = run.get("final") is not None and not builder.has_open_calls
    return transcript.finish(stop_reason="final_answer" if has_final else None)


def _items(step: dict[str, Any]) -> list[Item]:
    kind = as_word(step.get("type"))
    meta = as_object(step.get("meta"))
    ts = clock.utc_from_epoch(meta.get("timestamp"), per_second=1)
    extra = {**rest(meta, _TIMED), "source": step.get("source")}
    call_id = as_name(step.get("call_id"))
    if kind == "message":
        text = as_text(step.get("content")) or ""
        if step.get("role") != "assistant":
            return [Said(as_word(step.get("role")) or "user", text, ts, extra)]
        usage = Usage(input_tokens=as_count(meta.get("tokens_in")), output_tokens=as_count(meta.get("tokens_out")))
        turn = Turn(as_text(meta.get("model")), usage=None if usage == Usage() else usage, ts=ts, extra=extra)
        return [turn, Said("assistant", text, ts)] if text else [turn]
    if kind == "tool_call":
        reason = step.get("args_unavailable")
        args = ABSENT if reason else step.get("args", ABSENT)
        extra |= {"args_unavailable": reason, "raw_text": step.get("raw_text")}
        return [Called(as_text(step.get("name")), call_id, args, ts=ts, extra=extra)]
    if kind == "tool_result":
        return [_answer(step, call_id, ts, extra)]
    return [Remark(f"a step of type {kind} was left out")]


def _answer(step: dict[str, Any], call_id: str | None, ts: str | None, extra: dict[str, Any]) -> Answered:
    code = as_count(step.get("http_status"))
    error = step.get("error") or None
    has_failed = step.get("status") == "error" or error is not None or (code is not None and code >= 400)
    extra |= {"error": error, "status": "unknown" if step.get("status") not in ("ok", "error") else None}
    value = step.get("content") if step.get("content") is not None else (error or ABSENT)
    status, reason = ("error", "tool_error") if has_failed else ("ok", None)
    return Answered(call_id, value, status, reason, http_status=code, ts=ts, extra=extra)  # type: ignore[arg-type]


SOURCE: Final = Source(NAME, "tracelint traces (its native format)", matches, read)
