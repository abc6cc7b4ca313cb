"""Order: moved calls (GT104, GT106), and what became parallel or serial or came in another turn (GT107).

A move is judged by what it passes: an operation that it uses or that uses it, or any that is not declared a read. Order
among members of one batch is none.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from goldentrace.diff.scene import Scene
from goldentrace.model.operation import Operation


def compare_order(scene: Scene) -> None:
    """Add a GT104 for every moved operation that passed one it may be compared with."""
    settled = scene.alignment.settled()
    kept = set(settled)
    moved = [(g, c) for g, (c, _) in sorted(scene.alignment.pairs.items()) if (g, c) not in kept]
    if not moved:
        return
    passing = _Passing(scene, settled, moved)
    for g, c in moved:
        passed = passing.range_of(g, c)
        if passed is not None:
            _add_move(scene, (g, c), passed, passing)
        elif scene.profile.compare.parallel_order == "strict" and passing.has_passed_in_batch(g, c):
            label = scene.golden.operations[g].label
            scene.change("GT106", f"{label}: came at another place of its batch", golden=g, candidate=c)


_Passed: TypeAlias = tuple[tuple[int, int], int, bool, list[tuple[int, int]]]
"""The first pair that was passed, how many were, whether one of them is not declared a read, and those of them that
moved too."""


class _Passing:
    """What a moved operation passes: the pairs that stand on its other side in the candidate. Linear to build, then
    logarithmic per move, so that long runs with far moves stay linear."""

    def __init__(self, scene: Scene, settled: list[tuple[int, int]], moved: list[tuple[int, int]]) -> None:
        self.scene = scene
        self.moved = moved
        self.settled = settled
        self.candidates = [c for _, c in self.settled]
        self.writes = [0]
        for g, _ in self.settled:
            self.writes.append(self.writes[-1] + (not scene.golden.operations[g].is_read))

    def span(self, g: int, c: int) -> tuple[int, int]:
        """The settled pairs between the operation's place in the golden and its place in the candidate, as a slice."""
        here, there = bisect_left(self.settled, (g, -1)), bisect_left(self.candidates, c)
        return min(here, there), max(here, there)

    def range_of(self, g: int, c: int) -> "_Passed | None":
        """What an operation passed; None where nothing that counts."""
        start, end = self.span(g, c)
        near = (
            [n for n in range(start, end) if _are_siblings(self.scene, (g, c), self.settled[n])]
            if end - start < 100
            else []
        )
        others = [p for p in self.moved if p < (g, c) and p[1] > c and not _are_siblings(self.scene, (g, c), p)]
        count = end - start - len(near) + len(others)
        if not count:
            return None
        exempt = set(near)
        first = next((self.settled[n] for n in range(start, end) if n not in exempt), None) or others[0]
        golden = self.scene.golden.operations
        writes = self.writes[end] - self.writes[start] - sum(not golden[self.settled[n][0]].is_read for n in near)
        return first, count, writes > 0 or any(not golden[p].is_read for p, _ in others), others

    def has_passed_in_batch(self, g: int, c: int) -> bool:
        start, end = self.span(g, c)
        golden = self.scene.golden.operations
        return any(golden[g].is_beside(golden[self.settled[n][0]]) for n in range(start, end))


def _are_siblings(scene: Scene, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Are the two members of one batch on either side, or children of different calls, so that they have no order?"""
    golden, candidate = scene.golden.operations, scene.candidate.operations
    if golden[one[0]].is_beside(golden[other[0]]) or candidate[one[1]].is_beside(candidate[other[1]]):
        return True
    parents = golden[one[0]].parent, golden[other[0]].parent
    return None not in parents and parents[0] != parents[1]


def _add_move(scene: Scene, pair: tuple[int, int], passed: "_Passed", passing: _Passing) -> None:
    g, c = pair
    first, count, is_past_write, others_moved = passed
    golden = scene.golden.operations
    if not golden[g].is_read:
        reason = f"{golden[g].tool_name} is not declared a read"
    elif is_past_write:
        reason = "what it passes is not declared a read"
    else:
        reason = _data_flow(scene, g, c, passing, others_moved)
    side = "before" if c < first[1] else "after"
    others = golden[first[0]].label + (f" and {count - 1} more" if count > 1 else "")
    scene.change(
        "GT104", f"{golden[g].label}: now {side} {others}; {reason or 'only reads are passed'}", golden=g, candidate=c,
        severity="error" if reason else "warning", expected=f"position {g + 1}", actual=f"position {c + 1}",
    )  # fmt: skip


def _data_flow(scene: Scene, g: int, c: int, passing: _Passing, moved: list[tuple[int, int]]) -> str:
    """Does a read pass one that it takes values from, or one that takes values from it?"""
    start, end = passing.span(g, c)
    golden, candidate = scene.golden, scene.candidate
    label, label_now = golden.operations[g].label, candidate.operations[c].label
    uses = {*golden.uses_of(g)}
    uses_now = {*candidate.uses_of(c)}
    for p, q in [*passing.settled[start:end], *moved]:
        if golden.operations[p].label in uses or candidate.operations[q].label in uses_now:
            return f"it uses {golden.operations[p].label}"
        if label in golden.uses_of(p) or label_now in candidate.uses_of(q):
            return f"{golden.operations[p].label} uses it"
    return ""


def compare_batching(scene: Scene) -> None:
    """Add a GT107 for every batch that became serial, every serial run that became a batch, and every turn that split
    or merged; each group of operations is reported once."""
    golden, candidate = scene.golden.operations, scene.candidate.operations
    pairs = [(g, scene.alignment.pairs[g][0]) for g in sorted(scene.alignment.pairs)]
    reported: set[int] = set()
    for members in _batches(golden, [g for g, _ in pairs]):
        units = {_unit(candidate[scene.alignment.pairs[g][0]], scene.alignment.pairs[g][0]) for g in members}
        if len(units) > 1 and len(members) > 1:
            reported.update(members)
            _add_batching(scene, members, f"{_names(golden, members)}: were one batch, now serial", severity="warning")
    to_golden = {c: g for g, c in pairs}
    for members in _batches(candidate, sorted(to_golden)):
        before = [to_golden[c] for c in members]
        units = {_unit(golden[g], g) for g in before}
        if len(units) > 1 and not reported.intersection(before):
            reported.update(before)
            is_risky = _is_risky(scene, sorted(before))
            text = f"{_names(golden, sorted(before))}: were serial, now one batch" + (
                f"; {is_risky}" if is_risky else ""
            )
            _add_batching(scene, sorted(before), text, severity="error" if is_risky else "warning")
    _compare_turns(scene, pairs, reported)


def _compare_turns(scene: Scene, pairs: list[tuple[int, int]], reported: set[int]) -> None:
    golden, candidate = scene.golden.operations, scene.candidate.operations
    lanes: dict[str, list[tuple[int, int]]] = {}
    for g, c in pairs:
        if golden[g].agent == candidate[c].agent:
            lanes.setdefault(golden[g].agent, []).append((g, c))
    before, now = scene.golden.turned_agents(), scene.candidate.turned_agents()
    for agent, lane in lanes.items():
        if agent in before and agent in now:
            _compare_turns_of_agent(scene, lane, reported)
        elif agent in now:
            of_agent = f" of {agent}" if before else ""
            scene.note(f"turns{of_agent}: the golden has none (remove it and record again to add them)")


def _compare_turns_of_agent(scene: Scene, pairs: list[tuple[int, int]], reported: set[int]) -> None:
    golden, candidate = scene.golden.operations, scene.candidate.operations
    done: set[tuple[int | None, int | None]] = set()
    for (g, c), (h, d) in pairwise(pairs):
        one, other = golden[g], golden[h]
        if g in reported or h in reported:
            continue
        was_same, is_same = one.turn == other.turn, candidate[c].turn == candidate[d].turn
        if was_same == is_same or d < c:
            continue
        group = (one.turn, None) if was_same else (None, candidate[c].turn)
        if group in done:
            continue
        done.add(group)
        what = "came in one turn, now in different turns" if was_same else "came in different turns, now in one"
        _add_batching(scene, [g, h], f"{one.label}, {other.label}: {what}", severity="warning")


def _add_batching(scene: Scene, members: list[int], message: str, *, severity: str) -> None:
    first = members[0]
    scene.change(
        "GT107", message, golden=first, candidate=scene.alignment.pairs[first][0], severity=severity,  # type: ignore[arg-type]
    )  # fmt: skip


def _is_risky(scene: Scene, members: list[int]) -> str:
    golden = scene.golden.operations
    labels = {golden[g].label for g in members}
    for g in members:
        used = labels.intersection(scene.golden.uses_of(g))
        if used:
            return f"{golden[g].label} uses {min(used)}"
    writer = next((golden[g] for g in members if not golden[g].is_read), None)
    return f"{writer.tool_name} is not declared a read" if writer is not None else ""


def _batches(operations: list[Operation], indexes: Iterable[int]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for index in indexes:
        operation = operations[index]
        if operation.batch is not None:
            groups.setdefault((operation.turn, operation.agent, operation.parent, operation.batch), []).append(index)
    return [members for members in groups.values() if len(members) > 1]


def _unit(operation: Operation, index: int) -> object:
    if operation.batch is None:
        return index
    return (operation.turn, operation.agent, operation.parent, operation.batch)


def _names(operations: list[Operation], members: list[int]) -> str:
    labels = [operations[g].label for g in members]
    return ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
