"""Compares the waits of one operation with the golden's: at most one verdict per wait, every one with its tolerance.

Order of the checks: hedging, Retry-After, the band (or what stands for it), the announced delay against the observed
wait, growth, and the sum of waits whose bands start at 0. Times that are not there are said so and never compared as 0.
Knows no traces: the caller takes the numbers out of paired operations, and compares counts, order and decisions itself,
for which there is no tolerance.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from goldentrace.match.backoff import Policy
from goldentrace.match.gaps import Measure, Wait, pair_steps
from goldentrace.match.tolerance import (
    NO_WAIT_MS,
    Interval,
    Runs,
    Slack,
    allowed,
    floor_ms,
    is_abort_expected,
    is_floor_broken,
    kept,
    recorded,
)
from goldentrace.match.wait_pair import WaitPair, WaitVerdict, format_ms
from goldentrace.match.wait_series import judge_growth, judge_sums

__all__ = ["Wait", "WaitVerdict", "compare_waits"]

ONLY_ANNOUNCED: Final = "observed waits on neither side; the announced delays agree"


def compare_waits(
    golden: Sequence[Wait], candidate: Sequence[Wait], policy: Policy, *, recorded_runs: Runs | None = None
) -> list[WaitVerdict]:
    """Compare the waits of one operation, and return one verdict per pair of waits in the candidate's order.

    golden, candidate: all waits of the operation in the order of its attempts; waits that only one side has are not
    judged (attempts-changed says them). recorded_runs: per recorded run its gaps in ms, in the golden's order; used
    from ten runs on where no policy is declared. A verdict without a code is an agreement, or, with `coverage`, what
    could not be compared.
    """
    pairs = [WaitPair(policy, before, now, recorded_runs) for before, now in pair_steps(golden, candidate)]
    verdicts = [_judge(pair) for pair in pairs]
    if policy.is_declared:
        judge_growth(pairs, verdicts)
        if not policy.is_plain:
            judge_sums(pairs, verdicts)
    return verdicts


def _judge(pair: WaitPair) -> WaitVerdict:
    before, now = pair.golden.wait.value("gap"), pair.candidate.wait.value("gap")
    if before is None and now is None and not pair.is_announced:
        return pair.verdict(coverage=f"waits on neither side ({_why_missing(pair.candidate.wait)})")
    if _is_same(pair.golden.wait, pair.candidate.wait):
        return pair.verdict(source="equal", coverage=None if now is not None else ONLY_ANNOUNCED)
    checks: tuple[Callable[[WaitPair], WaitVerdict | None], ...] = (_judge_hedging, _judge_floor, _judge_abort)
    for check in checks:
        verdict = check(pair)
        if verdict is not None:
            return verdict
    if pair.is_announced:
        return _judge_announced(pair)
    if before is None or now is None:
        return _judge_one_sided(pair)
    return _judge_gap(pair)


def _is_same(golden: Wait, candidate: Wait) -> bool:
    """Equal numbers are no change, whatever the tolerance; where nothing is bounded this alone can say so."""
    return (golden.gap_ms, golden.delay_ms, golden.owed_ms) == (candidate.gap_ms, candidate.delay_ms, candidate.owed_ms)


def _judge_hedging(pair: WaitPair) -> WaitVerdict | None:
    before, now = pair.golden.wait.value("gap"), pair.candidate.wait.value("gap")
    is_hedged_before, is_hedged = before is not None and before < 0, now is not None and now < 0
    if not is_hedged_before and not is_hedged:
        return None
    if before is None or now is None:
        side, missing = ("candidate", pair.golden) if is_hedged else ("golden", pair.candidate)
        reason = f"hedged in the {side}, and no time on the other side ({_why_missing(missing.wait)})"
        return pair.verdict("gap", code="GT403", severity="no-verdict", not_comparable=reason)
    if is_hedged_before and is_hedged:
        return pair.verdict("gap", notes=("hedged on both sides: there is no wait to compare",))
    if is_hedged:
        reason = "an attempt started before the one before it ended"
        return pair.verdict("gap", code="GT206", severity="error", reason=reason, lo_ms=0.0, deviation_ms=now)
    reason = "an attempt waits for the end of the one before it, which it did not in the golden"
    return pair.verdict("gap", code="GT206", severity="error", reason=reason)


def _judge_floor(pair: WaitPair) -> WaitVerdict | None:
    """Retry-After binds whoever sends the next attempt; the announced delay decides only where no gap was observed."""
    policy, now = pair.policy, pair.candidate.wait
    measure: Measure = "gap" if now.value("gap") is not None else "delay"
    floor = floor_ms(policy, now)
    if floor is None or not is_floor_broken(policy, now, measure) or (measure == "delay" and not pair.is_announced):
        return None
    if is_floor_broken(policy, pair.golden.wait, measure):
        return None
    source = f"Retry-After of {now.asked_ms:g} ms"
    if now.owed_is_date:
        source += " from a date, less the second that it may have lost"
    if measure == "gap":
        source += f", backoff.early_ms: {policy.early_ms:g}"
    interval = Interval(floor - Slack.of(policy, measure).early_ms, None, source)
    return pair.measured(interval, measure, "GT402", "shorter than Retry-After")


def _judge_abort(pair: WaitPair) -> WaitVerdict | None:
    policy, now = pair.policy, pair.candidate.wait
    if not is_abort_expected(policy, now) or is_abort_expected(policy, pair.golden.wait):
        return None
    if policy.retry_after.mode == "abort":
        setting = "backoff.retry_after.mode: abort"
    else:
        setting = f"backoff.retry_after.abort_above_ms: {policy.retry_after.abort_above_ms:g}"
    return pair.verdict(
        code="GT402", severity="error", source=pair.sourced(setting),
        reason=f"another attempt although {format_ms(now.asked_ms)} were owed: abort or escalate is expected",
    )  # fmt: skip


def _judge_announced(pair: WaitPair) -> WaitVerdict:
    """Hold the announced delay to the band, then the observed wait to the announced one."""
    policy, golden, candidate = pair.policy, pair.golden, pair.candidate
    before, now = golden.wait.value("gap"), candidate.wait.value("gap")
    if now is not None and recorded(policy, golden, pair.runs) is not None:
        verdict = _judge_gap(pair)  # recorded runs hold observed gaps, so they can judge those only
    else:
        interval = allowed(policy, golden, candidate, "delay")
        if interval is None:
            return _unbounded(pair)
        verdict = pair.measured(interval, "delay", "GT401", "announced delay out of its band")
    if verdict.code is not None:
        return verdict
    if now is not None:
        promise = kept(policy, golden.wait, candidate.wait)
        observed = pair.measured(promise, "gap", "GT401", "the announced delay was not kept")
        return observed if observed.code is not None else verdict
    if before is None:
        return replace(verdict, coverage=ONLY_ANNOUNCED)
    reason = f"no time in the candidate ({_why_missing(candidate.wait)}); the announced delays agree"
    return replace(verdict, code="GT403", severity="warning", not_comparable=reason)


def _judge_one_sided(pair: WaitPair) -> WaitVerdict:
    """One end is not known on one side: the golden's absence leaves the candidate to be held to what is declared."""
    now = pair.candidate.wait.value("gap")
    if now is None:
        reason = f"no time in the candidate ({_why_missing(pair.candidate.wait)})"
        if pair.is_latency and floor_ms(pair.policy, pair.candidate.wait) is None:
            return pair.verdict(coverage=f"{reason}; the model asked, so no wait is due")
        return pair.verdict(code="GT403", severity="no-verdict", not_comparable=reason)
    reason = f"no time in the golden ({_why_missing(pair.golden.wait)}); count and Retry-After hold"
    if pair.is_latency:
        return pair.verdict(coverage=f"{reason}; the model asked, so no wait is due")
    interval = allowed(pair.policy, pair.golden, pair.candidate, "gap", pair.runs)
    verdict = pair.verdict() if interval is None else pair.measured(interval, "gap", "GT401", "wait out of its band")
    if verdict.code is not None:
        return verdict
    return replace(verdict, code="GT403", severity="warning", not_comparable=reason)


def _judge_gap(pair: WaitPair) -> WaitVerdict:
    if pair.is_latency:
        return pair.verdict(source="the model asked: its latency is not compared, only Retry-After is")
    interval = allowed(pair.policy, pair.golden, pair.candidate, "gap", pair.runs)
    return _unbounded(pair) if interval is None else pair.measured(interval, "gap", "GT401", "wait out of its band")


def _unbounded(pair: WaitPair) -> WaitVerdict:
    """Jitter without bound and no policy: one wait says nothing of another one."""
    values = (pair.golden.wait.value(pair.measure), pair.candidate.wait.value(pair.measure))
    if all(value is not None and value < NO_WAIT_MS for value in values):
        return pair.verdict(source="no wait on either side")
    is_covered = floor_ms(pair.policy, pair.candidate.wait) is not None
    kind = pair.policy.jitter.kind if pair.policy.jitter else "undeclared"
    reason = f"{kind} jitter without a policy: any wait is possible" + ("; Retry-After holds" if is_covered else "")
    return pair.verdict(code="GT403", severity="warning" if is_covered else "no-verdict", not_comparable=reason)


def _why_missing(wait: Wait) -> str:
    if wait.gap_ms is not None:
        return "not a finite number"
    return wait.why_missing or "not recorded"
