"""One cause is one error: which change follows from which.

Within an operation the later codes follow from the first; across operations an equal change of value follows from the
first one that shows it, a value taken from a changed operation from that operation's change, an attempt that became a
call of its own (or the other way) from the change of attempts, and the end of the run from the first error. A change is
caused only by one at least as severe.
"""

from bisect import bisect_left
from itertools import accumulate
from typing import Final

from goldentrace.diff.ending import NO_LIMIT
from goldentrace.diff.scene import Scene
from goldentrace.model.change import Change
from goldentrace.model.placeholder import parse_leaf

ORDER: Final = (
    "GT602", "GT105", "GT104", "GT106", "GT101", "GT109", "GT205", "GT201", "GT206", "GT301", "GT302", "GT202", "GT203",
    "GT204", "GT402", "GT401", "GT404", "GT403", "GT108", "GT107",
)  # fmt: skip
"""Causes within one operation, first to last. A move stands before arguments: an id of a moved call comes from
elsewhere because the call moved."""
_RANK: Final = {code: rank for rank, code in enumerate(ORDER)}
_AT_THE_END: Final = ("GT504", "GT503", "GT501", "GT502")
"""What is told of the run as a whole, causes first: a second effect makes the outcome another, not the other way."""
_SEVERITY_RANK: Final = {"error": 0, "warning": 1, "note": 2}


def link_causes(scene: Scene) -> None:
    """Fill `caused_by` and put the changes in reading order: by golden position, causes first."""
    changes = scene.changes
    _link_attempts_that_became_calls(scene)
    _link_within_operations(changes)
    _link_equal_values(changes)
    _link_removed_sources(scene)
    _link_uses(scene)
    _link_limits(scene)
    places = _ReadingPlaces(scene)
    changes.sort(key=places.of)
    _link_end(changes)


def _cause(effect: Change, cause: Change) -> None:
    while cause.caused_by is not None:
        cause = cause.caused_by
    if cause is effect or effect.caused_by is not None:
        return
    if _SEVERITY_RANK[cause.severity] <= _SEVERITY_RANK[effect.severity]:
        effect.caused_by = cause


def _by_operation(changes: list[Change]) -> dict[tuple[int | None, int | None], list[Change]]:
    groups: dict[tuple[int | None, int | None], list[Change]] = {}
    for change in changes:
        if change.golden_index is not None or change.candidate_index is not None:
            groups.setdefault((change.golden_index, change.candidate_index), []).append(change)
    return groups


def _link_within_operations(changes: list[Change]) -> None:
    for group in _by_operation(changes).values():
        group.sort(key=lambda change: _RANK.get(change.code, len(ORDER)))
        for effect in group[1:]:
            _cause(effect, group[0])


def _link_equal_values(changes: list[Change]) -> None:
    """A later GT101 or GT109 with the same expected and actual value."""
    first: dict[tuple[str, str, str], Change] = {}
    ordered = sorted(
        (c for c in changes if c.code in ("GT101", "GT109") and c.golden_index is not None),
        key=lambda c: c.golden_index or 0,
    )
    for change in ordered:
        key = (change.code, repr(change.expected), repr(change.actual))
        if key in first:
            _cause(change, first[key])
        else:
            first[key] = change


def _link_removed_sources(scene: Scene) -> None:
    """A value that came from a call which is gone, or now comes from one that is new."""
    removed = {
        scene.golden.operations[c.golden_index].label: c
        for c in scene.changes
        if c.code == "GT103" and c.golden_index is not None
    }
    added = {
        scene.candidate.operations[c.candidate_index].label: c
        for c in scene.changes
        if c.code == "GT102" and c.candidate_index is not None
    }
    for change in scene.changes:
        if change.code not in ("GT101", "GT109"):
            continue
        for shown, sources in ((change.expected, removed), (change.actual, added)):
            for reference in parse_leaf(shown)[1] if isinstance(shown, str) else ():
                if reference.label in sources:
                    _cause(change, sources[reference.label])


def _link_uses(scene: Scene) -> None:
    """A changed argument whose value both sides took from a paired operation that has a change of its own."""
    by_golden: dict[int, Change] = {}
    for change in scene.changes:
        if change.golden_index is not None and change.code not in ("GT107", "GT104"):
            by_golden.setdefault(change.golden_index, change)
    taken = _TakenValues(scene, by_golden)
    for change in scene.changes:
        if change.code not in ("GT101", "GT109") or change.golden_index is None or change.candidate_index is None:
            continue
        for source in taken.sources_of(change.candidate_index):
            label = scene.golden.operations[source].label
            if source != change.golden_index and label in scene.golden.uses_of(change.golden_index):
                _cause(change, by_golden[source])


class _TakenValues:
    """Which changed operations the candidate's arguments may have been taken from. Only their results are looked at, so
    that a long run with few changes costs little."""

    def __init__(self, scene: Scene, changed: dict[int, Change]) -> None:
        self.scene = scene
        self.payloads = scene.candidate.payloads
        self.changed = set(changed)
        self.holders: dict[object, list[int]] = {}
        to_candidate = scene.references.to_candidate
        for source in sorted(changed):
            if source in to_candidate and self.payloads is not None:
                for value in self.payloads.result_values(to_candidate[source]):
                    self.holders.setdefault(value, []).append(source)

    def sources_of(self, candidate: int) -> list[int]:
        """Golden operations, ascending."""
        if self.payloads is None:
            labels = self.scene.candidate.uses_of(candidate)
            to_golden = {c: g for g, c in self.scene.references.to_candidate.items()}
            indexes = [self.scene.references.candidate_index(label) for label in labels]
            sources = {to_golden[index] for index in indexes if index is not None and index in to_golden}
            return sorted(sources & self.changed)
        values = self.payloads.argument_values(candidate)
        return sorted({source for value in values for source in self.holders.get(value, ())})


def _link_attempts_that_became_calls(scene: Scene) -> None:
    """A call of the same key that was added or removed beside a change of attempts of opposite sign."""
    golden, candidate = scene.golden.operations, scene.candidate.operations
    attempts = [
        c for c in scene.changes if c.code == "GT201" and isinstance(c.expected, int) and isinstance(c.actual, int)
    ]
    for change in scene.changes:
        if change.code == "GT102" and change.candidate_index is not None:
            key, wanted = candidate[change.candidate_index].key, -1
        elif change.code == "GT103" and change.golden_index is not None:
            key, wanted = golden[change.golden_index].key, 1
        else:
            continue
        for cause in attempts:
            assert cause.golden_index is not None
            if golden[cause.golden_index].key == key and (cause.actual - cause.expected) * wanted > 0:
                _cause(change, cause)
                break


def _link_limits(scene: Scene) -> None:
    """Calls that no longer happen at the end of a run, because a limit ended it that did not fire before."""
    limit = next((c for c in scene.changes if c.code == "GT503" and c.expected == NO_LIMIT), None)
    if limit is None or any(c.code == "GT102" for c in scene.changes):
        return
    last = max(scene.references.to_candidate, default=-1)
    for change in scene.changes:
        if change.code == "GT103" and change.golden_index is not None and change.golden_index > last:
            _cause(change, limit)


def _link_end(changes: list[Change]) -> None:
    """The limits, the outcome and the stop reason follow from the first error before them, or from the ledger."""
    first = next(
        (c for c in changes if c.caused_by is None and c.severity == "error" and not c.code.startswith("GT50")), None
    )
    if first is None:
        ends = sorted((c for c in changes if c.code in _AT_THE_END), key=lambda c: _AT_THE_END.index(c.code))
        for effect in ends[1:]:
            _cause(effect, ends[0])
        return
    for change in changes:
        if change.code in _AT_THE_END and change.code != "GT504":  # a second payment is told for itself
            _cause(change, first)


class _ReadingPlaces:
    """Where a change stands when read in the golden's order; an added call behind the pair that it follows."""

    def __init__(self, scene: Scene) -> None:
        pairs = sorted((c, g) for g, c in scene.references.to_candidate.items())
        self.candidates = [c for c, _ in pairs]
        self.furthest = list(accumulate((g for _, g in pairs), max))
        self.lines = [operation.first.call_line for operation in scene.golden.operations]

    def of(self, change: Change) -> tuple[float, int, int]:
        rank = _RANK.get(change.code, len(ORDER))
        if change.golden_index is not None:
            return (change.golden_index, 0, rank)
        if change.candidate_index is not None:
            before = bisect_left(self.candidates, change.candidate_index)
            return ((self.furthest[before - 1] if before else -1) + 0.5, change.candidate_index, rank)
        if change.code in ("GT501", "GT502", "GT504") or not change.golden_line:
            return (float("inf"), 0, rank)
        return (bisect_left(self.lines, change.golden_line) - 0.4, 0, rank)
