"""What an alignment is, and when two operations are alike. This module must not decide which operations pair."""

from bisect import bisect_left
from collections.abc import Hashable
from enum import Enum
from operator import lt
from typing import Final

import msgspec

from goldentrace.match.references import References, Relation
from goldentrace.model.operation import Operation
from goldentrace.model.placeholder import parse_leaf


class PairKind(Enum):
    """Why two operations are paired."""

    SAME = "same"
    MOVED = "moved"
    ARGUMENTS = "arguments"
    AGENT = "agent"
    TOOL = "tool"
    MOVED_OTHER_IDS = "moved, other ids"


MOVED: Final = PairKind.MOVED
OTHER_IDS: Final = PairKind.MOVED_OTHER_IDS


class Alignment(msgspec.Struct):
    """pairs: golden operation -> (candidate operation, kind); is_exact: is the alignment minimal."""

    pairs: dict[int, tuple[int, PairKind]] = msgspec.field(default_factory=dict)
    is_exact: bool = True
    _settled: list[tuple[int, int]] | None = None

    def put(self, golden: int, candidate: int, kind: PairKind) -> None:
        """Pair two operations."""
        self.pairs[golden] = (candidate, kind)
        self._settled = None

    def settled(self) -> list[tuple[int, int]]:
        """Return the pairs that keep their order, ascending on both sides: the longest chain of those not moved."""
        if self._settled is None:
            self._settled = self._chain()
        return self._settled

    def _chain(self) -> list[tuple[int, int]]:
        kept = sorted([(g, c) for g, (c, kind) in self.pairs.items() if kind is not MOVED and kind is not OTHER_IDS])
        candidates = [c for _, c in kept]
        if all(map(lt, candidates, candidates[1:])):
            return kept
        return _longest_chain(kept)


def is_alike(golden: Operation, candidate: Operation, candidate_index: int, references: References) -> bool:
    """Do two operations of equal key also refer to the same operations and end alike?"""
    return statuses_of(golden) == statuses_of(candidate) and refers_alike(
        golden, candidate, candidate_index, references
    )


def refers_alike(golden: Operation, candidate: Operation, candidate_index: int, references: References) -> bool:
    """Do the arguments of two operations refer to the same operations?"""
    if golden.args is candidate.args or not has_references(golden):
        return True
    for pointer, written in golden.args.items():
        actual = candidate.args.get(pointer)
        if (
            isinstance(written, str)
            and isinstance(actual, str)
            and "<" in written
            and "<secret:" not in written  # what is only tried must not say which secret is which
            and references.relate(written, actual, candidate_index, pointer, 0) is Relation.OTHER_ID
        ):
            return False
    return True


def has_references(operation: Operation) -> bool:
    """Does any argument leaf hold a placeholder?"""
    return any(isinstance(leaf, str) and "<" in leaf for leaf in operation.args.values())


def statuses_of(operation: Operation) -> object:
    """Return how the attempts ended, hashable."""
    steps = operation.steps
    if len(steps) == 1:
        return steps[0].status  # type: ignore[union-attr]
    return tuple(attempt.status for attempt in operation.attempts)


def erased(operation: Operation) -> Hashable:
    """An operation with every placeholder the same."""
    leaves = tuple(
        (pointer, parse_leaf(leaf)[0] if isinstance(leaf, str) else repr(leaf))
        for pointer, leaf in sorted(operation.args.items())
    )
    return (operation.agent, operation.tool_name, leaves)


def _longest_chain(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence that ascends on both sides, by patience sorting."""
    tops: list[int] = []
    holders: list[int] = []
    before: list[int] = []
    for index, (_, c) in enumerate(pairs):
        place = bisect_left(tops, c)
        before.append(holders[place - 1] if place else -1)
        if place == len(tops):
            tops.append(c)
            holders.append(index)
        else:
            tops[place], holders[place] = c, index
    chain: list[tuple[int, int]] = []
    index = holders[-1] if holders else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]
