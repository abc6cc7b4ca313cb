"""Codex rollouts (`.jsonl`, `.jsonl.zst`), of every version: enveloped rows, and the bare items of the first ones.

Calls and results are response items; `event_msg` rows tell the same again and are read only for what items do not say
(how an MCP call ended, usage, how a turn ended). Items that compaction puts together are no new activity. Retries of
requests to the model are not recorded.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.codex_facts import (
    CALLS,
    OUTPUTS,
    Facts,
    Line,
    Survey,
    TurnMarks,
    before,
    duration_s,
    line_of,
    mcp_error,
)
from goldentrace.sources.codex_output import Output, read_output
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_name, as_number, as_object, as_text, as_word, text_of_parts
from goldentrace.sources.source import Source

NAME: Final = "codex"
KINDS: Final = frozenset({
    "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
    "inter_agent_communication_metadata",
})  # fmt: skip
_INJECTED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "# AGENTS.md",
)
"""How texts begin that Codex puts into the user's role."""
_RETRYING: Final = re.compile(r"retrying (\d{1,4})/(\d{1,4}) in (\d{1,9}(?:\.\d{1,9})?)(ms|s)")
_CALL_KEYS: Final = frozenset({"type", "call_id", "name", "arguments", "input", "action", "id", "status"})


def matches(head: Head) -> bool:
    """Whether a record has the envelope of a rollout, or the first one is that of an old file."""
    records = head.objects
    if any(as_word(each.get("type")) in KINDS and isinstance(each.get("payload"), dict) for each in records):
        return True
    first = records[0] if records else {}
    is_old = "id" in first and "timestamp" in first and "type" not in first and "role" not in first
    kinds = {as_word(each.get("type")) for each in records[1:] if "timestamp" not in each or "role" in each}
    return is_old and not kinds.isdisjoint({"message", "reasoning", *CALLS})


def read(document: Document) -> Iterator[Trace]:
    """Yield the one session. Raises: InputError with the line of what is not JSON."""
    survey = Survey()
    for number, record in document.records():
        survey.add(line_of(record, number))
    facts = survey.finish()
    rollout = _Rollout(document, facts)
    for number, record in document.records():
        if number not in facts.skipped:
            rollout.add(line_of(record, number))
    yield rollout.finish()


class _Rollout:
    """One session on its way to a trace."""

    def __init__(self, document: Document, facts: Facts) -> None:
        meta = facts.meta
        session_id = as_text(meta.get("id"))
        self._facts = facts
        self._marks = TurnMarks()
        self._model = facts.model
        self._stop: StopReason = "unknown"
        self._is_answer = False
        self._builder = TraceBuilder(
            document, NAME, trace_id=session_id, name=session_id, cwd=as_text(meta.get("cwd")), ts=facts.meta_ts,
            absent={"retries": "requests to the model that were repeated are not recorded"},
            attributes={
                "version": meta.get("cli_version"), "originator": meta.get("originator"), "git": meta.get("git"),
                "session_source": meta.get("source"), "forked_from": meta.get("forked_from_id"),
            },
        )  # fmt: skip
        if facts.copied:
            self._builder.note(
                f"{facts.copied} rows copied from the session that this one was forked from were left out"
            )
        if facts.is_copy_unbounded:
            self._builder.note("where the history copied from another session ends is not recorded: all of it was kept")
        if facts.rolled_back:
            self._builder.note(f"{facts.rolled_back} rows of turns that were rolled back were left out")

    def add(self, line: Line) -> None:
        """Append what one row says."""
        if self._marks.opens(line):
            usage = self._facts.usage.get(self._marks.count)
            self._builder.turn(model=self._model, usage=usage, ts=line.ts, line=line.number)
        if line.kind == "response_item":
            self._item(line)
        elif line.kind == "event_msg":
            self._event(line)
        elif line.kind == "turn_context":
            self._model = as_text(line.payload.get("model")) or self._model
        elif line.kind == "compacted":
            extra = {"is_compact_summary": True}
            self._builder.message(
                "system",
                as_text(line.payload.get("message")) or "compaction",
                ts=line.ts,
                extra=extra,
                line=line.number,
            )
        elif line.kind and line.kind not in KINDS:
            self._builder.note(f"a record of type {line.kind!r} was left out", line.number)

    def finish(self) -> Trace:
        is_answer = self._is_answer and not self._builder.has_open_calls
        return self._builder.finish(stop_reason="final_answer" if is_answer else self._stop)

    def _item(self, line: Line) -> None:
        kind = line.type
        if kind == "message":
            self._say(line)
        elif kind == "agent_message":
            extra = {"author": line.payload.get("author"), "recipient": line.payload.get("recipient")}
            text = text_of_parts(line.payload.get("content"))
            self._builder.message("agent", text, ts=line.ts, extra=extra, line=line.number)
        elif kind in CALLS:
            self._call(line)
        elif kind in OUTPUTS:
            self._output(line)
        elif kind not in ("reasoning", "ghost_snapshot"):
            self._builder.note(f"an item of type {kind!r} was left out", line.number)

    def _say(self, line: Line) -> None:
        role, text = as_text(line.payload.get("role")) or "user", text_of_parts(line.payload.get("content"))
        if role == "assistant":
            self._is_answer, self._stop = bool(text), "unknown"
        else:
            is_typed = role == "user" and not text.lstrip().startswith(_INJECTED)
            role = "user" if is_typed else "system"
            self._is_answer = self._is_answer and not is_typed
            self._stop = "unknown" if is_typed else self._stop
        self._builder.message(role, text, ts=line.ts, line=line.number)

    def _call(self, line: Line) -> None:
        payload, kind = line.payload, line.type
        self._is_answer = False
        extra = {key: value for key, value in payload.items() if key not in _CALL_KEYS and "passthrough" not in key}
        given: dict[str, Any] = {}
        arguments = payload.get("arguments", payload.get("input"))
        if kind == "custom_tool_call" and isinstance(arguments, str):
            given["args"] = arguments  # free text by design (a patch), not JSON that failed to parse
        elif isinstance(arguments, str):
            given["args_text"] = arguments
        else:
            given["args"] = payload.get("action", ABSENT) if arguments is None else arguments
        name = as_text(payload.get("name")) or kind.removesuffix("_call")
        is_hosted = kind in ("web_search_call", "image_generation_call")
        started_ts = self._facts.started_ts.get(line.number, line.ts)
        call_id = self._builder.call(
            name, call_id=as_name(payload.get("call_id")) or (as_name(payload.get("id")) if is_hosted else None),
            ts=started_ts, extra=extra, line=line.number, **given,
        )  # fmt: skip
        if is_hosted and as_text(payload.get("status")) not in (None, "in_progress"):
            has_failed = payload.get("status") in ("failed", "incomplete")
            self._builder.result(
                call_id, value=payload.get("result", ABSENT), ts=line.ts, line=line.number,
                status="error" if has_failed else "ok", error_class="tool_error" if has_failed else None,
            )  # fmt: skip

    def _output(self, line: Line) -> None:
        call_id = as_name(line.payload.get("call_id"))
        output = read_output(line.payload.get("output", line.payload.get("tools")))
        end = self._facts.ends.get(call_id or "", {})
        told = _told(output, end)
        taken_s = duration_s(line.payload, end)
        extra = {
            "exit_code": output.exit_code, "duration_ms": None if taken_s is None else round(taken_s * 1000, 3),
            "mcp": as_object(end.get("invocation")).get("server"),
        }  # fmt: skip
        self._builder.result(call_id, value=output.value, ts=line.ts, extra=extra, line=line.number, **told)

    def _event(self, line: Line) -> None:
        kind, payload = line.type, line.payload
        if kind == "mcp_tool_call_end" and (as_name(payload.get("call_id")) or "") not in self._facts.called:
            self._mcp(line)
        elif kind == "turn_aborted":
            self._is_answer = False
            self._stop = "user_cancelled" if payload.get("reason") == "interrupted" else "unknown"
        elif kind == "error" or (kind == "task_complete" and payload.get("error")):
            self._is_answer, self._stop = False, "provider_error"
        elif kind == "stream_error":
            self._retry(line)

    def _mcp(self, line: Line) -> None:
        """A call of an MCP tool that no item tells."""
        payload, asked = line.payload, as_object(line.payload.get("invocation"))
        error, result = mcp_error(payload.get("result")), as_object(payload.get("result"))
        call_id = self._builder.call(
            as_text(asked.get("tool")), call_id=as_name(payload.get("call_id")), args=asked.get("arguments", ABSENT),
            ts=before(line.ts, duration_s({}, payload)) if line.ts else None, extra={"mcp": asked.get("server")},
            line=line.number,
        )  # fmt: skip
        self._builder.result(
            call_id, value=result.get("Ok", result.get("Err", ABSENT)), ts=line.ts, line=line.number,
            status="ok" if error is None else "error", error_class=error,
        )  # fmt: skip

    def _retry(self, line: Line) -> None:
        """Old files keep the message that a request is repeated."""
        found = _RETRYING.search(as_text(line.payload.get("message")) or "")
        if found is not None:
            delay = as_number(float(found.group(3)))
            self._builder.decision(
                "retry", by="harness", ts=line.ts, line=line.number, reason="reset",
                delay_ms=delay if delay is None or found.group(4) == "ms" else delay * 1000,
                extra={"attempt": as_count(int(found.group(1))), "max_attempts": as_count(int(found.group(2)))},
            )  # fmt: skip


def _told(output: Output, end: dict[str, Any]) -> dict[str, Any]:
    """Status and class of a result: what its output says, else what the event at its end does."""
    if output.status != "ok":
        return {"status": output.status, "error_class": output.error_class}
    if end.get("status") == "declined":
        return {"status": "denied", "error_class": "denied"}
    has_failed = end.get("is_error") is True or end.get("success") is False or end.get("status") == "failed"
    exit_code = end.get("exit_code")
    if has_failed or (isinstance(exit_code, int) and exit_code != 0):
        return {"status": "error", "error_class": "tool_error"}
    return {"status": "ok"}


SOURCE: Final = Source(
    NAME, "Codex rollouts, also compressed and of the first versions", matches, read,
    notes="times from the recorded durations; retries of requests to the model are not recorded",
)  # fmt: skip
