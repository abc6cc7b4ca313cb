"""The ways in which message lists are kept in files: bare, in an object, one message, conversation or request a line.

Must not know any dialect, nor read inside a message.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from goldentrace.errors import InputError
from goldentrace.model.trace import Trace
from goldentrace.sources import httpbody
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.document import Document
from goldentrace.sources.requestlog import Exchange, read_exchanges
from goldentrace.sources.shapes import as_count, as_name, as_object, as_objects
from goldentrace.sources.transcript import Item, Transcript

ID_KEYS: Final = ("trace_id", "conversation_id", "session_id", "thread_id", "run_id", "id")
MAX_ATTRIBUTE_CHARACTERS: Final = 4096
"""Of a longer text beside the messages (a prompt, a document) the trace's attributes tell the length only."""


def read_messages(dialect: Dialect, document: Document) -> Iterator[Trace]:
    """Yield the traces of a file of one dialect. Raises: InputError where a message is none of this dialect."""
    logged: list[tuple[int | None, Message]] = []
    loose: _List | None = None
    conversations = 0
    for line, value in _rows(document):
        if isinstance(value, list):
            conversations += 1
            yield read_list(dialect, document, value, line=line, number=conversations)
        elif _is_logged(dialect, value):
            logged.append((line, value))
        elif isinstance(value, dict) and dialect.is_message(value):
            loose = loose or _List(dialect, document, line=line)
            loose.add(value, line)
        elif isinstance(value, dict) and (messages := dialect.messages_of(value)) is not None:
            conversations += 1
            yield read_list(dialect, document, messages, line=line, number=conversations, record=value)
        else:
            loose = loose or _List(dialect, document, line=line)
            loose.note_unknown(value, line)
    if loose is not None and loose.has_messages:
        yield loose.transcript.finish()
    if logged:
        yield from read_exchanges(document, dialect.name, _exchanges(dialect, logged))


def read_list(
    dialect: Dialect, document: Document, messages: Iterable[Any], *, line: int | None = None, number: int = 1,
    record: Message | None = None, **start: Any,
) -> Trace:  # fmt: skip
    """Return the trace of one list of messages. record: the object around it; number: its 1-based place."""
    start = {
        "name": _name(record, number), "scenario_id": as_name((record or {}).get("task_id")),
        "attributes": _described(dialect, record), **start,
    }  # fmt: skip
    reader = _List(dialect, document, line=line, **start)
    for message in messages:
        if isinstance(message, dict):
            reader.add(message, line)
        else:
            reader.note_unknown(message, line)
    return reader.transcript.finish()


def items_of(dialect: Dialect, document: Document, message: Message, *, line: int | None, index: int) -> list[Item]:
    """Return the items of one message. Raises: InputError that says which message is of another dialect."""
    try:
        return dialect.items(message)
    except ValueError as error:
        raise InputError(
            f"message {index + 1} {error}", where=document.where(line, f"$[{index}]"),
            next_step="name the format with --format NAME; `goldentrace formats` lists them",
        ) from None  # fmt: skip


class _List:
    """One list of messages on its way to a trace."""

    def __init__(
        self, dialect: Dialect, document: Document, *, line: int | None = None, name: str | None = None, **start: Any
    ) -> None:
        self._dialect = dialect
        self._document = document
        self._index = 0
        builder = TraceBuilder(
            document, dialect.name, name=name, absent=dialect.absent, line=line, **{"trace_id": name, **start}
        )
        self.transcript = Transcript(builder)
        self.has_messages = False

    def add(self, message: Message, line: int | None) -> None:
        items = items_of(self._dialect, self._document, message, line=line, index=self._index)
        self.transcript.add(items, line=line, message_index=self._index)
        self._index += 1
        self.has_messages = True

    def note_unknown(self, value: Any, line: int | None) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        named = f" of type {kind!r}" if isinstance(kind, str) else ""
        self.transcript.builder.note(f"a record{named} that is no message was left out", line)
        self._index += 1


def _rows(document: Document) -> Iterator[tuple[int | None, Any]]:
    """(line, value) of the values of a file; where it is one array, its elements, whose lines are not known."""
    is_line_file = document.is_line_file()
    for line, value in document.records():
        if isinstance(value, list) and not is_line_file:
            yield from ((None, item) for item in value)
        else:
            yield (line if is_line_file else None), value


def _is_logged(dialect: Dialect, record: Any) -> bool:
    """Whether an object is a request, a response, both, or a part of a streamed response."""
    if not isinstance(record, dict) or dialect.request_items is None:
        return False
    if dialect.is_response(record) or dialect.is_event(record) or isinstance(record.get("request"), dict):
        return True
    has_messages = any(key in record for key in dialect.list_keys)
    return has_messages and ("model" in record or isinstance(record.get("response"), (dict, list)))


def _exchanges(dialect: Dialect, records: Iterable[tuple[int | None, Message]]) -> Iterator[Exchange]:
    """Requests with their responses; a response or stream parts by themselves answer the request before them."""
    pending: Exchange | None = None
    parts: list[Message] = []
    for line, record in records:
        if parts and (not dialect.is_event(record) or dialect.begins_stream(record, parts[-1])):
            pending, parts = _answered(pending, _assembled(dialect, parts), dialect, line), []
        if dialect.is_event(record):
            if not parts and pending is not None and pending.response is not None:
                yield pending
                pending = None
            parts.append(record)
            continue
        if dialect.is_response(record):
            if pending is None or pending.response is not None:
                if pending is not None:
                    yield pending
                pending = Exchange(dialect, {}, line=line)
            pending = _answered(pending, record, dialect, line)
            continue
        if pending is not None:
            yield pending
        pending = _exchange(dialect, record, line)
    if parts:
        pending = _answered(pending, _assembled(dialect, parts), dialect, None)
    if pending is not None:
        yield pending


def _exchange(dialect: Dialect, record: Message, line: int | None) -> Exchange:
    request, response = record.get("request"), record.get("response")
    return logged_exchange(dialect, request if isinstance(request, dict) else record, response, record, line)


def logged_exchange(dialect: Dialect, request: Message, response: Any, around: Message, line: int | None) -> Exchange:
    """Return an exchange as logs keep it: the API's own objects, or HTTP messages with `body` and `status_code`."""
    whole = as_object(response)
    codes = [as_count(each.get(key)) for each in (whole, around) for key in ("status_code", "status")]
    sent = httpbody.read_body(request["body"], as_object(request.get("headers"))) if "body" in request else request
    got = httpbody.read_body(whole["body"], as_object(whole.get("headers"))) if "body" in whole else response
    answer = _assembled(dialect, as_objects(got)) if isinstance(got, list) else (as_object(got) or None)
    return Exchange(dialect, as_object(sent), answer, status=next(filter(None, codes), None), line=line)


def _answered(pending: Exchange | None, response: Message | None, dialect: Dialect, line: int | None) -> Exchange:
    request = pending.request if pending else {}
    return Exchange(dialect, request, response, line=pending.line if pending else line)


def _assembled(dialect: Dialect, parts: list[Message]) -> Message | None:
    return dialect.assemble(parts) if dialect.assemble else None


def _name(record: Message | None, number: int) -> str | None:
    for key in ID_KEYS:
        if record is not None and (name := as_name(record.get(key))):
            return name
    return None if number == 1 and record is None else f"conversation-{number}"


def _described(dialect: Dialect, record: Message | None) -> dict[str, Any]:
    """What stands beside the messages, without what is itself a list of messages or a long text."""
    kept = {key: value for key, value in (record or {}).items() if key not in dialect.list_keys and key not in ID_KEYS}
    return {
        key: f"({len(value)} characters)" if isinstance(value, str) and len(value) > MAX_ATTRIBUTE_CHARACTERS else value
        for key, value in kept.items()
    }
