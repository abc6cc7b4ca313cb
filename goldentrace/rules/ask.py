"""An ask: one time that the model asked for a call, with the retries that harness, SDK and transport made of it.

An operation may hold several: a model that asks again after a failure asks again, although the operation is one. Rules
about repeats judge asks, so that nobody else's retry is held against the model. Must not judge.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goldentrace.model.event import Message, ModelTurn, ToolCall
from goldentrace.model.operation import Attempt, Operation

if TYPE_CHECKING:
    from goldentrace.rules.subject import Subject


@dataclass(slots=True)
class Ask:
    """place: its position among all asks; attempts: the model's own first; turn: ordinal, 0 before the first;
    users: how many user messages came before."""

    place: int
    operation: Operation
    attempts: list[Attempt]
    turn: int
    users: int

    @property
    def attempt(self) -> Attempt:
        return self.attempts[0]

    @property
    def last(self) -> Attempt:
        return self.attempts[-1]

    @property
    def is_ok(self) -> bool:
        return self.attempts[-1].status == "ok"

    @property
    def call_index(self) -> int:
        return self.attempts[0].call_index

    @property
    def line(self) -> int:
        return self.attempts[0].call_line

    @property
    def tool_name(self) -> str:
        return self.operation.tool_name

    @property
    def label(self) -> str:
        return self.operation.label

    @property
    def lane(self) -> tuple[str, str | None]:
        """Who asks: an agent, within the call that it runs in."""
        return (self.operation.agent, self.operation.parent)


def asks_of(subject: "Subject") -> list[Ask]:
    """Return the asks of a trace, in order of their calls. Linear in events."""
    turn_at, users_at = _places(subject)
    found: list[Ask] = []
    for operation in subject.operations:
        current: Ask | None = None
        for attempt in operation.attempts:
            if attempt.origin == "model":
                index = attempt.call_index
                current = Ask(0, operation, [attempt], turn_at[index], users_at[index])
                found.append(current)
            elif current is not None:
                current.attempts.append(attempt)
    found.sort(key=lambda ask: ask.call_index)
    for place, ask in enumerate(found):
        ask.place = place
    return found


def _places(subject: "Subject") -> tuple[dict[int, int], dict[int, int]]:
    """Index of a call -> its turn, and the number of user messages before it."""
    turn_at: dict[int, int] = {}
    users_at: dict[int, int] = {}
    turn = users = 0
    for index, event in enumerate(subject.trace.events):
        kind = type(event)
        if kind is ModelTurn:
            turn = event.turn if event.turn is not None else turn + 1
        elif kind is Message and event.role == "user":  # type: ignore[union-attr]
            users += 1
        elif kind is ToolCall:
            turn_at[index] = event.turn if event.turn is not None else turn
            users_at[index] = users
    return turn_at, users_at


class World:
    """How often the world may have changed before each call: writes in all, writes of each resource, and calls of
    tools of which nothing is declared. Two equal snapshots: nothing happened between."""

    def __init__(self, subject: "Subject") -> None:
        self._writes: dict[int, int] = {}
        self._loose_writes: dict[int, int] = {}
        self._unknown: dict[int, int] = {}
        self._of_resource: dict[str, list[int]] = {}
        writes = loose = unknown = 0
        for operation, attempt in subject.attempts:
            index = attempt.call_index
            self._writes[index], self._loose_writes[index], self._unknown[index] = writes, loose, unknown
            if attempt.status == "denied" or attempt.sent is False:
                continue
            access = subject.access(operation)
            if access == "write":
                writes += 1
                resource = subject.resource(operation)
                if resource is None:
                    loose += 1
                else:
                    self._of_resource.setdefault(resource, []).append(index)
            elif access is None:
                unknown += 1

    def writes_before(self, index: int, resource: str | None) -> tuple[int, int]:
        """Return a number that grows with every write before a call that may have touched a resource: all of them where
        it is unknown, else those of it and those of unknown resources."""
        if resource is None:
            return self._writes[index], 0
        return self._loose_writes[index], bisect_left(self._of_resource.get(resource, []), index)

    def unknown_before(self, index: int) -> int:
        """Return how many calls of undeclared tools came before a call."""
        return self._unknown[index]
