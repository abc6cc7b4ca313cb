"""Whatever stands in a trace, in whatever order: it is normalized, compared and written, or refused in the one way."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.errors import GoldentraceError
from goldentrace.model.change import Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from tests.fuzz.soups import calmed, soups, stirred

PROFILE = Profile(name="test@1")
SAMPLE, MANY = 120, 5000

Check = Callable[[tuple[Trace, Trace]], None]


def normal(trace: Trace) -> NormalTrace:
    return normalize(trace, PROFILE, "h:test")


def golden_file(trace: Trace) -> bytes:
    return encode_golden(as_golden(normal(trace), PROFILE))


def told(found: Comparison) -> list[tuple[Any, ...]]:
    return sorted((c.code, c.severity, c.label or "", c.pointers, c.is_root) for c in found.changes)


def check_any(pair: tuple[Trace, Trace]) -> None:
    """Nothing but an error of ours is raised, whatever the events."""
    one, other = pair
    try:
        first, second = normal(one), normal(other)
    except GoldentraceError:
        return
    golden_file(one)
    compare(first, second, PROFILE)
    assert told(compare(normal(one), first, PROFILE)) == []


def check_written_trace(pair: tuple[Trace, Trace]) -> None:
    """The lines of a trace, read again, are the same trace."""
    one = calmed(pair[0])
    data = b"".join(map(encode_event, one.events))
    again = read_trace(data, "again")
    assert again.events == one.events
    assert golden_file(again) == golden_file(one)


def check_golden(pair: tuple[Trace, Trace]) -> None:
    """A golden is read as it was written, and the run that it was made from differs from it in nothing."""
    one = calmed(pair[0])
    data = golden_file(one)
    golden = read_golden(data, "golden")
    assert encode_golden(golden) == data
    found = compare(golden, normal(one), PROFILE)
    assert [(c.code, c.message) for c in found.changes] == []
    assert not found.not_comparable


def check_verdict(pair: tuple[Trace, Trace]) -> None:
    """A golden file gives the verdict of the run that it was made from."""
    one, other = map(calmed, pair)
    by_file = compare(read_golden(golden_file(one), "golden"), normal(other), PROFILE)
    by_run = compare(normal(one), normal(other), PROFILE)
    assert told(by_file) == told(by_run)
    assert by_file.not_comparable == by_run.not_comparable


def check_re_recorded(pair: tuple[Trace, Trace]) -> None:
    """A golden recorded again differs if and only if there was a change, and then differs from the run in nothing."""
    one, other = map(calmed, pair)
    data = golden_file(one)
    found = compare(read_golden(data, "golden"), normal(other), PROFILE)
    again = encode_golden(rerecord(found, PROFILE))
    if not found.not_comparable:
        assert (again != data) == bool(found.changes), told(found)
    after = compare(read_golden(again, "golden"), normal(other), PROFILE)
    assert [(c.code, c.message) for c in after.changes] == []
    assert not after.not_comparable
    assert encode_golden(rerecord(after, PROFILE)) == again


CHECKS: tuple[Check, ...] = (check_any, check_written_trace, check_golden, check_verdict, check_re_recorded)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@settings(max_examples=SAMPLE)
@given(pair=stirred())
def test_soups(check: Check, pair: tuple[Trace, Trace]) -> None:
    check(pair)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@settings(max_examples=MANY)
@given(pair=stirred())
def test_many_soups(check: Check, pair: tuple[Trace, Trace]) -> None:
    check(pair)


@settings(max_examples=SAMPLE)
@given(soups())
def test_a_re_recorded_golden_of_the_same_run_is_the_same_file(trace: Trace) -> None:
    trace = calmed(trace)
    data = golden_file(trace)
    again = encode_golden(rerecord(compare(read_golden(data, "golden"), normal(trace), PROFILE), PROFILE))
    assert again == data
