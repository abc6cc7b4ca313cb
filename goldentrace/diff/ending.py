"""How the run ended, and the events of no call: outcome, stop reason, limits, effects."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from goldentrace.codec.canonical import canonical, decode
from goldentrace.diff.scene import Scene
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import LooseEvent
from goldentrace.model.placeholder import relabel

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
        if (before == "unknown" and golden.header.states is not None) or (
            now == "unknown" and candidate.header.states is not None
        ):
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
        ((event.fields["limit"], event.fields.get("max"), anchors[min(event.position, len(anchors) - 1)]), event)
        for event in trace.loose
        if event.kind == "limit"
    ]


def _limit_words(found: _PlacedLimit | None) -> str:
    if found is None:
        return NO_LIMIT
    (name, maximum, place), _ = found
    return f"{name}{'' if maximum is None else f' {maximum}'} after {place} calls that both sides have"


def compare_effects(scene: Scene) -> None:
    """Add one GT504 where the ledgers differ; order does not count, numbers and entities do."""
    before, now = _effects(scene.golden, _golden_names(scene)), _effects(scene.candidate, _candidate_names(scene))
    if before == now:
        return
    if not now and scene.candidate.header.states is not None:
        scene.note("effects: the candidate's source keeps no ledger")
        return
    gone, come = before - now, now - before
    lines = (
        _effect_line(scene.golden, gone, _golden_names(scene)),
        _effect_line(scene.candidate, come, _candidate_names(scene)),
    )
    names = sorted({_name(key) for key in (*gone, *come)})
    text = "; ".join(f"{name}: {_count(before, name)} -> {_count(now, name)}" for name in names)
    if all(_count(before, name) == _count(now, name) for name in names):
        text = f"{', '.join(names)}: as many as before, on something else"
    scene.change("GT504", f"effects {text}", expected=_counts(before, names), actual=_counts(now, names), lines=lines)


Names = dict[str, str]
"""Label of an operation -> what stands for it while ledgers are compared."""


def _golden_names(scene: Scene) -> Names:
    """A paired operation keeps its label; of an unpaired one the number is left out, for it is a name and no count."""
    paired = scene.references.to_candidate
    return {
        operation.label: operation.label if index in paired else operation.label.rpartition("#")[0]
        for index, operation in enumerate(scene.golden.operations)
    }


def _candidate_names(scene: Scene) -> Names:
    """A paired operation is called as its partner in the golden."""
    partners = {c: scene.golden.operations[g].label for g, c in scene.references.to_candidate.items()}
    return {
        operation.label: partners.get(index, operation.label.rpartition("#")[0])
        for index, operation in enumerate(scene.candidate.operations)
    }


def _effects(trace: NormalTrace, names: Names) -> Counter[bytes]:
    return Counter(_effect_key(event, names) for event in trace.loose if event.kind == "effect")


def _effect_key(event: LooseEvent, names: Names) -> bytes:
    return canonical({field: _named(value, names) for field, value in event.fields.items()})


def _named(value: Any, names: Names) -> Any:
    if isinstance(value, str):
        return relabel(value, names)
    if isinstance(value, dict):
        return {pointer: _named(leaf, names) for pointer, leaf in value.items()}
    return value


def _name(key: bytes) -> str:
    return str(decode(key)["name"])


def _count(effects: Counter[bytes], name: str) -> int:
    return sum(count for key, count in effects.items() if _name(key) == name)


def _counts(effects: Counter[bytes], names: list[str]) -> dict[str, int]:
    return {name: _count(effects, name) for name in names}


def _effect_line(trace: NormalTrace, wanted: Counter[bytes], names: Names) -> int | None:
    found = (event for event in trace.loose if event.kind == "effect" and _effect_key(event, names) in wanted)
    return next((event.line or None for event in found), None)
