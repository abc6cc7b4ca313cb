"""Requests to a model and its responses, put together to the conversations that they were.

A request resends the whole history: what an earlier one held is told by its prefix and by call ids, and appended once.
One conversation is one trace. Must not know where the exchanges were logged, nor any dialect.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from goldentrace.errors import InputError
from goldentrace.model.event import StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.document import Document
from goldentrace.sources.marks import Mark, begins_with, mark_of, marks_of, opening_of
from goldentrace.sources.shapes import as_name, as_object, as_objects, as_text
from goldentrace.sources.transcript import Answered, Item, Remark, Transcript, Turn


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


def read_exchanges(document: Document, source: str, exchanges: Iterable[Exchange]) -> Iterator[Trace]:
    """Yield one trace per conversation, in the order in which they began.

    Raises: InputError where a request holds messages of another dialect.
    """
    log = _Log(document, source)
    for exchange in exchanges:
        log.add(exchange)
    for conversation in log.conversations:
        yield conversation.finish()


@dataclass(slots=True)
class _Conversation:
    """history: what was said so far; known_ids: of each mark, the id that its call has in the trace;
    aliases: ids that a client gave later to calls that had none; failures: HTTP status of requests since an answer.
    """

    builder: TraceBuilder
    transcript: Transcript
    history: list[Mark] = field(default_factory=list)
    known_ids: list[str | None] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    failures: list[int | None] = field(default_factory=list)

    def append(self, items: Iterable[Item], line: int | None) -> None:
        for item in items:
            told = item
            if isinstance(item, Answered) and item.call_id in self.aliases:
                told = replace(item, call_id=self.aliases[item.call_id])
            self.transcript.add([told], line=line)
            mark = mark_of(item)
            if mark is not None:
                self.history.append(mark)
                self.known_ids.append(self.transcript.last_call_id if mark.kind == "call" else None)
                self.seen.add(mark.key)

    def fresh(self, items: list[Item]) -> list[Item]:
        """The items that were not there before: after the history where that is how they begin, else those not seen."""
        if begins_with(marks_of(items), self.history):
            return self._after_history(items)
        return [item for item in items if (mark := mark_of(item)) is not None and mark.key not in self.seen]

    def unrepeated(self, items: list[Item]) -> list[Item]:
        """The items without the instructions that every request repeats."""
        return [
            item for item in items
            if (mark := mark_of(item)) is None or not (mark.is_system and mark.key in self.seen)
        ]  # fmt: skip

    def finish(self) -> Trace:
        reason: StopReason | None = "provider_error" if self.failures else None
        return self.transcript.finish(stop_reason=reason, extra={"failed_requests": self.failures})

    def _after_history(self, items: list[Item]) -> list[Item]:
        count = 0
        for position, item in enumerate(items):
            if count == len(self.history):
                return items[position:]
            mark = mark_of(item)
            if mark is not None:
                known_id = self.known_ids[count]
                if known_id is not None and mark.call_id is not None and mark.call_id != known_id:
                    self.aliases[mark.call_id] = known_id
                count += 1
        return []


class _Log:
    """The conversations so far, and how to find the one that a request continues."""

    def __init__(self, document: Document, source: str) -> None:
        self.conversations: list[_Conversation] = []
        self._document = document
        self._source = source
        self._by_opening: dict[object, list[_Conversation]] = {}
        self._by_call: dict[str, _Conversation] = {}
        self._by_response: dict[str, _Conversation] = {}

    def add(self, exchange: Exchange) -> None:
        items = self._read(exchange)
        told = marks_of(items)
        found = self._continued(exchange.request)
        if found is not None:
            fresh = found.unrepeated(items)
        else:
            found = self._extended(told) or self._sharing(told)
            fresh = items if found is None else found.fresh(items)
        if found is None:
            found = self._begin(exchange, told)
        found.append([_at_start(item, exchange.started_ts) for item in fresh], exchange.line)
        self._respond(found, exchange, fresh)
        self._by_call |= {mark.call_id: found for mark in marks_of(fresh) if mark.kind == "call" and mark.call_id}

    def _read(self, exchange: Exchange) -> list[Item]:
        if exchange.dialect.request_items is None:
            return []
        try:
            return exchange.dialect.request_items(exchange.request)
        except ValueError as error:
            where = self._document.where(exchange.line)
            raise InputError(f"a request {error}", where=where, next_step="name the format with --format") from None

    def _respond(self, found: _Conversation, exchange: Exchange, fresh: list[Item]) -> None:
        response = exchange.response
        if exchange.has_failed:
            found.failures.append(exchange.status)
            status = f"HTTP {exchange.status}" if exchange.status else "an error"
            found.builder.note(f"a request to the model failed with {status}", exchange.line)
            return
        if response is None or exchange.dialect.response_items is None:
            return
        if not exchange.dialect.is_response(response):
            found.builder.note(f"a response that is none of {exchange.dialect.name} was left out", exchange.line)
            return
        items = [_at_end(item, exchange.ended_ts) for item in exchange.dialect.response_items(response)]
        carried = [
            found.aliases.get(item.call_id, item.call_id)
            for item in fresh
            if isinstance(item, Answered) and item.call_id
        ]
        for index, item in enumerate(items):
            if isinstance(item, Turn):
                extra = {**item.extra, "failed_requests": found.failures}
                items[index] = replace(item, input_call_ids=carried or None, extra=extra)
                found.failures = []
                break
        found.append(items, exchange.line)
        self._by_call |= {mark.call_id: found for mark in marks_of(items) if mark.kind == "call" and mark.call_id}
        for key in (as_name(response.get("id")), _conversation_id(exchange.request)):
            if key is not None:
                self._by_response[key] = found

    def _continued(self, request: Message) -> _Conversation | None:
        """The conversation whose history the provider keeps (Responses)."""
        for key in (as_name(request.get("previous_response_id")), _conversation_id(request)):
            if key is not None and key in self._by_response:
                return self._by_response[key]
        return None

    def _extended(self, told: list[Mark]) -> _Conversation | None:
        """The conversation with the longest history that this request begins with, the latest of equals."""
        fitting = [
            (len(each.history), position, each)
            for position, each in enumerate(self._by_opening.get(opening_of(told), []))
            if begins_with(told, each.history)
        ]
        return max(fitting, key=lambda entry: entry[:2])[2] if fitting else None

    def _sharing(self, told: list[Mark]) -> _Conversation | None:
        """The conversation whose calls this request resends with more beside: its history was edited or compacted."""
        for mark in reversed(told):
            found = self._by_call.get(mark.call_id) if mark.call_id is not None else None
            if found is not None and any(each.key not in found.seen for each in told):
                return found
        return None

    def _begin(self, exchange: Exchange, told: list[Mark]) -> _Conversation:
        name = f"conversation-{len(self.conversations) + 1}"
        builder = TraceBuilder(
            self._document, self._source, trace_id=name, line=exchange.line, ts=exchange.started_ts,
            absent=exchange.dialect.absent, attributes={"tools": _offered(exchange.request)},
        )  # fmt: skip
        begun = _Conversation(builder, Transcript(builder))
        self.conversations.append(begun)
        self._by_opening.setdefault(opening_of(told), []).append(begun)
        return begun


def _offered(request: Message) -> list[Any] | None:
    """The tools of a request, and as a set of each server's those that Anthropic's `mcp_servers` brings."""
    tools = request.get("tools")
    names = [as_text(server.get("name")) for server in as_objects(request.get("mcp_servers"))]
    sets = [{"type": "mcp_toolset", "mcp_server_name": name} for name in names if name]
    listed = tools if isinstance(tools, list) else []
    told = {entry.get("mcp_server_name") for entry in as_objects(tools)}
    sets = [each for each in sets if each["mcp_server_name"] not in told]
    return [*listed, *sets] if sets or isinstance(tools, list) else None


def _at_start(item: Item, ts: str | None) -> Item:
    """A result was there when the request that carries it was sent; when exactly it came, nobody logged."""
    return replace(item, ts=ts) if ts is not None and isinstance(item, Answered) and item.ts is None else item


def _at_end(item: Item, ts: str | None) -> Item:
    """A turn, its calls and the results of the provider's own tools were there when the response was there."""
    if ts is None or isinstance(item, Remark) or item.ts is not None:
        return item
    return replace(item, ts=ts)


def _conversation_id(request: Message) -> str | None:
    found = request.get("conversation")
    return as_name(found) or as_name(as_object(found).get("id"))
