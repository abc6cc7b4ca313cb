"""MCP: messages of JSON-RPC between a client and a server, as lines of a stdio session or as recorded HTTP.

There is no standard for transcripts: lines `{ts, dir, msg}` and bare messages are read, and cassettes and HARs of the
HTTP transport, whose replies may be server-sent events. Ids exist once per direction and begin again with each session.
No turn of a model is in sight. Which traffic was a retry, nobody says.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.event import ABSENT, Access, ErrorClass, error_class_of_status
from goldentrace.model.trace import Trace
from goldentrace.sources import clock, har, vcr
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.mcp_http import Packet, http_packets
from goldentrace.sources.shapes import as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import result_value

NAME: Final = "mcp"
ERROR_CLASSES: Final[dict[int, ErrorClass]] = {
    -32700: "malformed_json", -32600: "bad_request", -32601: "not_found", -32602: "bad_request", -32603: "server_error",
    -32001: "timeout", -32000: "reset",
}  # fmt: skip
"""JSON-RPC 2.0, section 5.1; -32001 and -32000 as the SDKs use them (request timed out, connection closed)."""
_FROM_CLIENT: Final = re.compile(r"(client|c2s|send|sent|out|request|->|>)", re.IGNORECASE)
_CLIENT_RESULTS: Final = ("role", "model", "roots", "action")
"""Keys of what a client answers to a server (sampling, roots, elicitation)."""
_SERVER_METHODS: Final = ("sampling/", "elicitation/", "roots/")
_TIMES: Final = ("ts", "timestamp", "time")
_NAMES: Final = ("session", "session_id", "server")
_ENVELOPE: Final = ("msg", "message", "data", "payload")


def matches(head: Head) -> bool:
    """Whether a record is a message of JSON-RPC, or recorded HTTP holds such messages and no request to a model."""
    if vcr.is_cassette(head) or har.is_har(head):
        return har.is_mcp_only(head)
    return any("jsonrpc" in message for record in head.objects for message in _messages(record))


def read(document: Document) -> Iterator[Trace]:
    """Yield the one trace of all sessions. Raises: InputError for what is not JSON (or YAML, of a cassette)."""
    head = document.head
    if vcr.is_cassette(head) or har.is_har(head):
        transcript = _Transcript(document, http_packets(document, is_har=har.is_har(head)))
    else:
        transcript = _Transcript(document, _line_packets(document))
    yield transcript.read()


@dataclass(slots=True)
class _Session:
    """One connection. calls: id of an open tools/call -> call id; listing: ids of open tools/list; asked: ids that the
    server asked with; cancelled: ids whose answer nobody waits for.
    """

    number: int
    calls: dict[str, str] = field(default_factory=dict)
    listing: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)


class _Transcript:
    """Messages on their way to a trace."""

    def __init__(self, document: Document, packets: Iterable[Packet]) -> None:
        self._packets = packets
        self._builder = TraceBuilder(
            document, NAME, absent={"usage": "no model is in sight", "times": "the messages carry no clock"}
        )
        self._sessions: dict[str, _Session] = {}
        self._current = _Session(1)
        self._count = 0
        self._access: dict[str, Access] = {}
        self._others: Counter[str] = Counter()

    def read(self) -> Trace:
        for packet in self._packets:
            for message in packet.messages:
                self._add(message, packet)
            if packet.status is not None and packet.status >= 400:
                self._refuse(packet)
        return self._builder.finish(extra={"other_messages": dict(sorted(self._others.items()))})

    def _add(self, message: dict[str, Any], packet: Packet) -> None:
        session = self._session(message, packet)
        method, message_id = as_text(message.get("method")), as_name(message.get("id"))
        if method == "tools/call" and message_id is not None:
            self._call(message, message_id, session, packet)
        elif method is not None:
            self._others[method] += 1
            self._hear(method, message_id, message, session, packet)
        elif message_id is not None and ("result" in message or "error" in message):
            self._answer(message, message_id, session, packet)
        else:
            self._builder.note("a message that is neither request nor response was left out", packet.line)

    def _session(self, message: dict[str, Any], packet: Packet) -> _Session:
        """The session that a message belongs to: named by its header, else begun by the last `initialize`."""
        if message.get("method") == "initialize":
            self._count += 1
            self._current = _Session(self._count)
            if packet.session is not None:
                self._sessions[packet.session] = self._current
            return self._current
        if packet.session is None:
            return self._current
        return self._sessions.setdefault(packet.session, self._current)

    def _call(self, message: dict[str, Any], message_id: str, session: _Session, packet: Packet) -> None:
        params = as_object(message.get("params"))
        name = as_text(params.get("name"))
        extra = {key: value for key, value in params.items() if key not in ("name", "arguments", "_meta")}
        session.cancelled.discard(message_id)
        session.calls[message_id] = self._builder.call(
            name, call_id=message_id if session.number == 1 else f"{session.number}/{message_id}",
            args=params.get("arguments", ABSENT), ts=packet.ts, access=self._access.get(name or ""),
            extra={**extra, "session": session.number if session.number > 1 else None}, line=packet.line,
        )  # fmt: skip

    def _hear(
        self, method: str, message_id: str | None, message: dict[str, Any], session: _Session, packet: Packet
    ) -> None:
        if method == "notifications/cancelled":
            request_id = as_name(as_object(message.get("params")).get("requestId")) or ""
            call_id = session.calls.pop(request_id, None)
            if call_id is not None:
                session.cancelled.add(request_id)
                self._builder.result(
                    call_id, status="cancelled", error_class="cancelled", ts=packet.ts, line=packet.line
                )
        elif method == "tools/list" and message_id is not None:
            session.listing.add(message_id)
        elif message_id is not None and (packet.is_from_client is False or method.startswith(_SERVER_METHODS)):
            session.asked.add(message_id)

    def _answer(self, message: dict[str, Any], message_id: str, session: _Session, packet: Packet) -> None:
        result = as_object(message.get("result"))
        if packet.is_from_client or (packet.is_from_client is None and self._is_clients(message_id, result, session)):
            session.asked.discard(message_id)
        elif message_id in session.calls:
            told = _told(message, result)
            call_id = session.calls.pop(message_id)
            self._builder.result(call_id, value=_value(message, result), ts=packet.reply_ts, line=packet.line, **told)
        elif message_id in session.listing:
            session.listing.discard(message_id)
            for tool in as_objects(result.get("tools")):
                self._learn(tool)
        elif message_id in session.cancelled:
            self._builder.note("a response to a call that was cancelled was left out", packet.line)

    def _is_clients(self, message_id: str, result: dict[str, Any], session: _Session) -> bool:
        """Whether a response of unknown direction answers the server: ids of both directions overlap."""
        if message_id not in session.asked:
            return False
        return message_id not in session.calls or any(key in result for key in _CLIENT_RESULTS)

    def _learn(self, tool: dict[str, Any]) -> None:
        """Whether a tool only reads, where its server says so."""
        name, is_read_only = as_text(tool.get("name")), as_object(tool.get("annotations")).get("readOnlyHint")
        if name is not None and isinstance(is_read_only, bool):
            self._access[name] = "read" if is_read_only else "write"

    def _refuse(self, packet: Packet) -> None:
        """A request that HTTP refused has no response of JSON-RPC."""
        status = packet.status or 0
        for message in packet.messages:
            session = self._session(message, packet)
            call_id = session.calls.pop(as_name(message.get("id")) or "", None)
            if call_id is not None:
                error_class = error_class_of_status(status)
                self._builder.result(
                    call_id, status="error", error_class=error_class, http_status=status, ts=packet.reply_ts,
                    line=packet.line,
                )  # fmt: skip


def _told(message: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """A protocol error, and a tool that says `isError`: unknown tools and bad arguments are mostly the latter."""
    if "error" in message:
        error = as_object(message.get("error"))
        code = error.get("code")
        error_class = ERROR_CLASSES.get(code, "protocol") if isinstance(code, int) else "protocol"
        return {"status": "error", "error_class": error_class, "extra": {"code": code, "kind": "jsonrpc"}}
    if result.get("isError") is True:
        return {"status": "error", "error_class": "tool_error"}
    return {"status": "ok"}


def _value(message: dict[str, Any], result: dict[str, Any]) -> Any:
    if "error" in message:
        return message["error"]
    kept = {key: value for key, value in result.items() if key not in ("_meta", "isError")}
    return result_value(kept["content"]) if set(kept) == {"content"} else kept


def _line_packets(document: Document) -> Iterator[Packet]:
    for line, record in document.records():
        for value in record if isinstance(record, list) else [record]:
            envelope = as_object(value)
            messages = _messages(envelope)
            if messages:
                ts = next((ts for key in _TIMES if (ts := _ts(envelope.get(key))) is not None), None)
                session = next((name for key in _NAMES if (name := as_text(envelope.get(key)))), None)
                yield Packet(messages, _direction(envelope), ts, ts, session, line)


def _messages(record: Any) -> list[dict[str, Any]]:
    """The messages of a line: the line itself, or what its envelope holds, also as text, also several."""
    if isinstance(record, dict) and "jsonrpc" in record:
        return [record]
    for key in _ENVELOPE:
        inner = as_object(record).get(key)
        if isinstance(inner, str) and "jsonrpc" in inner:
            try:
                inner = decode(inner)
            except JsonError:
                continue
        found = [each for each in (as_list(inner) or [inner]) if isinstance(each, dict) and "jsonrpc" in each]
        if found:
            return found
    return []


def _direction(envelope: dict[str, Any]) -> bool | None:
    told = next((as_word(envelope[key]) for key in ("dir", "direction", "from") if key in envelope), "")
    return bool(_FROM_CLIENT.match(told)) if told else None


def _ts(value: Any) -> str | None:
    """A time in ISO 8601, or in seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return clock.utc(value)
    is_ms = isinstance(value, (int, float)) and value > 1e11
    return clock.utc_from_epoch(value, per_second=1000 if is_ms else 1)


SOURCE: Final = Source(
    NAME, "MCP: JSON-RPC transcripts of stdio, cassettes and HARs of HTTP", matches, read,
    notes="no model: no turns, no usage; whether a tool only reads, where its server says so",
)  # fmt: skip
