"""Members of a batch that ask for the same: which of them is which.

Calls of equal key in one batch are interchangeable, so the assignment is chosen that makes later uses equal, then how
they ended: the
golden's operation whose result later calls read is paired with the candidate's of which the paired calls read the
result.
"""

from collections import defaultdict

from goldentrace.model.normal import NormalTrace
from goldentrace.model.placeholder import parse_leaf

Pairs = list[tuple[int, int]]
_Signature = set[tuple[int, str, str]]


def reassign_siblings(golden: NormalTrace, candidate: NormalTrace, pairs: Pairs) -> Pairs:
    """Return the pairs with interchangeable members assigned by their later uses; the order by golden is kept."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, (g, c) in enumerate(pairs):
        one, other = golden.operations[g], candidate.operations[c]
        if one.batch is not None and other.batch is not None:
            groups[one.turn, one.batch, other.turn, other.batch, one.key].append(place)
    twins = [places for places in groups.values() if len(places) > 1]
    if not twins:
        return pairs
    to_golden = {c: g for g, c in pairs}
    golden_uses = _users(golden, {n: n for n in range(len(golden.operations))})
    candidate_uses = _users(candidate, to_golden)
    assigned = list(pairs)
    for places in twins:
        wanted = [pairs[place][0] for place in places]
        offered = [pairs[place][1] for place in places]
        ranked = sorted(
            (-len(golden_uses[g] & candidate_uses[c]), _ends(golden, g) != _ends(candidate, c), abs(n - m), n, m)
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
    return assigned


def _ends(trace: NormalTrace, index: int) -> list[str | None]:
    """How the attempts of an operation ended."""
    return [attempt.status for attempt in trace.operations[index].attempts]


def _users(trace: NormalTrace, names: dict[int, int]) -> dict[int, _Signature]:
    """For each operation, who refers to it: (the user as a golden operation, its pointer, the place referred to)."""
    labels = {operation.label: n for n, operation in enumerate(trace.operations)}
    users: dict[int, _Signature] = defaultdict(set)
    for n, operation in enumerate(trace.operations):
        if n not in names:
            continue
        for pointer, leaf in operation.args.items():
            if isinstance(leaf, str) and "#" in leaf:
                for reference in parse_leaf(leaf)[1]:
                    if reference.label in labels:
                        users[labels[reference.label]].add((names[n], pointer, reference.place))
    return users
