"""One cause is one error: which change follows from which.

Within an operation the later codes follow from the first; across operations an equal change of value follows from the first
one that shows it, a value taken from a changed operation from that operation's change, an attempt that became a call of its
own (or the other way) from the change of attempts, and the end of the run from the first error. A change is caused only by
one at least as severe.
"""

from typing import Final

from goldentrace.diff.scene import Scene
from goldentrace.model.change import Change
from goldentrace.model.placeholder import parse_leaf

ORDER: Final = (
    "GT602", "GT105", "GT104", "GT106", "GT101", "GT109", "GT205", "GT201", "GT206", "GT301", "GT302", "GT202", "GT203",
    "GT204", "GT402", "GT401", "GT404", "GT403", "GT108", "GT107",
)  # fmt: skip
"""Causes within one operation, first to last. A move stands before arguments: an id of a moved call comes from elsewhere
because the call moved."""
_RANK: Final = {code: rank for rank, code in enumerate(ORDER)}
_SEVERITY_RANK: Final = {"error": 0, "warning": 1, "note": 2}


def link_causes(scene: Scene) -> None:
    """Fill `caused_by` and put the changes in reading order: by golden position, causes first."""
    changes = scene.changes
    _link_attempts_that_became_calls(scene)
    _link_within_operations(changes)
    _link_equal_values(changes)
    _link_removed_sources(scene)
    _link_uses(scene)
    changes.sort(key=lambda change: _reading_place(scene, change))
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
        (c for c in changes if c.code in ("GT101", "GT109") and c.golden_index is not None), key=lambda c: c.golden_index or 0
    )
    for change in ordered:
        key = (change.code, repr(change.expected), repr(change.actual))
        if key in first:
            _cause(change, first[key])
        else:
            first[key] = change


def _link_removed_sources(scene: Scene) -> None:
    """An id that came from a call which is gone, or now comes from one that is new."""
    removed = {scene.golden.operations[c.golden_index].label: c for c in scene.changes if c.code == "GT103" and c.golden_index is not None}
    added = {
        scene.candidate.operations[c.candidate_index].label: c
        for c in scene.changes
        if c.code == "GT102" and c.candidate_index is not None
    }
    for change in scene.changes:
        if change.code != "GT109":
            continue
        for shown, sources in ((change.expected, removed), (change.actual, added)):
            for reference in parse_leaf(shown)[1] if isinstance(shown, str) else ():
                if reference.label in sources:
                    _cause(change, sources[reference.label])


def _link_uses(scene: Scene) -> None:
    """A changed argument whose value both sides took from a paired operation that has a change of its own."""
    to_candidate = scene.references.to_candidate
    by_golden: dict[int, Change] = {}
    for change in scene.changes:
        if change.golden_index is not None and change.code not in ("GT107", "GT104"):
            by_golden.setdefault(change.golden_index, change)
    for change in scene.changes:
        if change.code not in ("GT101", "GT109") or change.golden_index is None or change.candidate_index is None:
            continue
        used = set(scene.candidate.uses_of(change.candidate_index))
        for label in scene.golden.uses_of(change.golden_index):
            source = scene.references.golden_index(label)
            if source is None or source not in by_golden or source not in to_candidate:
                continue
            if scene.candidate.operations[to_candidate[source]].label in used:
                _cause(change, by_golden[source])


def _link_attempts_that_became_calls(scene: Scene) -> None:
    """A call of the same key that was added or removed beside a change of attempts of opposite sign."""
    golden, candidate = scene.golden.operations, scene.candidate.operations
    attempts = [c for c in scene.changes if c.code == "GT201" and isinstance(c.expected, int) and isinstance(c.actual, int)]
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


def _link_end(changes: list[Change]) -> None:
    """The outcome, the stop reason and the limits follow from the first error before them."""
    first = next((c for c in changes if c.caused_by is None and c.severity == "error" and not c.code.startswith("GT50")), None)
    if first is None:
        ends = [c for c in changes if c.code in ("GT503", "GT501", "GT502")]
        ends.sort(key=lambda c: ("GT503", "GT501", "GT502").index(c.code))
        for effect in ends[1:]:
            _cause(effect, ends[0])
        return
    for change in changes:
        if change.code in ("GT501", "GT502", "GT503"):
            _cause(change, first)


def _reading_place(scene: Scene, change: Change) -> tuple[float, int, int]:
    """Where a change stands when read in the golden's order; an added call after the pair that it follows."""
    rank = _RANK.get(change.code, len(ORDER))
    if change.golden_index is not None:
        return (change.golden_index, 0, rank)
    if change.candidate_index is not None:
        before = [g for g, c in scene.references.to_candidate.items() if c < change.candidate_index]
        return ((max(before) if before else -1) + 0.5, change.candidate_index, rank)
    if change.code in ("GT501", "GT502", "GT504"):
        return (float("inf"), 0, rank)
    line = change.golden_line or 0
    after = [n for n, operation in enumerate(scene.golden.operations) if operation.first.call_line < line]
    return ((after[-1] if after and change.golden_line else len(scene.golden.operations)) + 0.4, 0, rank)
