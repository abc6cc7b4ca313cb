"""A client that follows a policy, for tests: its waits as it intends them, and as a clock would see them."""

import math
import random
from collections.abc import Iterable, Sequence

from goldentrace.match.backoff import Policy, expected_wait
from goldentrace.match.waits import Wait, WaitVerdict, compare_waits

OVERSHOOT_MEAN_MS = 5.2
"""A sleep never ended early and ran over by less than 24 ms in 99 of 100 cases on a busy two-core machine."""


def intended_waits(policy: Policy, count: int, draws: Iterable[float]) -> list[float]:
    """Return the first waits in ms, one draw of 0 to 1 for each; written from the clients' formulas, not from `band`."""
    waits: list[float] = []
    for k, draw in zip(range(1, count + 1), draws, strict=False):
        base = expected_wait(policy, k)
        assert base is not None
        assert policy.jitter is not None
        cap = math.inf if policy.cap_ms is None else policy.cap_ms
        amount = policy.jitter.amount
        if policy.first_zero and k == 1:
            waits.append(0.0)
            continue
        match policy.jitter.kind:
            case "none":
                waits.append(base)
            case "down":
                waits.append(base * (1 - amount * draw))
            case "symmetric":
                waits.append(base * (1 + amount * (2 * draw - 1)))
            case "full":
                waits.append(base * draw)
            case "equal":
                waits.append(base / 2 + base / 2 * draw)
            case "additive":
                waits.append(min(cap, base + amount * draw))
            case "decorrelated":
                before = max([*waits[-1:], policy.base_ms])
                waits.append(min(cap, policy.base_ms + draw * (3 * before - policy.base_ms)))
    return waits


def drawn_waits(policy: Policy, count: int, rng: random.Random) -> list[float]:
    return intended_waits(policy, count, iter(rng.random, 2.0))


def seen(intended: Sequence[float], rng: random.Random) -> list[float]:
    """Add to each wait what a sleep runs over."""
    return [wait + rng.expovariate(1 / OVERSHOOT_MEAN_MS) for wait in intended]


def as_waits(gaps_ms: Sequence[float]) -> list[Wait]:
    return [Wait(gap_ms=gap, is_last=place == len(gaps_ms) - 1) for place, gap in enumerate(gaps_ms)]


def changes(
    golden_ms: Sequence[float],
    candidate_ms: Sequence[float],
    policy: Policy,
    runs: Sequence[Sequence[float]] | None = None,
) -> list[WaitVerdict]:
    """Return the verdicts that are not an agreement."""
    verdicts = compare_waits(as_waits(golden_ms), as_waits(candidate_ms), policy, recorded_runs=runs)
    return [verdict for verdict in verdicts if verdict.code is not None]
