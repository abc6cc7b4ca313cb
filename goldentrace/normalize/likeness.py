"""Do two calls ask for the same? What joins attempts where no source says so.

Ids that neither a result nor a message held before are erased: a nonce per attempt must not hide a retry, and another
entity must not become one.
"""

from typing import Any

from goldentrace.model.event import ToolCall
from goldentrace.model.trace import Trace
from goldentrace.normalize.ids import id_values
from goldentrace.normalize.leaves import LeafReader, Mixed, Moment
from goldentrace.normalize.offsets import wall_ms
from goldentrace.normalize.payloads import flatten_call
from goldentrace.normalize.text import Token

RUN_WITHIN_MS = 24 * 3_600_000
"""A clock value this near to the start of the trace is one of the run itself, and differs between attempts."""


class ArgumentLikeness:
    """Compares the arguments of two calls of one trace. given: ids that messages or inputs held."""

    def __init__(self, trace: Trace, reader: LeafReader, given: dict[str, int]) -> None:
        self._trace = trace
        self._reader = reader
        self._given = given
        self._held: set[str] = set()
        self._held_until = 0

    def is_same(self, earlier: ToolCall, later: ToolCall, index: int) -> bool:
        """Equal leaves, where ids that neither a result nor a message held before `index` are erased."""
        if bytes(earlier.args) == bytes(later.args) and earlier.args_raw == later.args_raw:
            return True
        first, second = (flatten_call(self._reader, call, None).leaves for call in (earlier, later))
        first.pop("#idempotency_key", None)
        second.pop("#idempotency_key", None)
        if first.keys() != second.keys():
            return False
        return all(self._same_leaf(first[pointer], second[pointer], index) for pointer in first)

    def _same_leaf(self, first: Any, second: Any, index: int) -> bool:
        if first == second:
            return True
        if not (isinstance(first, Mixed) and isinstance(second, Mixed)) or len(first.segments) != len(second.segments):
            return (
                isinstance(first, Moment)
                and isinstance(second, Moment)
                and self._is_clock(first)
                and self._is_clock(second)
            )
        for one, other in zip(first.segments, second.segments, strict=True):
            if one == other:
                continue
            if isinstance(one, str) or isinstance(other, str) or one.kind != other.kind:
                return False
            if one.value != other.value and (self._has_source(one, index) or self._has_source(other, index)):
                return False
        return True

    def _is_clock(self, moment: Moment) -> bool:
        start = wall_ms(self._trace.start)
        return start is not None and abs(moment.at_ms - start) < RUN_WITHIN_MS

    def _has_source(self, token: Token, index: int) -> bool:
        for event in self._trace.events[self._held_until : index]:
            result = getattr(event, "result", None)
            if result is not None:
                self._held |= id_values(bytes(result))
        self._held_until = max(self._held_until, index)
        return token.value in self._held or token.value in self._given
