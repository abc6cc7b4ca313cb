"""Calls that failed and may be tried again, found by what they ask for.

A run may fail a thousand calls and then make a thousand others. Asking each of the others whether it is the next
attempt of each that failed took 13 s at 2,000; here a call finds those that ask for the same by a key. What an id
counts for may change while the trace is read (a result may come to hold it), so a key is made anew when that happens to
one of its ids. This module must not look into values: the keys are given to it.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from goldentrace.model.event import ToolCall

if TYPE_CHECKING:
    from goldentrace.normalize.operations import Group

Place: TypeAlias = tuple[int | None, str, str | int | None, int]
"""Turn, agent and batch of a call, and the identity of the operation that it ran within."""


class Likeness(Protocol):
    """What tells calls of one tool and agent that ask for the same."""

    def shape(self, call: ToolCall) -> Hashable:
        """Return what must be equal in any case."""

    def sources(self, call: ToolCall) -> tuple[str, ...]:
        """Return the ids of a call, which must be equal too as soon as something in the trace held one of them."""

    def known_until(self, index: int) -> Iterable[str]:
        """Return the ids that events before an index were the first to hold, since the last time."""

    def is_known(self, value: str) -> bool:
        """Did anything in the trace hold that id, as far as it was read?"""


class _Entry:
    """One failed call: its number in the order of failures, and the key that it is found by."""

    __slots__ = ("call", "group", "key", "number", "place")

    def __init__(self, group: "Group", number: int) -> None:
        self.group = group
        self.call = group.last.call
        self.number = number
        self.place = place_of(group)
        self.key: Hashable = None


class _Shapes:
    """The failed calls of one tool and agent: `waiting` have no key yet, because nobody asked."""

    __slots__ = ("by_key", "shapes", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[int, _Entry] = {}
        self.by_key: dict[Hashable, dict[Place, dict[int, _Entry]]] = {}
        self.shapes: set[Hashable] = set()


class FailedCalls:
    """The failed calls that a later call may join, in the order in which they failed."""

    def __init__(self, likeness: Likeness) -> None:
        self._likeness = likeness
        self._count = 0
        self.entries: dict[int, _Entry] = {}
        """By identity of the operation; empty where no call failed, which is all that most calls need to know."""
        self._of_tool: dict[tuple[str, str], _Shapes] = {}
        self._holding: dict[str, dict[int, _Entry]] = {}
        self._by_closer: dict[int, dict[int, tuple[Group | None, dict[Place, dict[int, _Entry]]]]] = {}
        """By the operation that they ran within: what runs within another call ends none of its series."""

    def clear(self) -> None:
        """Forget them all: the user spoke."""
        self.entries.clear()
        self._of_tool.clear()
        self._holding.clear()
        self._by_closer.clear()

    def add(self, group: "Group") -> None:
        """Take in an operation whose last attempt failed."""
        self._count += 1
        entry = self.entries[id(group)] = _Entry(group, self._count)
        shapes = self._of_tool.setdefault((entry.call.tool_name, entry.call.agent), _Shapes())
        shapes.waiting[entry.number] = entry
        self._file(entry, group.closer)

    def discard(self, group: "Group") -> None:
        """Forget one: its next attempt began."""
        entry = self.entries.get(id(group))
        if entry is not None:
            number = _number(group.closer)
            siblings = self._by_closer[id(group.parent)]
            _, places = siblings[number]
            _take_out(places, entry)
            if not places:
                del siblings[number]
            self._drop(entry)

    def find(self, call: ToolCall, turn: int | None, parent: "Group | None", index: int) -> "Group | None":
        """Return the operation that failed last of those whose next attempt a call may be. index: of its event."""
        shapes = self._of_tool.get((call.tool_name, call.agent))
        if shapes is None:
            return None
        self._make_keys(shapes)
        if self._likeness.shape(call) not in shapes.shapes:
            return None
        if self._likeness.sources(call):
            self._learn(index)
        own = (turn, call.agent, call.batch, id(parent)) if call.batch is not None else None
        latest: _Entry | None = None
        for place, entries in shapes.by_key.get(self._key(call), {}).items():
            if place == own or place[-1] != id(parent):
                continue  # proposed together: twins, and no retry; or within another call
            for number in reversed(entries):
                if latest is not None and number < latest.number:
                    break
                closer = entries[number].group.closer
                if closer is None or is_beside(closer, call, turn):
                    latest = entries[number]
                    break
        return None if latest is None else latest.group

    def close(self, new: "Group") -> None:
        """A call of a later batch ends a series of attempts, except for the calls of that same batch: a batch has no
        order, and one of them may be the next attempt."""
        call = new.first.call
        own = place_of(new) if call.batch is not None else None
        siblings = self._by_closer.get(id(new.parent), {})
        for number, (closer, places) in list(siblings.items()):
            if closer is not None and is_beside(closer, call, new.turn):
                continue
            for place in [place for place in places if place != own]:
                for entry in places.pop(place).values():
                    if closer is None:
                        entry.group.closer = new
                        self._file(entry, new)
                    else:
                        self._drop(entry)
            if not places:
                del siblings[number]

    def _file(self, entry: _Entry, closer: "Group | None") -> None:
        siblings = self._by_closer.setdefault(entry.place[-1], {})
        _, places = siblings.setdefault(_number(closer), (closer, {}))
        places.setdefault(entry.place, {})[entry.number] = entry

    def _drop(self, entry: _Entry) -> None:
        del self.entries[id(entry.group)]
        shapes = self._of_tool[entry.call.tool_name, entry.call.agent]
        if shapes.waiting.pop(entry.number, None) is None:
            self._unkey(shapes, entry)
            for value in self._likeness.sources(entry.call):
                self._holding.get(value, {}).pop(entry.number, None)

    def _make_keys(self, shapes: _Shapes) -> None:
        for entry in shapes.waiting.values():
            shapes.shapes.add(self._likeness.shape(entry.call))
            self._enkey(shapes, entry)
            for value in self._likeness.sources(entry.call):
                if not self._likeness.is_known(value):
                    self._holding.setdefault(value, {})[entry.number] = entry
        shapes.waiting.clear()

    def _learn(self, index: int) -> None:
        """Key those anew that hold an id which something in the trace held since."""
        for value in self._likeness.known_until(index):
            for entry in self._holding.pop(value, {}).values():
                shapes = self._of_tool[entry.call.tool_name, entry.call.agent]
                self._unkey(shapes, entry)
                self._enkey(shapes, entry)

    def _enkey(self, shapes: _Shapes, entry: _Entry) -> None:
        entry.key = self._key(entry.call)
        # in order: entries get keys as they came, and those that hold one id get another one together
        shapes.by_key.setdefault(entry.key, {}).setdefault(entry.place, {})[entry.number] = entry

    def _unkey(self, shapes: _Shapes, entry: _Entry) -> None:
        places = shapes.by_key[entry.key]
        _take_out(places, entry)
        if not places:
            del shapes.by_key[entry.key]

    def _key(self, call: ToolCall) -> Hashable:
        likeness = self._likeness
        known = tuple([value if likeness.is_known(value) else None for value in likeness.sources(call)])
        return likeness.shape(call), known


def _take_out(places: dict[Place, dict[int, _Entry]], entry: _Entry) -> None:
    entries = places[entry.place]
    del entries[entry.number]
    if not entries:
        del places[entry.place]


def place_of(group: "Group") -> Place:
    """Return the place that the calls of one batch share."""
    return (group.turn, group.first.call.agent, group.first.call.batch, id(group.parent))


def is_beside(one: "Group", call: ToolCall, turn: int | None) -> bool:
    """Is a call of the batch of another one, as far as can be told while it starts?"""
    if one.turn != turn or one.first.call.agent != call.agent:
        return False
    if one.first.call.batch is not None or call.batch is not None:
        return one.first.call.batch == call.batch
    return one.last.result is None


def _number(closer: "Group | None") -> int:
    return 0 if closer is None else id(closer)
