"""The published table of waits: every case of waits.yaml comes out as it says, and every row of the jitter table is there."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from goldentrace.match.backoff import JITTER_KINDS, Policy
from goldentrace.match.waits import Wait, WaitVerdict, compare_waits

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("waits.yaml").read_text(encoding="utf-8"))
PLACES = ("in-band", "just-below", "just-above", "at-the-retry-after-floor", "missing-end")
KEYS = {"name", "why", "policy", "golden", "candidate", "recorded_runs_ms", "expected", "severity"}
SIDE_KEYS = {"gaps_ms", "delays_ms", "owed_ms", "owed_is_date", "origins", "after_model_turn", "deadline_ms"}


def waits_of(side: dict[str, Any]) -> list[Wait]:
    count = len(side["gaps_ms"])
    blank = [None] * count
    return [
        Wait(
            gap_ms=gap,
            why_missing="no end" if gap is None else None,
            delay_ms=delay,
            owed_ms=owed,
            owed_is_date=side.get("owed_is_date", False),
            origin=origin,
            after_model_turn=side.get("after_model_turn", False),
            is_last=place == count - 1,
            deadline_ms=side.get("deadline_ms") if place == count - 1 else None,
        )
        for place, (gap, delay, owed, origin) in enumerate(
            zip(
                side["gaps_ms"],
                side.get("delays_ms", blank),
                side.get("owed_ms", blank),
                side.get("origins", ["harness"] * count),
                strict=True,
            )
        )
    ]


def verdicts_of(case: dict[str, Any]) -> list[WaitVerdict]:
    policy = Policy.from_mapping(case["policy"])
    sides = waits_of(case["golden"]), waits_of(case["candidate"])
    return compare_waits(*sides, policy, recorded_runs=case.get("recorded_runs_ms"))


def outcome_of(verdict: WaitVerdict) -> str:
    return verdict.code or ("coverage" if verdict.coverage else "ok")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    verdicts = verdicts_of(case)
    messages = [verdict.message for verdict in verdicts]
    assert [outcome_of(verdict) for verdict in verdicts] == case["expected"], messages
    stated = case.get("severity") or [None if code in ("ok", "coverage") else "error" for code in case["expected"]]
    assert [verdict.severity for verdict in verdicts] == stated, messages


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_said_is_complete(case: dict[str, Any]) -> None:
    """Every judged wait shows both values, what is allowed, by how much it is missed and which setting says so."""
    for verdict in verdicts_of(case):
        if verdict.code in ("GT401", "GT404") or (verdict.code == "GT402" and "another attempt" not in verdict.reason):
            assert verdict.golden_ms is not None or case["golden"]["gaps_ms"][verdict.golden_index] is None
            assert verdict.now_ms is not None
            assert verdict.deviation_ms != 0
            bound = verdict.lo_ms if verdict.deviation_ms < 0 else verdict.hi_ms
            assert bound is not None
            assert verdict.now_ms - bound == pytest.approx(verdict.deviation_ms)
            assert "too short" in verdict.message or "too long" in verdict.message
            assert verdict.source
            assert verdict.source in verdict.message
        if verdict.code == "GT403":
            assert verdict.not_comparable
            assert verdict.not_comparable in verdict.message


def test_every_row_of_the_jitter_table_has_every_place() -> None:
    names = {case["name"] for case in CASES}
    assert {f"{kind}-{place}" for kind, place in itertools.product(JITTER_KINDS, PLACES)} <= names


def test_the_table_is_well_formed() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES)
    for case in CASES:
        assert set(case) <= KEYS, case["name"]
        assert case["why"], case["name"]
        assert (set(case["golden"]) | set(case["candidate"])) <= SIDE_KEYS, case["name"]
        assert len(case["expected"]) == len(case["candidate"]["gaps_ms"]), case["name"]
        assert len(case.get("severity", case["expected"])) == len(case["expected"]), case["name"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_side_agrees_with_itself(case: dict[str, Any]) -> None:
    """Whatever the policy and however odd the waits: a run is no change from itself, and unknown times stay unknown."""
    for side in ("golden", "candidate"):
        verdicts = verdicts_of(case | {"golden": case[side]} | {"candidate": case[side]})
        assert [verdict.code for verdict in verdicts] == [None] * len(verdicts), [v.message for v in verdicts]
