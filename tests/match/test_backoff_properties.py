"""What holds for every policy: honest runs are clean, broken backoff is caught, and more slack never adds an alarm."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from goldentrace.match.backoff import PRESETS, Jitter, Policy, RetryAfter
from goldentrace.match.uniform_sum import critical_sum, lower_tail
from goldentrace.match.wait_pair import format_ms
from goldentrace.match.wait_series import ALPHA
from goldentrace.match.waits import Wait, compare_waits
from tests.match.backoff_simulation import as_waits, changes, intended_waits

RATIOS = st.floats(0.01, 0.6)
BOUNDED = st.one_of(
    st.just(Jitter("none")),
    st.just(Jitter("equal")),
    st.builds(Jitter, st.sampled_from(["down", "symmetric"]), RATIOS),
    st.builds(Jitter, st.just("additive"), st.floats(0, 2000)),
)
UNBOUNDED = st.sampled_from([Jitter("full"), Jitter("decorrelated")])
PRESET_NAMES = sorted(set(PRESETS) - {"none", "custom"})


def declared(jitters: st.SearchStrategy[Jitter]) -> st.SearchStrategy[Policy]:
    return st.builds(
        Policy,
        st.just("custom"),
        base_ms=st.floats(60, 3000),
        factor=st.floats(1, 4),
        cap_ms=st.none() | st.floats(3000, 60_000),
        first_zero=st.booleans(),
        jitter=jitters,
    )


POLICIES = declared(BOUNDED | UNBOUNDED) | st.sampled_from([PRESETS[name] for name in PRESET_NAMES])
DRAWS = st.lists(st.floats(0, 1), min_size=5, max_size=5)
OVERSHOOTS = st.lists(st.floats(-4.9, 240), min_size=5, max_size=5)
COUNTS = st.integers(1, 5)
TIMES = st.none() | st.floats(-100, 20_000) | st.sampled_from([math.nan, math.inf, 0.0, 49.0, 50.0])
ANY_WAIT = st.builds(
    Wait,
    gap_ms=TIMES,
    delay_ms=st.none() | TIMES,
    owed_ms=st.none() | TIMES,
    owed_is_date=st.booleans(),
    origin=st.sampled_from(["model", "harness", "sdk", "transport"]),
    after_model_turn=st.booleans(),
    is_last=st.booleans(),
    deadline_ms=st.none() | st.floats(0, 5000),
)
ANY_POLICY = st.builds(
    replace,
    POLICIES | st.builds(Policy, jitter=st.none() | BOUNDED | UNBOUNDED),
    retry_after=st.builds(RetryAfter, st.sampled_from(["honour", "ignore", "abort"]), st.none() | st.floats(0, 5000)),
    absolute_ms=st.none() | st.floats(0, 1000),
    relative=st.none() | st.floats(0, 1),
)


def followed(policy: Policy, draws: list[float], overshoots: list[float], count: int) -> list[float]:
    """Return waits of a client that follows the policy, each within the slack of what it intended."""
    intended = intended_waits(policy, count, draws)
    return [max(0.0, wait + late) for wait, late in zip(intended, overshoots, strict=False)]


@given(ANY_POLICY, st.lists(ANY_WAIT, max_size=6))
def test_a_run_is_no_change_from_itself(policy: Policy, waits: list[Wait]) -> None:
    # NaN and infinity are times that are not known; equal unknowns are no agreement and no change either.
    verdicts = compare_waits(waits, waits, policy)
    assert [verdict.code for verdict in verdicts if verdict.severity == "error"] == []
    known = [verdict for verdict in verdicts if not math.isnan(waits[verdict.index].delay_ms or 0)]
    assert all(verdict.code is None for verdict in known), [verdict.message for verdict in known]


@given(
    ANY_POLICY, st.lists(ANY_WAIT, max_size=6), st.lists(ANY_WAIT, max_size=6), st.none() | st.just([[500.0] * 6] * 10)
)
def test_one_verdict_per_wait_and_every_message_is_whole(
    policy: Policy, golden: list[Wait], candidate: list[Wait], runs: list[list[float]] | None
) -> None:
    verdicts = compare_waits(golden, candidate, policy, recorded_runs=runs)
    indexes = [verdict.index for verdict in verdicts]
    assert indexes == sorted(set(indexes))
    assert len({verdict.golden_index for verdict in verdicts}) == len(verdicts) == min(len(golden), len(candidate))
    for verdict in verdicts:
        assert (verdict.code is None) == (verdict.severity is None)
        assert (verdict.code == "GT403") == (verdict.not_comparable is not None)
        assert verdict.code not in ("GT401", "GT404") or verdict.deviation_ms
        assert verdict.severity != "error" or verdict.reason
        assert "nan" not in verdict.message.replace("Retry-After of nan", "")
        for wait, value in (
            (candidate[verdict.index], verdict.now_ms),
            (golden[verdict.golden_index], verdict.golden_ms),
        ):
            is_known = any(time is not None and math.isfinite(time) for time in (wait.gap_ms, wait.delay_ms))
            assert value is None or is_known, "a time that is not known was compared"


@given(POLICIES, DRAWS, DRAWS, OVERSHOOTS, OVERSHOOTS, COUNTS)
def test_a_client_that_follows_its_policy_is_never_flagged(
    policy: Policy, before: list[float], now: list[float], late_before: list[float], late: list[float], count: int
) -> None:
    """Apart from the sum of waits, whose false alarms are alpha by construction and counted in the Monte Carlo test."""
    golden, candidate = followed(policy, before, late_before, count), followed(policy, now, late, count)
    for verdict in changes(golden, candidate, policy):
        assert verdict.measure == "sum", verdict.message
        assert lower_tail(sum(now[:count]), count) < 2 * ALPHA or policy.first_zero or policy.base_ms < 250


@given(declared(BOUNDED), DRAWS, DRAWS, COUNTS, st.floats(1000, 9000))
def test_what_is_owed_is_followed_without_an_alarm(
    policy: Policy, before: list[float], now: list[float], count: int, owed_ms: float
) -> None:
    """A client that waits the longer of formula and Retry-After, one that waits just Retry-After, and all between."""
    golden = [Wait(gap_ms=max(owed_ms, wait), owed_ms=owed_ms) for wait in intended_waits(policy, count, before)]
    exact = [Wait(gap_ms=owed_ms, owed_ms=owed_ms) for _ in golden]
    longer = [Wait(gap_ms=max(owed_ms, wait), owed_ms=owed_ms) for wait in intended_waits(policy, count, now)]
    for candidate in (exact, longer):
        assert [verdict.code for verdict in compare_waits(golden, candidate, policy)] == [None] * count
    for share in (0.5, 0.99):
        short = [replace(wait, gap_ms=owed_ms * share) for wait in exact]
        assert {verdict.code for verdict in compare_waits(golden, short, policy)} == {"GT402"}


NARROW = declared(
    st.one_of(
        st.just(Jitter("none")),
        st.builds(Jitter, st.just("down"), st.floats(0.01, 0.45)),
        st.builds(Jitter, st.just("symmetric"), st.floats(0.01, 0.3)),
    )
)


@given(NARROW, DRAWS, DRAWS, COUNTS)
def test_halved_waits_are_flagged_where_the_band_is_narrower_than_that(
    policy: Policy, before: list[float], now: list[float], count: int
) -> None:
    policy = replace(policy, first_zero=False, base_ms=policy.base_ms + 200)
    golden, intended = intended_waits(policy, count, before), intended_waits(policy, count, now)
    assert len(changes(golden, [wait / 2 for wait in intended], policy)) == count


@given(DRAWS, DRAWS, COUNTS)
def test_halved_waits_are_honest_under_full_jitter(before: list[float], now: list[float], count: int) -> None:
    """The documented blind spot: half of an honest draw is an honest draw; only the sum may ever say something."""
    policy = PRESETS["backoff"]
    golden, intended = intended_waits(policy, count, before), intended_waits(policy, count, now)
    assert all(verdict.measure == "sum" for verdict in changes(golden, [wait / 2 for wait in intended], policy))


@given(declared(st.just(Jitter("full"))), st.integers(2, 5), DRAWS)
def test_no_wait_at_all_is_flagged_under_full_jitter(policy: Policy, count: int, before: list[float]) -> None:
    policy = replace(policy, first_zero=False)
    assume(lower_tail(sum(before[:count]), count) > ALPHA)
    assert changes(intended_waits(policy, count, before), [0.0] * count, policy)


@given(declared(BOUNDED), DRAWS, COUNTS, st.data())
def test_more_slack_never_adds_an_alarm(policy: Policy, before: list[float], count: int, data: st.DataObject) -> None:
    golden = intended_waits(policy, count, before)
    candidate = data.draw(st.lists(st.floats(0, 20_000), min_size=count, max_size=count))
    more = data.draw(st.tuples(st.floats(0, 1000), st.floats(0, 100)))
    loose = replace(policy, late_ms=policy.late_ms + more[0], early_ms=policy.early_ms + more[1])
    flagged = {verdict.index for verdict in changes(golden, candidate, policy)}
    assert {verdict.index for verdict in changes(golden, candidate, loose) if verdict.code != "GT404"} <= flagged
    assert bool(changes(golden, candidate, loose)) <= bool(flagged)


@given(st.floats(50, 20_000), st.floats(0, 40_000), st.floats(0, 1000))
def test_more_slack_never_adds_an_alarm_without_a_policy(golden: float, now: float, more: float) -> None:
    tight, loose = Policy(), Policy(late_ms=250 + more, early_ms=5 + more)
    assert bool(changes([golden], [now], loose)) <= bool(changes([golden], [now], tight))


@given(st.floats(50, 20_000), st.floats(0, 1))
def test_no_policy_allows_what_down_a_quarter_can_do(nominal: float, draw: float) -> None:
    waits = [nominal, nominal * (1 - 0.25 * draw)]
    assert not changes(waits, waits[::-1], Policy())


@given(ANY_POLICY, st.lists(ANY_WAIT, min_size=1, max_size=5))
def test_waits_of_one_side_only_are_not_judged(policy: Policy, waits: list[Wait]) -> None:
    assert compare_waits([], waits, policy) == compare_waits(waits, [], policy) == []
    assert len(compare_waits(waits, waits[:-1], policy)) == len(waits) - 1


@given(st.integers(1, 60), st.floats(0, 1))
def test_lower_tail_is_a_distribution(draws: int, share: float) -> None:
    total = share * draws
    below, above = lower_tail(total, draws), lower_tail(draws - total, draws)
    assert 0 <= below <= 1
    assert below + above == pytest.approx(1, abs=1e-6)
    assert lower_tail(total * 0.9, draws) <= below + 1e-12


@pytest.mark.parametrize(("draws", "critical"), [(1, 0.001), (2, 0.002**0.5), (3, 0.006 ** (1 / 3)), (4, 0.024**0.25)])
def test_critical_sum_of_few_draws(draws: int, critical: float) -> None:
    """Below a sum of 1 the law is s^n / n!."""
    assert critical_sum(draws, 0.001) == pytest.approx(critical, abs=1e-6)


def test_the_law_of_many_draws_meets_its_approximation() -> None:
    exact, near = (lower_tail(share, draws) for share, draws in ((23.1281, 60), (23.1281 + 0.5, 61)))
    assert exact == pytest.approx(0.001, rel=0.01)
    assert near == pytest.approx(exact, rel=0.2)
    with pytest.raises(ValueError, match="at least one"):
        lower_tail(0.5, 0)


def test_index_tells_the_sides_apart() -> None:
    golden = [Wait(gap_ms=500, origin="sdk"), Wait(gap_ms=1000, origin="sdk"), Wait(gap_ms=5000, origin="harness")]
    candidate = [Wait(gap_ms=500, origin="sdk"), Wait(gap_ms=9000, origin="harness")]
    late = compare_waits(golden, candidate, Policy())[1]
    assert (late.index, late.golden_index, late.origin, late.code) == (1, 2, "harness", "GT401")
    assert late.message == (
        "retry 2: wait out of its band, golden 5000 ms, now 9000 ms, allowed 3745 ms to 6920 ms, 2080 ms too long "
        "(no policy: ratio 0.75 to 1.334 of the golden)"
    )


def test_the_setting_is_named_with_its_place() -> None:
    policy = replace(PRESETS["openai"], place="goldentrace.yaml:14 $.backoff")
    (short,) = changes([480.0], [100.0], policy)
    assert short.message == (
        "retry 1: wait out of its band, golden 480 ms, now 100 ms, allowed 370 ms to 800 ms, 270 ms too short "
        "(backoff.policy: openai, goldentrace.yaml:14 $.backoff)"
    )


def test_the_floor_is_named_with_its_slack() -> None:
    (early,) = compare_waits([Wait(gap_ms=2004, owed_ms=2000)], [Wait(gap_ms=900, owed_ms=2000)], Policy())
    assert early.message == (
        "retry 1: shorter than Retry-After, golden 2004 ms, now 900 ms, allowed at least 1995 ms, 1095 ms too short "
        "(Retry-After of 2000 ms, backoff.early_ms: 5)"
    )


def test_waits_too_short_together_are_told_in_ms() -> None:
    """The least sum is that of the same waits, lengthened until they pass; of waits of 0, that of equal shares."""
    policy = PRESETS["backoff"]
    (short,) = changes([480.0, 1500.0], [3.0, 4.0], policy)
    assert short.message == (
        "retry 2: 2 waits are too short together, golden 1980 ms, now 7 ms, allowed at least 63 ms, 56 ms too short "
        "(backoff.policy: backoff, full jitter: sum of 2 waits, Irwin-Hall at 0.001)"
    )
    assert short.lo_ms is not None
    longer = short.lo_ms / 7 * 1.001
    assert not changes([480.0, 1500.0], [3.0 * longer, 4.0 * longer], policy)
    (none,) = changes([480.0, 1500.0], [0.0, 0.0], policy)
    assert none.lo_ms == pytest.approx(0.002**0.5 / 2 * 3000, abs=0.01)


def test_notes_say_what_else_to_know() -> None:
    (odd,) = compare_waits([Wait(gap_ms=480)], [Wait(gap_ms=470, owed_ms=-3000)], PRESETS["openai"])
    assert odd.notes == ("Retry-After of -3000 ms asks for no wait",)
    (outside,) = compare_waits(as_waits([2000.0]), as_waits([2100.0]), PRESETS["openai"])
    assert outside.code is None
    assert "the golden's own wait lies outside" in outside.notes[0]
    (gone,) = compare_waits([Wait(gap_ms=2004, owed_ms=2000)], [Wait(gap_ms=500)], Policy())
    assert gone.code == "GT401"
    assert gone.notes == ("the golden's wait was asked for by Retry-After; now none is stated",)


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (0, "0 ms"),
        (0.04, "0.04 ms"),
        (0.1, "0.1 ms"),
        (9.94, "9.9 ms"),
        (3, "3 ms"),
        (10, "10 ms"),
        (1234.5, "1234 ms"),
    ],
)
def test_small_numbers_do_not_become_zero(value_ms: float, text: str) -> None:
    assert format_ms(value_ms) == text


def test_the_ratio_of_a_declared_jitter_is_named() -> None:
    policy = Policy(jitter=Jitter("symmetric", 0.5))
    (verdict,) = changes([900.0], [100.0], policy)
    assert verdict.source == "no policy: ratio 0.3333 to 3 of the golden"
    (verdict,) = changes([0.0], [300.0], policy)
    assert verdict.message == (
        "retry 1: wait out of its band, golden 0 ms, now 300 ms, allowed at most 250 ms, 50 ms too long "
        "(no policy: ratio 0.75 to 1.334 of the golden)"
    )


def test_the_side_that_hedged_is_named() -> None:
    (verdict,) = compare_waits([Wait(gap_ms=-4)], [Wait(why_missing="no end")], Policy())
    assert verdict.not_comparable == "hedged in the golden, and no time on the other side (no end)"
    (verdict,) = compare_waits([Wait()], [Wait(gap_ms=-4)], Policy())
    assert verdict.not_comparable == "hedged in the candidate, and no time on the other side (not recorded)"


def test_why_a_time_is_missing_is_said() -> None:
    (gap,) = compare_waits([Wait(gap_ms=480)], [Wait(why_missing="mixed clocks")], PRESETS["openai"])
    assert gap.not_comparable == "no time in the candidate (mixed clocks)"
    (nan,) = compare_waits([Wait(gap_ms=480)], [Wait(gap_ms=math.nan)], PRESETS["openai"])
    assert (nan.severity, nan.not_comparable) == ("no-verdict", "no time in the candidate (not a finite number)")
