"""What `codex exec --json` prints: items as they begin and end, without a clock.

An item that never began is written once, when it is completed. Which items one response of the model held is not told:
a turn begins where the model acts after a result.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.codex_facts import usage_of
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_name, as_object, as_text, as_word
from goldentrace.sources.source import Source

NAME: Final = "codex-exec"
TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "web_search": ("query", "action"),
    "mcp_tool_call": ("arguments",),
    "collab_tool_call": ("prompt", "receiver_thread_ids"),
}
"""Kinds of items that are calls, with the fields that are their arguments."""
_SAID: Final = ("agent_message", "assistant_message")
_QUIET: Final = ("reasoning", "todo_list")
_ABSENT: Final = {"times": "the stream carries no clock", "usage": "token counts are for whole turns of the user only"}


def matches(head: Head) -> bool:
    """Whether a record opens a thread, or is an item of one."""
    for record in head.objects:
        kind = as_word(record.get("type"))
        if kind == "thread.started" and "thread_id" in record:
            return True
        if kind in ("item.started", "item.completed") and "type" in as_object(record.get("item")):
            return True
    return False


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per thread. Raises: InputError with the line of what is not JSON."""
    thread: _Thread | None = None
    for line, record in document.records():
        row = as_object(record)
        thread_id = as_text(row.get("thread_id")) if row.get("type") == "thread.started" else None
        if thread is not None and thread_id is not None and thread_id != thread.thread_id:
            yield thread.finish()
            thread = None
        if thread is None:
            thread = _Thread(document, thread_id, line)
        thread.add(row, line)
    if thread is not None:
        yield thread.finish()


class _Thread:
    """One thread on its way to a trace."""

    def __init__(self, document: Document, thread_id: str | None, line: int) -> None:
        self.thread_id = thread_id
        self._builder = TraceBuilder(document, NAME, trace_id=thread_id, name=thread_id, line=line, absent=_ABSENT)
        self._is_turn_open = False
        self._is_answer = False
        self._stop: StopReason = "unknown"
        self._usage: list[Any] = []

    def add(self, row: dict[str, Any], line: int) -> None:
        """Append what one row says."""
        kind = as_word(row.get("type"))
        if kind in ("item.started", "item.updated", "item.completed"):
            self._item(as_object(row.get("item")), line, is_over=kind == "item.completed")
        elif kind == "turn.started":
            self._is_turn_open, self._is_answer, self._stop = False, False, "unknown"
        elif kind == "turn.completed":
            if usage_of(row.get("usage")) is not None:
                self._usage.append(row["usage"])
        elif kind == "turn.failed":
            self._is_answer, self._stop = False, "provider_error"
            self._builder.note(f"a turn failed: {as_text(as_object(row.get('error')).get('message'))}", line)
        elif kind == "error":
            self._builder.note(f"the stream tells of an error: {as_text(row.get('message'))}", line)
        elif kind != "thread.started":
            self._builder.note(f"a record of type {kind!r} was left out", line)

    def finish(self) -> Trace:
        is_answer = self._is_answer and not self._builder.has_open_calls
        return self._builder.finish(
            stop_reason="final_answer" if is_answer else self._stop, extra={"usage_of_turns": self._usage}
        )

    def _item(self, item: dict[str, Any], line: int, *, is_over: bool) -> None:
        kind = as_word(item.get("type"))
        if kind in TOOLS:
            self._tool(item, kind, line, is_over=is_over)
        elif kind in _SAID and is_over:
            self._open(line)
            text = as_text(item.get("text"))
            self._builder.message("assistant", text, line=line)
            self._is_answer = text is not None
        elif kind == "error" and is_over:
            self._builder.note(f"the agent tells of an error: {as_text(item.get('message'))}", line)
        elif kind not in (*_SAID, *_QUIET, "error"):
            self._builder.note(f"an item of type {kind!r} was left out", line)

    def _open(self, line: int) -> None:
        if not self._is_turn_open:
            self._builder.turn(line=line)
        self._is_turn_open = True

    def _tool(self, item: dict[str, Any], kind: str, line: int, *, is_over: bool) -> None:
        item_id = as_name(item.get("id"))
        self._is_answer = False
        if item_id is None or not self._builder.is_open(item_id):
            if not is_over and item.get("status") not in (None, "in_progress"):
                return
            self._open(line)
            item_id = self._builder.call(
                as_text(item.get("tool")) or kind, call_id=item_id, args=_arguments(item, kind),
                extra={"mcp": item.get("server")}, line=line,
            )  # fmt: skip
        if is_over:
            self._builder.result(item_id, value=_value(item), line=line, **_status(item))
            self._is_turn_open = False


def _arguments(item: dict[str, Any], kind: str) -> Any:
    names = TOOLS[kind]
    if kind == "mcp_tool_call":
        return item.get("arguments", ABSENT)
    return {name: item[name] for name in names if name in item}


def _value(item: dict[str, Any]) -> Any:
    for key in ("aggregated_output", "result", "error"):
        if item.get(key) is not None:
            return item[key]
    return ABSENT


def _status(item: dict[str, Any]) -> dict[str, Any]:
    """status: completed, failed or declined; an exit code other than 0 is a failure, as is a result with isError."""
    exit_code = item.get("exit_code")
    extra = {"exit_code": exit_code if isinstance(exit_code, int) else None}
    if item.get("status") == "declined":
        return {"status": "denied", "error_class": "denied", "extra": extra}
    is_mcp_error = as_object(item.get("result")).get("isError") is True or item.get("error") is not None
    if item.get("status") == "failed" or is_mcp_error or (isinstance(exit_code, int) and exit_code != 0):
        return {"status": "error", "error_class": "tool_error", "extra": extra}
    return {"status": "ok", "extra": extra}


SOURCE: Final = Source(
    NAME, "Output of codex exec --json", matches, read, notes="no clock; usage per turn of the user only"
)
