"""The published rates: how often an honest run alarms and how often broken backoff is caught, counted over seeded runs.

The numbers are those of the measurement behind the tolerance model (1,500 pairs, 2 and 4 waits, sleep noise included).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from goldentrace.match.backoff import PRESETS, Jitter, Policy
from tests.match.backoff_simulation import OVERSHOOT_MEAN_MS, changes, drawn_waits, seen

SAMPLE = 150
WHOLE = 1500
SIZES = [SAMPLE, pytest.param(WHOLE, marks=pytest.mark.full)]
PLAIN = Policy(relative=0.25)
Break = Callable[[Sequence[float]], list[float]]


@dataclass(frozen=True)
class Claim:
    """Rates of one policy. alarms: most false alarms of the band; plain: least ones of a quarter more or less.

    half, zero, milli: what is caught at least when waits are halved, left out, or taken in the wrong unit, for 2 and for
    4 waits; half_most: what is caught at most, where the blindness is documented.
    """

    policy: Policy
    plain: float
    alarms: float = 0.0
    half: tuple[float, float] = (1.0, 1.0)
    half_most: float = 1.0
    zero: tuple[float, float] = (1.0, 1.0)
    milli: tuple[float, float] = (1.0, 1.0)


CLAIMS = {
    "openai": Claim(PRESETS["openai"], plain=0.02),
    "symmetric": Claim(PRESETS["standard"], plain=0.2),
    "google-genai": Claim(PRESETS["google-genai"], plain=0.3),
    "stamina": Claim(PRESETS["stamina"], plain=0.85, half=(0.15, 0.8)),
    "urllib3": Claim(Policy("urllib3", 200, 2, 120_000, first_zero=True, jitter=Jitter("additive", 0)), plain=0.01),
    "full": Claim(
        Policy("custom", 500, 2, 8000, jitter=Jitter("full")),
        plain=0.85, alarms=0.0025, half=(0.0, 0.0), half_most=0.02, zero=(0.97, 1.0), milli=(0.97, 1.0),
    ),
}  # fmt: skip


def rate(claim: Claim, count: int, size: int, broken: Break | None = None, policy: Policy | None = None) -> float:
    """Return the share of pairs of runs that are flagged; the second run of each pair is broken first."""
    flagged = 0
    for seed in range(size):
        rng = random.Random(f"{count}/{seed}")
        golden, now = (drawn_waits(claim.policy, count, rng) for _ in range(2))
        candidate = seen(broken(now) if broken else now, rng)
        flagged += bool(changes(seen(golden, rng), candidate, policy or claim.policy))
    return flagged / size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", CLAIMS)
def test_rates(name: str, count: int, size: int) -> None:
    claim = CLAIMS[name]
    at = count // 4
    allowance = 1 / size  # one run: a rate of a quarter of a percent cannot be told from none in a small sample
    assert rate(claim, count, size) <= claim.alarms + (allowance if claim.alarms else 0)
    halves = rate(claim, count, size, lambda waits: [wait / 2 for wait in waits])
    assert claim.half[at] <= halves <= claim.half_most
    assert rate(claim, count, size, lambda waits: [0.0 for _ in waits]) >= claim.zero[at] - allowance
    assert rate(claim, count, size, lambda waits: [wait / 1000 for wait in waits]) >= claim.milli[at] - allowance


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", CLAIMS)
def test_a_plain_relative_tolerance_alarms_at_honest_runs(name: str, count: int, size: int) -> None:
    claim = CLAIMS[name]
    assert rate(claim, count, size, policy=PLAIN) >= claim.plain


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["openai", "symmetric", "google-genai", "stamina", "full"])
def test_range_of_ten_recorded_runs(name: str, size: int) -> None:
    """Without a policy ten runs do: few false alarms, under any jitter."""
    policy = CLAIMS[name].policy
    flagged = 0
    for seed in range(size):
        rng = random.Random(f"runs/{seed}")
        runs = [seen(drawn_waits(policy, 4, rng), rng) for _ in range(10)]
        now = seen(drawn_waits(policy, 4, rng), rng)
        flagged += bool(changes(runs[0], now, Policy(jitter=Jitter("full")), runs))
    assert flagged / size <= (0.035 if size == WHOLE else 0.06)


@pytest.mark.parametrize("size", SIZES)
def test_no_policy_at_all_holds_for_the_commonest_client(size: int) -> None:
    """The ratio of the golden's wait is what `down 0.25` can do, so its clients hardly ever alarm, and halving is seen."""
    claim = CLAIMS["openai"]
    assert rate(claim, 4, size, policy=Policy()) <= 0.002
    assert rate(claim, 4, size, lambda waits: [wait / 2 for wait in waits], policy=Policy()) > 0.99


@pytest.mark.parametrize("size", SIZES)
def test_one_wait_under_full_jitter_is_hard_to_tell_from_none(size: int) -> None:
    """Documented: a single wait of 0 is caught where it costs less than a thousandth of the window, else not."""
    claim = CLAIMS["full"]
    unseen = 1 - rate(claim, 1, size, lambda waits: [0.0])
    assert 0.5 < unseen < 1, f"with a mean overhead of {OVERSHOOT_MEAN_MS} ms most such runs pass"
    exact = [bool(changes([300.0], [0.0], claim.policy))]
    assert all(exact)
