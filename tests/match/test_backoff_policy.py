"""Reading a declared policy: presets with overrides, and every typing error an error that says where and what is meant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.errors import ConfigError, Where
from goldentrace.match.backoff import (
    JITTER_KINDS,
    POLICY_NAMES,
    PRESETS,
    Jitter,
    Policy,
    RetryAfter,
    band,
    expected_wait,
)

HERE = Where("profile.yaml", 7, "$.backoff")


def test_nothing_declared() -> None:
    policy = Policy.from_mapping({})
    assert policy.policy == "none"
    assert not policy.is_declared
    assert (policy.late_ms, policy.early_ms) == (250, 5)
    assert expected_wait(policy, 3) is None
    assert band(policy, 3) == (0, math.inf)


def test_every_preset_is_complete() -> None:
    assert set(PRESETS) == set(POLICY_NAMES)
    for name in set(POLICY_NAMES) - {"none", "custom"}:
        policy = Policy.from_mapping({"policy": name})
        assert policy == PRESETS[name]
        assert policy.jitter is not None


def test_explicit_keys_override_the_preset() -> None:
    written = {
        "policy": "openai", "base_ms": 100, "cap_ms": None, "jitter": {"kind": "full"}, "late_ms": 500,
        "retry_after": {"abort_above_ms": None, "jitter": 0.1},
    }  # fmt: skip
    policy = Policy.from_mapping(written, HERE)
    assert (policy.base_ms, policy.factor, policy.cap_ms, policy.late_ms) == (100, 2, None, 500)
    assert policy.jitter == Jitter("full")
    assert policy.retry_after == RetryAfter("honour", None, 0.1)
    assert policy.place == "profile.yaml:7 $.backoff"


def test_every_key_of_the_documented_mapping_is_read() -> None:
    policy = Policy.from_mapping({
        "policy": "custom", "base_ms": 300, "factor": 3, "cap_ms": 9000, "first_zero": True,
        "jitter": {"kind": "down", "amount": 0.5},
        "retry_after": {"mode": "abort", "abort_above_ms": 1000, "jitter": 0.2},
        "late_ms": 100, "early_ms": 1, "absolute_ms": 50, "relative": 0.1,
    })  # fmt: skip
    assert policy == Policy(
        "custom", 300, 3, 9000, True, Jitter("down", 0.5), RetryAfter("abort", 1000, 0.2), 100, 1, 50, 0.1
    )


def test_amount_of_the_preset_stays_where_only_the_kind_is_repeated() -> None:
    policy = Policy.from_mapping({"policy": "openai", "jitter": {"kind": "down"}})
    assert policy.jitter == Jitter("down", 0.25)
    assert Policy.from_mapping({"policy": "openai", "jitter": {"amount": 0.5}}).jitter == Jitter("down", 0.5)


@pytest.mark.parametrize(
    ("written", "what", "next_step"),
    [
        ({"polcy": "openai"}, "backoff has no key 'polcy'", "did you mean policy?"),
        ({"policy": "open-ai"}, "backoff.policy cannot be 'open-ai'", "did you mean openai?"),
        ({"policy": "exponential"}, "backoff.policy cannot be 'exponential'", "known: openai, anthropic"),
        ({"policy": None}, "backoff.policy cannot be null", "known:"),
        ({"policy": "openai", "max_attempts": 3}, "backoff has no key 'max_attempts'", "known: policy"),
        ({"policy": "custom"}, "`policy: custom` needs base_ms", "add base_ms"),
        ({"base_ms": 500}, "backoff.base_ms needs a policy", "policy: custom"),
        ({"policy": "none", "first_zero": True}, "backoff.first_zero needs a policy", "policy: custom"),
        ({"policy": "openai", "base_ms": -5}, "backoff.base_ms must be a number of 0 or more, not -5", ""),
        ({"policy": "openai", "base_ms": "500"}, "backoff.base_ms must be a number of 0 or more, not '500'", ""),
        ({"policy": "openai", "base_ms": True}, "backoff.base_ms must be a number of 0 or more, not true", ""),
        ({"policy": "openai", "base_ms": None}, "backoff.base_ms must be a number of 0 or more, not null", ""),
        ({"policy": "openai", "base_ms": math.nan}, "backoff.base_ms must be a number of 0 or more, not nan", ""),
        ({"policy": "openai", "cap_ms": math.inf}, "backoff.cap_ms must be a number of 0 or more, not inf", ""),
        ({"policy": "openai", "base_ms": 10**5000}, "not an integer of 16610 bits", ""),
        ({"policy": "openai", "factor": 0}, "backoff.factor must be a number above 0, not 0", ""),
        ({"policy": "openai", "first_zero": 1}, "backoff.first_zero must be true or false, not 1", ""),
        ({"late_ms": [250]}, "backoff.late_ms must be a number of 0 or more, not a list", ""),
        ({"late_ms": {"ms": 250}}, "backoff.late_ms must be a number of 0 or more, not a mapping", ""),
        ({"jitter": "full"}, "backoff.jitter must be a mapping, not 'full'", "`backoff.jitter: {kind: …}`"),
        ({"jitter": {"amount": 0.2}}, "backoff.jitter.kind is missing", ""),
        ({"jitter": {"kind": "ful"}}, "backoff.jitter.kind cannot be 'ful'", "did you mean full?"),
        ({"jitter": {"kind": "down"}}, "down needs an amount: a ratio of 0 to 1", "add amount to backoff.jitter"),
        ({"jitter": {"kind": "additive"}}, "additive needs an amount: ms", ""),
        ({"jitter": {"kind": "down", "amount": 25}}, "backoff.jitter.amount must be a number of 0 to 1, not 25", ""),
        ({"jitter": {"kind": "full", "amount": 1}}, "backoff.jitter.amount has no meaning under full", "remove it"),
        ({"retry_after": {"mode": "honor"}}, "backoff.retry_after.mode cannot be 'honor'", "did you mean honour?"),
        ({"retry_after": {"abort_above": 1}}, "backoff.retry_after has no key 'abort_above'", "abort_above_ms?"),
        ({7: 1}, "backoff has no key 7", "known: policy"),
        ("openai", "backoff must be a mapping, not 'openai'", "`backoff: {policy: …}`"),
        (None, "backoff must be a mapping, not null", ""),
        ({"policy": "\x1b[31m\u202e" + "x" * 900}, "backoff.policy cannot be '\\x1b[31m\\u202e", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(written: object, what: str, next_step: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy.from_mapping(written, HERE)
    assert what in caught.value.what
    assert next_step in caught.value.next_step
    assert str(caught.value.where).startswith("profile.yaml:7 $.backoff")
    assert "\x1b" not in str(caught.value)
    assert len(caught.value.what) < 200


def test_the_place_of_an_error_is_the_key() -> None:
    with pytest.raises(ConfigError) as caught:
        Policy.from_mapping({"policy": "openai", "jitter": {"kind": "down", "amount": 2}}, HERE)
    assert str(caught.value.where) == "profile.yaml:7 $.backoff.jitter.amount"


def test_without_a_place_the_error_still_says_what() -> None:
    with pytest.raises(ConfigError) as caught:
        Policy.from_mapping({"late_ms": -1})
    assert caught.value.where is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(POLICY_NAMES),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
WRITTEN = VALUES | st.dictionaries(
    st.sampled_from(["policy", "base_ms", "factor", "cap_ms", "first_zero", "jitter", "retry_after", "relative"]),
    VALUES
    | st.fixed_dictionaries({"kind": st.sampled_from(JITTER_KINDS)}, optional={"amount": VALUES})
    | st.fixed_dictionaries({"mode": st.sampled_from(["honour", "ignore", "abort"])}, optional={"jitter": VALUES}),
)


@given(WRITTEN, st.integers(1, 2000))
def test_any_mapping_is_read_or_refused(written: object, k: int) -> None:
    """Never anything but a policy whose bands are finite and in order, or a ConfigError."""
    try:
        policy = Policy.from_mapping(written, HERE)
    except ConfigError:
        return
    low, high = band(policy, k)
    assert 0 <= low <= high
    assert math.isfinite(high) or not policy.is_declared
    assert not math.isnan(high)


def test_a_wait_without_a_cap_stays_finite() -> None:
    policy = Policy.from_mapping({"policy": "custom", "base_ms": 1000, "factor": 10, "jitter": {"kind": "full"}})
    assert band(policy, 5000) == (0, 1e15)


def test_waits_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="from 1"):
        expected_wait(PRESETS["openai"], 0)


@pytest.mark.parametrize(
    ("name", "waits_ms"),
    [
        ("openai", [500, 1000, 2000, 4000, 8000, 8000]),
        ("anthropic", [500, 1000, 2000, 4000, 8000, 8000]),
        ("google-genai", [1000, 2000, 4000, 8000, 16000, 32000, 60000]),
        ("stamina", [100, 200, 400, 800, 1600, 3200, 5000]),
        ("backoff", [1000, 2000, 4000]),
        ("tenacity", [1000, 2000, 4000]),
        ("standard", [250, 500, 1000, 2000, 2000]),
        ("urllib3", [0, 0, 0]),
        ("httpx-retries", [0, 0, 0]),
    ],
)
def test_nominal_waits_of_the_presets(name: str, waits_ms: list[float]) -> None:
    policy = Policy.from_mapping({"policy": name})
    assert expected_wait(Policy.from_mapping({"policy": "urllib3", "base_ms": 200}), 1) == 0
    assert [expected_wait(policy, k) for k in range(1, len(waits_ms) + 1)] == waits_ms


@pytest.mark.parametrize(
    ("jitter", "lo_ms", "hi_ms"),
    [
        ({"kind": "none"}, 1000, 1000),
        ({"kind": "down", "amount": 0.25}, 750, 1000),
        ({"kind": "symmetric", "amount": 0.2}, 800, 1200),
        ({"kind": "full"}, 0, 1000),
        ({"kind": "equal"}, 500, 1000),
        ({"kind": "additive", "amount": 300}, 1000, 1300),
        ({"kind": "additive", "amount": 9000}, 1000, 4000),
        ({"kind": "decorrelated"}, 500, 2100),
    ],
)
def test_band_of_the_second_wait(jitter: dict[str, object], lo_ms: float, hi_ms: float) -> None:
    policy = Policy.from_mapping({"policy": "custom", "base_ms": 500, "cap_ms": 4000, "jitter": jitter})
    assert band(policy, 2, 700) == pytest.approx((lo_ms, hi_ms))


def test_decorrelated_band_without_the_wait_before() -> None:
    policy = Policy.from_mapping({"policy": "custom", "base_ms": 500, "jitter": {"kind": "decorrelated"}})
    assert band(policy, 1) == (500, 1500)
    assert band(policy, 3) == (500, 13500)
    assert band(policy, 3, 0) == (500, 1500)
