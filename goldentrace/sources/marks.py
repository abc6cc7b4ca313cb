"""What makes an item of a conversation the same one when a later request sends it again: its call id, else its content.

Clients give calls an id where the model's response had none, so an item without an id equals one with an id whose
content is the same. Must not know any dialect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from goldentrace.codec.canonical import JsonError, canonical, decode
from goldentrace.model.event import ABSENT
from goldentrace.sources.fields import read_arguments
from goldentrace.sources.transcript import Answered, Called, Item, Said


@dataclass(frozen=True, slots=True)
class Mark:
    """kind: said, call or result; call_id: as the item has it; content: comparable, white space of texts aside."""

    kind: str
    call_id: str | None
    content: tuple[Any, ...]

    @property
    def is_system(self) -> bool:
        return self.kind == "said" and self.content[0] == "system"

    @property
    def key(self) -> tuple[Any, ...]:
        """What to remember it by."""
        return (self.kind, self.call_id) if self.call_id is not None else (self.kind, *self.content)

    def is_same(self, other: "Mark") -> bool:
        """Whether both are one item."""
        if self.kind != other.kind:
            return False
        if self.call_id is not None and other.call_id is not None:
            return self.call_id == other.call_id
        return self.content == other.content


def mark_of(item: Item) -> Mark | None:
    """Return the mark of an item, None for one that says nothing about which conversation it is."""
    if isinstance(item, Said):
        role = "system" if item.role == "developer" else item.role
        return Mark("said", None, (role, "".join(item.text.split())))
    if isinstance(item, Called):
        args = item.args if item.args_text is None else read_arguments(item.args_text)[0]
        return Mark("call", item.call_id, (item.tool_name, _digest(args)))
    if isinstance(item, Answered):
        return Mark("result", item.call_id, (_digest(item.value),))
    return None


def marks_of(items: Iterable[Item]) -> list[Mark]:
    """Return the marks of those items that have one."""
    return [mark for item in items if (mark := mark_of(item)) is not None]


def begins_with(told: Sequence[Mark], history: Sequence[Mark]) -> bool:
    """Whether `told` is the history and perhaps more."""
    return len(told) >= len(history) and all(a.is_same(b) for a, b in zip(history, told, strict=False))


def opening_of(told: Iterable[Mark]) -> tuple[Any, ...]:
    """Return the first thing that is no system text: it tells most conversations apart."""
    return next(((mark.kind, *mark.content) for mark in told if not mark.is_system), ())


def _digest(value: Any) -> bytes:
    if value is ABSENT or value == ABSENT:
        return b""
    try:
        return canonical(decode(value) if isinstance(value, Raw) else value)
    except JsonError:
        return b"?"
