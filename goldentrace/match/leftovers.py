"""Pairs what the alignment of keys left over: as moved, as changed arguments, as another agent, as another tool, as
moved with ids erased. In place means between the same two operations that are paired by then.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeAlias

from goldentrace.match.alignment import Alignment, PairKind, erased, has_references, is_alike
from goldentrace.match.references import References, Relation
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Operation

MAX_SCORED: Final = 4_000
"""Candidates for one gap's changed arguments that are compared leaf by leaf, golden times candidate; beyond it position
alone decides, so that two unrelated runs cost no more than linear time."""

Key: TypeAlias = Callable[[Operation], Hashable]


def pair_leftovers(golden: NormalTrace, candidate: NormalTrace, references: References, found: Alignment) -> None:
    """Add the pairs to an alignment by keys."""
    _Leftovers(golden, candidate, references, found).pair()


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
        self.anchors: tuple[list[int], list[int]] = ([], [])

    def pair(self) -> None:
        self._pair_equal(PairKind.MOVED, lambda operation: operation.key)
        paired = -1
        for kind, key in _IN_PLACE:
            if not self.removed or not self.added:
                break
            if len(self.found.pairs) != paired:
                paired = len(self.found.pairs)
                settled = self.found.settled()
                self.anchors = [g for g, _ in settled], [c for _, c in settled]
            self._pair_in_gaps(kind, key)
            self._pair_in_batches(kind, key)
        self._pair_equal(PairKind.MOVED_OTHER_IDS, erased)

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
        golden, candidate = self.anchors
        self._pair_grouped(
            kind,
            [((bisect_left(golden, g), key(self.golden.operations[g])), g) for g in self.removed],
            [((bisect_left(candidate, c), key(self.candidate.operations[c])), c) for c in self.added],
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
        if kind is PairKind.AGENT:
            self._pair_in_turns({now: before for (now, _), (before, _) in linked.items() if now is not None}, key)

    def _pair_in_turns(self, turns: dict[int, int | None], key: Key) -> None:
        """A member of a batch that another agent calls now has left the batch, but not the turn."""
        golden = [(self.golden.operations[g], g) for g in self.removed]
        candidate = [(self.candidate.operations[c], c) for c in self.added]
        self._pair_grouped(
            PairKind.AGENT,
            [((o.turn, key(o)), g) for o, g in golden if o.batch is not None],
            [((turns[o.turn], key(o)), c) for o, c in candidate if o.turn in turns],
        )

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


_IN_PLACE: Final[tuple[tuple[PairKind, Key], ...]] = (
    (PairKind.ARGUMENTS, lambda operation: (operation.agent, operation.tool_name)),
    (PairKind.AGENT, lambda operation: (operation.tool_name, operation.args_hash)),
    (PairKind.TOOL, lambda operation: (operation.agent, operation.args_hash)),
    (PairKind.TOOL, lambda operation: operation.agent),
)
"""What pairs operations at the same place, in this order."""
