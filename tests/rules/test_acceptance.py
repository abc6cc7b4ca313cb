"""Suppressions, known findings and a golden's accepts: by rule, tool and field, with a reason, unused ones reported."""

import pytest

from goldentrace.errors import ConfigError
from goldentrace.model.finding import Finding, LintResult
from goldentrace.rules.acceptance import accept, idle, known_entries, read_entries

TODAY = "2026-11-30"


def result(*findings: Finding, checked: tuple[str, ...] = ("GT1004", "GT1501")) -> LintResult:
    return LintResult("run.jsonl", list(findings), checked)


def finding(code: str = "GT1004", tool: str | None = "fetch", pointer: str | None = None) -> Finding:
    return Finding(code, "name", "warning", "message", lines=(3,), tool_name=tool, pointer=pointer)


@pytest.mark.parametrize(
    ("entry", "is_accepted"),
    [
        ({"code": "GT1004"}, True),
        ({"code": "GT1004", "tool": "fetch"}, True),
        ({"code": "GT1004", "tool": "read"}, False),
        ({"code": "GT1003"}, False),
        ({"code": "GT1004", "field": "/a"}, False),
        ({"code": "GT1004", "until": TODAY}, True),
        ({"code": "GT1004", "until": "2026-11-29"}, False),
    ],
)
def test_an_entry_accepts_by_rule_tool_and_field(entry: dict[str, str], is_accepted: bool) -> None:
    entries = read_entries([{**entry, "reason": "agreed"}], "accepts", "suppression of")
    accepted = accept(result(finding()), entries, TODAY).findings[0].accepted
    assert (accepted is not None) == is_accepted
    assert accepted is None or "agreed" in accepted


def test_a_field_means_any_element_of_an_array() -> None:
    entries = read_entries([{"code": "GT1501", "field": "/items/*/id", "reason": "r"}], "accepts", "kind")
    assert accept(result(finding("GT1501", pointer="/items/7/id")), entries, TODAY).findings[0].accepted


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"code": "GT1004"}, "no reason"),
        ({"code": "GT1004", "reason": " "}, "no reason"),
        ({"reason": "r"}, "names no rule"),
        ({"code": "repeats", "reason": "r"}, "names no rule"),
        ({"code": "GT1004", "reason": "r", "line": 7}, "has line"),
        ({"code": "GT1004", "reason": "r", "value": 7}, "has value"),
        ({"code": "GT1004", "reason": "r", "until": "soon"}, "until: soon"),
        ("GT1004", "no mapping"),
    ],
)
def test_an_entry_of_another_form_is_refused(entry: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_entries([entry], "rules.suppressions", "suppression of")


def test_what_accepts_nothing_is_said() -> None:
    entries = read_entries(
        [
            {"code": "GT1004", "tool": "gone", "reason": "r"},
            {"code": "GT1004", "tool": "fetch", "reason": "r"},
            {"code": "GT1004", "tool": "old", "reason": "r", "until": "2025-01-01"},
            {"code": "GT1602", "reason": "its rule did not run"},
        ],
        "rules.suppressions",
        "suppression of",
    )
    said = idle(entries, [result(finding())], TODAY)
    assert [("gone" in said[0], "accepts nothing" in said[0]), ("old" in said[1], "2025-01-01" in said[1])] == [
        (True, True),
        (True, True),
    ]
    assert len(said) == 2


def test_known_findings_are_exact_and_hold_no_position() -> None:
    found = known_entries([result(finding(), finding(), finding("GT1501", pointer="/a/3/b"))])
    assert found == [
        {"code": "GT1004", "tool": "fetch", "field": None},
        {"code": "GT1501", "tool": "fetch", "field": "/a/*/b"},
    ]
    entries = read_entries(found, "known", "known finding", needs_reason=False, is_exact=True)
    again = accept(result(finding(), finding("GT1004", pointer="/new")), entries, TODAY)
    assert [bool(each.accepted) for each in again.findings] == [True, False]
