"""The ledger of one run: what took effect, and the idempotency store that keeps it from taking effect twice.

Counting is atomic because one event loop owns it. This module must not know HTTP: statuses come from the plan.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from goldentrace.faults.answer import Answer
from goldentrace.faults.template import MISSING, look_up


@dataclass(frozen=True, slots=True)
class EffectEntry:
    """One effect. n: which call of the tool made it (1-based)."""

    name: str
    value: Any
    key: str | None
    tool: str
    n: int


@dataclass(slots=True)
class Record:
    """One operation that took effect."""

    tool: str
    key: str | None
    answer: Answer
    arguments: Any


class Entry:
    """What the idempotency store knows of a key: in flight until `answer` is set. waiting: called once it is
    settled."""

    __slots__ = ("answer", "digest", "is_settled", "waiting")

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.answer: Answer | None = None
        self.is_settled = False
        self.waiting: list[Callable[[], None]] = []


@dataclass(slots=True)
class Ledger:
    """records and effects in the order of their commits."""

    records: list[Record] = field(default_factory=list)
    effects: list[EffectEntry] = field(default_factory=list)
    _entries: dict[tuple[str, str], Entry] = field(default_factory=dict)

    def find_key(self, tool: str, key: str) -> Entry | None:
        """Return what is known of an idempotency key of a tool."""
        return self._entries.get((tool, key))

    def open_key(self, tool: str, key: str, digest: str) -> Entry:
        """Note that a call with this key is under way."""
        entry = self._entries[tool, key] = Entry(digest)
        return entry

    def settle_key(self, tool: str, key: str, entry: Entry, answer: Answer | None) -> None:
        """End a call with this key. answer: what a repetition gets; None forgets the key, so that a repetition is
        executed."""
        if entry.is_settled:
            return
        entry.is_settled = True
        entry.answer = answer
        if answer is None and self._entries.get((tool, key)) is entry:
            del self._entries[tool, key]
        for wake in entry.waiting:
            wake()
        entry.waiting.clear()

    def commit(self, record: Record, effects: list[EffectEntry]) -> None:
        """Write down that an operation took effect."""
        self.records.append(record)
        self.effects.extend(effects)

    def look_up(self, tool: str, by: tuple[str, ...], arguments: Any) -> Record | None:
        """Return the newest record of a tool that agrees with every given argument of `by`; None without one, or
        without an argument to look up by. `idempotency_key` is the key, every other name a field of the stored
        result."""
        wanted = {
            name: arguments[name] for name in by if isinstance(arguments, dict) and arguments.get(name) is not None
        }
        if not wanted:
            return None
        for record in reversed(self.records):
            if record.tool == tool and all(_stored(record, name) == value for name, value in wanted.items()):
                return record
        return None


def _stored(record: Record, name: str) -> Any:
    if name == "idempotency_key":
        return record.key
    value = look_up(record.answer.value, f"/{name}")
    return None if value is MISSING else value
