"""Do two calls ask for the same? What joins attempts where no source says so.

Ids that neither a result nor a message held before are erased: a nonce per attempt must not hide a retry, and another
entity must not become one.
"""

from collections.abc import Hashable, Iterator
from typing import Any

from goldentrace.codec.canonical import JsonError
from goldentrace.model.event import ToolCall
from goldentrace.model.trace import Trace
from goldentrace.normalize.ids import id_values
from goldentrace.normalize.leaves import LeafReader, Mixed, Moment
from goldentrace.normalize.offsets import wall_ms
from goldentrace.normalize.payloads import flatten_call

RUN_WITHIN_MS = 24 * 3_600_000
"""A clock value this near to the start of the trace is one of the run itself, and differs between attempts."""


class ArgumentLikeness:
    """Compares the arguments of the calls of one trace, as `normalize.failed.Likeness`. given: ids that messages or
    inputs held."""

    def __init__(self, trace: Trace, reader: LeafReader, given: dict[str, int]) -> None:
        self._trace = trace
        self._reader = reader
        self._given = given
        self._held: set[str] = set()
        self._held_until = 0
        self._start_ms = wall_ms(trace.start)
        self._seen: dict[int, tuple[Hashable, tuple[str, ...]]] = {}

    def shape(self, call: ToolCall) -> Hashable:
        """Return the arguments with their ids by kind only, and the times of the run as one."""
        return self._of(call)[0]

    def sources(self, call: ToolCall) -> tuple[str, ...]:
        """Return the ids of the arguments, in the order of their pointers."""
        return self._of(call)[1]

    def known_until(self, index: int) -> Iterator[str]:
        """Yield the ids that results before an index were the first to hold, since the last time."""
        for event in self._trace.events[self._held_until : index]:
            result = getattr(event, "result", None)
            if result is not None:
                new = id_values(bytes(result)) - self._held
                self._held |= new
                yield from new
        self._held_until = max(self._held_until, index)

    def is_known(self, value: str) -> bool:
        """Did a result, as far as they were read, or a message hold it?"""
        return value in self._held or value in self._given

    def _of(self, call: ToolCall) -> tuple[Hashable, tuple[str, ...]]:
        found = self._seen.get(id(call))
        if found is None:
            found = self._seen[id(call)] = self._read(call)
        return found

    def _read(self, call: ToolCall) -> tuple[Hashable, tuple[str, ...]]:
        try:
            leaves = flatten_call(self._reader, call, None).leaves
        except JsonError:  # said where the arguments are read
            return (bytes(call.args), call.args_raw), ()
        leaves.pop("#idempotency_key", None)
        values: list[str] = []
        shape: list[Hashable] = []
        for pointer in sorted(leaves):
            leaf = leaves[pointer]
            if isinstance(leaf, Mixed):
                shape.append(
                    (pointer, tuple([part if isinstance(part, str) else (part.kind,) for part in leaf.segments]))
                )
                values += [part.value for part in leaf.segments if not isinstance(part, str)]
            elif isinstance(leaf, Moment):
                is_now = self._start_ms is not None and abs(leaf.at_ms - self._start_ms) < RUN_WITHIN_MS
                shape.append((pointer, "now" if is_now else (*leaf[:1], _frozen(leaf.written), *leaf[2:]), "moment"))
            else:
                shape.append((pointer, _frozen(leaf)))
        return tuple(shape), tuple(values)


def _frozen(leaf: Any) -> Hashable:
    """A written leaf as something that can be looked up."""
    return ("value", leaf["value"]) if isinstance(leaf, dict) else leaf
