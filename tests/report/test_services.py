"""GitHub, GitLab, JUnit, SARIF, Markdown: what each service takes, within its limits, whatever a trace holds."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from goldentrace.model.report import Report, TraceReport
from goldentrace.report import render
from goldentrace.report.github import annotations
from goldentrace.report.markdown import MAX_COMMENT_CHARS, MAX_SUMMARY_BYTES, marker, render_comment
from tests.report import scenes
from tests.report.scenes import SCENES, scene, suite

HOSTILE = st.text(st.sampled_from("a \n\r\x1b\x00\u202e:#[]`@<>&|%,\"'*_-漢\ud800"), min_size=1, max_size=40)
REPORTS = [*sorted(SCENES), "suite"]


def made(name: str) -> Report:
    return suite() if name == "suite" else scene(name)


def hostile(name: str, message: str) -> Report:
    """Return a report whose trace says what it can to break the page."""
    trace = scenes.argument_changed()
    trace.name = name
    assert trace.comparison is not None
    change = trace.comparison.changes[0]
    change.message = change.label = change.actual = message
    trace.comparison.coverage = [message]
    broken = scenes.broken()
    assert broken.problem is not None
    broken.name = message
    return Report("diff", [trace, broken])


def many(count: int) -> Report:
    traces: list[TraceReport] = []
    for number in range(count):
        traces.append(scenes.argument_changed())
        traces[-1].name = f"scenario-{number:03d}"
    return Report("diff", traces)


# -- GitHub --------------------------------------------------------------------------------------------------------


def test_an_annotation_points_at_the_line_of_the_golden() -> None:
    assert annotations(scene("argument_changed")) == (
        "::error file=goldens/shop/refund.jsonl,line=12,title=refund%3A GT101 argument-changed::"
        "refund#1: argument /amount differs: float h:ddd03f95ebd4 -> 499.99\n"
    )


def test_an_added_call_points_at_the_call_before_it() -> None:
    assert "file=goldens/shop/refund.jsonl,line=12," in annotations(scene("call_added"))


def test_ten_annotations_are_the_most_and_the_worst_come_first() -> None:
    report = many(30)
    report.traces[29] = scenes.broken()
    lines = annotations(report).splitlines()
    assert len(lines) == 10
    assert "legacy" in lines[0]
    assert lines[-1] == "::error title=goldentrace::21 more traces: see the log or the summary"


def test_a_clean_report_has_no_annotation() -> None:
    assert annotations(scene("clean")) == ""


def test_a_warning_is_a_warning() -> None:
    assert annotations(scene("batching")).startswith("::warning file=goldens/shop/refund.jsonl,line=6,")


@given(HOSTILE, HOSTILE)
def test_no_text_of_a_trace_becomes_a_command(name: str, message: str) -> None:
    page = render(hostile(name, message), "github")
    own = annotations(hostile(name, message))
    assert page.startswith(own)
    for line in page.removeprefix(own).splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##[^\s\[\]]*\[", line)
    for line in own.splitlines():
        assert re.match(r"::error file=[^,:]*,line=\d+,title=[^,:]*::", line)


# -- GitLab --------------------------------------------------------------------------------------------------------

GITLAB = Draft202012Validator(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": {"type": "string", "minLength": 1},
                "check_name": {"type": "string"},
                "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "pattern": "^[^/.]|^\\.[^/]"},
                        "lines": {
                            "type": "object",
                            "required": ["begin"],
                            "properties": {"begin": {"type": "integer", "minimum": 1}},
                        },
                    },
                },
            },
        },
    }
)
"""The keys that GitLab's documentation of the report asks for."""


@pytest.mark.parametrize("name", REPORTS)
def test_gitlab_takes_the_report(name: str) -> None:
    entries = json.loads(render(made(name), "gitlab"))
    GITLAB.validate(entries)
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)


def test_gitlab_severities() -> None:
    entries = json.loads(render(suite(), "gitlab"))
    assert {entry["check_name"]: entry["severity"] for entry in entries} == {
        "GT101": "major", "GT201": "major", "GT107": "minor", "no-verdict": "blocker",
    }  # fmt: skip


# -- JUnit ---------------------------------------------------------------------------------------------------------

ALLOWED = {
    "testsuites": {"name", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped"},
    "testcase": {"name", "classname"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
}
"""Attributes that Jenkins' xUnit plugin and GitLab both know."""


@pytest.mark.parametrize("name", REPORTS)
def test_junit_holds_one_case_per_trace(name: str) -> None:
    report = made(name)
    root = ET.fromstring(render(report, "junit"))
    for element in root.iter():
        assert set(element.attrib) <= ALLOWED[element.tag]
    cases = root.findall("./testsuite/testcase")
    assert len(cases) == len(report.traces) == int(root.attrib["tests"])
    statuses = [trace.status() for trace in report.traces]
    assert len(root.findall(".//failure")) == statuses.count("changed") == int(root.attrib["failures"])
    no_verdict = sum(status not in ("clean", "changed") for status in statuses)
    assert len(root.findall(".//error")) == no_verdict == int(root.attrib["errors"])


def test_a_suite_is_part_of_the_class_name() -> None:
    report = scene("argument_changed")
    report.traces[0].name = "shop/eu/refund"
    case = ET.fromstring(render(report, "junit")).find(".//testcase")
    assert case is not None
    assert case.attrib == {"classname": "goldens.shop.eu", "name": "refund"}


@given(HOSTILE, HOSTILE)
def test_junit_is_well_formed_whatever_a_trace_holds(name: str, message: str) -> None:
    root = ET.fromstring(render(hostile(name, message), "junit").encode())
    assert root.attrib["tests"] == "2"


# -- SARIF ---------------------------------------------------------------------------------------------------------

SARIF = Draft202012Validator(json.loads(Path(__file__).with_name("sarif-subset.schema.json").read_text()))
"""Our subset of SARIF 2.1.0, stricter than the standard: no key beyond it, and what GitHub's code scanning asks for."""


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_is_what_code_scanning_takes(name: str) -> None:
    SARIF.validate(json.loads(render(made(name), "sarif")))


def test_sarif_results_point_at_the_golden_with_our_own_fingerprints() -> None:
    result = json.loads(render(scene("argument_changed"), "sarif"))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "goldens/shop/refund.jsonl"}, "region": {"startLine": 12}}
    finding = json.loads(render(scene("argument_changed"), "json"))["traces"][0]["findings"][0]
    assert result["partialFingerprints"]["goldentrace/v1"] == finding["fingerprint"]
    assert result["level"] == "error"


def test_sarif_rules_carry_their_documentation() -> None:
    rule = json.loads(render(scene("argument_changed"), "sarif"))["runs"][0]["tool"]["driver"]["rules"][0]
    assert (rule["id"], rule["name"]) == ("GT101", "ArgumentChanged")
    assert rule["shortDescription"]["text"] == "An argument of a call has another value"
    assert "## What it finds" in rule["help"]["markdown"]


def test_sarif_has_a_word_for_what_was_accepted_and_for_no_verdict() -> None:
    run = json.loads(render(scene("findings"), "sarif"))["runs"][0]
    accepted = [result for result in run["results"] if "suppressions" in result]
    assert [result["ruleId"] for result in accepted] == ["GT1202"]
    broken = json.loads(render(scene("broken"), "sarif"))["runs"][0]["invocations"][0]
    assert broken["executionSuccessful"] is False
    assert "conflict marker" in broken["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_leaves_out_what_is_over_the_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldentrace.report.sarif.MAX_RESULTS", 5)
    report = scene("many_changes")
    assert report.traces[0].comparison is not None
    report.traces[0].comparison.changes[0].severity = "note"
    run = json.loads(render(report, "sarif"))["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error"] * 5
    assert "25 results left out" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("goldens/a b#c.jsonl", "goldens/a%20b%23c.jsonl"),
        ("goldens/größe.jsonl", "goldens/gr%C3%B6%C3%9Fe.jsonl"),
        ("./goldens/x.jsonl", "goldens/x.jsonl"),
    ],
)
def test_uris_are_relative_and_quoted(path: str, uri: str) -> None:
    report = scene("argument_changed")
    report.traces[0].golden_path = path
    place = json.loads(render(report, "sarif"))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri


def test_a_path_below_the_working_folder_is_made_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = scene("argument_changed")
    report.traces[0].golden_path = str(tmp_path / "goldens" / "x.jsonl")
    assert "file=goldens/x.jsonl," in annotations(report)
    report.traces[0].golden_path = "/elsewhere/x.jsonl"
    place = json.loads(render(report, "sarif"))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///elsewhere/x.jsonl"


# -- Markdown ------------------------------------------------------------------------------------------------------


def outside_of_fences(page: str) -> list[str]:
    lines: list[str] = []
    fence = ""
    for line in page.split("\n"):
        opening = re.match(r"(`{3,})", line)
        if fence:
            if line == fence:
                fence = ""
        elif opening:
            fence = opening[1]
        else:
            lines.append(line)
    assert not fence, "a fence that is not closed"
    return lines


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_names_its_verdict_and_every_trace_that_is_not_clean(name: str) -> None:
    report = made(name)
    page = render(report, "markdown")
    assert f"(exit {report.exit_code})" in page
    rows = [line for line in outside_of_fences(page) if line.startswith("| ") and not line.startswith("| trace ")]
    assert len(rows) == sum(trace.status() != "clean" or trace.count("warning") > 0 for trace in report.traces)


@given(HOSTILE, HOSTILE)
def test_no_text_of_a_trace_is_markup(name: str, message: str) -> None:
    page = render(hostile(name, message), "markdown")
    rest = [re.sub(r"&#\d+;", "", line) for line in outside_of_fences(page)]
    assert not any(re.search(r"[<@`*]", line) for line in rest)
    assert sum(line.startswith("| ") for line in rest) == 3
    assert sum(line.startswith("#") for line in rest) == 3


def test_a_summary_stays_below_its_limit_and_says_what_it_left_out() -> None:
    page = render(many(2_000), "markdown")
    assert len(page.encode()) <= MAX_SUMMARY_BYTES
    left_out = re.search(r"^(\d+) traces left out, the page has a limit: scenario&#45;\d+", page, re.MULTILINE)
    assert left_out
    assert page.count("\n### ") + int(left_out[1]) == 2_000
    assert "2000 traces: 0 clean, 2000 changed (exit 2)" in page


def test_a_comment_stays_below_its_limit_and_is_found_again() -> None:
    page = render_comment(many(300), "refunds / nightly")
    assert len(page) <= MAX_COMMENT_CHARS
    assert page.startswith("<!-- goldentrace:refunds-/-nightly -->\n## goldentrace diff: behaviour changed")
    assert "traces left out" in page


@given(HOSTILE)
def test_a_marker_is_one_comment(key: str) -> None:
    made_of = marker(key)
    assert made_of.startswith("<!-- goldentrace:")
    assert made_of.endswith(" -->")
    assert "--" not in made_of[4:-3]
    assert "\n" not in made_of


def test_the_symbols_of_a_section_are_those_of_a_diff() -> None:
    lines = render(scene("argument_changed"), "markdown").split("\n")
    assert "-    float h:ddd03f95ebd4" in lines
    assert "+    499.99" in lines


@pytest.mark.parametrize("name", REPORTS)
def test_the_formats_agree_on_the_number_of_errors(name: str) -> None:
    report = made(name)
    count = sum(trace.count("error") for trace in report.traces)
    entries: list[Any] = json.loads(render(report, "gitlab"))
    assert sum(entry["severity"] == "major" for entry in entries) == count
    results = json.loads(render(report, "sarif"))["runs"][0]["results"]
    assert sum(result["level"] == "error" and "suppressions" not in result for result in results) == count
