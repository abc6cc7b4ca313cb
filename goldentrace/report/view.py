"""Where the changes of one comparison stand among its operations: what a block of text needs to know of its neighbours.

Built only when there is a change to show: it walks all pairs once.
"""

import msgspec

from goldentrace.model.change import Change, Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import LeafMap, Operation
from goldentrace.report.rows import Row, operation_row
from goldentrace.report.values import shown

CONTEXT: int = 3
"""Lines of context before and after a change, as a diff has them."""
_MOVES = ("GT104", "GT106")


class View(msgspec.Struct):
    """One comparison. positions: (golden index, candidate index) -> place in `pairs`; changed: place -> its changes."""

    comparison: Comparison
    by_golden: dict[int, int] = msgspec.field(default_factory=dict)
    by_candidate: dict[int, int] = msgspec.field(default_factory=dict)
    changed: dict[int, list[Change]] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, comparison: Comparison) -> "View":
        view = cls(comparison)
        for place, (golden, candidate) in enumerate(comparison.pairs):
            if golden is not None:
                view.by_golden[golden] = place
            if candidate is not None:
                view.by_candidate[candidate] = place
        for change in comparison.changes:
            at = view.place(change)
            if at is not None:
                view.changed.setdefault(at, []).append(change)
        return view

    def place(self, change: Change) -> int | None:
        """Return the place of a change among the pairs, None for the run as a whole."""
        if change.golden_index is not None:
            return self.by_golden.get(change.golden_index)
        return self.by_candidate.get(change.candidate_index) if change.candidate_index is not None else None

    def place_before(self, change: Change) -> int | None:
        """Return the place of the last call before an event of the run, None where its line tells nothing.

        The golden's line decides where there is one.
        """
        is_golden = change.golden_line is not None
        line = change.golden_line if is_golden else change.candidate_line
        side = self.comparison.golden if is_golden else self.comparison.candidate
        if not line:
            return None
        indexes = self.by_golden if is_golden else self.by_candidate
        before = [n for n, operation in enumerate(side.operations) if 0 < _line(operation) < line]
        return indexes.get(before[-1]) if before else None

    def sides(self, place: int) -> tuple[Operation | None, Operation | None]:
        """Return the operations of both sides at a place."""
        golden, candidate = self.comparison.pairs[place]
        return (
            self.comparison.golden.operations[golden] if golden is not None else None,
            self.comparison.candidate.operations[candidate] if candidate is not None else None,
        )

    def rows(self, place: int, *, is_short: bool = False) -> list[Row]:
        """Return the lines of one place: one, or two where the golden's and the candidate's call are not the same."""
        one, other = self.sides(place)
        changes = self.changed.get(place, [])
        codes = {change.code for change in changes}
        if one is None or other is None:
            only = one or other
            assert only is not None, "a pair has at least one side"
            row = operation_row(only, "-" if other is None else "+", is_short=is_short)
            return [row if other is None else Row(row.symbol, new_name(only), row.offset, row.words)]
        if codes & {"GT105", "GT602"}:
            before, now = operation_row(one, "-", is_short=is_short), operation_row(other, "+", is_short=is_short)
            return [before, Row("+", new_name(other), now.offset, now.words)]
        row = operation_row(other, "~" if changes else " ", is_short=is_short)
        if codes.intersection(_MOVES):
            golden, candidate = self.comparison.pairs[place]
            assert golden is not None
            assert candidate is not None
            status = operation_row(other, ">", is_short=True).words
            return [Row(">", one.label, row.offset, f"{status}  was call {golden + 1}, now call {candidate + 1}")]
        return [Row(row.symbol, one.label, row.offset, row.words)]

    def leaf(self, change: Change, pointer: str) -> tuple[object, object]:
        """Return a leaf of the arguments on both sides: the value where it is known, else as it is written."""
        attempt = change.attempt or 1
        comparison = self.comparison
        if pointer in change.golden_values:
            golden: object = change.golden_values[pointer]
        else:
            golden = _leaf(comparison.golden, change.golden_index, pointer, attempt)
        return (
            golden,
            _leaf(comparison.candidate, change.candidate_index, pointer, attempt),
        )


def _leaf(side: NormalTrace, index: int | None, pointer: str, attempt: int) -> object:
    if index is None:
        return None
    written = _leaves(side.operations[index], attempt).get(pointer)
    if side.payloads is None or attempt > 1 or (isinstance(written, str) and written.startswith("<")):
        return written  # where an id comes from says more than the id, which is another one in each run
    is_there, value = side.payloads.argument(index, pointer)
    return value if is_there else written


def _line(operation: Operation) -> int:
    attempts = operation.attempts
    return attempts[0].call_line if attempts else 0


def _leaves(operation: Operation, attempt: int) -> LeafMap:
    for tried in operation.attempts[1:attempt][::-1]:
        if tried.args is not None:
            return tried.args
    return operation.args


def new_name(operation: Operation) -> str:
    """Return how an operation that the golden does not have is called: its number would be one of the golden's."""
    return f"{operation.label.rpartition('#')[0]} (new)"


def subject(change: Change) -> str:
    """Return what a change is about: a call's label, a new call's tool, or the run."""
    if change.label is None:
        return "the run"
    if change.golden_index is None and change.candidate_index is not None:
        return f"{change.label.rpartition('#')[0]} (new)"
    return change.label


_WITH_VALUES = ("GT101", "GT108", "GT109")
MAX_VALUE_CHARS: int = 60
"""Of each value in a message of one line."""


def full_message(change: Change) -> str:
    """Return the message with the first values that differ, for formats of one line: `…: 4999 -> 49990`."""
    if change.code not in _WITH_VALUES or (change.expected is None and change.actual is None):
        return change.message
    pointer = f"{change.pointers[0]} " if len(change.pointers) > 1 else ""
    return f"{change.message}: {pointer}{_cut(shown(change.expected))} -> {_cut(shown(change.actual))}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 3] + "..."


def short_message(change: Change) -> str:
    """Return the message without the label that stands before it in the heading."""
    for prefix in (f"{change.label}: ", f"{change.tool_name}: ", "the run: "):
        if change.message.startswith(prefix):
            return change.message[len(prefix) :]
    return change.message
