"""The events of no call: decisions about the run, limits, effects, each with the number of operations before it."""

from collections.abc import Iterator
from typing import Any

from goldentrace.codec.canonical import decode
from goldentrace.model.event import MAIN_AGENT, Decision, Effect, Limit
from goldentrace.model.operation import LeafMap, LooseEvent
from goldentrace.model.trace import Trace
from goldentrace.normalize.arguments import ArgumentWriter
from goldentrace.normalize.ids import values_of
from goldentrace.normalize.leaves import Flat, LeafReader, Mixed, Moment
from goldentrace.normalize.operations import Grouped
from goldentrace.normalize.provenance import NewIds


def loose_events(trace: Trace, grouped: Grouped, members: list[int], writer: ArgumentWriter) -> list[LooseEvent]:
    """Return them in order. members: number of the canonical unit of each operation, in canonical order."""
    starts = sorted(member.first.call_index for member in grouped.groups)
    found: list[LooseEvent] = []
    position = 0
    for index in grouped.loose:
        while position < len(starts) and starts[position] < index:
            position += 1
        place = _unit_end(members, position)
        event = trace.events[index]
        fields: dict[str, Any]
        if isinstance(event, Decision):
            if event.decision == "finish":
                continue
            fields = {
                "decision": event.decision, "by": event.by, "reason": writer.reader.words(event.reason),
                "delay_ms": event.delay_ms, "inferred": event.inferred or None,
            }  # fmt: skip
            kind = "decision"
        elif isinstance(event, Limit):
            fields, kind = {"limit": event.limit, "max": event.max}, "limit"
        elif isinstance(event, Effect):
            fields, kind = _effect(event, index, writer), "effect"
        else:
            continue
        if event.agent != MAIN_AGENT:
            fields["agent"] = event.agent
        kept = {name: value for name, value in fields.items() if value is not None}
        line = trace.line_of(index)
        found.append(LooseEvent(kind=kind, position=place, fields=kept, index=index, line=line))  # type: ignore[arg-type]
    return found


def _unit_end(members: list[int], position: int) -> int:
    """A position inside a batch is moved behind it, because arrival inside a batch is no order."""
    while 0 < position < len(members) and members[position] == members[position - 1]:
        position += 1
    return position


def _effect(event: Effect, index: int, writer: ArgumentWriter) -> dict[str, Any]:
    """An effect keeps its name; its key and value as leaves, ids in them by provenance."""
    fields: dict[str, Any] = {"name": event.name}
    for name, flat in _flattened(event, writer.reader):
        written: LeafMap = {}
        for pointer, leaf in flat.leaves.items():
            if isinstance(leaf, Mixed):
                written[pointer], _, ids = writer.name_mixed(leaf, pointer, NewIds(), None)
                writer.ids.setdefault(index, {})[name + pointer] = ids
            elif isinstance(leaf, Moment):
                written[pointer] = writer.name_moment(leaf, event, pointer, None)
            else:
                written[pointer] = leaf
        fields[name] = written[""] if set(written) == {""} else written
    return fields


def effect_ids(event: Effect, reader: LeafReader) -> set[str]:
    """Return the ids in the key and the value of an effect, in comparable form."""
    leaves = [flat.leaves[pointer] for _, flat in _flattened(event, reader) for pointer in flat.specials]
    return {value for leaf in leaves if isinstance(leaf, Mixed) for value in values_of(leaf.segments)}


def _flattened(event: Effect, reader: LeafReader) -> Iterator[tuple[str, Flat]]:
    """The leaves of its key and of its value, those that are there."""
    if event.key is not None:
        yield "key", reader.flatten(event.key)
    if bytes(event.value):
        yield "value", reader.flatten(decode(event.value))
