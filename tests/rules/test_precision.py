"""The precision of rules on real runs: drawn anew, compared with the judgements that were made by hand."""

from collections import Counter
from pathlib import Path

import pytest

from goldentrace.rules.registry import UNPROVEN, rules
from tests.rules.precision.sampling import findings, load, sample

HEURISTIC = ("GT10", "GT11", "GT15")
NOT_HEURISTIC = frozenset({"GT1006"})
"""A budget is a number that somebody set."""


@pytest.fixture(scope="module")
def drawn(corpus: Path) -> dict[str, list[tuple[str, str]]]:
    return {code: [(name, f.severity) for name, f in sample(items)] for code, items in findings(corpus).items()}


def test_each_sampled_finding_was_judged_with_a_reason(drawn: dict[str, list[tuple[str, str]]]) -> None:
    judged = load("judgements.yaml")
    assert {code: [name for name, _ in items] for code, items in drawn.items()} == {
        code: list(entries) for code, entries in judged.items()
    }
    assert all(entry["why"].strip() for entries in judged.values() for entry in entries.values())


def test_precision_is_what_each_severity_needs(drawn: dict[str, list[tuple[str, str]]]) -> None:
    judged, thresholds = load("judgements.yaml"), load("thresholds.yaml")
    total: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for code, items in drawn.items():
        for name, severity in items:
            total[code, severity] += 1
            right[code, severity] += judged[code][name]["is_true"]
    for (code, severity), count in total.items():
        assert right[code, severity] / count >= thresholds[severity], (code, severity, right[code, severity], count)


def test_heuristic_errors_with_few_hits_are_unproven() -> None:
    judged, least = load("judgements.yaml"), load("thresholds.yaml")["min_judged"]
    heuristic = {
        code
        for code, rule in rules().items()
        if code.startswith(HEURISTIC) and code not in NOT_HEURISTIC and rule.severity == "error"
    }
    assert {code for code in heuristic if len(judged.get(code, {})) < least} == UNPROVEN


def test_the_thresholds_are_those_that_were_fixed() -> None:
    assert load("thresholds.yaml") == {
        "error": 0.9, "warning": 0.7, "note": 0.5, "min_judged": 10, "sample": 50, "seed": 1006,
    }  # fmt: skip
