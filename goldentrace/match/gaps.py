"""A wait between two attempts, and its place among the waits of its operation.

The index of a wait is that of its layer's own retry loop: an SDK inside a harness starts counting anew each time the
harness asks again, so its second wait there is not the fourth. Values and counting only; nothing is compared here.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from goldentrace.model.event import Origin

Measure: TypeAlias = Literal["gap", "delay"]
"""The observed wait between two attempts, or the one that a decision announced."""

LAYERS: Final[tuple[Origin, ...]] = ("model", "harness", "sdk", "transport")
"""Outermost first: when a layer asks again, the loops of the layers inside it start anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One gap of one operation: from the end of attempt k (response complete or client error) to the start of k + 1.

    gap_ms: on one monotonic clock, negative if the next attempt started earlier; None where it is not known, and
    why_missing says why. delay_ms: the wait that the decision announced. owed_ms: what Retry-After of attempt k asked
    for, counted from its receipt; owed_is_date: it was computed from an HTTP-date in the header alone. origin: who
    asked for attempt k + 1. after_model_turn: a later model turn asked for it, so that the gap is the model's latency,
    which is not behaviour: only what is owed and what was announced bind it.
    is_last: no further attempt follows; deadline_ms: what was left of the deadline at the start of the gap.
    """

    gap_ms: float | None = None
    why_missing: str | None = None
    delay_ms: float | None = None
    owed_ms: float | None = None
    owed_is_date: bool = False
    origin: Origin = "harness"
    after_model_turn: bool = False
    is_last: bool = False
    deadline_ms: float | None = None

    def value(self, measure: Measure) -> float | None:
        """Return the gap or the delay in ms, None where it is not known, not finite, or a delay below 0."""
        value = self.gap_ms if measure == "gap" else self.delay_ms
        if value is None or not math.isfinite(value) or (measure == "delay" and value < 0):
            return None
        return value

    @property
    def asked_ms(self) -> float:
        """What is owed, in ms; 0 where nothing is, or where it is no wait (0, past, negative, not a number)."""
        owed = self.owed_ms
        return owed if owed is not None and math.isfinite(owed) and owed > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """A wait at its place.

    position: among its side's waits, from 0; k: among the waits of its layer's loop, from 1; run: which loop of that
    layer; previous: the wait before it in that loop.
    """

    wait: Wait
    position: int
    k: int
    run: int
    previous: Wait | None = None


def pair_steps(golden: Sequence[Wait], candidate: Sequence[Wait]) -> list[tuple[Step, Step]]:
    """Return (golden, candidate) pairs in the candidate's order.

    Waits of the same layer, loop and place pair first, then what is left, in order: a missing retry shifts nothing.
    """
    left = {(step.wait.origin, step.run, step.k): step for step in _steps(golden)}
    pairs, unpaired = [], []
    for step in _steps(candidate):
        match = left.pop((step.wait.origin, step.run, step.k), None)
        if match is None:
            unpaired.append(step)
        else:
            pairs.append((match, step))
    pairs.extend(zip(left.values(), unpaired, strict=False))
    return sorted(pairs, key=lambda pair: pair[1].position)


def _steps(waits: Sequence[Wait]) -> Iterator[Step]:
    counts, runs = dict.fromkeys(LAYERS, 0), dict.fromkeys(LAYERS, 0)
    latest: dict[Origin, Wait] = {}
    for position, wait in enumerate(waits):
        layer = wait.origin
        counts[layer] += 1
        yield Step(wait, position, counts[layer], runs[layer], latest.get(layer))
        latest[layer] = wait
        for inner in LAYERS[LAYERS.index(layer) + 1 :]:
            counts[inner], runs[inner] = 0, runs[inner] + 1
            latest.pop(inner, None)
