"""Which call a result belongs to: the nearest earlier open call of its id; ids may be reused, missing or come late.

Must not know what an event looks like in any format.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from goldentrace.model.event import MAIN_AGENT, ToolCall


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that has no result yet."""

    call_id: str
    tool_name: str
    agent: str
    turn: int | None
    attempt: int
    line: int

    @classmethod
    def of(cls, call: ToolCall, line: int) -> "Waiting":
        return cls(call.call_id, call.tool_name, call.agent, call.turn, call.attempt, line)

    def fields(self) -> dict[str, Any]:
        """What a result takes over from its call."""
        taken: dict[str, Any] = {}
        if self.turn is not None:
            taken["turn"] = self.turn
        if self.agent != MAIN_AGENT:
            taken["agent"] = self.agent
        if self.attempt > 1:
            taken["attempt"] = self.attempt
        return taken


class Pairing:
    """The open calls and the early results of one trace."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[int, Waiting] = {}
        self._numbers_of_id: dict[str, list[int]] = {}
        self._seen: set[str] = set()
        self._early: dict[str, deque[int]] = {}
        self.has_synthetic_ids = False

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    def has_seen(self, call_id: str) -> bool:
        """Whether a call of that id came, open or answered."""
        return call_id in self._seen

    def is_open(self, call_id: str) -> bool:
        """Whether a call of that id waits for its result."""
        return call_id in self._numbers_of_id

    def unanswered(self) -> Iterator[Waiting]:
        """Yield the open calls in their order."""
        yield from self._open.values()

    def open(self, call: ToolCall, line: int) -> int | None:
        """Take note of a call; return the position of the early result that answers it, None where it stays open."""
        self._seen.add(call.call_id)
        early = self._early.get(call.call_id)
        if early:
            position = early.popleft()
            if not early:
                del self._early[call.call_id]
            return position
        self._count += 1
        self._open[self._count] = Waiting.of(call, line)
        self._numbers_of_id.setdefault(call.call_id, []).append(self._count)
        return None

    def take(self, call_id: str | None, tool_name: str | None) -> Waiting | None:
        """Close and return the call that a result answers: the latest open one of its id; without an id the earliest
        open one of its tool, of any tool where no name is known.
        """
        if call_id is None:
            number = next((n for n, waiting in self._open.items() if tool_name in (None, waiting.tool_name)), None)
        else:
            number = self._numbers_of_id.get(call_id, [None])[-1]
        if number is None:
            return None
        waiting = self._open.pop(number)
        numbers = self._numbers_of_id[waiting.call_id]
        numbers.remove(number)
        if not numbers:
            del self._numbers_of_id[waiting.call_id]
        return waiting

    def keep_early(self, call_id: str, position: int) -> bool:
        """Remember a result that has no open call; return whether it is a second one (its call was answered before)."""
        if call_id in self._seen:
            return True
        self._early.setdefault(call_id, deque()).append(position)
        return False

    def make_id(self, kind: str, number: int) -> str:
        """Return an id that no call has."""
        self.has_synthetic_ids = True
        while f"{kind}:{number}" in self._seen:
            number += 1
        return f"{kind}:{number}"
