"""How the run ended, and the events of no call: outcome, stop reason, limits, effects."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from goldentrace.codec.canonical import canonical, decode
from goldentrace.diff.scene import Scene
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import LooseEvent

_LABEL_NUMBER: Final = re.compile(rb"(<[^<>#\" ]+)#\d+")


def compare_end(scene: Scene) -> None:
    """Add GT501 and GT502 where outcome or stop reason differ; `unknown` is what a source does not record."""
    golden, candidate = scene.golden, scene.candidate
    lines = (golden.end_line or None, candidate.end_line or None)
    for code, what, before, now in (
        ("GT501", "outcome", golden.outcome, candidate.outcome),
        ("GT502", "stop reason", golden.stop_reason, candidate.stop_reason),
    ):
        if before == now:
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
        return "none"
    (name, maximum, place), _ = found
    return f"{name}{'' if maximum is None else f' {maximum}'} after {place} calls that both sides have"


def compare_effects(scene: Scene) -> None:
    """Add one GT504 where the ledgers differ; order does not count, numbers do."""
    before, now = _effects(scene.golden), _effects(scene.candidate)
    if before == now:
        return
    if not scene.candidate.loose and not now and scene.candidate.header.states == ():
        scene.note("effects: the candidate has no ledger")
        return
    gone, come = before - now, now - before
    lines = (_effect_line(scene.golden, gone), _effect_line(scene.candidate, come))
    names = sorted({_name(key) for key in (*gone, *come)})
    text = "; ".join(f"{name}: {_count(before, name)} -> {_count(now, name)}" for name in names)
    scene.change("GT504", f"effects {text}", expected=_counts(before, names), actual=_counts(now, names), lines=lines)


def _effects(trace: NormalTrace) -> Counter[bytes]:
    return Counter(_effect_key(event) for event in trace.loose if event.kind == "effect")


def _effect_key(event: LooseEvent) -> bytes:
    """What is compared of an effect: the numbers of labels are names, and two runs may give them otherwise."""
    return _LABEL_NUMBER.sub(rb"\1", canonical(event.fields))


def _name(key: bytes) -> str:
    return str(decode(key)["name"])


def _count(effects: Counter[bytes], name: str) -> int:
    return sum(count for key, count in effects.items() if _name(key) == name)


def _counts(effects: Counter[bytes], names: list[str]) -> dict[str, int]:
    return {name: _count(effects, name) for name in names}


def _effect_line(trace: NormalTrace, wanted: Counter[bytes]) -> int | None:
    return next(
        (event.line or None for event in trace.loose if event.kind == "effect" and _effect_key(event) in wanted),
        None,
    )
