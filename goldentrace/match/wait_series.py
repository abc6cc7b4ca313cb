"""Checks that see several waits of an operation together: do they grow as declared, and does the client wait at all?

Only waits that were in order by themselves are looked at, so that one cause gives one verdict.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from goldentrace.match.backoff import band
from goldentrace.match.gaps import LAYERS, Step
from goldentrace.match.tolerance import NO_WAIT_MS, ROUNDING_MS, Interval, Slack, floor_ms, growth
from goldentrace.match.uniform_sum import critical_sum, lower_tail
from goldentrace.match.wait_pair import WaitPair, WaitVerdict

ALPHA: Final = 0.001
"""How often an honest client may be taken for one that does not wait, per operation."""


def judge_growth(pairs: Sequence[WaitPair], verdicts: list[WaitVerdict]) -> None:
    """GT404: the ratio of two successive waits of one loop, where both were in order by themselves."""
    for place in range(1, len(pairs)):
        first, second = pairs[place - 1], pairs[place]
        is_in_order = verdicts[place - 1].code is None and verdicts[place].code is None
        if not is_in_order or first.measure != second.measure:
            continue
        now = _growth_interval(first, first.candidate, second.candidate)
        own = _growth_interval(first, first.golden, second.golden)
        expected = second.golden.wait.value(second.measure) or 0.0
        if now is None or (own is not None and own.deviation(expected)):
            continue
        verdict = second.measured(now, second.measure, "GT404", "waits do not grow as declared")
        if verdict.code is not None:
            verdicts[place] = verdict


def _is_own_choice(pair: WaitPair, step: Step) -> bool:
    """Is this wait known, whole, and the client's own: neither asked for, nor cut, nor the latency of a model?"""
    wait = step.wait
    value = wait.value(pair.measure)
    is_cut = wait.is_last and wait.deadline_ms is not None
    is_latency = wait.after_model_turn and pair.measure == "gap"
    return value is not None and value >= 0 and not is_cut and not is_latency and floor_ms(pair.policy, wait) is None


def _growth_interval(pair: WaitPair, step: Step, after: Step) -> Interval | None:
    """Where the wait `after` may lie, going by the one before it, whose intent lies within the slack of what was seen.

    None where the two are not successive waits of one loop, or not both the client's own choice.
    """
    is_one_loop = (step.wait.origin, step.run, step.k + 1) == (after.wait.origin, after.run, after.k)
    seen, ratio = step.wait.value(pair.measure), growth(pair.policy, step.k)
    if not is_one_loop or ratio is None or seen is None:
        return None
    if not _is_own_choice(pair, step) or not _is_own_choice(pair, after):
        return None
    slack = Slack.of(pair.policy, pair.measure)
    shortest, longest = max(0.0, seen - slack.late_ms) / slack.stretch, seen + slack.early_ms
    lo, hi = slack.widen(ratio[0] * shortest, ratio[1] * longest)
    setting = f"backoff.policy: {pair.policy.policy}, growth {ratio[0]:.3g} to {ratio[1]:.3g} of the wait before"
    return Interval(lo, hi, setting)


def judge_sums(pairs: Sequence[WaitPair], verdicts: list[WaitVerdict]) -> None:
    """GT401 at the last wait of a layer, where its waits are too short together for bands that start at 0."""
    for layer in LAYERS:
        places = [
            place
            for place, (pair, verdict) in enumerate(zip(pairs, verdicts, strict=True))
            if pair.candidate.wait.origin == layer and verdict.code is None
            if _is_own_choice(pair, pair.candidate) and _window_ms(pair) > 0
        ]
        chosen = [pairs[place] for place in places]
        own = [pair for pair in chosen if _is_own_choice(pair, pair.golden)]
        if _is_too_short([_share(pair, pair.candidate) for pair in chosen]) and not _is_too_short(
            [_share(pair, pair.golden) for pair in own]
        ):
            verdicts[places[-1]] = _too_short_together(chosen)


def _is_too_short(shares: Sequence[float]) -> bool:
    return bool(shares) and lower_tail(sum(shares), len(shares)) < ALPHA


def _window_ms(pair: WaitPair) -> float:
    """Width of a band that starts at 0 and may hold a wait at all, else 0; no such band depends on the wait before."""
    lo, hi = band(pair.policy, pair.candidate.k)
    return hi if lo <= ROUNDING_MS and hi >= NO_WAIT_MS else 0.0


def _share(pair: WaitPair, step: Step) -> float:
    """What part of its window a wait took; one that ran over took the whole of it and makes up for no other."""
    return min(1.0, (step.wait.value(pair.measure) or 0.0) / _window_ms(pair))


def _too_short_together(pairs: Sequence[WaitPair]) -> WaitVerdict:
    """Say it in ms: the same waits, lengthened in proportion until their sum would pass."""
    critical = critical_sum(len(pairs), ALPHA)
    total = sum(_share(pair, pair.candidate) for pair in pairs)
    now = sum(pair.candidate.wait.value(pair.measure) or 0.0 for pair in pairs)
    before = sum(pair.golden.wait.value(pair.measure) or 0.0 for pair in pairs)
    least = now * critical / total if total > 0 else critical / len(pairs) * sum(_window_ms(pair) for pair in pairs)
    policy = pairs[-1].policy
    kind = policy.jitter.kind if policy.jitter else "none"
    verdict = pairs[-1].verdict(
        code="GT401", severity="error", golden_ms=before, now_ms=now, lo_ms=least, deviation_ms=now - least,
        source=pairs[-1].sourced(
            f"backoff.policy: {policy.policy}, {kind} jitter: sum of {len(pairs)} waits, Irwin-Hall at {ALPHA:g}"
        ),
        reason=f"{len(pairs)} waits are too short together",
    )  # fmt: skip
    return replace(verdict, measure="sum")
