"""Seeded draws: equal seeds, equal schedules, whatever arrives when; a schedule can be pinned."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.faults.chaos import draw, generator, latency_ms, new_id, pinned_steps
from goldentrace.faults.plan import read_plan

PLAN = """
plan: p
seed: 3
chaos: {rate: 0.5, faults: [{fault: hang, weight: 1}, {fault: status, status: 503, weight: 3}]}
tools: {a: {}, b: {}, quiet: {chaos: false}}
"""


def schedule(tool: str, count: int, text: str = PLAN) -> list[str]:
    chaos = read_plan(text.encode(), "p").tools[tool].chaos
    assert chaos is not None
    return [draw(chaos, tool, n).fault for n in range(1, count + 1)]


def test_a_draw_depends_on_seed_tool_and_number_alone() -> None:
    assert schedule("a", 50) == schedule("a", 50)
    assert schedule("a", 50) != schedule("b", 50)
    assert schedule("a", 50) != schedule("a", 50, PLAN.replace("seed: 3", "seed: 4"))
    chaos = read_plan(PLAN.encode(), "p").tools["a"].chaos
    assert chaos is not None
    assert [draw(chaos, "a", n).fault for n in (9, 2, 7)] == [schedule("a", 50)[n - 1] for n in (9, 2, 7)]


def test_this_seed_draws_this_schedule_on_every_version_of_python() -> None:
    assert schedule("a", 12) == [
        "status", "none", "none", "none", "none", "status", "none", "status", "status", "none", "none", "none",
    ]  # fmt: skip


def test_rate_and_weights_hold_over_many_calls() -> None:
    drawn = schedule("a", 4000)
    assert abs(drawn.count("none") / 4000 - 0.5) < 0.03
    assert abs(drawn.count("status") / (4000 - drawn.count("none")) - 0.75) < 0.04


def test_a_tool_can_be_left_in_peace() -> None:
    assert read_plan(PLAN.encode(), "p").tools["quiet"].chaos is None


def test_a_drawn_schedule_pinned_as_steps_is_the_same_schedule() -> None:
    chaos = read_plan(PLAN.encode(), "p").tools["a"].chaos
    assert chaos is not None
    met = [draw(chaos, "a", n) for n in range(1, 31)]
    text = yaml.safe_dump({"plan": "pinned", "tools": {"a": {"steps": pinned_steps(met)}}})
    steps = read_plan(text.encode(), "pinned").tools["a"].steps
    assert [step.fault for step in steps for _ in range(step.times)] == [step.fault for step in met]
    assert [step.params for step in steps for _ in range(step.times)] == [step.params for step in met]


@given(st.integers(min_value=0, max_value=2**64), st.integers(min_value=1, max_value=1000))
def test_latencies_keep_to_their_bounds(seed: int, n: int) -> None:
    dice = generator(seed, "a", n)
    assert 100 <= latency_ms({"uniform_ms": [300, 100]}, dice) <= 300
    assert 0 < latency_ms({"lognormal_ms": {"median": 200, "sigma": 1, "max": 900}}, dice) <= 900
    assert latency_ms({"delay_ms": 7}, dice) == 7


def test_a_lognormal_latency_has_its_median_and_spread() -> None:
    logs = sorted(
        math.log(latency_ms({"lognormal_ms": {"median": 200, "sigma": 0.5}}, generator(1, n))) for n in range(4001)
    )
    assert logs[2000] == pytest.approx(math.log(200), abs=0.05)
    assert (logs[3364] - logs[636]) / 2 == pytest.approx(0.5, abs=0.05)  # one standard deviation either side


@given(st.integers(min_value=0), st.text(max_size=5), st.integers(min_value=0, max_value=99))
def test_ids_look_like_ids_and_are_equal_for_equal_parts(seed: int, tool: str, n: int) -> None:
    made = new_id(seed, "run", tool, n)
    assert len(made) == 24
    assert any(char.isdigit() for char in made)
    assert any(char in "abcdef" for char in made)
    assert made == new_id(seed, "run", tool, n)
    assert made != new_id(seed, "run", tool, n + 1)
