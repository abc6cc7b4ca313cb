"""What a dialect of message lists is: how its messages are told and read, on the wire and at rest.

Must not read files.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from goldentrace.sources import httpbody
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_object, as_objects
from goldentrace.sources.transcript import Item

Message = dict[str, Any]

RUN_KEYS: Final = frozenset({
    "pass", "eval_result", "benchmark_name", "modelname_run", "simulations", "traj", "trajectory", "trajectory_format",
    "sessionId", "observations", "steps",
})  # fmt: skip
"""Keys of benchmarks' and agents' own files around a message list: those files have sources of their own."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """name: of the source; items: one message into its items, raises ValueError saying what it cannot be;
    is_message: whether an object can be a message of this dialect; is_certain: whether only this dialect writes it so;
    is_strict: whether a file with anything else in it is none of this dialect;
    list_keys: under which keys a list of messages stands in an object;
    request_items: what a request holds, in its order; response_items: what a response adds;
    is_response: whether an object is a whole response of the API; is_event: whether it is a part of a streamed one;
    begins_stream: whether a part, given the one before it, begins another response;
    assemble: the parts of one into a response.
    """

    name: str
    items: Callable[[Message], list[Item]]
    is_message: Callable[[Message], bool]
    is_certain: Callable[[Message], bool]
    list_keys: tuple[str, ...] = ("messages",)
    is_strict: bool = False
    request_items: Callable[[Message], list[Item]] | None = None
    response_items: Callable[[Message], list[Item]] | None = None
    is_response: Callable[[Message], bool] = field(default=lambda _: False)
    is_event: Callable[[Message], bool] = field(default=lambda _: False)
    begins_stream: Callable[[Message, Message], bool] = field(default=lambda _event, _before: False)
    assemble: Callable[[list[Message]], Message | None] | None = None
    absent: dict[str, str] = field(default_factory=dict)

    def messages_of(self, record: Message) -> list[Message] | None:
        """Return the list of messages that an object holds, None where it holds none."""
        for key in self.list_keys:
            found = record.get(key)
            if isinstance(found, list) and (not found or any(self.is_message(each) for each in as_objects(found))):
                return as_objects(found)
        return None


def matches(dialect: Dialect, head: Head) -> bool:
    """Whether something in a head is written so by this dialect alone."""
    shown = _shown(dialect, head)
    if dialect.is_strict and not all(dialect.is_message(each) or dialect.is_certain(each) for each in shown):
        return False
    return any(dialect.is_certain(each) for each in shown)


def is_plain(dialect: Dialect, head: Head) -> bool:
    """Whether a head holds messages only, and such as every dialect writes (text)."""
    shown = _shown(dialect, head)
    return bool(shown) and all(dialect.is_message(each) for each in shown)


def _shown(dialect: Dialect, head: Head) -> list[Message]:
    """The messages, responses and stream parts that a head shows, and what is none of them; nothing where a key of a
    run may stand behind what is shown.
    """
    if head.may_hide_keys:
        return []
    values = head.records
    if len(values) == 1 and isinstance(values[0], list):
        values = tuple(values[0])
    records = [each for value in values for each in (as_objects(value) if isinstance(value, list) else [value])]
    shown: list[Message] = []
    for record in records:
        if not isinstance(record, dict) or not RUN_KEYS.isdisjoint(record):
            return []
        shown += _parts(dialect, record)
    return shown


def _parts(dialect: Dialect, record: Message) -> list[Message]:
    found: list[Message] = []
    sides = [as_object(record.get("request")), as_object(record.get("response"))]
    bodies = [
        as_object(httpbody.read_body(side["body"], as_object(side.get("headers")))) for side in sides if "body" in side
    ]
    for each in (record, *sides, *bodies):
        if dialect.is_response(each) or dialect.is_event(each):
            found.append(each)
        for key in dialect.list_keys:
            found += as_objects(each.get(key))
    return found or [record]
