"""Claude Code sessions: one row per line, subagents inline or in files beside the session.

Rows that compaction repeats and branches that a rewind left are skipped; subagents are read where the call that began
them is answered, and run within that call. No official description exists; the rows of sessions of versions 2.0 and 2.1
are the reference. Nothing tells a tool's own start: a call begins and ends when its rows were written.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from goldentrace.errors import InputError
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.claude_lineage import SPOKEN, Lineage, scan
from goldentrace.sources.claude_messages import (
    STATES,
    Conversation,
    Voice,
    api_error_reason,
    denial_fields,
)
from goldentrace.sources.claude_rows import ResultCopy, Row, copy_of, message_of, rows
from goldentrace.sources.document import Beside, Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_list, as_number, as_object, as_text, text_of_parts
from goldentrace.sources.source import Source

NAME: Final = "claude-code"
_AGENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
MAX_AGENT_FILES: Final = 10_000
_FRAME: Final = frozenset({"uuid", "parentUuid", "sessionId"})


def matches(head: Head) -> bool:
    """Whether a row has the frame of a session."""
    return any(record.keys() >= _FRAME and isinstance(record.get("type"), str) for record in head.objects)


def read(document: Document) -> Iterator[Trace]:
    """Yield the one session, its subagents within it. Raises: InputError with the line of what is not JSON."""
    lineage = scan(document)
    if lineage.others.total() < len(lineage.skipped):
        yield _Session(document, lineage).read()


class _Session:
    """One session on its way to a trace."""

    def __init__(self, document: Document, lineage: Lineage) -> None:
        self.document = document
        self._lineage = lineage
        first = lineage.first
        self.builder = TraceBuilder(
            document, NAME, trace_id=as_text(first.get("sessionId")), name=as_text(first.get("sessionId")),
            cwd=as_text(first.get("cwd")), states=STATES, ts=clock.utc(first.get("timestamp")),
            attributes={
                "version": first.get("version"), "git_branch": first.get("gitBranch"),
                "other_records": dict(sorted(lineage.others.items())), "repeated_rows": lineage.repeated or None,
                "abandoned_rows": lineage.abandoned or None,
            },
        )  # fmt: skip
        self.talk = Conversation(self.builder, lineage.spent)
        self._files = _agent_files(document.beside)
        self._read: set[str] = set()
        self._durations_ms: list[float] = []

    def read(self) -> Trace:
        if self._lineage.repeated:
            self.builder.note(f"{self._lineage.repeated} rows that repeat an earlier one were left out")
        if self._lineage.abandoned:
            self.builder.note(f"{self._lineage.abandoned} rows of branches that a rewind left behind were left out")
        _Reader(self, self.document, self._lineage, Voice()).read()
        for agent_id in list(self._files):
            self.read_agent(agent_id, None, None)
        return self.builder.finish(stop_reason=self.talk.stop_reason(), extra={"turn_durations_ms": self._durations_ms})

    def read_agent(self, agent_id: str, call_id: str | None, kind: str | None) -> None:
        """Append the subagent that a file beside the session holds, once."""
        path = self._files.pop(agent_id, None) or self._sibling(agent_id)
        if path is None or agent_id in self._read or self.document.beside is None:
            return
        self._read.add(agent_id)
        name = PurePosixPath(path).name
        try:
            document = self.document.beside.open(path)
            if document is None:
                return
            lineage = scan(document)
        except InputError as error:
            self.builder.note(f"a subagent's file was left out: {name}: {error.what}")
            return
        if call_id is None:
            self.builder.note("a subagent whose call is not in the session stands at the end")
        self.talk.spent.update(lineage.spent)
        lineage.is_subagent = True
        _Reader(self, document, lineage, self.talk.voice(agent_id, call_id, kind)).read()
        if document.torn:
            self.builder.note(f"{name}: {document.torn.text}")

    def _sibling(self, agent_id: str) -> str | None:
        """The file of a subagent in the folder of the session, where older versions kept them."""
        beside, name = self.document.beside, f"agent-{agent_id}.jsonl"
        if beside is None or beside.name == name or _AGENT_ID.fullmatch(agent_id) is None:
            return None
        return name

    def note_duration(self, value: Any) -> None:
        number = as_number(value)
        if number is not None:
            self._durations_ms.append(number)


class _Reader:
    """The rows of one file. Lines are those of the session's own file only."""

    def __init__(self, session: _Session, document: Document, lineage: Lineage, voice: Voice) -> None:
        self._session = session
        self._document = document
        self._lineage = lineage
        self._voice = voice
        self._builder = session.builder
        self._talk = session.talk
        self._has_lines = document is session.document
        self._voice_of_row: dict[str, Voice] = {}

    def read(self) -> None:
        for number, (line, data, row) in enumerate(rows(self._document)):
            if number < len(self._lineage.skipped) and self._lineage.skipped[number]:
                continue
            shown = line if self._has_lines else None
            if row is None:
                self._builder.note("a row that is no object was left out", shown)
            elif row.type in SPOKEN:
                self._speak(row, line, shown)
            elif row.type == "system":
                self._system(row, data, line, shown)

    def _speak(self, row: Row, line: int, shown: int | None) -> None:
        message = message_of(row, self._document, line)
        ts = clock.utc(row.timestamp)
        voice = self._voice_for(row, message)
        if row.type == "assistant" and row.is_api_error_message is True:
            self._talk.api_failure(text_of_parts(message.get("content")), voice, ts=ts, line=shown)
        elif row.type == "assistant":
            self._talk.assistant(message, voice, ts=ts, line=shown, key=as_text(row.uuid))
        else:
            self._user(row, message, voice, ts, shown)

    def _user(self, row: Row, message: dict[str, Any], voice: Voice, ts: str | None, shown: int | None) -> None:
        copy = copy_of(row)
        if isinstance(copy, ResultCopy) and as_text(copy.agent_id) is not None:
            call_id = self._lineage.call_of_agent.get(copy.agent_id)
            kind = self._lineage.type_of_call.get(call_id or "")
            self._session.read_agent(copy.agent_id, call_id, kind)
        is_written_by_person = row.is_meta is not True and row.is_compact_summary is not True
        self._talk.user(
            message, voice, ts=ts, line=shown, role="user" if is_written_by_person else "system",
            result_fields=_result_fields(row, copy, message),
            extra={"is_compact_summary": row.is_compact_summary is True or None},
        )  # fmt: skip

    def _voice_for(self, row: Row, message: dict[str, Any]) -> Voice:
        """A subagent's row names its agent, or hangs below its prompt, which is that of the call."""
        if self._lineage.is_subagent or row.is_sidechain is not True:
            return self._voice
        agent_id, uuid = as_text(row.agent_id), as_text(row.uuid)
        voice = self._voice_of_row.get(as_text(row.parent_uuid) or "")
        if agent_id is not None:
            call_id = self._lineage.call_of_agent.get(agent_id)
            voice = self._talk.voice(agent_id, call_id, self._lineage.type_of_call.get(call_id or ""))
        elif voice is None:
            call_id = self._lineage.call_of_prompt.get(text_of_parts(message.get("content")))
            kind = self._lineage.type_of_call.get(call_id or "")
            voice = self._talk.voice(f"row {uuid}", call_id, kind)
        if uuid is not None:
            self._voice_of_row[uuid] = voice
        return voice

    def _system(self, row: Row, data: bytes, line: int, shown: int | None) -> None:
        if row.subtype not in ("api_error", "compact_boundary", "turn_duration"):
            return
        whole = as_object(self._document.decode(data, line))
        ts = clock.utc(row.timestamp)
        voice = self._voice_for(row, {})
        if row.subtype == "api_error":
            reason, status = api_error_reason(whole.get("error"))
            headers = as_object(as_object(whole.get("error")).get("headers"))
            about = {
                "reason": reason, "http_status": status, "delay_ms": whole.get("retryInMs"),
                "attempt": whole.get("retryAttempt"), "max_attempts": whole.get("maxRetries"),
                "retry_after": headers.get("retry-after"),
            }  # fmt: skip
            self._talk.api_retry(about, voice, ts=ts, line=shown)
        elif row.subtype == "compact_boundary":
            extra = {"compaction": whole.get("compactMetadata") or True}
            self._builder.message(
                "system",
                as_text(whole.get("content")) or "compaction",
                agent=voice.agent,
                ts=ts,
                extra=extra,
                line=shown,
            )
        else:
            self._session.note_duration(whole.get("durationMs"))


def _result_fields(row: Row, copy: ResultCopy | str, message: dict[str, Any]) -> dict[str, Any]:
    """What a row says of the results in it beyond what their blocks do."""
    is_error = any(as_object(block).get("is_error") is True for block in as_list(message.get("content")))
    refused = denial_fields(row.tool_denial_kind, copy if isinstance(copy, str) else None, is_error=is_error)
    if refused or isinstance(copy, str):
        return refused
    told: dict[str, Any] = {"extra": {
        "duration_ms": as_number(copy.duration_ms) or as_number(copy.total_duration_ms),
        "total_tokens": as_count(copy.total_tokens), "status": as_text(copy.status),
    }}  # fmt: skip
    return {**told, "status": "cancelled", "error_class": "cancelled"} if copy.interrupted is True else told


def _agent_files(beside: Beside | None) -> dict[str, str]:
    """Paths of the files of subagents in the folder that belongs to a session, by the agent's id."""
    if beside is None:
        return {}
    paths = beside.paths(f"{PurePosixPath(beside.name).stem}/subagents", "agent-*.jsonl")[:MAX_AGENT_FILES]
    return {PurePosixPath(path).stem.removeprefix("agent-"): path for path in paths}


SOURCE: Final = Source(
    NAME, "Claude Code sessions with their subagents", matches, read, states=STATES,
    notes="a call's times are those of its rows; what the model repeats is inferred",
)  # fmt: skip
