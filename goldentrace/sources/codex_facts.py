"""What must be known of a Codex rollout before its first event: whose rows they are, when calls began, what turns cost.

A rollout of a fork or subagent begins with a copy of its parent's rows; `/undo` rolls turns back; in most versions the
row of a call is written when its output is. Must not build events.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from goldentrace.model.event import ErrorClass, Usage
from goldentrace.sources import clock
from goldentrace.sources.codex_output import read_output
from goldentrace.sources.shapes import as_count, as_name, as_number, as_object, as_text, as_word

CALLS: Final = frozenset({
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call",
})  # fmt: skip
OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_ENDS: Final = frozenset({"mcp_tool_call_end", "exec_command_end", "patch_apply_end"})
_END_KEYS: Final = ("duration", "exit_code", "status", "success")
_FOREIGN: Final = ("forked_from_id", "parent_thread_id")


@dataclass(frozen=True, slots=True)
class Line:
    """One row, the envelope taken off; kind is `response_item` for the bare items of old files too."""

    number: int
    kind: str
    payload: dict[str, Any]
    ts: str | None = None
    ordinal: int | None = None

    @property
    def type(self) -> str:
        return as_word(self.payload.get("type"))


def line_of(record: Any, number: int) -> Line:
    """Return a record of any version as a Line."""
    row = as_object(record)
    payload = row.get("payload")
    ts = clock.utc(row.get("timestamp"))
    if isinstance(payload, dict):
        return Line(number, as_word(row.get("type")), payload, ts, as_count(row.get("ordinal")))
    if "type" in row:
        return Line(number, "response_item", row, ts)
    return Line(number, "session_meta" if "id" in row else "", row, ts)


class TurnMarks:
    """Where responses of the model begin: with its first item after anything else."""

    def __init__(self) -> None:
        self.count = 0
        self.is_open = False

    def opens(self, line: Line) -> bool:
        """Whether this row begins a response."""
        kind = line.type
        is_item = line.kind == "response_item"
        if is_item and (kind in CALLS or kind == "reasoning" or (kind == "message" and _is_assistant(line))):
            was_open, self.is_open = self.is_open, True
            self.count += not was_open
            return not was_open
        is_input = is_item and (kind in OUTPUTS or kind in ("message", "agent_message"))
        is_boundary = line.kind == "event_msg" and kind in ("turn_aborted", "task_started")
        self.is_open = self.is_open and not (is_input or is_boundary or line.kind == "compacted")
        return False


@dataclass(slots=True)
class Facts:
    """meta: of the file's own session; skipped: numbers of rows that do not count; started_ts: number of a call's row
    -> when it began (None: not known); ends: call id -> the event that tells how it ended; usage: number of a turn ->
    its usage.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    meta_ts: str | None = None
    model: str | None = None
    skipped: set[int] = field(default_factory=set)
    copied: int = 0
    rolled_back: int = 0
    is_copy_unbounded: bool = False
    started_ts: dict[int, str | None] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    usage: dict[int, Usage] = field(default_factory=dict)


class Survey:
    """Rows in their order, then `finish`."""

    def __init__(self) -> None:
        self._facts = Facts()
        self._open: dict[str, tuple[int, str | None]] = {}
        self._marks = TurnMarks()
        self._is_usage_first: bool | None = None
        self._pending: Usage | None = None
        self._total: Any = None
        self._copies: list[int] = []
        self._after_foreign: list[int] | None = None
        self._prompts: list[int] = []
        self._numbers: list[int] = []

    def add(self, line: Line) -> None:
        facts = self._facts
        if line.kind == "session_meta":
            self._meta(line)
        elif self._is_copy(line):
            self._copies.append(line.number)
            return
        elif self._after_foreign is not None:
            if line.type == "thread_settings_applied":
                self._copies += self._after_foreign
                self._after_foreign = None
            else:
                self._after_foreign.append(line.number)
        self._numbers.append(line.number)
        if self._marks.opens(line) and self._pending is not None:
            facts.usage[self._marks.count], self._pending = self._pending, None
        if line.kind == "turn_context" and facts.model is None:
            facts.model = as_text(line.payload.get("model"))
        elif line.kind == "response_item":
            self._item(line)
        elif line.kind == "event_msg":
            self._event(line)

    def finish(self) -> Facts:
        facts = self._facts
        facts.is_copy_unbounded = bool(self._after_foreign) and not self._copies
        facts.copied = len(self._copies)
        facts.skipped.update(self._copies)
        return facts

    def _meta(self, line: Line) -> None:
        facts = self._facts
        if not facts.meta:
            facts.meta, facts.meta_ts = line.payload, clock.utc(line.payload.get("timestamp")) or line.ts
        elif line.payload.get("id") != facts.meta.get("id"):
            self._after_foreign = []

    def _is_copy(self, line: Line) -> bool:
        meta = self._facts.meta
        first = as_count(meta.get("subagent_history_start_ordinal"))
        if first is None:
            first = as_count(as_object(meta.get("history_base")).get("end_ordinal_exclusive"))
        if first is not None and line.ordinal is not None:
            return line.ordinal < first
        has_parent = any(meta.get(key) for key in _FOREIGN) or "subagent" in as_object(meta.get("source"))
        return has_parent and line.ts is not None and self._facts.meta_ts is not None and line.ts < self._facts.meta_ts

    def _item(self, line: Line) -> None:
        kind, call_id = line.type, as_name(line.payload.get("call_id"))
        if kind in CALLS:
            self._facts.called.add(call_id or "")
            self._open[call_id or ""] = (line.number, line.ts)
        elif kind in OUTPUTS and (call_id or "") in self._open:
            number, ts = self._open.pop(call_id or "")
            if ts is not None and ts == line.ts:
                self._facts.started_ts[number] = before(
                    ts, duration_s(line.payload, self._facts.ends.get(call_id or ""))
                )

    def _event(self, line: Line) -> None:
        kind = line.type
        if kind in _ENDS:
            call_id = as_name(line.payload.get("call_id"))
            if call_id is not None:
                end: dict[str, Any] = {key: line.payload[key] for key in _END_KEYS if key in line.payload}
                end["invocation"] = {"server": as_object(line.payload.get("invocation")).get("server")}
                end["is_error"] = mcp_error(line.payload.get("result")) is not None
                self._facts.ends[call_id] = end
        elif kind == "token_count":
            self._tokens(as_object(line.payload.get("info")))
        elif kind == "user_message":
            self._prompts.append(len(self._numbers) - 1)
        elif kind == "thread_rolled_back":
            self._roll_back(as_count(line.payload.get("num_turns")) or 0)

    def _tokens(self, info: dict[str, Any]) -> None:
        """Usage comes before the items of its response in some versions, after them in others; the first one tells."""
        usage = usage_of(info.get("last_token_usage"))
        if usage is None or info.get("total_token_usage") == self._total:
            return
        self._total = info.get("total_token_usage")
        if self._is_usage_first is None:
            self._is_usage_first = self._marks.count == 0
        if self._is_usage_first:
            self._pending = usage
        elif self._marks.count:
            self._facts.usage.setdefault(self._marks.count, usage)

    def _roll_back(self, count: int) -> None:
        if not 0 < count <= len(self._prompts):
            return
        first = self._prompts[-count]
        del self._prompts[-count:]
        # The item with the prompt's text stands right before its event.
        dropped = self._numbers[max(first - 1, 0) : -1]
        self._facts.skipped.update(dropped)
        self._facts.rolled_back += len(dropped)


def usage_of(value: Any) -> Usage | None:
    """Return the usage of one response, None where it counts nothing; input_tokens include the cached ones."""
    counts = as_object(value)
    found = Usage(
        input_tokens=as_count(counts.get("input_tokens")), output_tokens=as_count(counts.get("output_tokens")),
        cached_tokens=as_count(counts.get("cached_input_tokens")),
    )  # fmt: skip
    return None if found == Usage() else found


def mcp_error(result: Any) -> ErrorClass | None:
    """Return why an MCP call failed (its class), None where it did not: `Err`, or a result that says isError."""
    told = as_object(result)
    if "Err" in told:
        return "protocol"
    ok = as_object(told.get("Ok"))
    return "tool_error" if ok.get("isError") is True or ok.get("is_error") is True else None


def duration_s(output: dict[str, Any], end: dict[str, Any] | None) -> float | None:
    """Return how long a call took, in seconds, as its output or the event at its end says."""
    found = read_output(output.get("output")).duration_s
    duration = as_object((end or {}).get("duration"))
    secs, nanos = as_number(duration.get("secs")), as_number(duration.get("nanos"))
    return found if found is not None else None if secs is None else secs + (nanos or 0) / 1e9


def before(ts: str, seconds: float | None) -> str | None:
    """Return the time so many seconds before another, None where that is not known."""
    if seconds is None or not 0 <= seconds < 1e9:
        return None
    return clock.utc((datetime.fromisoformat(ts) - timedelta(seconds=seconds)).isoformat())


def _is_assistant(line: Line) -> bool:
    return line.payload.get("role") == "assistant"
