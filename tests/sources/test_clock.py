"""Times of foreign files: every form that occurs, and values that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.sources.clock import has_zone, utc, utc_from_epoch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02 03:04:05.678901234+02:00", "2026-01-02T01:04:05.678901Z"),
        ("2026-01-02T03:04:05,5-0330", "2026-01-02T06:34:05.500000Z"),
        ("2026-01-02T03:04", "2026-01-02T03:04:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_a_date_time_becomes_utc(text: str, expected: str) -> None:
    assert utc(text) == expected


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+05:00", 5, None, [], "２０２６-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99"],
)
def test_what_is_no_date_time_has_none(value: object) -> None:
    assert utc(value) is None


def test_a_wall_clock_is_told_from_a_zoned_one() -> None:
    assert not has_zone("2026-01-02T03:04:05")
    assert has_zone("2026-01-02T03:04:05Z")
    assert has_zone("2026-01-02T03:04:05-07:00")


def test_an_epoch_is_read_in_its_unit() -> None:
    expected = "2025-10-23T21:40:50.000000Z"
    assert utc_from_epoch(1761255650, per_second=1) == expected
    assert utc_from_epoch(1761255650000, per_second=1000) == expected
    assert utc_from_epoch("1761255650000000001", per_second=1_000_000_000) == expected
    assert utc_from_epoch(1761255650.25, per_second=1) == "2025-10-23T21:40:50.250000Z"


@given(st.integers() | st.floats() | st.text() | st.booleans() | st.none() | st.lists(st.integers()))
def test_no_value_breaks_the_clock(value: object) -> None:
    for found in (utc(value), utc_from_epoch(value, per_second=1), utc_from_epoch(value, per_second=1_000_000_000)):
        assert found is None or found.endswith("Z")


@pytest.mark.parametrize("value", [True, -1, 10**30, float("nan"), float("inf"), 253_402_300_800])
def test_a_number_that_is_no_time_has_none(value: object) -> None:
    assert utc_from_epoch(value, per_second=1) is None
