"""The JSON report: exactly its schema, stable names, bounded values; JSON Lines with the same objects."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from goldentrace.model.report import Report
from goldentrace.report import render
from goldentrace.report.fingerprint import fingerprints
from goldentrace.report.json_document import event_path
from goldentrace.report.schema import schema_text
from goldentrace.report.values import MAX_CHARS
from tests.report import scenes
from tests.report.scenes import SCENES, scene, suite

SCHEMA = json.loads(schema_text("report"))
VALIDATOR = Draft202012Validator(SCHEMA)
LINE = Draft202012Validator({**SCHEMA["$defs"]["line"], "$defs": SCHEMA["$defs"]})


def document(report: Report) -> Any:
    return json.loads(render(report, "json"))


@pytest.mark.parametrize("name", sorted(SCENES))
def test_every_report_is_as_its_schema_says(name: str) -> None:
    VALIDATOR.validate(document(scene(name)))


def test_a_suite_is_as_its_schema_says() -> None:
    VALIDATOR.validate(document(suite()))
    VALIDATOR.validate(document(Report("diff", [])))


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (["verdict"], "input-error"),
        (["exit_code"], 1),
        (["traces", 0, "findings", 0, "rule"], "GT1"),
        (["traces", 0, "findings", 0, "offset_s"], 1),
        (["traces", 0, "findings", 0, "fingerprint"], "x"),
        (["traces", 0, "status"], "broken"),
        (["summary", "traces"], -1),
        (["more"], 1),
    ],
)
def test_the_schema_refuses_what_is_wrong(path: list[Any], wrong: Any) -> None:
    found = document(scene("argument_changed"))
    here = found
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = wrong
    assert not VALIDATOR.is_valid(found)


def test_changes_and_findings_stand_in_one_list() -> None:
    report = scene("argument_changed")
    report.traces[0].lint = scenes.findings().lint
    found = document(report)["traces"][0]["findings"]
    assert [one["rule"] for one in found] == ["GT101", "GT1001", "GT1003", "GT1507", "GT1202"]
    assert [one["kind"] for one in found] == ["change"] + ["finding"] * 4
    assert [one["severity"] for one in found] == ["error", "error", "warning", "note", "error"]
    VALIDATOR.validate(document(report))


def test_a_change_says_where_what_and_why() -> None:
    found = document(scene("retry_after_violated"))["traces"][0]["findings"][0]
    assert found["golden"] == {"index": 3, "line": 12, "offset_ms": None}
    assert found["candidate"] == {"index": 3, "line": 12, "offset_ms": 1910.0}
    assert (found["operation"], found["tool"], found["call"], found["attempt"]) == ("refund#1", "refund", 4, 4)
    assert found["tolerance"] == {
        "min": 3995,
        "max": None,
        "deviation": -2989,
        "unit": "ms",
        "source": "Retry-After of 4000 ms",
    }
    assert (found["expected"], found["actual"]) == (4272, 1006)


def test_a_caused_change_names_its_cause_and_is_not_counted() -> None:
    found = document(scene("outcome_changed"))
    limit, outcome, reason = found["traces"][0]["findings"]
    assert limit["caused_by"] is None
    assert outcome["caused_by"] == reason["caused_by"] == limit["fingerprint"]
    assert found["summary"]["errors"] == 1
    assert found["summary"]["by_rule"] == {"GT503": 1}
    assert found["traces"][0]["first_divergence"] == limit["fingerprint"]


def test_counts_and_verdict_of_a_suite() -> None:
    found = document(suite())
    assert (found["verdict"], found["exit_code"]) == ("no-verdict", 3)
    counts = {
        name: found["summary"][name]
        for name in ("traces", "clean", "changed", "missing", "unreadable", "not_comparable")
    }
    assert counts == {"traces": 8, "clean": 3, "changed": 2, "missing": 1, "unreadable": 1, "not_comparable": 1}
    by_name = {trace["name"]: trace for trace in found["traces"]}
    assert by_name["payout"]["error"]["next_step"] == "goldentrace record payout"
    assert by_name["legacy"]["error"]["line"] == 11
    assert by_name["import-of-the-archive"]["findings"], "what was found is still shown"


def test_the_alignment_folds_equal_neighbours() -> None:
    moved = document(scene("call_moved"))["traces"][0]["alignment"]
    assert moved == [
        {"op": "same", "golden": [0, 0], "candidate": [0, 0]},
        {"op": "same", "golden": [1, 2], "candidate": [2, 3]},
        {"op": "moved", "golden": [3, 3], "candidate": [1, 1]},
        {"op": "same", "golden": [4, 4], "candidate": [4, 4]},
    ]
    added = document(scene("call_added"))["traces"][0]["alignment"]
    assert {"op": "added", "golden": None, "candidate": [4, 4]} in added


def test_a_fingerprint_outlives_lines_and_values() -> None:
    before = document(scene("argument_changed"))["traces"][0]["findings"][0]
    report = scene("argument_changed")
    comparison = report.traces[0].comparison
    assert comparison is not None
    change = comparison.changes[0]
    change.golden_line, change.candidate_line, change.actual, change.message = 99, 98, 7, "reworded"
    after = document(report)["traces"][0]["findings"][0]
    assert after["fingerprint"] == before["fingerprint"]
    assert (after["golden"]["line"], after["actual"]) == (99, 7)
    change.pointers = ("/currency",)
    assert document(report)["traces"][0]["findings"][0]["fingerprint"] != before["fingerprint"]


def test_a_fingerprint_of_an_added_call_does_not_hang_on_its_number() -> None:
    report = scene("call_added")
    comparison = report.traces[0].comparison
    assert comparison is not None
    before = fingerprints("refund", comparison.changes)
    comparison.changes[0].label = "get_order#7"
    assert fingerprints("refund", comparison.changes) == before


def test_fingerprints_of_one_trace_differ_and_those_of_traces_too() -> None:
    trace = scenes.many_changes()
    assert trace.comparison is not None
    twice = [*trace.comparison.changes, *trace.comparison.changes]
    names = fingerprints("refund", twice)
    assert len(set(names)) == len(twice)
    assert not set(names) & set(fingerprints("other", twice))


def test_long_values_are_cut_and_say_so() -> None:
    report = scene("argument_changed")
    comparison = report.traces[0].comparison
    assert comparison is not None
    comparison.changes[0].expected = "a" * 50_000
    comparison.changes[0].actual = {"items": list(range(20_000))}
    found = document(report)["traces"][0]["findings"][0]
    assert found["shortened"] == ["expected", "actual"]
    assert len(found["expected"]) < MAX_CHARS + 100
    assert found["expected"].startswith("a" * 1000)
    assert "characters left out" in found["actual"]
    VALIDATOR.validate(document(report))


@pytest.mark.parametrize(
    "value", [None, True, 12, 1.5, "text", ["a", 1], {"deep": {"er": []}}, "\ud800 lone", "<secret:1>"]
)
def test_values_are_kept_as_they_are(value: Any) -> None:
    report = scene("argument_changed")
    comparison = report.traces[0].comparison
    assert comparison is not None
    comparison.changes[0].actual = value
    found = document(report)["traces"][0]["findings"][0]
    assert found["actual"] == value
    assert found["shortened"] == []


def test_the_text_is_ascii_whatever_the_trace_holds() -> None:
    assert render(scene("long_values"), "json").isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", render(scene("long_values"), "json"))


def test_a_number_that_is_not_finite_becomes_null() -> None:
    report = scene("argument_changed")
    comparison = report.traces[0].comparison
    assert comparison is not None
    comparison.candidate.operations[3].attempts[0].started_ms = float("nan")
    assert document(report)["traces"][0]["findings"][0]["candidate"]["offset_ms"] is None


@pytest.mark.parametrize("name", [*sorted(SCENES), "suite"])
def test_json_lines_hold_the_same_objects(name: str) -> None:
    report = suite() if name == "suite" else scene(name)
    whole = document(report)
    lines = [json.loads(line) for line in render(report, "jsonl").splitlines()]
    for line in lines:
        LINE.validate(line)
    assert [line["type"] for line in lines[:1] + lines[-1:]] == ["report", "summary"]
    assert lines[-1]["summary"] == whole["summary"]
    expected = [(trace["name"], finding) for trace in whole["traces"] for finding in trace["findings"]]
    assert [(line["trace"], line["finding"]) for line in lines if line["type"] == "finding"] == expected


@pytest.mark.parametrize(
    ("pointer", "code", "path"),
    [
        ("/amount", "GT101", "/args/amount"),
        ("", "GT101", "/args"),
        ("#idempotency_key", "GT101", "/idempotency_key"),
        ("#raw", "GT101", "/args_raw"),
        ("/payload#json", "GT101", "/args/payload"),
        ("/limit", "GT108", "/result/limit"),
    ],
)
def test_paths_are_those_of_the_event(pointer: str, code: str, path: str) -> None:
    assert event_path(pointer, code) == path
