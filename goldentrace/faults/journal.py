"""The server's journal of one run: a `goldentrace/1` trace of its own that survives a kill, and the reading of it.

What the file promises is store/journal.py's; here is what the server puts in: secrets in arguments and results replaced
before they reach it, headers never, why a run has no verdict in the last event. This module must not decide what
happened.
"""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import Any, Final

from msgspec import Raw

from goldentrace.codec.canonical import JsonError, decode, encode
from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError, InputError, Where
from goldentrace.model.event import (
    FORMAT,
    AnyEvent,
    Effect,
    Event,
    Limit,
    Outcome,
    StopReason,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.normalize.redact import Redactor
from goldentrace.store.clock import Moment
from goldentrace.store.journal import Journal, say_on_stderr

SOURCE: Final = "goldentrace-faults"
STOP_REASONS: Final[dict[str, StopReason]] = {"max_tool_calls": "call_limit", "max_wall_ms": "wall_clock_limit"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no verdict (exit code 3)."""

    what: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a journal file holds. events: tool_call, tool_result, effect and limit events in the order of writing."""

    events: list[AnyEvent]
    failures: list[Failure]
    is_complete: bool


class RunJournal:
    """Appends events to a file, or keeps nothing where there is no path."""

    def __init__(self, path: Path | None, *, run_id: str, seed: int, scenario_id: str | None = None) -> None:
        """Raises: InfrastructureError where the file cannot be had: no place to write to, or another's file."""
        self._redactor = Redactor()
        self._secrets: dict[str, int] = {}
        self._journal = None if path is None else _open(path, run_id, seed, scenario_id)

    def write(self, event: Event, at_ns: int | None = None) -> None:
        """Append one event. at_ns: its monotonic time, default now."""
        if self._journal is not None:
            now_ns = monotonic_ns()
            moment = None if at_ns is None else Moment(at_ns, time_ns() - (now_ns - at_ns))
            self._journal.append(event, moment)

    def raw(self, value: Any) -> Raw:
        """Return a value as events carry it, secrets replaced."""
        try:
            data = encode(value)
        except JsonError:
            data = encode(str(value))
        if self._redactor.is_suspect(data.decode("utf-8", "replace")):
            data = encode(self._redactor.redact_value(value, self._secrets))
        return Raw(data)

    def text(self, text: str) -> str:
        """Return a text with secrets replaced."""
        return self._redactor.redact_text(text, self._secrets)

    def close(self, limit: str | None, failures: list[Failure]) -> None:
        """End the trace. limit: the one that stopped the run, which is then its reason."""
        if self._journal is None:
            return
        outcome: Outcome = "unknown" if limit is None else "aborted"
        noted = [{"what": item.what, "next_step": item.next_step} for item in failures]
        self._journal.end(
            TraceEnd(
                outcome=outcome,
                stop_reason=STOP_REASONS.get(limit or "", "unknown"),
                extra={"server": {"failures": noted}} if noted else None,
            )
        )
        self._journal.close()
        self._journal = None


def _open(path: Path, run_id: str, seed: int, scenario_id: str | None) -> Journal:
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if is_open:
            say_on_stderr(text)

    is_open = False
    header = TraceStart(format=FORMAT, trace_id=run_id, scenario_id=scenario_id, seed=seed, source=SOURCE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        journal = Journal(path, header, is_new_run=True, say=say)
    except OSError as error:
        raise _unwritable(path, error.strerror or "unknown error") from None
    if journal.is_broken:
        raise _unwritable(path, said[0].removeprefix(f"{path}: ").partition(";")[0] if said else "unknown error")
    if journal.path != path:
        journal.close()
        journal.path.unlink(missing_ok=True)
        raise _unwritable(path, "another run writes to it")
    is_open = True
    return journal


def _unwritable(path: Path, why: str) -> InfrastructureError:
    return InfrastructureError(
        f"the journal cannot be written: {why[:1].lower()}{why[1:]}", where=Where(str(path)),
        next_step="name a file of its own in a folder that can be written to",
    )  # fmt: skip


def read_journal(path: Path) -> Recorded:
    """Return what the server wrote down; a torn last line, left by a kill, is dropped and makes it incomplete.

    Raises: InputError where there is no file or no whole line, or for any damage before the last line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the journal cannot be read: {(error.strerror or 'unknown error').lower()}", where=Where(str(path)),
            next_step="run the scenario again",
        ) from None  # fmt: skip
    trace = read_trace(data, str(path))
    events = [event for event in trace.events if isinstance(event, ToolCall | ToolResult | Effect | Limit)]
    noted = about(trace.end).get("failures", []) if trace.end is not None else []
    return Recorded([*events], [Failure(**item) for item in noted], trace.incomplete is None)


def about(event: AnyEvent) -> dict[str, Any]:
    """Return what only the server knows of an event (`extra.server`), empty for an event of another source."""
    known = (event.extra or {}).get("server")
    return known if isinstance(known, dict) else {}


def value_of(raw: Raw) -> Any:
    """Return the value of an event's field, None where it is absent or no JSON."""
    data = bytes(raw)
    try:
        return decode(data) if data else None
    except JsonError:
        return None
