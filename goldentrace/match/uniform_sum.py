"""The lower tail of a sum of uniform draws (the Irwin-Hall law), which tells "no backoff" from full jitter.

A band that starts at 0 cannot see a client that does not wait at all; the sum of its waits, each as a share of its
band, can. Exact in integers: in floating point the alternating sum loses every digit from about 20 draws on.
"""

import math
from typing import Final

EXACT_DRAWS: Final = 60
"""Up to here the exact law; beyond, the normal approximation, whose tail at 0.001 is too large by less than 6 %."""
STEPS: Final = 2**30
"""Sums are taken on this grid, so that the integers stay short."""


def lower_tail(total: float, draws: int) -> float:
    """Return the probability that `draws` independent uniform draws from [0, 1] sum to at most `total`."""
    if draws < 1:
        raise ValueError("a sum needs at least one draw")
    if total <= 0:
        return 0.0
    if total >= draws:
        return 1.0
    if draws > EXACT_DRAWS:
        return (1 + math.erf((total - draws / 2) / math.sqrt(draws / 6))) / 2
    grid = round(total * STEPS)
    terms = sum((-1) ** j * math.comb(draws, j) * (grid - j * STEPS) ** draws for j in range(grid // STEPS + 1))
    probability: float = terms / (math.factorial(draws) * STEPS**draws)
    return probability


def critical_sum(draws: int, alpha: float) -> float:
    """Return the sum below which lower_tail is smaller than `alpha` (0 to 1), by bisection to 1e-9."""
    low, high = 0.0, float(draws)
    while high - low > 1e-9:
        middle = (low + high) / 2
        if lower_tail(middle, draws) < alpha:
            low = middle
        else:
            high = middle
    return low
