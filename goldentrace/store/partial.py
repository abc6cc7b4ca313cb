"""Accepting some changes of a run and not the others: a golden between the old one and the proposed one.

Both hold the same labels for the same operations, so that a golden can be put together from them, operation by
operation. What comes out is compared with the run once more: exactly the changes that were not accepted must be left.
Where that is not so, the changes hang together and are refused, rather than one being taken in that nobody looked at.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.errors import NotComparableError, Where
from goldentrace.model.change import Change, Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import LooseEvent, Operation
from goldentrace.model.profile import Profile
from goldentrace.store.layout import Layout
from goldentrace.store.pending import PendingRecord, sha256_of
from goldentrace.store.sides import Terms, compare_sides, read_side

IsTaken = Callable[[Change], bool]
ORDER: frozenset[str] = frozenset({"GT104", "GT106", "GT107"})
"""Changes of where operations stand, not of what they are."""


def accept_part(
    record: PendingRecord, golden: Path, candidate: Path, terms: Terms, is_taken: IsTaken, layout: Layout
) -> tuple[bytes, int]:
    """Return the bytes of the golden with some changes taken in, and how many changes are left.

    layout: what shows paths and proposes commands. Raises: NotComparableError where the run is no longer the one that
    was compared, nothing is taken, or the changes cannot be told apart.
    """
    look = layout.command("diff", record.scenario)
    if sha256_of(candidate) != record.candidate_sha256:
        raise NotComparableError(
            f"the run that the pending golden of {record.scenario} was made of is gone or another one",
            where=Where(layout.shown(candidate)),
            next_step=f"compare again: {look}",
        )
    left, right = read_side(golden), read_side(candidate)
    comparison, loaded = compare_sides(left, right, terms)
    taken = [change for change in comparison.changes if is_taken(_root(change))]
    kept = [change for change in comparison.changes if not is_taken(_root(change))]
    if not taken:
        raise NotComparableError(
            f"{record.scenario} has no such change",
            next_step=f"look at what it has: {look}",
        )
    data = encode_golden(_Merge(comparison, loaded.profile, taken, kept).run())
    again = compare(read_golden(data, left.path), comparison.candidate, loaded.profile, backoff=terms.backoff)
    if _names(again.changes) != _names(kept):
        raise NotComparableError(
            f"these changes of {record.scenario} cannot be taken in without others",
            next_step=f"accept all of them: {layout.command('accept', record.scenario)}\n"
            "or name more with --code and --kind",
        )
    return data, sum(change.is_root for change in kept)


def _root(change: Change) -> Change:
    while change.caused_by is not None:
        change = change.caused_by
    return change


def _names(changes: list[Change]) -> list[tuple[str, str, tuple[str, ...]]]:
    return sorted((change.code, change.label or "", change.pointers) for change in changes)


class _Merge:
    """One golden out of two: `old`, and `new` with everything taken in."""

    def __init__(self, comparison: Comparison, profile: Profile, taken: list[Change], kept: list[Change]) -> None:
        self.old = comparison.golden
        self.new = rerecord(comparison, profile)
        self.loose = rerecord(msgspec.structs.replace(comparison, changes=taken), profile).loose
        self.taken_codes = {change.code for change in taken}
        self.has_old_order = any(change.code in ORDER for change in kept)
        self.before = {operation.label: operation for operation in self.old.operations}
        fresh = _fresh_labels(comparison, self.new, self.before)
        self.stays: set[str] = set()
        self.left_out: set[str] = set()
        for change in kept:
            if change.golden_index is not None and change.code not in ORDER:
                self.stays.add(self.old.operations[change.golden_index].label)
            if change.code in ("GT102", "GT105") and change.candidate_index in fresh:
                self.left_out.add(fresh[change.candidate_index])

    def run(self) -> NormalTrace:
        """Return the golden in between."""
        sequence = [
            self._chosen(operation) for operation in self.new.operations if operation.label not in self.left_out
        ]
        if self.has_old_order:
            sequence = self._in_old_order(sequence)
        for index, operation in enumerate(self.old.operations):
            if operation.label in self.stays and operation.label not in {one.label for one in sequence}:
                self._insert(sequence, index)
        known = {operation.label for operation in sequence}
        return msgspec.structs.replace(
            self.new,
            operations=[msgspec.structs.replace(one, uses=_known(one.uses, known)) for one in sequence],
            loose=self._placed(sequence),
            outcome=self.new.outcome if "GT501" in self.taken_codes else self.old.outcome,
            stop_reason=self.new.stop_reason if "GT502" in self.taken_codes else self.old.stop_reason,
        )

    def _chosen(self, new: Operation) -> Operation:
        """An operation as it is to stand: the old one where a change of it is not taken in."""
        old = self.before.get(new.label)
        if old is None:
            return new
        source = old if new.label in self.stays else new
        place = old if self.has_old_order else new
        return msgspec.structs.replace(source, turn=place.turn, batch=place.batch)

    def _in_old_order(self, sequence: list[Operation]) -> list[Operation]:
        """The operations of both goldens as the old one has them, each added one behind the one that it follows."""
        order = {operation.label: number for number, operation in enumerate(self.old.operations)}
        sorted_ones = sorted((o for o in sequence if o.label in order), key=lambda o: order[o.label])
        for number, operation in enumerate(sequence):
            if operation.label not in order:
                labels = [one.label for one in sorted_ones]
                before = next((o.label for o in reversed(sequence[:number]) if o.label in labels), None)
                at = 0 if before is None else labels.index(before) + 1
                turn = max((one.turn or 0 for one in sorted_ones), default=0) + 1
                sorted_ones.insert(at, msgspec.structs.replace(operation, turn=turn if operation.turn else None))
        return sorted_ones

    def _insert(self, sequence: list[Operation], index: int) -> None:
        """Put an operation that the run lacks behind the one that it followed, in that one's turn if it shared it."""
        operation = self.old.operations[index]
        at, turn = 0, None
        places = {one.label: number for number, one in enumerate(sequence)}
        for neighbour in self.old.operations[:index][::-1]:
            if neighbour.label in places:
                at = places[neighbour.label] + 1
                if neighbour.turn == operation.turn:
                    turn = sequence[at - 1].turn
                break
        if turn is None and operation.turn is not None:
            turn = max((one.turn or 0 for one in sequence), default=0) + 1  # another than its neighbours': written so
        sequence.insert(at, msgspec.structs.replace(operation, turn=turn))

    def _placed(self, sequence: list[Operation]) -> list[LooseEvent]:
        """The events of no call, behind the operations that they followed."""
        places = {operation.label: number for number, operation in enumerate(sequence)}
        events: list[LooseEvent] = []
        for event in self.loose:
            labels = [operation.label for operation in self.new.operations[: event.position]]
            last = next((label for label in reversed(labels) if label in places), None)
            events.append(msgspec.structs.replace(event, position=0 if last is None else places[last] + 1))
        return sorted(events, key=lambda event: event.position)


def _known(uses: tuple[str, ...] | None, known: set[str]) -> tuple[str, ...]:
    return tuple(label for label in uses or () if label in known)


def _fresh_labels(comparison: Comparison, new: NormalTrace, before: dict[str, Operation]) -> dict[int, str]:
    """Candidate operation -> its label in the new golden, for those whose label is new: added ones and changed tools.

    Labels of one agent and tool are given in the candidate's order.
    """
    golden, candidate = comparison.golden.operations, comparison.candidate.operations
    to_golden = {c: g for g, c in comparison.pairs if g is not None and c is not None}
    waiting: dict[tuple[str, str], list[str]] = {}
    for operation in new.operations:
        if operation.label not in before:
            waiting.setdefault((operation.agent, operation.tool_name), []).append(operation.label)
    found: dict[int, str] = {}
    for c, operation in enumerate(candidate):
        place = (operation.agent, operation.tool_name)
        old = golden[to_golden[c]] if c in to_golden else None
        if (old is None or (old.agent, old.tool_name) != place) and waiting.get(place):
            found[c] = waiting[place].pop(0)
    return found
