"""The server's journal of one run: a `goldentrace/1` trace that survives a kill.

One unbuffered append per event, so that an event that was written is never lost with the process. Secrets in arguments
and results are replaced before they reach the file; headers never get here. This module must not decide what happened.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import Any, Final

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import JsonError, decode, encode
from goldentrace.codec.trace import encode_event
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

SOURCE: Final = "goldentrace-faults"
FAILURE: Final = "server_failure"
"""Type of the lines that say why a run has no verdict; readers of traces skip them with a note."""
STOP_REASONS: Final[dict[str, StopReason]] = {"max_tool_calls": "call_limit", "max_wall_ms": "wall_clock_limit"}

_DECODER: Final = msgspec.json.Decoder(AnyEvent)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no verdict (exit code 3)."""

    what: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal file holds. events: tool_call, tool_result, effect and limit events in the order of writing."""

    events: list[AnyEvent]
    failures: list[Failure]
    is_complete: bool


def stamp(at_ns: int | None = None) -> dict[str, Any]:
    """Return `ts` and `mono_ns` for an event. at_ns: monotonic time of the event, default now."""
    now_ns = monotonic_ns()
    mono_ns = now_ns if at_ns is None else at_ns
    wall_us = (time_ns() - (now_ns - mono_ns)) // 1000
    seconds, micros = divmod(wall_us, 1_000_000)
    return {"ts": f"{_date(seconds)}.{micros:06d}Z", "mono_ns": mono_ns}


_DATE: dict[str, Any] = {"at": -1, "text": ""}


def _date(seconds: int) -> str:
    """The second as text; formatted once a second, because every event needs it."""
    if _DATE["at"] != seconds:
        from datetime import UTC, datetime

        _DATE.update(at=seconds, text=datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    text: str = _DATE["text"]
    return text


class JournalWriter:
    """Appends events to a file, or keeps nothing where there is no path."""

    def __init__(self, path: Path | None, *, run_id: str, seed: int, scenario_id: str | None = None) -> None:
        """Raises: InfrastructureError where the file cannot be opened."""
        self.path = path
        self._seq = 0
        self._file = -1
        self._is_broken = False
        self._redactor = Redactor()
        self._secrets: dict[str, int] = {}
        if path is not None:
            self._file = _open(path)
            self.write(
                TraceStart(format=FORMAT, trace_id=run_id, scenario_id=scenario_id, seed=seed, source=SOURCE, **stamp())
            )

    def write(self, event: Event) -> None:
        """Append one event; `seq` is given here."""
        if self._file < 0:
            return
        self._seq += 1
        self._append(encode_event(msgspec.structs.replace(event, seq=self._seq)))

    def write_failure(self, failure: Failure) -> None:
        """Append why the run has no verdict."""
        if self._file >= 0:
            self._seq += 1
            line = {"type": FAILURE, "seq": self._seq, "what": failure.what, "next_step": failure.next_step}
            self._append(encode(line) + b"\n")

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

    def close(self, limit: str | None = None) -> None:
        """End the trace, with the limit that stopped the run as its reason."""
        if self._file < 0:
            return
        outcome: Outcome = "unknown" if limit is None else "aborted"
        reason = STOP_REASONS.get(limit or "", "unknown")
        self.write(TraceEnd(outcome=outcome, stop_reason=reason, events=self._seq, **stamp()))
        os.close(self._file)
        self._file = -1

    def _append(self, line: bytes) -> None:
        if self._is_broken:
            return
        try:
            written = os.write(self._file, line)
        except OSError as error:
            self._break(error.strerror or "unknown error")
            return
        if written != len(line):
            self._break(f"{written} of {len(line)} bytes written")

    def _break(self, why: str) -> None:
        """Say once that the journal is no longer whole; its missing trace_end says it to readers."""
        self._is_broken = True
        sys.stderr.write(f"goldentrace: the journal {self.path} is incomplete: {why}\n")


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InfrastructureError(
            f"the journal cannot be written: {(error.strerror or 'unknown error').lower()}", where=Where(str(path)),
            next_step="name a file in a folder that can be written to",
        ) from None  # fmt: skip


def read_journal(path: Path) -> Journal:
    """Return what the server wrote down; a torn last line, left by a kill, is dropped and makes the journal incomplete.

    Raises: InputError naming the line for any other damage, or where there is no file.
    """
    try:
        rows = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(
            f"the journal cannot be read: {(error.strerror or 'unknown error').lower()}", where=Where(str(path)),
            next_step="run the scenario again",
        ) from None  # fmt: skip
    events: list[AnyEvent] = []
    failures: list[Failure] = []
    is_complete = False
    for number, row in enumerate(rows, start=1):
        if not row:
            continue
        try:
            event = _line(row)
        except (msgspec.MsgspecError, JsonError, UnicodeDecodeError) as error:
            if number == len(rows):
                break  # no LF after it: the write did not finish
            raise InputError(
                f"damaged: {error}", where=Where(str(path), number), next_step="run the scenario again"
            ) from None
        if isinstance(event, Failure):
            failures.append(event)
        elif isinstance(event, ToolCall | ToolResult | Effect | Limit):
            events.append(event)
        is_complete = isinstance(event, TraceEnd)
    return Journal(events, failures, is_complete)


def _line(row: bytes) -> AnyEvent | Failure:
    try:
        event: AnyEvent = _DECODER.decode(row)
    except msgspec.ValidationError:
        line = decode(row)
        if isinstance(line, dict) and line.get("type") == FAILURE:
            return Failure(str(line.get("what", "")), str(line.get("next_step", "")))
        raise
    return event


def about(event: AnyEvent) -> dict[str, Any]:
    """Return what only the server knows of an event (`extra.server`), empty for an event of another source."""
    known = (event.extra or {}).get("server")
    return known if isinstance(known, dict) else {}
