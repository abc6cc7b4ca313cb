"""How the run ended, and the events of no call: outcome, stop reason, limits, effects."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from goldentrace.codec.canonical import canonical
from goldentrace.diff.scene import Scene
from goldentrace.match.references import Relation
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import LooseEvent
from goldentrace.model.placeholder import parse_leaf

MAX_RIVALS: Final = 200
"""Effects of equal shape that one is compared with."""
NO_LIMIT: Final = "none"
"""What a GT503 says of the side where no limit fired."""


def compare_end(scene: Scene) -> None:
    """Add GT501 and GT502 where outcome or stop reason differ.

    `unknown` of a source that cannot state everything is what it does not record: a coverage line. An agent that
    records itself and no longer says how it ended has changed.
    """
    golden, candidate = scene.golden, scene.candidate
    lines = (golden.end_line or None, candidate.end_line or None)
    for code, what, before, now in (
        ("GT501", "outcome", golden.outcome, candidate.outcome),
        ("GT502", "stop reason", golden.stop_reason, candidate.stop_reason),
    ):
        if before == now:
            continue
        if "unknown" in (before, now) and _is_other_source(scene, golden if before == "unknown" else candidate):
            scene.note(f"{what}: one side does not record it")
            continue
        scene.change(code, f"{what} {before}, now {now}", expected=before, actual=now, lines=lines)


def compare_limits(scene: Scene, anchors: tuple[Sequence[int], Sequence[int]]) -> None:
    """Add one GT503 where another limit fired, or one fired after another call."""
    before, now = _limits(scene.golden, anchors[0]), _limits(scene.candidate, anchors[1])
    if [limit for limit, _ in before] == [limit for limit, _ in now]:
        return
    first = next(
        (n for n, (b, a) in enumerate(zip(before, now, strict=False)) if b[0] != a[0]), min(len(before), len(now))
    )
    one = before[first] if first < len(before) else None
    other = now[first] if first < len(now) else None
    scene.change(
        "GT503", f"limit {_limit_words(one)}, now {_limit_words(other)}",
        expected=_limit_words(one), actual=_limit_words(other),
        lines=(one[1].line or None if one else None, other[1].line or None if other else None),
    )  # fmt: skip


_PlacedLimit = tuple[tuple[str, object, int], LooseEvent]


def _limits(trace: NormalTrace, anchors: Sequence[int]) -> list[_PlacedLimit]:
    return [
        ((_limit_name(event), event.fields.get("max"), anchors[min(event.position, len(anchors) - 1)]), event)
        for event in trace.loose
        if event.kind == "limit"
    ]


def _limit_name(event: LooseEvent) -> str:
    agent = event.fields.get("agent")
    return f"{event.fields['limit']}{'' if agent is None else f' of {agent}'}"


def _limit_words(found: _PlacedLimit | None) -> str:
    if found is None:
        return NO_LIMIT
    (name, maximum, place), _ = found
    return f"{name}{'' if maximum is None else f' {maximum}'} after {place} calls that both sides have"


def compare_effects(scene: Scene) -> None:
    """Add one GT504 where the ledgers differ; order does not count, numbers and entities do."""
    before, now = (_effects(side) for side in (scene.golden, scene.candidate))
    if not now and before and _is_other_source(scene, scene.candidate):
        scene.note("effects: the candidate's source keeps no ledger")
        return
    gone, come = _unmatched(scene, before, now)
    if not gone and not come:
        return
    names = sorted({event.fields["name"] for event in (*gone, *come)})
    expected, actual = (Counter(event.fields["name"] for event in side) for side in (before, now))
    text = "; ".join(f"{name}: {expected[name]} -> {actual[name]}" for name in names)
    if all(expected[name] == actual[name] for name in names):
        text = f"{', '.join(names)}: as many as before, on something else"
    lines = (gone[0].line or None if gone else None, come[0].line or None if come else None)
    counts = ({name: side[name] for name in names} for side in (expected, actual))
    scene.change("GT504", f"effects {text}", expected=next(counts), actual=next(counts), lines=lines)


def _is_other_source(scene: Scene, side: NormalTrace) -> bool:
    """May a side say nothing because its source does not record it? Not where the other side's source is alike."""
    return side.header.states is not None and scene.candidate.header.states != scene.golden.header.states


def _effects(trace: NormalTrace) -> list[LooseEvent]:
    return [event for event in trace.loose if event.kind == "effect"]


def _unmatched(
    scene: Scene, before: list[LooseEvent], now: list[LooseEvent]
) -> tuple[list[LooseEvent], list[LooseEvent]]:
    """The effects of each side that the other has not: equal leaves, and ids that mean the same."""
    offered: dict[bytes, list[LooseEvent]] = {}
    for event in now:
        offered.setdefault(_shape(event), []).append(event)
    gone: list[LooseEvent] = []
    for event in before:
        rivals = offered.get(_shape(event), [])
        found = next((n for n, rival in enumerate(rivals[:MAX_RIVALS]) if _is_same(scene, event, rival)), None)
        if found is None:
            gone.append(event)
        else:
            del rivals[found]
    left = {id(event) for rivals in offered.values() for event in rivals}
    return gone, [event for event in now if id(event) in left]


def _shape(event: LooseEvent) -> bytes:
    """An effect with every placeholder the same."""
    return canonical(
        [[place, parse_leaf(leaf)[0] if isinstance(leaf, str) else leaf] for place, leaf in _leaves(event)]
    )


def _leaves(event: LooseEvent) -> list[tuple[str, Any]]:
    """What an effect says, as place and written leaf: `name`, `key` and `value` with the pointer in them."""
    found: list[tuple[str, Any]] = []
    for field, value in sorted(event.fields.items()):
        if field in ("key", "value") and isinstance(value, dict) and value.keys() != {"value"}:
            found.extend((field + pointer, leaf) for pointer, leaf in sorted(value.items()))
        else:
            found.append((field, value))
    return found


def _is_same(scene: Scene, golden: LooseEvent, candidate: LooseEvent) -> bool:
    """Of two effects of equal shape: do their ids mean the same?"""
    for (place, written), (_, actual) in zip(_leaves(golden), _leaves(candidate), strict=True):
        if isinstance(written, str) and "<" in written and place not in ("name", "agent"):
            relation = scene.references.relate_effect(written, actual, candidate.index, place)
            if relation not in (Relation.SAME, Relation.UNSAID, Relation.UNKNOWN):
                return False
    return True
