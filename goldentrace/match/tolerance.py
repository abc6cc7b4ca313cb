"""The interval that one wait may lie in: from the declared band, from recorded runs, or from the golden's own wait.

Every interval carries the setting it comes from, since a tolerance that nobody can trace cannot be argued with. This
module computes intervals and passes no verdict; waits.py does that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from goldentrace.match.backoff import Jitter, Policy, band, expected_wait
from goldentrace.match.gaps import Measure, Step, Wait

Runs: TypeAlias = Sequence[Sequence[float]]
"""Per recorded run its gaps in ms, in the order of the golden's."""

NO_WAIT_MS: Final = 50.0
"""A golden's gap below this is the client's own overhead, not a wait: no other one is shorter in a way that counts."""
STRETCH: Final = 1.10
"""How far a sleep may run over, beside the slack: timers and schedulers are late in proportion too."""
ANNOUNCED_SLACK_MS: Final = 1.0
"""An announced delay was computed, not slept: only rounding separates it from the band."""
DATE_TRUNCATION_MS: Final = 1000.0
"""An HTTP-date has whole seconds (RFC 9110 section 5.6.7): `now + 2 s` was measured to ask for as little as 1.16 s."""
SURPLUS_RATIO: Final = 0.25
"""Without a policy, what a client may add to Retry-After, as a share of it."""
UNDECLARED_RATIO: Final = (0.75, 1.334)
"""Without a policy, what may become of the golden's wait: the ratios that two waits of `down 0.25` can have, the jitter
of the commonest SDKs (1 - 0.25, and its inverse rounded up)."""
FEWEST_RUNS: Final = 10
"""From this many recorded runs their range is used, widened by RUNS_WIDENING * span / (N - 1). The plain range of N
runs misses the next one 2 in N + 1 times; widened, 0 to 3.3 % of the runs at N = 10 (tests/match, up to four waits)."""
RUNS_WIDENING: Final = 3.0
ROUNDING_MS: Final = 1e-6
"""Bounds are inclusive; this much is what floating point may have lost."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What is allowed, in ms with all slack in it; None = no bound on that side. source: the setting that gives it."""

    lo_ms: float | None
    hi_ms: float | None
    source: str
    note: str | None = None

    def deviation(self, value_ms: float) -> float:
        """Return how far a value lies outside in ms: negative too short, positive too long, 0 inside."""
        if self.lo_ms is not None and value_ms < self.lo_ms - ROUNDING_MS:
            return value_ms - self.lo_ms
        if self.hi_ms is not None and value_ms > self.hi_ms + ROUNDING_MS:
            return value_ms - self.hi_ms
        return 0.0


@dataclass(frozen=True, slots=True)
class Slack:
    """How far a measured value may lie outside of what was intended."""

    early_ms: float
    late_ms: float
    stretch: float

    @classmethod
    def of(cls, policy: Policy, measure: Measure) -> "Slack":
        if measure == "delay":
            return cls(ANNOUNCED_SLACK_MS, ANNOUNCED_SLACK_MS, 1.0)
        return cls(policy.early_ms, policy.late_ms, STRETCH)

    def widen(self, lo_ms: float, hi_ms: float) -> tuple[float, float]:
        return lo_ms - self.early_ms, hi_ms * self.stretch + self.late_ms


def floor_ms(policy: Policy, wait: Wait) -> float | None:
    """Return the shortest wait in ms that Retry-After allows, None where nothing is owed or the policy ignores it."""
    if policy.retry_after.mode == "ignore" or wait.asked_ms == 0:
        return None
    return max(0.0, wait.asked_ms - DATE_TRUNCATION_MS) if wait.owed_is_date else wait.asked_ms


def is_floor_broken(policy: Policy, wait: Wait, measure: Measure) -> bool:
    """Is the wait known, and shorter than what Retry-After allows?"""
    floor, value = floor_ms(policy, wait), wait.value(measure)
    if floor is None or value is None:
        return False
    return value < floor - Slack.of(policy, measure).early_ms - ROUNDING_MS


def is_abort_expected(policy: Policy, wait: Wait) -> bool:
    """Should the client have made no further attempt, going by what is owed?"""
    limit = policy.retry_after.abort_above_ms
    match policy.retry_after.mode:
        case "ignore":
            return False
        case "abort":
            return wait.asked_ms > 0
        case "honour":
            return limit is not None and wait.asked_ms > limit


def allowed(
    policy: Policy, golden: Step, candidate: Step, measure: Measure, runs: Runs | None = None
) -> Interval | None:
    """Return the interval that the candidate's value may lie in, None where nothing bounds it.

    By precedence the plain form, the declared band, ten or more recorded runs (of gaps), and without any of them the
    golden's own wait. Bounds that the golden breaks itself give way to the golden's wait, or are dropped.
    """
    expected = golden.wait.value(measure)
    if policy.is_plain:
        interval = None if expected is None else _plain(policy, expected)
    elif policy.is_declared:
        interval = _declared(policy, golden, candidate, measure)
    else:
        interval = recorded(policy, golden, runs) if measure == "gap" else None
        if interval is None and expected is not None:
            interval = _undeclared(policy, golden.wait, candidate.wait, measure)
    if interval is None:
        return None
    lo_ms = interval.lo_ms
    if expected is not None and expected < NO_WAIT_MS:
        lo_ms = None
    if lo_ms is not None and candidate.wait.is_last and candidate.wait.deadline_ms is not None:
        lo_ms = min(lo_ms, candidate.wait.deadline_ms - Slack.of(policy, measure).early_ms)
    floor = floor_ms(policy, candidate.wait)
    if floor is not None and not is_floor_broken(policy, golden.wait, measure):
        floor -= Slack.of(policy, measure).early_ms
        lo_ms = floor if lo_ms is None else max(lo_ms, floor)
    return Interval(lo_ms, interval.hi_ms, interval.source, interval.note)


def recorded(policy: Policy, golden: Step, runs: Runs | None) -> Interval | None:
    """Return the range of the gap at this place over the recorded runs, None if they are fewer than FEWEST_RUNS."""
    if runs is None or policy.is_declared or policy.is_plain:
        return None
    values = [run[golden.position] for run in runs if len(run) > golden.position]
    values = [value for value in values if math.isfinite(value) and value >= 0]
    if len(values) < FEWEST_RUNS:
        return None
    shortest, longest = min(values), max(values)
    margin = RUNS_WIDENING * (longest - shortest) / (len(values) - 1)
    lo, hi = shortest - margin - policy.early_ms, longest + margin + policy.late_ms
    return Interval(lo, hi, f"no policy: range of {len(values)} recorded runs")


def kept(policy: Policy, golden: Wait, candidate: Wait) -> Interval:
    """Return where the candidate's gap may lie, going by the delay that it announced; both sides have announced one."""
    slack = Slack.of(policy, "gap")
    own, announced = golden.value("delay") or 0.0, candidate.value("delay") or 0.0
    expected = golden.value("gap")
    lo_ms, hi_ms = _give_way(policy, expected, slack.widen(own, own), slack.widen(announced, announced), "gap")
    if expected is not None and expected < NO_WAIT_MS:
        lo_ms = None
    if lo_ms is not None and candidate.is_last and candidate.deadline_ms is not None:
        lo_ms = min(lo_ms, candidate.deadline_ms - slack.early_ms)
    return Interval(lo_ms, None if candidate.after_model_turn else hi_ms, "the decision's own delay_ms")


def bracket(jitter: Jitter | None, golden_ms: float) -> tuple[float, float] | None:
    """Return what one wait says of another of the same place and jitter where no base is known, in ms without slack.

    None where it says nothing (full, decorrelated). Never narrower than UNDECLARED_RATIO: the golden's wait holds a
    scheduling delay of its own.
    """
    if jitter is not None and not jitter.is_bounded:
        return None
    low, high = UNDECLARED_RATIO[0] * golden_ms, UNDECLARED_RATIO[1] * golden_ms
    if jitter is None:
        return low, high
    match jitter.kind:
        case "additive":
            return min(low, max(0.0, golden_ms - jitter.amount)), max(high, golden_ms + jitter.amount)
        case "equal":
            return min(low, golden_ms / 2), max(high, golden_ms * 2)
        case _:
            widest = _widest_ratio(jitter)
            return min(low, golden_ms / widest), max(high, golden_ms * widest)


def growth(policy: Policy, k: int) -> tuple[float, float] | None:
    """Return the lowest and highest ratio of wait k + 1 to wait k, None where the jitter or a wait of 0 allows any.

    factor * [1 - J, 1 / (1 - J)] under none and down, factor * [(1 - J) / (1 + J), (1 + J) / (1 - J)] under symmetric;
    once the cap is reached the factor is 1, and on the step that reaches it in between.
    """
    jitter, before, after = policy.jitter, expected_wait(policy, k), expected_wait(policy, k + 1)
    if jitter is None or jitter.kind not in ("none", "down", "symmetric") or not jitter.is_bounded:
        return None
    if not before or not after:
        return None
    return after / before / _widest_ratio(jitter), after / before * _widest_ratio(jitter)


def _widest_ratio(jitter: Jitter) -> float:
    """How many times longer than another a wait of the same nominal length can be, under none, down or symmetric."""
    return (1 + jitter.amount if jitter.kind == "symmetric" else 1) / (1 - jitter.amount)


def _plain(policy: Policy, expected: float) -> Interval:
    absolute, relative = policy.absolute_ms or 0.0, (policy.relative or 0.0) * expected
    width = max(absolute, relative)
    setting = f"absolute_ms: {policy.absolute_ms:g}" if absolute >= relative and policy.absolute_ms is not None else ""
    return Interval(expected - width, expected + width, f"backoff.{setting or f'relative: {policy.relative:g}'}")


def _declared(policy: Policy, golden: Step, candidate: Step, measure: Measure) -> Interval:
    expected = golden.wait.value(measure)
    own, bounds = _policy_bounds(policy, golden, measure), _policy_bounds(policy, candidate, measure)
    lo, hi = _give_way(policy, expected, own, bounds, measure)
    source = f"backoff.policy: {policy.policy}"
    floor = floor_ms(policy, candidate.wait)
    if floor is not None:
        source += f", Retry-After of {candidate.wait.asked_ms:g} ms"
    if (lo, hi) == bounds:
        return Interval(lo, hi, source)
    note = f"the golden's own wait lies outside of what {source} allows; compared with the golden instead"
    return Interval(lo, hi, source, note)


def _policy_bounds(policy: Policy, step: Step, measure: Measure) -> tuple[float, float]:
    """What the policy allows at this place of this side, slack included."""
    previous = step.previous
    # After a wait that the server asked for, the client's own state is not what was observed.
    before = None if previous is None or floor_ms(policy, previous) is not None else previous.value(measure)
    if before is not None and measure == "delay":
        before += ANNOUNCED_SLACK_MS  # it was rounded too, and three times that is more than the slack of this one
    lo, hi = band(policy, step.k, before)
    floor = floor_ms(policy, step.wait)
    if floor is not None:
        # An honest client may wait exactly what is owed, even where its formula asks for more.
        lo, hi = floor, max(step.wait.asked_ms * (1 + policy.retry_after.jitter), hi)
    return Slack.of(policy, measure).widen(lo, hi)


def _give_way(
    policy: Policy, expected: float | None, own: tuple[float, float], bounds: tuple[float, float], measure: Measure
) -> tuple[float | None, float | None]:
    """Loosen the bounds that the golden breaks itself: that is a finding about the golden, not a change.

    Where one wait bounds another, the golden's own takes the place of the broken bound, so that a declared policy that
    does not fit cannot hide a wait of ten times the golden's.
    """
    lo, hi = bounds
    if expected is None:
        return lo, hi
    slack = Slack.of(policy, measure)
    near = bracket(policy.jitter, expected)
    is_short, is_long = expected < own[0] - ROUNDING_MS, expected > own[1] + ROUNDING_MS
    lo_ms = lo if not is_short else None if near is None else min(lo, near[0] - slack.early_ms)
    hi_ms = hi if not is_long else None if near is None else max(hi, near[1] + slack.late_ms)
    return lo_ms, hi_ms


def _undeclared(policy: Policy, golden: Wait, candidate: Wait, measure: Measure) -> Interval | None:
    expected = golden.value(measure)
    near = None if expected is None else bracket(policy.jitter, expected)
    if expected is None or near is None:
        return None
    slack = Slack.of(policy, measure)
    floor = floor_ms(policy, candidate)
    owed_then, owed_now = (0.0 if floor_ms(policy, wait) is None else wait.asked_ms for wait in (golden, candidate))
    upward = max(SURPLUS_RATIO, policy.retry_after.jitter)
    is_led_by_server = owed_then > 0 and expected <= owed_then * (1 + upward) + slack.late_ms
    if is_led_by_server and floor is not None:
        surplus = max(0.0, expected - owed_then)
        lo = min(floor, near[0]) if is_floor_broken(policy, golden, measure) else floor
        hi = owed_now * (1 + upward) + surplus + slack.late_ms
        source = f"no policy: Retry-After of {owed_now:g} ms plus {upward:.0%}, and {surplus:.0f} ms as in the golden"
        return Interval(lo - slack.early_ms, hi, source)
    # A server that asks for a wait only now explains one that is longer than the golden's.
    hi = max(near[1], owed_now * (1 + upward))
    low, high = (near[0] / expected, near[1] / expected) if expected else UNDECLARED_RATIO
    note = "the golden's wait was asked for by Retry-After; now none is stated" if is_led_by_server else None
    source = f"no policy: ratio {low:.4g} to {high:.4g} of the golden"
    return Interval(near[0] - slack.early_ms, hi + slack.late_ms, source, note)
