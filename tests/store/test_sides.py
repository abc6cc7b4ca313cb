"""The two sides of a comparison: raw or golden, the verdict is the same."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.errors import InputError, NotComparableError
from goldentrace.model.config import Scenario
from goldentrace.store.goldens import make_golden
from goldentrace.store.profiles import Profiles
from goldentrace.store.sides import Reading, Side, Terms, compare_sides, profile_of, read_side
from tests.cli.traces import call, end, searches, start, write

TERMS = Terms(Profiles())


def golden_of(trace: Path, to: Path, profile: str = "default") -> Path:
    side = read_side(trace)
    assert side.trace is not None
    loaded = Profiles().load(profile)
    new = make_golden(side.trace, loaded, name="orders", scenario=Scenario(), path=to, shown=str(to))
    to.write_bytes(new.data)
    return to


def verdict(golden: Path, candidate: Path) -> list[tuple[str, str | None]]:
    comparison, _ = compare_sides(read_side(golden), read_side(candidate), TERMS)
    return [(change.code, change.label) for change in comparison.changes]


steps = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.sampled_from(["ok", "ok", "error"])), min_size=1, max_size=5
)


@settings(max_examples=40)
@given(before=steps, after=steps)
def test_a_raw_run_and_its_golden_give_one_verdict(
    tmp_path_factory: pytest.TempPathFactory, before: list[tuple[str, int, str]], after: list[tuple[str, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("sides")
    for name, found in (("a", before), ("b", after)):
        calls = [event for n, (tool, x, status) in enumerate(found, 1) for event in call(n, tool, status=status, x=x)]
        write(folder / f"{name}.jsonl", [start(), *calls, end()])
    golden = golden_of(folder / "a.jsonl", folder / "golden.jsonl")
    assert verdict(golden, folder / "b.jsonl") == verdict(folder / "a.jsonl", folder / "b.jsonl")
    assert verdict(golden, folder / "a.jsonl") == []


def test_two_goldens_are_compared(tmp_path: Path) -> None:
    one = golden_of(write(tmp_path / "a.jsonl", searches(3)), tmp_path / "one.jsonl")
    other = golden_of(write(tmp_path / "b.jsonl", searches(2)), tmp_path / "other.jsonl")
    assert verdict(one, one) == []
    assert verdict(one, other) == [("GT103", "search#3")]


def test_goldens_of_two_profiles_cannot_be_compared(tmp_path: Path) -> None:
    trace = write(tmp_path / "a.jsonl", searches(1))
    one, other = golden_of(trace, tmp_path / "one.jsonl"), golden_of(trace, tmp_path / "other.jsonl", "strict")
    with pytest.raises(NotComparableError, match=r"default@1 and strict@1"):
        verdict(one, other)


def test_the_profile_of_a_golden_counts_on_either_side(tmp_path: Path) -> None:
    trace = read_side(write(tmp_path / "a.jsonl", searches(1)))
    golden = read_side(golden_of(tmp_path / "a.jsonl", tmp_path / "g.jsonl", "strict"))
    assert profile_of(golden, trace, TERMS).profile.name == "strict@1"
    assert profile_of(trace, golden, TERMS).profile.name == "strict@1"
    assert profile_of(trace, trace, TERMS).profile.name == "default@1"


def test_what_a_side_is(tmp_path: Path) -> None:
    trace = read_side(write(tmp_path / "a.jsonl", searches(1)), shown="shown")
    assert (trace.path, trace.golden, trace.kind) == ("shown", None, None)
    golden = read_side(golden_of(tmp_path / "a.jsonl", tmp_path / "g.jsonl"))
    assert (golden.trace, golden.kind, len(golden.sha256 or "")) == (None, "golden", 64)
    with pytest.raises(InputError, match="limit of 9 bytes"):
        read_side(tmp_path / "a.jsonl", Reading(max_bytes=9))
    assert isinstance(read_side(tmp_path / "a.jsonl", Reading(format="goldentrace")), Side)
