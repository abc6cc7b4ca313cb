"""Every rule against its cases: `tests/rules/<CODE>.yaml`, sections fails, passes, could_not_check.

A case's name is its reason. `as in FILE: …` names the real run, below the folder of real traces, of which it has the
shape, and says what is changed; words and values are its own. All rules run on each case, so that precedence is part of what is tested; `others` lists the
codes that speak beside the case's own (default: not looked at).
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from goldentrace.model.finding import Finding, LintResult
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.registry import rules, run_rules
from tests.rules.dsl import profile_of, trace_of

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("GT*.yaml"))
SECTIONS = ("fails", "passes", "could_not_check")
KEYS = {
    "trace", "tools", "profile", "budgets", "start", "format", "coverage", "finding", "findings", "others", "why",
}  # fmt: skip
EXPECTED = {"first", "repeat", "last", "lines", "count", "severity", "says", "tool", "pointer", "expected", "actual"}


def all_cases(section: str) -> list[Any]:
    found = []
    for file in FILES:
        cases = yaml.safe_load(file.read_text("utf-8")).get(section) or {}
        found += [pytest.param(file.stem, case, id=f"{file.stem}-{name}") for name, case in cases.items()]
    return found


def judged(case: dict[str, Any]) -> LintResult:
    assert case.keys() <= KEYS, f"unknown keys {case.keys() - KEYS}"
    profile = profile_of(case)
    trace = trace_of(case)
    normal = normalize(trace, profile, "h:case")
    place_in_time(normal, trace)
    return run_rules(trace, normal, profile, budgets=case.get("budgets"))


@pytest.mark.parametrize(("code", "case"), all_cases("fails"))
def test_the_rule_finds_what_the_case_shows(code: str, case: dict[str, Any]) -> None:
    said = judged(case)
    found = [finding for finding in said.findings if finding.code == code]
    wanted = case["findings"] if "findings" in case else [case["finding"]]
    assert len(found) == len(wanted), [finding.message for finding in said.findings]
    for finding, expected in zip(found, wanted, strict=True):
        compare(finding, expected)
    check_others(code, case, said)


@pytest.mark.parametrize(("code", "case"), all_cases("passes"))
def test_the_rule_is_silent_and_has_looked(code: str, case: dict[str, Any]) -> None:
    said = judged(case)
    assert [finding.message for finding in said.findings if finding.code == code] == []
    assert code in said.checked, said.could_not_check
    check_others(code, case, said)


@pytest.mark.parametrize(("code", "case"), all_cases("could_not_check"))
def test_the_rule_says_what_it_could_not_check(code: str, case: dict[str, Any]) -> None:
    said = judged(case)
    assert case["why"] in said.could_not_check.get(code, ""), (said.could_not_check, said.findings)
    assert code not in said.checked
    assert [finding.message for finding in said.findings if finding.code == code] == []


def compare(finding: Finding, expected: dict[str, Any]) -> None:
    assert expected, "a case says what it expects"
    assert expected.keys() <= EXPECTED, expected
    actual = {
        "first": finding.labels[0] if finding.labels else None,
        "repeat": finding.labels[1] if len(finding.labels) > 1 else None,
        "last": finding.labels[-1] if finding.labels else None, "lines": list(finding.lines), "count": finding.count,
        "severity": finding.severity, "tool": finding.tool_name, "pointer": finding.pointer,
        "expected": finding.expected, "actual": finding.actual,
    }  # fmt: skip
    assert {name: actual[name] for name in expected if name != "says"} == {
        k: v for k, v in expected.items() if k != "says"
    }
    assert expected.get("says", "") in finding.message
    assert finding.lines, "a finding points at an event"


def check_others(code: str, case: dict[str, Any], said: LintResult) -> None:
    if "others" in case:
        assert sorted({f.code for f in said.findings} - {code}) == sorted(case["others"]), said.findings


def test_every_rule_has_a_file_of_cases() -> None:
    assert [file.stem for file in FILES] == list(rules())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_cases_shows_both_sides(file: Path) -> None:
    sections = yaml.safe_load(file.read_text("utf-8"))
    assert sections.keys() <= set(SECTIONS)
    assert len(sections.get("fails") or {}) >= 1
    assert len(sections.get("passes") or {}) >= 2


def real_files(file: Path) -> list[str]:
    """The real files whose shapes the cases of a file have."""
    sections = yaml.safe_load(file.read_text("utf-8"))
    names = [name for cases in sections.values() for name in cases or {}]
    return [match[1] for name in names if (match := re.match(r"as in ([^ ,:]+)[,:] ", name))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_has_the_shape_of_a_real_run(file: Path) -> None:
    assert real_files(file)


def test_the_real_runs_that_cases_name_are_there(corpus: Path) -> None:
    named = {name for file in FILES for name in real_files(file)}
    assert sorted(name for name in named if not (corpus / name).is_file()) == []
