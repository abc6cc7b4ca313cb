"""Members of a batch that ask for the same: which of them is which.

Calls of equal key in one batch are interchangeable, so the assignment is chosen in which they name the same ids, then
the one that makes later uses equal (the golden's operation whose result later calls read is paired with the candidate's
of which the paired calls read the result), then how they ended, then all that happened to them. Equal calls within
different calls pair by those.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from goldentrace.match.alignment import has_references, refers_alike
from goldentrace.match.references import References
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, Step
from goldentrace.model.placeholder import parse_leaf

MAX_TWINS: Final = 500
"""Members of one batch that ask for the same, up to which each is compared with each; beyond it their order decides."""

Pairs = list[tuple[int, int]]
_Signature = set[tuple[int, str, str]]


def reassign_siblings(
    golden: NormalTrace, candidate: NormalTrace, references: References, pairs: Pairs, stand_ins: Mapping[int, int]
) -> Pairs:
    """Return the pairs with interchangeable members assigned; the order by golden is kept.

    stand_ins: candidate operation -> golden operation of which it takes the key. `references` follows each group, so
    that the members of a later batch are told by what those of an earlier one were found to be.
    """
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, (g, c) in enumerate(pairs):
        one, other = golden.operations[g], candidate.operations[c]
        if one.batch is not None and other.batch is not None:
            key = golden.operations[stand_ins[c]].key if c in stand_ins else other.key
            if key == one.key:
                groups[one.turn, one.batch, other.turn, other.batch, key].append(place)
    twins = [places for places in groups.values() if len(places) > 1]
    if not twins:
        return pairs
    to_golden = {c: g for g, c in pairs}
    golden_uses = _users(golden, {n: n for n in range(len(golden.operations))})
    candidate_uses = _users(candidate, to_golden)
    assigned = list(pairs)
    for places in sorted(twins):
        wanted = [pairs[place][0] for place in places]
        offered = [pairs[place][1] for place in places]
        if len(places) > MAX_TWINS:
            continue
        has_ids = has_references(golden.operations[wanted[0]])
        ranked = sorted(
            (
                has_ids and not refers_alike(golden.operations[g], candidate.operations[c], c, references),
                -len(golden_uses[g] & candidate_uses[c]),
                _differing(golden, g, candidate, c),
                abs(n - m),
                n,
                m,
            )
            for n, g in enumerate(wanted)
            for m, c in enumerate(offered)
        )
        done_golden: set[int] = set()
        done_candidate: set[int] = set()
        for *_, n, m in ranked:
            if n not in done_golden and m not in done_candidate:
                done_golden.add(n)
                done_candidate.add(m)
                assigned[places[n]] = (wanted[n], offered[m])
                references.to_candidate[wanted[n]] = offered[m]
    return assigned


def reassign_children(golden: NormalTrace, candidate: NormalTrace, pairs: dict[int, int]) -> dict[int, int]:
    """Return the pairs to replace, so that equal calls within different calls pair by the calls that they ran within.

    Children of different calls have no order among each other, so that their order cannot tell which is which.
    """
    if all(operation.parent is None for operation in golden.operations):
        return {}
    labels, labels_now = ({o.label: n for n, o in enumerate(side.operations)} for side in (golden, candidate))
    twins: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for g, c in sorted(pairs.items()):
        one, other = golden.operations[g], candidate.operations[c]
        if one.parent is not None and other.parent is not None and one.key == other.key:
            twins[one.key].append(g)
    moved: dict[int, int] = {}
    for members in twins.values():
        now = {**pairs, **moved}
        offered: dict[int | None, list[int]] = defaultdict(list)
        for c in sorted(now[g] for g in members):
            offered[labels_now.get(candidate.operations[c].parent or "")].append(c)
        left: list[int] = []
        for g in members:
            within = now.get(labels.get(golden.operations[g].parent or "", -1))
            if within is not None and offered[within]:
                moved[g] = offered[within].pop(0)
            else:
                left.append(g)
        moved.update(zip(left, sorted(c for rest in offered.values() for c in rest), strict=True))
    return {g: c for g, c in moved.items() if pairs[g] != c}


def _differing(golden: NormalTrace, g: int, candidate: NormalTrace, c: int) -> tuple[bool, bool]:
    """Did their attempts end otherwise, and did anything else happen to them otherwise?"""
    one, other = golden.operations[g], candidate.operations[c]
    ends = [attempt.status for attempt in one.attempts], [attempt.status for attempt in other.attempts]
    return ends[0] != ends[1], [_told(step) for step in one.steps] != [_told(step) for step in other.steps]


def _told(step: Step) -> tuple[object, ...]:
    """What a step says in any trace, without its times."""
    if isinstance(step, Attempt):
        return (step.origin, step.status, step.error_class, step.http_status, step.args_hash, step.result)
    if isinstance(step, ApprovalStep):
        return ("approval", step.verdict)
    return (step.decision, step.by, step.reason)


def _users(trace: NormalTrace, names: dict[int, int]) -> dict[int, _Signature]:
    """For each operation, who refers to it: (the user as a golden operation, its pointer, the place referred to)."""
    labels = {operation.label: n for n, operation in enumerate(trace.operations)}
    users: dict[int, _Signature] = defaultdict(set)
    for n, operation in enumerate(trace.operations):
        if n not in names:
            continue
        if operation.parent in labels:  # who ran within it uses it too
            users[labels[operation.parent]].add((names[n], "#parent", ""))
        for pointer, leaf in operation.args.items():
            if isinstance(leaf, str) and "#" in leaf:
                for reference in parse_leaf(leaf)[1]:
                    if reference.label in labels:
                        users[labels[reference.label]].add((names[n], pointer, reference.place))
    return users
