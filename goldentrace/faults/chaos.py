"""Seeded draws: which call meets which fault, and how long a slow one takes.

Every draw has its own generator, made from (seed, tool, n), so that the order in which concurrent calls arrive does not
shift what any of them draws. A drawn schedule can be pinned as steps. This module must not read a clock.
"""

import hashlib
import math
import random
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from goldentrace.faults.kinds import KINDS
from goldentrace.faults.plan import NONE, Chaos, Step


def generator(seed: int, *parts: str | int) -> random.Random:
    """Return the generator of one draw. Only `.random()` of it is used: Python keeps that sequence across versions."""
    text = "\0".join(str(part) for part in (seed, *parts))
    return random.Random(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], "big"))


def draw(chaos: Chaos, tool: str, number: int) -> Step:
    """Return what call `number` (1-based) of a tool meets."""
    dice = generator(chaos.seed, "chaos", tool, number)
    if dice.random() >= chaos.rate:
        return NONE
    point = dice.random() * sum(weight for _, weight in chaos.faults)
    for step, weight in chaos.faults:
        point -= weight
        if point < 0:
            return step
    return chaos.faults[-1][0]


def latency_ms(params: dict[str, Any], dice: random.Random) -> float:
    """Return the wait of a slow call in ms: `delay_ms`, `uniform_ms: [a, b]` or `lognormal_ms: {median, sigma,
    max}`."""
    if "uniform_ms" in params:
        low, high = sorted(params["uniform_ms"])
        return float(low + (high - low) * dice.random())
    if "lognormal_ms" in params:
        shape = params["lognormal_ms"]
        # Box-Muller on two plain draws; 1 - u keeps the logarithm finite.
        normal = math.sqrt(-2 * math.log(1 - dice.random())) * math.cos(2 * math.pi * dice.random())
        value = shape["median"] * math.exp(shape.get("sigma", 0.5) * normal)
        return float(min(value, shape["max"])) if "max" in shape else float(value)
    return float(params.get("delay_ms", 0))


def new_id(seed: int, *parts: str | int) -> str:
    """Return 24 hex digits with at least one letter and one digit: equal for equal parts, and seen as an id by its
    shape."""
    text = "\0".join(str(part) for part in (seed, *parts))
    for turn in range(64):
        digits = hashlib.sha256(f"{text}\0{turn}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
        if not digits.isdecimal() and not digits.isalpha():
            return digits
    raise AssertionError("64 digests without a letter or without a digit")


def pinned_steps(met: Iterable[Step]) -> list[dict[str, Any]]:
    """Return the steps, as a plan writes them, that make a tool meet the same faults again. met: in order of the
    calls."""
    return [written(step, len(list(run))) for step, run in groupby(met)]


def written(step: Step, times: int) -> dict[str, Any]:
    """Return one step as a plan writes it, defaults left out."""
    line: dict[str, Any] = {"fault": step.fault}
    if step.phase != KINDS[step.fault].phases[0]:
        line["phase"] = step.phase
    if times != 1:
        line["times"] = times
    return {**line, **step.params}
