"""Checks that see several waits of an operation together: do they grow as declared, and does the client wait at all?

Only waits that were in order by themselves are looked at, so that one cause gives one verdict.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from goldentrace.match.backoff import band
from goldentrace.match.gaps import LAYERS, Step, Wait
from goldentrace.match.tolerance import NO_WAIT_MS, ROUNDING_MS, Interval, Slack, growth
from goldentrace.match.uniform_sum import critical_sum, lower_tail
from goldentrace.match.wait_pair import WaitPair, WaitVerdict

ALPHA: Final = 0.001
"""How often an honest client may be taken for one that does not wait, per operation."""


def _is_own_choice(pair: WaitPair, verdict: WaitVerdict) -> bool:
    """Was this wait the client's own choice, whole, and in order so far?"""
    is_cut = any(step.wait.is_last and step.wait.deadline_ms is not None for step in (pair.golden, pair.candidate))
    is_whole = pair.candidate.wait.value(pair.measure) is not None and not is_cut
    is_own = not pair.is_led_by_server and not (pair.is_latency and not pair.is_announced)
    return is_whole and is_own and verdict.code is None and (verdict.now_ms is None or verdict.now_ms >= 0)


def judge_growth(pairs: Sequence[WaitPair], verdicts: list[WaitVerdict]) -> None:
    """GT404: the ratio of two successive waits of one loop, where both were in order by themselves."""
    for place in range(1, len(pairs)):
        first, second = pairs[place - 1], pairs[place]
        is_one_loop = all(
            one.wait.origin == two.wait.origin and one.run == two.run and one.k + 1 == two.k
            for one, two in ((first.golden, second.golden), (first.candidate, second.candidate))
        )
        is_judged = all(_is_own_choice(pairs[at], verdicts[at]) for at in (place - 1, place))
        if not is_one_loop or not is_judged or first.measure != second.measure:
            continue
        now = _growth_interval(first, first.candidate)
        own = _growth_interval(first, first.golden)
        value, expected = second.candidate.wait.value(second.measure), second.golden.wait.value(second.measure)
        if now is None or value is None or (own is not None and expected is not None and own.deviation(expected)):
            continue
        verdict = second.measured(now, second.measure, "GT404", "waits do not grow as declared")
        if verdict.code is not None:
            verdicts[place] = verdict


def _growth_interval(pair: WaitPair, step: Step) -> Interval | None:
    """Where the wait after `step` may lie: what was intended lies within the slack of what was seen."""
    seen, ratio = step.wait.value(pair.measure), growth(pair.policy, step.k)
    if ratio is None or seen is None:
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
            at
            for at, pair in enumerate(pairs)
            if pair.candidate.wait.origin == layer and _is_own_choice(pair, verdicts[at]) and _window_ms(pair) > 0
        ]
        if not places:
            continue
        chosen = [pairs[at] for at in places]
        shares = [_share(pair, pair.candidate.wait) for pair in chosen]
        own = [_share(pair, pair.golden.wait) for pair in chosen if pair.golden.wait.value(pair.measure) is not None]
        is_broken_by_golden = bool(own) and lower_tail(sum(own), len(own)) < ALPHA
        if lower_tail(sum(shares), len(shares)) < ALPHA and not is_broken_by_golden:
            verdicts[places[-1]] = _too_short_together(chosen, sum(shares))


def _window_ms(pair: WaitPair) -> float:
    """Width of a band that starts at 0 and may hold a wait at all, else 0; it never depends on the wait before."""
    lo, hi = band(pair.policy, pair.candidate.k)
    jitter = pair.policy.jitter
    is_from_zero = lo <= ROUNDING_MS and jitter is not None and jitter.kind in ("full", "down", "symmetric")
    return hi if is_from_zero and hi >= NO_WAIT_MS else 0.0


def _share(pair: WaitPair, wait: Wait) -> float:
    return min(1.0, max(0.0, (wait.value(pair.measure) or 0.0) / _window_ms(pair)))


def _too_short_together(pairs: Sequence[WaitPair], total: float) -> WaitVerdict:
    """Say it in ms: the same waits, lengthened in proportion until their sum would pass."""
    critical = critical_sum(len(pairs), ALPHA)
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
