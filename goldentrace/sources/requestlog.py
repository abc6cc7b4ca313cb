"""Requests to a model and its responses, put together to the conversations that they were.

A request resends the whole history: what an earlier one held is told by its prefix and by call ids, and appended once.
One conversation is one trace. Must not know where the exchanges were logged, nor any dialect.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from goldentrace.codec.canonical import JsonError, canonical
from goldentrace.errors import InputError
from goldentrace.model.event import ABSENT, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_name, as_object
from goldentrace.sources.transcript import Answered, Called, Item, Said, Transcript, Turn

Signature: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came back. response: None where there was none that can be read; status: the HTTP status;
    started_ts, ended_ts: as clock.utc returns them; line: 1-based, of the file.
    """

    dialect: Dialect
    request: Message
    response: Message | None = None
    status: int | None = None
    started_ts: str | None = None
    ended_ts: str | None = None
    line: int | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the provider refused: an HTTP error, or an error in place of a response."""
        has_error = self.response is not None and bool(self.response.get("error")) and not self.response.get("output")
        return has_error or (self.status is not None and self.status >= 400)


@dataclass(slots=True)
class _Conversation:
    builder: TraceBuilder
    transcript: Transcript
    history: list[Signature] = field(default_factory=list)
    seen: set[Signature] = field(default_factory=set)
    failures: list[int | None] = field(default_factory=list)

    def append(self, items: Iterable[Item], line: int | None) -> None:
        for item in items:
            self.transcript.add([item], line=line)
            if not isinstance(item, Turn):
                mark = signature(item)
                self.history.append(mark)
                self.seen.add(mark)

    def finish(self) -> Trace:
        reason: StopReason | None = "provider_error" if self.failures else None
        return self.transcript.finish(stop_reason=reason, extra={"failed_requests": self.failures})


def read_exchanges(document: Document, source: str, exchanges: Iterable[Exchange]) -> Iterator[Trace]:
    """Yield one trace per conversation, in the order in which they began."""
    log = _Log(document, source)
    for exchange in exchanges:
        log.add(exchange)
    for conversation in log.conversations:
        yield conversation.finish()


def signature(item: Said | Called | Answered) -> Signature:
    """Return what makes an item the same one when it is sent again: its call id, else what it says."""
    if isinstance(item, Said):
        role = "system" if item.role == "developer" else item.role
        return ("said", role, "".join(item.text.split()))
    if isinstance(item, Called):
        return ("call", item.call_id) if item.call_id else ("call", item.tool_name, item.args_text, _digest(item.args))
    return ("result", item.call_id) if item.call_id else ("result", item.tool_name, _digest(item.value))


class _Log:
    def __init__(self, document: Document, source: str) -> None:
        self.conversations: list[_Conversation] = []
        self._document = document
        self._source = source
        self._by_opening: dict[Signature, list[_Conversation]] = {}
        self._by_call: dict[Signature, _Conversation] = {}
        self._by_response: dict[str, _Conversation] = {}

    def add(self, exchange: Exchange) -> None:
        items = self._read(exchange)
        told = [signature(item) for item in items if not isinstance(item, Turn)]
        found = self._continued(exchange.request)
        if found is not None:
            fresh = [item for item in items if not _is_repeated(item, found)]
        else:
            found = self._extended(told) or self._sharing(told)
            fresh = items if found is None else _tail(items, found)
        if found is None:
            found = self._begin(exchange, told)
        found.append([_at(item, exchange.started_ts, is_result=True) for item in fresh], exchange.line)
        self._respond(found, exchange, fresh)

    def _read(self, exchange: Exchange) -> list[Item]:
        if exchange.dialect.request_items is None:
            return []
        try:
            return exchange.dialect.request_items(exchange.request)
        except ValueError as error:
            raise InputError(
                f"a request {error}",
                where=self._document.where(exchange.line),
                next_step="name another format with --format",
            ) from None

    def _respond(self, found: _Conversation, exchange: Exchange, fresh: list[Item]) -> None:
        response = exchange.response
        if exchange.has_failed or response is None or exchange.dialect.response_items is None:
            if exchange.has_failed:
                found.failures.append(exchange.status)
                status = f"HTTP {exchange.status}" if exchange.status else "an error"
                found.builder.note(f"a request to the model failed with {status}", exchange.line)
            return
        items = [_at(item, exchange.ended_ts, is_result=False) for item in exchange.dialect.response_items(response)]
        carried = [item.call_id for item in fresh if isinstance(item, Answered) and item.call_id]
        for index, item in enumerate(items):
            if isinstance(item, Turn):
                extra = {**item.extra, "failed_requests": found.failures}
                items[index] = replace(item, input_call_ids=carried or None, extra=extra)
                found.failures = []
                break
        found.append(items, exchange.line)
        for key in (as_name(response.get("id")), _conversation_id(exchange.request)):
            if key is not None:
                self._by_response[key] = found
        for mark in found.history:
            if mark[0] == "call" and len(mark) == 2:
                self._by_call[mark] = found

    def _continued(self, request: Message) -> _Conversation | None:
        """The conversation whose history the provider keeps (Responses)."""
        for key in (as_name(request.get("previous_response_id")), _conversation_id(request)):
            if key is not None and key in self._by_response:
                return self._by_response[key]
        return None

    def _extended(self, told: list[Signature]) -> _Conversation | None:
        """The conversation with the longest history that this request begins with, the latest of equals."""
        fitting = [
            (len(each.history), position, each)
            for position, each in enumerate(self._by_opening.get(_opening(told), []))
            if each.history == told[: len(each.history)]
        ]
        return max(fitting, key=lambda entry: entry[:2])[2] if fitting else None

    def _sharing(self, told: list[Signature]) -> _Conversation | None:
        """The conversation whose calls this request resends with more beside: its history was edited or compacted."""
        for mark in reversed(told):
            found = self._by_call.get(mark)
            if found is not None and any(each not in found.seen for each in told):
                return found
        return None

    def _begin(self, exchange: Exchange, told: list[Signature]) -> _Conversation:
        name = f"conversation-{len(self.conversations) + 1}"
        tools = exchange.request.get("tools")
        builder = TraceBuilder(
            self._document, self._source, trace_id=name, line=exchange.line, ts=exchange.started_ts,
            absent=exchange.dialect.absent, attributes={"tools": tools if isinstance(tools, list) else None},
        )  # fmt: skip
        begun = _Conversation(builder, Transcript(builder))
        self.conversations.append(begun)
        self._by_opening.setdefault(_opening(told), []).append(begun)
        return begun


def _opening(told: list[Signature]) -> Signature:
    """The first thing that is no system text: what tells conversations apart at a glance."""
    return next((mark for mark in told if mark[:2] != ("said", "system")), ())


def _tail(items: list[Item], found: _Conversation) -> list[Item]:
    """The items after what the conversation holds: after its history where that is the prefix, else those not seen."""
    count = position = 0
    for item in items:
        if not isinstance(item, Turn):
            if count >= len(found.history) or signature(item) != found.history[count]:
                break
            count += 1
        position += 1
    if count == len(found.history):
        return items[position:]
    return [item for item in items[position:] if not isinstance(item, Turn) and signature(item) not in found.seen]


def _is_repeated(item: Item, found: _Conversation) -> bool:
    is_system = isinstance(item, Said) and item.role in ("system", "developer")
    return is_system and not isinstance(item, Turn) and signature(item) in found.seen


def _at(item: Item, ts: str | None, *, is_result: bool) -> Item:
    """A result was there when the request with it was sent, a turn and its calls when the response was there."""
    if ts is None or item.ts is not None or isinstance(item, Answered) != (is_result or _is_inline(item)):
        return item
    return replace(item, ts=ts)


def _is_inline(item: Item) -> bool:
    return isinstance(item, Answered) and item.is_inline


def _conversation_id(request: Message) -> str | None:
    found = request.get("conversation")
    return as_name(found) or as_name(as_object(found).get("id"))


def _digest(value: Any) -> bytes:
    if value is ABSENT:
        return b""
    try:
        return canonical(value)
    except JsonError:
        return b"?"
