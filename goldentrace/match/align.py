"""Which operation of the golden pairs with which of the candidate.

1. Keys (agent, tool, arguments with placeholders reduced) are aligned with the fewest inserts and deletes; a second
pass
   aligns again with keys extended by what the placeholders refer to and by the statuses, and is kept if it leaves fewer
   differences: equal keys paired blindly gave three errors where one of four equal calls was dropped.
2. Where an id has another name in the candidate than in the golden (an earlier call came to hold it), the candidate's
   operation takes the golden's key, and both passes run again.
3. What is left pairs as moved, as changed arguments, as another agent, as another tool, as moved with ids erased.
This module must not say what a difference means.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Final, TypeAlias

from goldentrace.match.references import References, Relation
from goldentrace.match.sequences import FarAligner, align
from goldentrace.match.siblings import reassign_children, reassign_siblings
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Operation
from goldentrace.model.placeholder import parse_leaf

MAX_SCORED: Final = 4_000
"""Candidates for one gap's changed arguments that are compared leaf by leaf, golden times candidate; beyond it position
alone decides, so that two unrelated runs cost no more than linear time."""

MAX_RENAMINGS: Final = 3
"""How often keys are taken over and aligned again: an operation's ids may be named by one that was renamed itself."""
MAX_STAND_INS: Final = 20
"""Golden operations that one of the candidate is compared with for taking over a key."""

Key: TypeAlias = Callable[[Operation], Hashable]


class PairKind(Enum):
    """Why two operations are paired."""

    SAME = "same"
    MOVED = "moved"
    ARGUMENTS = "arguments"
    AGENT = "agent"
    TOOL = "tool"
    MOVED_OTHER_IDS = "moved, other ids"


_MOVES: Final = frozenset({PairKind.MOVED, PairKind.MOVED_OTHER_IDS})


@dataclass(slots=True)
class Alignment:
    """pairs: golden operation -> (candidate operation, kind); is_exact: is the alignment minimal."""

    pairs: dict[int, tuple[int, PairKind]] = field(default_factory=dict)
    is_exact: bool = True

    def put(self, golden: int, candidate: int, kind: PairKind) -> None:
        self.pairs[golden] = (candidate, kind)

    def settled(self) -> list[tuple[int, int]]:
        """Return the pairs that keep their order, ascending on both sides: the longest chain of those not moved."""
        kept = sorted((g, c) for g, (c, kind) in self.pairs.items() if kind not in _MOVES)
        if all(one[1] < other[1] for one, other in pairwise(kept)):
            return kept
        return _longest_chain(kept)


def align_operations(
    golden: NormalTrace, candidate: NormalTrace, references: References, far: FarAligner | None = None
) -> Alignment:
    """Pair the operations of two traces; `references` is left with the mapping that was found.

    Every golden and every candidate operation is in at most one pair. Deterministic; ties go to the earlier operation.
    """
    best = _best_trial(golden, candidate, references, far, {})
    for _ in range(MAX_RENAMINGS):
        stand_ins = {**best.stand_ins, **_stand_ins(golden, candidate, references, best)}
        if len(stand_ins) == len(best.stand_ins):
            break
        again = _best_trial(golden, candidate, references, far, stand_ins)
        if again.differences >= best.differences:
            break
        best = again
    references.to_candidate = dict(best.pairs)
    same = PairKind.SAME
    found = Alignment({g: (c, same) for g, c in best.pairs}, best.is_exact)
    if len(found.pairs) < max(len(golden.operations), len(candidate.operations)):
        _Leftovers(golden, candidate, references, found).pair()
    for g, c in reassign_children(golden, candidate, {g: c for g, (c, _) in found.pairs.items()}).items():
        found.put(g, c, same)
    references.to_candidate = {g: c for g, (c, _) in found.pairs.items()}
    return found


def _best_trial(
    golden: NormalTrace,
    candidate: NormalTrace,
    references: References,
    far: FarAligner | None,
    stand_ins: dict[int, int],
) -> "_Trial":
    """The better of the two passes. stand_ins: candidate operation -> golden operation of which it takes the key."""
    left: list[Hashable] = [operation.key for operation in golden.operations]
    right: list[Hashable] = [operation.key for operation in candidate.operations]
    for c, g in stand_ins.items():
        right[c] = left[g]
    pairs, is_exact = align(left, right, far)
    first = _Trial(golden, candidate, references, pairs, stand_ins, is_exact=is_exact)
    if not first.mismatches:
        return first
    pairs = _extended_pairs(golden, candidate, references, first, (left, right), far)
    second = _Trial(golden, candidate, references, pairs, stand_ins, is_exact=is_exact)
    return second if second.differences < first.differences else first


class _Trial:
    """One alignment by keys and how many differences it leaves."""

    def __init__(
        self,
        golden: NormalTrace,
        candidate: NormalTrace,
        references: References,
        pairs: list[tuple[int, int]],
        stand_ins: dict[int, int],
        *,
        is_exact: bool,
    ) -> None:
        self.stand_ins = stand_ins
        self.is_exact = is_exact
        references.to_candidate = dict(pairs)
        self.pairs = reassign_siblings(golden, candidate, pairs)
        references.to_candidate = dict(self.pairs)
        self.mismatches = sum(
            not is_alike(golden.operations[g], candidate.operations[c], c, references) for g, c in self.pairs
        )
        unpaired = len(golden.operations) + len(candidate.operations) - 2 * len(self.pairs)
        self.differences = unpaired + self.mismatches


def is_alike(golden: Operation, candidate: Operation, candidate_index: int, references: References) -> bool:
    """Do two operations of equal key also refer to the same operations and end alike?"""
    return _statuses(golden) == _statuses(candidate) and refers_alike(golden, candidate, candidate_index, references)


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
            and references.relate(written, actual, candidate_index, pointer, 0) is Relation.OTHER_ID
        ):
            return False
    return True


def has_references(operation: Operation) -> bool:
    """Does any argument leaf hold a placeholder?"""
    return any(isinstance(leaf, str) and "<" in leaf for leaf in operation.args.values())


def _statuses(operation: Operation) -> object:
    steps = operation.steps
    if len(steps) == 1:
        return steps[0].status  # type: ignore[union-attr]
    return tuple(attempt.status for attempt in operation.attempts)


def _stand_ins(golden: NormalTrace, candidate: NormalTrace, references: References, trial: _Trial) -> dict[int, int]:
    """Unpaired candidate operations -> an unpaired golden one that asks for the same with the same ids, where only the
    place that names an id is another."""
    done_golden, done_candidate = {g for g, _ in trial.pairs}, {c for _, c in trial.pairs}
    left = [n for n, o in enumerate(golden.operations) if n not in done_golden and has_references(o)]
    right = [n for n, o in enumerate(candidate.operations) if n not in done_candidate and has_references(o)]
    if not left or not right:
        return {}
    references.to_candidate = dict(trial.pairs)
    likely: dict[Hashable, list[int]] = {}
    for g in left:
        likely.setdefault(_erased(golden.operations[g]), []).append(g)
    found: dict[int, int] = {}
    for c in right:
        operation = candidate.operations[c]
        for g in likely.get(_erased(operation), ())[:MAX_STAND_INS]:
            if refers_alike(golden.operations[g], operation, c, references):
                found[c] = g
                break
    return found


def _extended_pairs(
    golden: NormalTrace,
    candidate: NormalTrace,
    references: References,
    first: _Trial,
    plain: tuple[list[Hashable], list[Hashable]],
    far: FarAligner | None,
) -> list[tuple[int, int]]:
    """Align by extended keys, then, in the gaps that leaves, by plain keys."""
    references.to_candidate = dict(first.pairs)
    to_golden = {c: g for g, c in first.pairs}
    left = [_extended(operation, operation, references, None) for operation in golden.operations]
    right: list[Hashable] = []
    for c, operation in enumerate(candidate.operations):
        g = first.stand_ins.get(c)
        if g is None:
            right.append(_extended(operation, operation, references, to_golden))
        else:
            right.append(_extended(golden.operations[g], operation, references, None))
    anchors, _ = align(left, right, far)
    pairs: list[tuple[int, int]] = []
    g_start = c_start = 0
    for g, c in [*anchors, (len(left), len(right))]:
        if g > g_start and c > c_start:
            inner, _ = align(plain[0][g_start:g], plain[1][c_start:c], far)
            pairs.extend((g_start + one, c_start + other) for one, other in inner)
        if g < len(left):
            pairs.append((g, c))
        g_start, c_start = g + 1, c + 1
    return pairs


def _extended(
    operation: Operation, ended: Operation, references: References, to_golden: dict[int, int] | None
) -> Hashable:
    """The key with what its ids refer to, and with the statuses of the operation that ended so."""
    if not has_references(operation):
        return (operation.key, _statuses(ended))
    names = tuple(
        (pointer, references.resolved(leaf, to_golden))
        for pointer, leaf in sorted(operation.args.items())
        if isinstance(leaf, str) and "<" in leaf
    )
    return (operation.key, _statuses(ended), names)


class _Leftovers:
    """Pairs what the alignment of keys left over."""

    def __init__(
        self,
        golden: NormalTrace,
        candidate: NormalTrace,
        references: References,
        found: Alignment,
    ) -> None:
        self.golden, self.candidate = golden, candidate
        self.references, self.found = references, found
        taken = {c for c, _ in found.pairs.values()}
        self.removed = [n for n in range(len(golden.operations)) if n not in found.pairs]
        self.added = [n for n in range(len(candidate.operations)) if n not in taken]
        self.golden_gap: list[int] = []
        self.candidate_gap: list[int] = []

    def pair(self) -> None:
        self._pair_equal(PairKind.MOVED, lambda operation: operation.key)
        for kind, key in _IN_PLACE:
            if not self.removed or not self.added:
                break
            anchors = self.found.settled()
            self.golden_gap = _gaps(len(self.golden.operations), [g for g, _ in anchors])
            self.candidate_gap = _gaps(len(self.candidate.operations), [c for _, c in anchors])
            self._pair_in_gaps(kind, key)
            self._pair_in_batches(kind, key)
        self._pair_equal(PairKind.MOVED_OTHER_IDS, _erased)

    def _pair_equal(self, kind: PairKind, key: Key) -> None:
        """Anywhere in the trace, equal by `key`, those with the same references first, then in order."""
        waiting: dict[Hashable, list[int]] = {}
        for c in self.added:
            waiting.setdefault(key(self.candidate.operations[c]), []).append(c)
        taken: list[tuple[int, int]] = []
        for g in self.removed:
            rivals = waiting.get(key(self.golden.operations[g]))
            if not rivals:
                continue
            operation = self.golden.operations[g]
            best = rivals[0]
            if len(rivals) > 1 and len(rivals) <= MAX_SCORED and has_references(operation):
                operations = self.candidate.operations
                best = next((c for c in rivals if is_alike(operation, operations[c], c, self.references)), best)
            rivals.remove(best)
            taken.append((g, best))
        self._take_all(taken, kind)

    def _take_all(self, taken: Iterable[tuple[int, int]], kind: PairKind) -> None:
        done = list(taken)
        for g, c in done:
            self.found.put(g, c, kind)
        gone_golden, gone_candidate = {g for g, _ in done}, {c for _, c in done}
        self.removed = [g for g in self.removed if g not in gone_golden]
        self.added = [c for c in self.added if c not in gone_candidate]

    def _pair_in_gaps(self, kind: PairKind, key: Key) -> None:
        """Between the same two paired operations, equal by `key`: most equal leaves first, then nearest position."""
        self._pair_grouped(
            kind,
            [((self.golden_gap[g], key(self.golden.operations[g])), g) for g in self.removed],
            [((self.candidate_gap[c], key(self.candidate.operations[c])), c) for c in self.added],
        )

    def _pair_in_batches(self, kind: PairKind, key: Key) -> None:
        """In batches that a paired member already links: equal by `key`, whatever the gap, for a batch has no order."""
        linked: dict[tuple[int | None, int], tuple[int | None, int]] = {}
        for g, (c, pair_kind) in self.found.pairs.items():
            one, other = self.golden.operations[g], self.candidate.operations[c]
            if pair_kind is PairKind.SAME and one.batch is not None and other.batch is not None:
                linked.setdefault((other.turn, other.batch), (one.turn, one.batch))
        golden = [
            (((o.turn, o.batch), key(o)), g) for g in self.removed if (o := self.golden.operations[g]).batch is not None
        ]
        candidate = [
            ((linked.get((o.turn, o.batch)), key(o)), c)
            for c in self.added
            if (o := self.candidate.operations[c]).batch is not None
        ]
        self._pair_grouped(kind, golden, candidate)

    def _pair_grouped(
        self, kind: PairKind, golden: Iterable[tuple[Hashable, int]], candidate: Iterable[tuple[Hashable, int]]
    ) -> None:
        rivals: dict[Hashable, list[int]] = {}
        for place, c in candidate:
            rivals.setdefault(place, []).append(c)
        groups: dict[Hashable, list[int]] = {}
        for place, g in golden:
            if place in rivals:
                groups.setdefault(place, []).append(g)
        taken: list[tuple[int, int]] = []
        for place, members in groups.items():
            taken.extend(self._best_pairs(members, rivals[place]))
        self._take_all(taken, kind)

    def _best_pairs(self, golden: list[int], candidate: list[int]) -> list[tuple[int, int]]:
        if len(golden) * len(candidate) > MAX_SCORED or len(golden) == len(candidate) == 1:
            return list(zip(golden, candidate, strict=False))
        ranked = sorted(
            (-self._equal_leaves(g, c), abs(n - m), n, m, g, c)
            for n, g in enumerate(golden)
            for m, c in enumerate(candidate)
        )
        pairs: list[tuple[int, int]] = []
        done: set[tuple[str, int]] = set()
        for *_, g, c in ranked:
            if ("golden", g) not in done and ("candidate", c) not in done:
                done |= {("golden", g), ("candidate", c)}
                pairs.append((g, c))
        return pairs

    def _equal_leaves(self, g: int, c: int) -> int:
        one, other = self.golden.operations[g], self.candidate.operations[c]
        equal = 0
        for pointer, written in one.args.items():
            actual = other.args.get(pointer)
            if isinstance(written, str) and isinstance(actual, str):
                relation = self.references.relate(written, actual, c, pointer, 0)
                equal += relation in (Relation.SAME, Relation.UNSAID)
            else:
                equal += written == actual
        return equal


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


_IN_PLACE: Final[tuple[tuple[PairKind, Key], ...]] = (
    (PairKind.ARGUMENTS, lambda operation: (operation.agent, operation.tool_name)),
    (PairKind.AGENT, lambda operation: (operation.tool_name, operation.args_hash)),
    (PairKind.TOOL, lambda operation: (operation.agent, operation.args_hash)),
    (PairKind.TOOL, lambda operation: operation.agent),
)
"""What pairs operations at the same place, in this order."""


def _gaps(count: int, anchors: Sequence[int]) -> list[int]:
    """For each operation, how many anchors stand before it."""
    gaps: list[int] = []
    passed = 0
    for n in range(count):
        gaps.append(passed)
        if passed < len(anchors) and anchors[passed] == n:
            passed += 1
    return gaps


def _erased(operation: Operation) -> Hashable:
    """An operation with every placeholder the same."""
    leaves = tuple(
        (pointer, parse_leaf(leaf)[0] if isinstance(leaf, str) else repr(leaf))
        for pointer, leaf in sorted(operation.args.items())
    )
    return (operation.agent, operation.tool_name, leaves)
