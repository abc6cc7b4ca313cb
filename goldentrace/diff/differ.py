"""Compares a golden with a candidate: aligns operations, compares every pair, links causes.

The golden is taken as a golden file holds it (`as_golden`), so that a raw run given as golden and its file give the
same verdict. No score decides anything: every change names the two places it was read from. Pure; deepdiff is
`payload`'s.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from goldentrace.diff.arguments import compare_arguments
from goldentrace.diff.attempts import compare_approvals, compare_attempts, compare_results, compare_statuses
from goldentrace.diff.causes import link_causes
from goldentrace.diff.collapse import collapse
from goldentrace.diff.decisions import comparable_kinds, compare_decisions, compare_loose_decisions, unobservable
from goldentrace.diff.ending import compare_effects, compare_end, compare_limits
from goldentrace.diff.order import compare_batching, compare_order
from goldentrace.diff.scene import Scene
from goldentrace.match.align import align_operations
from goldentrace.match.alignment import Alignment, PairKind, has_references
from goldentrace.match.references import References
from goldentrace.match.sequences import FarAligner
from goldentrace.model.change import Comparison
from goldentrace.model.event import DECISION_KINDS
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Operation
from goldentrace.model.profile import Profile


class CompareOptions(msgspec.Struct, frozen=True):
    """allow_incomplete: compare what is there of a recording that was cut off; allow_narrower: a candidate whose source
    states fewer decision kinds, or no turns, is a coverage line, not a refusal; far: aligns what is too long to align
    here."""

    allow_incomplete: bool = False
    allow_narrower: bool = False
    far: FarAligner | None = None


def as_golden(
    normal: NormalTrace,
    profile: Profile,
    *,
    description: str | None = None,
    backoff: Mapping[str, Any] | None = None,
    accepts: tuple[dict[str, Any], ...] = (),
) -> NormalTrace:
    """Return the form that a golden file holds: long maps collapsed, what is no behaviour left out.

    A golden is returned as it is. The operations are shared where nothing about them changes.
    """
    if normal.is_golden:
        return normal
    most = profile.arguments.max_leaves
    operations = [
        msgspec.structs.replace(operation, args=collapse(operation.args, most))
        if len(operation.args) > most
        else operation
        for operation in normal.operations
    ]
    header = msgspec.structs.replace(
        normal.header, description=description or normal.header.description, accepts=accepts,
        backoff=dict(backoff) if backoff else normal.header.backoff,
    )  # fmt: skip
    return msgspec.structs.replace(normal, operations=operations, header=header, is_golden=True)


def compare(
    golden: NormalTrace,
    candidate: NormalTrace,
    profile: Profile,
    *,
    backoff: Mapping[str, Any] | None = None,
    options: CompareOptions | None = None,
) -> Comparison:
    """Return what differs between a golden and a candidate that was normalized with the golden's profile.

    backoff: the scenario's policy of waits; the golden's header outranks it. What cannot be compared is listed in
    `not_comparable`, and what was found besides is still there.
    """
    options = options or CompareOptions()
    golden = as_golden(golden, profile)
    references = References(golden, candidate)
    alignment = align_operations(golden, candidate, references, options.far)
    scene = Scene(
        golden, candidate, profile, references, alignment,
        backoff=golden.header.backoff or backoff, kinds=comparable_kinds(golden, candidate, profile),
    )  # fmt: skip
    _check_comparable(scene, options)
    _compare_pairs(scene)
    _add_unpaired(scene)
    compare_order(scene)
    compare_batching(scene)
    anchors = _anchors(scene)
    compare_loose_decisions(scene, anchors)
    compare_limits(scene, anchors)
    compare_effects(scene)
    compare_end(scene)
    link_causes(scene)
    return Comparison(
        golden=golden,
        candidate=candidate,
        pairs=reading_pairs(alignment, len(golden.operations), len(candidate.operations)),
        changes=scene.changes,
        not_comparable=scene.not_comparable,
        coverage=[what if count == 1 else f"{what} ({count} times)" for what, count in scene.coverage.items()],
        is_approximate=not alignment.is_exact,
    )


def _check_comparable(scene: Scene, options: CompareOptions) -> None:
    for side, name in ((scene.golden, "golden"), (scene.candidate, "candidate")):
        if side.incomplete and options.allow_incomplete:
            scene.note(f"the {name} is incomplete: {side.incomplete}")
        elif side.incomplete:
            scene.refuse(f"the {name} is incomplete: {side.incomplete} (--allow-incomplete compares what is there)")
    missing = unobservable(scene.golden, scene.candidate, scene.profile)
    if missing and options.allow_narrower:
        scene.note(f"decisions that the candidate's source cannot state: {', '.join(missing)}")
    elif missing:
        scene.refuse(
            f"decisions that the candidate's source cannot state: {', '.join(missing)} "
            "(--allow-narrower compares the rest)"
        )
    _check_turns(scene, options)
    unstated = [kind for kind in DECISION_KINDS if kind not in scene.kinds and kind != "finish"]
    if unstated and not missing:
        scene.note(f"decisions ({', '.join(unstated)}): not both sources can state them")
    hidden = unobservable(scene.candidate, scene.golden, scene.profile)
    if hidden:
        scene.note(f"decisions that the golden's source cannot state: {', '.join(hidden)}")


def _check_turns(scene: Scene, options: CompareOptions) -> None:
    """Refuse a candidate without the turns that its golden has: whoever lost them would read silence as agreement."""
    now = scene.candidate.turned_agents()
    missing = scene.golden.turned_agents() - now
    lost = sorted({operation.agent for operation in scene.candidate.operations} & missing) if missing else []
    if not lost:
        return
    of_agents = f" of {', '.join(lost)}" if now else ""
    if options.allow_narrower:
        scene.note(f"turns{of_agents}: the candidate has none")
    else:
        scene.refuse(f"turns{of_agents}: the candidate has none (--allow-narrower compares the rest)")


def _compare_pairs(scene: Scene) -> None:
    golden, candidate = scene.golden.operations, scene.candidate.operations
    for g, (c, kind) in scene.alignment.pairs.items():
        one, other = golden[g], candidate[c]
        if kind is PairKind.SAME and _is_plainly_equal(one, other):
            continue
        if one.agent != other.agent:
            scene.change(
                "GT602", f"{one.label}: called by {one.agent}, now by {other.agent}", golden=g, candidate=c,
                expected=one.agent, actual=other.agent,
            )  # fmt: skip
        if one.tool_name != other.tool_name:
            scene.change(
                "GT105", f"{one.label}: {other.tool_name} was called instead", golden=g, candidate=c,
                expected=one.tool_name, actual=other.tool_name,
            )  # fmt: skip
        _compare_parents(scene, g, c)
        compare_arguments(scene, g, c)
        compare_approvals(scene, g, c)
        compare_attempts(scene, g, c)
        compare_statuses(scene, g, c)
        compare_decisions(scene, g, c)
        if len(one.steps) > 1 and len(other.steps) > 1:
            _compare_waits(scene, g, c)
        compare_results(scene, g, c)


def _compare_parents(scene: Scene, golden: int, candidate: int) -> None:
    """Add GT602 where a call now runs within another call than the partner of its golden parent."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    if one.parent is None and other.parent is None:
        return
    expected: str | None = None
    if one.parent is not None:
        parent = scene.references.golden_index(one.parent)
        partner = scene.references.to_candidate.get(parent) if parent is not None else None
        if partner is None:
            return  # the parent is gone, which is told of it
        expected = scene.candidate.operations[partner].label
    if expected != other.parent:
        scene.change(
            "GT602", f"{one.label}: ran within {one.parent or 'no call'}, now within {other.parent or 'no call'}",
            golden=golden, candidate=candidate, expected=one.parent, actual=other.parent,
        )  # fmt: skip


def _compare_waits(scene: Scene, golden: int, candidate: int) -> None:
    from goldentrace.diff.waits import compare_operation_waits  # a tenth of the start-up; most runs retry nothing

    compare_operation_waits(scene, golden, candidate)


def _is_plainly_equal(one: Operation, other: Operation) -> bool:
    """One attempt each, the same status, the same arguments without references: nothing can differ. The fast path."""
    if len(one.steps) != 1 or len(other.steps) != 1 or one.parent is not None or other.parent is not None:
        return False
    before, now = one.steps[0], other.steps[0]
    if before.status != now.status or before.status != "ok":  # type: ignore[union-attr]
        return False
    if before.result is not None or now.result is not None or before.origin != now.origin:  # type: ignore[union-attr]
        return False
    return one.args is other.args or (one.args_hash == other.args_hash and not has_references(one))


def _add_unpaired(scene: Scene) -> None:
    taken = {c for c, _ in scene.alignment.pairs.values()}
    for g, operation in enumerate(scene.golden.operations):
        if g not in scene.alignment.pairs:
            scene.change("GT103", f"{operation.label}: did not happen", golden=g)
    for c, operation in enumerate(scene.candidate.operations):
        if c not in taken:
            scene.change("GT102", f"{operation.tool_name}: a call that the golden does not have", candidate=c)


def _anchors(scene: Scene) -> tuple[list[int], list[int]]:
    """Per side and position, how many operations before it are paired in order."""
    settled = scene.alignment.settled()
    return (
        _running(len(scene.golden.operations), {g for g, _ in settled}),
        _running(len(scene.candidate.operations), {c for _, c in settled}),
    )


def _running(count: int, marked: set[int]) -> list[int]:
    totals = [0]
    for n in range(count):
        totals.append(totals[-1] + (n in marked))
    return totals


def reading_pairs(alignment: Alignment, golden: int, candidate: int) -> list[tuple[int | None, int | None]]:
    """Return all operations in the golden's order, each added one behind the pair that it follows in the candidate."""
    taken = {c: g for g, (c, _) in alignment.pairs.items()}
    order: list[tuple[int | None, int | None]] = []
    following: dict[int, list[int]] = {}
    before = -1
    for c in range(candidate):
        if c in taken:
            before = c
        else:
            following.setdefault(before, []).append(c)
    order.extend((None, c) for c in following.get(-1, []))
    for g in range(golden):
        pair = alignment.pairs.get(g)
        order.append((g, pair[0] if pair is not None else None))
        if pair is not None:
            order.extend((None, c) for c in following.get(pair[0], []))
    return order
