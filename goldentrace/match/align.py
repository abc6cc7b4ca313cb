"""Which operation of the golden pairs with which of the candidate.

1. Keys (agent, tool, arguments with placeholders reduced) are aligned with the fewest inserts and deletes, members of a
   batch in the order of their keys; a second pass aligns again with keys extended by what the placeholders refer to and
   by the statuses, and is kept if it leaves fewer differences: equal keys paired blindly gave three errors where one of
   four equal calls was dropped.
2. Where an id has another name in the candidate than in the golden (an earlier call came to hold it), the candidate's
   operation takes the golden's key, and both passes run again.
3. What is left pairs as moved, as changed arguments, as another agent, as another tool, as moved with ids erased.
This module must not say what a difference means.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from goldentrace.match.alignment import (
    Alignment,
    PairKind,
    erased,
    has_references,
    is_alike,
    refers_alike,
    statuses_of,
)
from goldentrace.match.leftovers import pair_leftovers
from goldentrace.match.references import References
from goldentrace.match.sequences import FarAligner, align
from goldentrace.match.siblings import reassign_children, reassign_siblings
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Operation

MAX_RENAMINGS: Final = 3
"""How often keys are taken over and aligned again: an operation's ids may be named by one that was renamed itself."""
MAX_STAND_INS: Final = 20
"""Golden operations that one of the candidate is compared with for taking over a key."""


def align_operations(
    golden: NormalTrace, candidate: NormalTrace, references: References, far: FarAligner | None = None
) -> Alignment:
    """Pair the operations of two traces; `references` is left with the mapping that was found.

    Every golden and every candidate operation is in at most one pair. Deterministic; ties go to the earlier operation.
    """
    aligning = _Aligning(golden, candidate, references, far)
    best = aligning.trial({})
    for _ in range(MAX_RENAMINGS):
        stand_ins = {**best.stand_ins, **aligning.stand_ins(best)}
        if len(stand_ins) == len(best.stand_ins):
            break
        again = aligning.trial(stand_ins)
        if again.differences >= best.differences:
            break
        best = again
    references.to_candidate = dict(best.pairs)
    same = PairKind.SAME
    found = Alignment({g: (c, same) for g, c in best.pairs}, best.is_exact)
    if len(found.pairs) < max(len(golden.operations), len(candidate.operations)):
        pair_leftovers(golden, candidate, references, found)
    for g, c in reassign_children(golden, candidate, {g: c for g, (c, _) in found.pairs.items()}).items():
        found.put(g, c, same)
    references.to_candidate = {g: c for g, (c, _) in found.pairs.items()}
    return found


class _Trial:
    """One alignment by keys and how many differences it leaves. stand_ins: candidate operation -> golden operation of
    which it takes the key."""

    def __init__(
        self, aligning: "_Aligning", pairs: list[tuple[int, int]], stand_ins: dict[int, int], *, is_exact: bool
    ) -> None:
        golden, candidate, references = aligning.golden, aligning.candidate, aligning.references
        self.stand_ins = stand_ins
        self.is_exact = is_exact
        references.to_candidate = dict(pairs)
        self.pairs = reassign_siblings(golden, candidate, references, pairs, stand_ins)
        references.to_candidate = dict(self.pairs)
        self.mismatches = sum(
            not is_alike(golden.operations[g], candidate.operations[c], c, references) for g, c in self.pairs
        )
        unpaired = len(golden.operations) + len(candidate.operations) - 2 * len(self.pairs)
        self.differences = unpaired + self.mismatches


class _Aligning:
    """Aligns keys with the members of each batch in the order of their keys, for a batch has none of its own."""

    def __init__(
        self, golden: NormalTrace, candidate: NormalTrace, references: References, far: FarAligner | None
    ) -> None:
        self.golden, self.candidate = golden, candidate
        self.references = references
        self.far = far
        self.golden_order = _order(golden.operations, {})
        self.candidate_order: Sequence[int] = ()

    def trial(self, stand_ins: dict[int, int]) -> _Trial:
        """Return the better of the two passes."""
        golden, candidate = self.golden.operations, self.candidate.operations
        self.candidate_order = _order(candidate, {c: golden[g] for c, g in stand_ins.items()})
        left: list[Hashable] = [golden[g].key for g in self.golden_order]
        named = {c: golden[g] for c, g in stand_ins.items()}
        right: list[Hashable] = [named.get(c, candidate[c]).key for c in self.candidate_order]
        pairs, is_exact = align(left, right, self.far)
        first = _Trial(self, self._indexes(pairs), stand_ins, is_exact=is_exact)
        if not first.mismatches:
            return first
        pairs = self._extended_pairs(first, left, right)
        second = _Trial(self, self._indexes(pairs), stand_ins, is_exact=is_exact)
        return second if second.differences < first.differences else first

    def _indexes(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Places in the orders to operations, ascending by the golden's."""
        if isinstance(self.golden_order, range) and isinstance(self.candidate_order, range):
            return pairs
        return sorted((self.golden_order[g], self.candidate_order[c]) for g, c in pairs)

    def _extended_pairs(self, first: _Trial, left: list[Hashable], right: list[Hashable]) -> list[tuple[int, int]]:
        """Align by keys extended by what ids refer to and by statuses, then, in the gaps that leaves, by plain keys."""
        self.references.to_candidate = dict(first.pairs)
        to_golden = {c: g for g, c in first.pairs}
        golden, candidate = self.golden.operations, self.candidate.operations
        extended_left = [_extended(golden[g], golden[g], self.references, None) for g in self.golden_order]
        extended_right: list[Hashable] = []
        for c in self.candidate_order:
            g = first.stand_ins.get(c)
            named = candidate[c] if g is None else golden[g]
            extended_right.append(_extended(named, candidate[c], self.references, to_golden if g is None else None))
        anchors, _ = align(extended_left, extended_right, self.far)
        pairs: list[tuple[int, int]] = []
        g_start = c_start = 0
        for g, c in [*anchors, (len(left), len(right))]:
            if g > g_start and c > c_start:
                inner, _ = align(left[g_start:g], right[c_start:c], self.far)
                pairs.extend((g_start + one, c_start + other) for one, other in inner)
            if g < len(left):
                pairs.append((g, c))
            g_start, c_start = g + 1, c + 1
        return pairs

    def stand_ins(self, trial: _Trial) -> dict[int, int]:
        """Unpaired candidate operations -> an unpaired golden one that asks for the same with the same ids, where only
        the place that names an id is another."""
        golden, candidate = self.golden.operations, self.candidate.operations
        done_golden, done_candidate = {g for g, _ in trial.pairs}, {c for _, c in trial.pairs}
        left = [n for n, o in enumerate(golden) if n not in done_golden and has_references(o)]
        right = [n for n, o in enumerate(candidate) if n not in done_candidate and has_references(o)]
        if not left or not right:
            return {}
        self.references.to_candidate = dict(trial.pairs)
        likely: dict[Hashable, list[int]] = {}
        for g in left:
            likely.setdefault(erased(golden[g]), []).append(g)
        found: dict[int, int] = {}
        for c in right:
            for g in likely.get(erased(candidate[c]), ())[:MAX_STAND_INS]:
                if refers_alike(golden[g], candidate[c], c, self.references):
                    found[c] = g
                    break
        return found


def _order(operations: list[Operation], named: Mapping[int, Operation]) -> Sequence[int]:
    """The operations in their order, but those of each batch by agent, tool and key; a range where there is none.

    named: operation -> the one of which it takes the key.
    """
    if all(operation.batch is None for operation in operations):
        return range(len(operations))
    order: list[int] = []
    start = 0
    for end in range(1, len(operations) + 1):
        if end < len(operations) and operations[end].batch is not None and operations[start].is_beside(operations[end]):
            continue
        members = range(start, end)
        order.extend(members if end - start == 1 else sorted(members, key=lambda n: _rank(named.get(n, operations[n]))))
        start = end
    return order


def _rank(operation: Operation) -> tuple[str, str, str]:
    return (operation.agent, operation.tool_name, operation.args_hash or "")


def _extended(
    operation: Operation, ended: Operation, references: References, to_golden: dict[int, int] | None
) -> Hashable:
    """The key with what its ids refer to, and with the statuses of the operation that ended so."""
    if not has_references(operation):
        return (operation.key, statuses_of(ended))
    names = tuple(
        (pointer, references.resolved(leaf, to_golden))
        for pointer, leaf in sorted(operation.args.items())
        if isinstance(leaf, str) and "<" in leaf
    )
    return (operation.key, statuses_of(ended), names)
