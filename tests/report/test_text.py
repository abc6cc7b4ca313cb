"""The text report: what each kind of change looks like, and what holds for every page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.diff.codes import CODES
from goldentrace.model.change import Change
from goldentrace.model.report import Problem, Report, TraceReport
from goldentrace.report import render
from goldentrace.report.cells import measure
from tests.report import scenes
from tests.report.scenes import EXPECTED, SCENES, scene, suite

TEXTS = scenes.texts()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_page_is_as_expected(name: str) -> None:
    """`python tests/report/scenes.py` writes the expected pages; read what it changes."""
    assert TEXTS[name] == (EXPECTED / f"{name}.txt").read_text()


def test_no_expected_page_is_without_its_scene() -> None:
    assert {path.stem for path in EXPECTED.glob("*.txt")} == set(TEXTS)


def test_every_code_has_a_page() -> None:
    shown = {code for text in TEXTS.values() for code in re.findall(r"^(GT\d{3}) ", text, re.MULTILINE)}
    assert shown >= set(CODES)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("name", sorted(SCENES))
def test_no_line_is_wider_than_the_page(name: str, width: int) -> None:
    for line in render(scene(name), "text", width=width, verbosity=1).splitlines():
        assert measure(line) <= width, line


@pytest.mark.parametrize("name", sorted(SCENES))
def test_colours_change_no_word(name: str) -> None:
    painted = render(scene(name), "text", color=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render(scene(name), "text")


@pytest.mark.parametrize("name", sorted(SCENES))
def test_the_last_lines_hold_the_exit_code(name: str) -> None:
    report = scene(name)
    end = render(report, "text").rstrip().split("\n\n")[-1]
    assert f"(exit {report.exit_code})" in end


def test_the_end_names_the_commands() -> None:
    end = TEXTS["argument_changed"].splitlines()[-2:]
    assert end == ["  explain  goldentrace explain GT101", "  accept   goldentrace accept refund"]


def test_two_files_are_not_accepted_but_recorded() -> None:
    report = scene("argument_changed")
    report.traces[0].candidate_path, report.traces[0].is_pending = "old runs/new.jsonl", False
    end = render(report, "text").splitlines()[-1]
    assert end == "  record   goldentrace record --from 'old runs/new.jsonl' refund"


def test_many_changed_scenarios_are_reviewed_not_accepted_at_once() -> None:
    traces = [scenes.argument_changed() for _ in range(9)]
    for number, trace in enumerate(traces):
        trace.name = f"scenario-{number}"
    text = render(Report("diff", traces), "text")
    assert "  review   goldentrace pending\n" in text
    assert "goldentrace accept" not in text


def test_what_check_finds_in_several_scenarios_is_looked_at_with_diff() -> None:
    report = suite()
    report.command, report.options = "check", ("--artifacts", "out")
    text = render(report, "text")
    assert "  review   goldentrace diff --artifacts out\n" in text


def test_the_commands_find_the_files_that_were_compared() -> None:
    report = scene("argument_changed")
    report.options = ("--artifacts", "my runs")
    assert render(report, "text").splitlines()[-1] == "  accept   goldentrace accept --artifacts 'my runs' refund"
    report.traces[0].missing = "missing-candidate"
    assert "  next     goldentrace run --artifacts 'my runs' refund\n" in render(report, "text")


def test_a_warning_that_does_not_gate_is_still_shown_and_explained() -> None:
    text = TEXTS["batching"]
    assert "passes; --fail-on warning would not (exit 0)" in text
    assert "goldentrace explain GT107" in text


def test_what_follows_from_another_change_says_so_and_has_no_context() -> None:
    block = TEXTS["attempts_changed"].split("GT301")[1].split("\n\n")[0]
    assert "follows from GT201 attempts-changed at refund#1" in block
    assert "get_order#1" not in block
    assert "1 error," in TEXTS["attempts_changed"]


def test_many_changes_are_cut_and_counted() -> None:
    text = TEXTS["many_changes"]
    assert text.count("\nGT101 ") == 20
    assert "10 more changes: GT101 argument-changed x10 (-v shows all)" in text
    assert render(scene("many_changes"), "text", verbosity=1).count("\nGT101 ") == 30


def test_errors_come_before_notes_where_blocks_are_cut() -> None:
    report = scene("many_changes")
    comparison = report.traces[0].comparison
    assert comparison is not None
    for change in comparison.changes[:-1]:
        change.severity = "note"
    assert comparison.changes[-1].severity == "error"
    assert "poll#59: argument" not in render(report, "text")  # the label stands in the heading
    assert re.search(r"^GT101 argument-changed  error  poll#59", render(report, "text"), re.MULTILINE)


def test_a_suite_lists_the_clean_only_when_asked() -> None:
    assert "  CLEAN       research" not in TEXTS["suite"]
    assert "2 more clean (-v lists them)" in TEXTS["suite"]
    full = render(suite(), "text", verbosity=1)
    assert "  CLEAN       research" in full
    assert "(-v lists" not in full


def test_quiet_is_the_suite_and_the_end() -> None:
    assert TEXTS["suite"].endswith(TEXTS["suite_quiet"])


def test_an_empty_selection_is_no_verdict() -> None:
    text = render(Report("check", []), "text")
    assert "nothing was selected: no verdict (exit 3)" in text


HOSTILE = st.text(
    st.sampled_from("a \t\n\r\x1b\x9b\x00\u202e\u200f\u2028:#[]`@<>&%'\"\\漢é\u0301\U0001f469\udcff/x-"),
    min_size=1,
    max_size=60,
)


@given(name=HOSTILE, message=HOSTILE, value=HOSTILE, path=HOSTILE, width=st.integers(40, 120))
def test_nothing_of_a_trace_acts_on_the_terminal(name: str, message: str, value: str, path: str, width: int) -> None:
    trace = scenes.argument_changed()
    trace.name, trace.candidate_path = name, path
    assert trace.comparison is not None
    change: Change = trace.comparison.changes[0]
    change.message = change.label = change.actual = message
    change.expected, change.pointers, change.hint = value, (value,), message
    trace.comparison.golden.operations[2].label = value
    trace.comparison.coverage = [message]
    trace.comparison.golden.header = type(trace.comparison.golden.header)(scenario_id=name)
    report = Report("diff", [trace, TraceReport(name, problem=Problem(message, path, 3, value, name))], notes=[message])
    for page in (render(report, "text", width=width), render(report, "concise")):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\ud800-\udfff]", page)
        assert not re.search(r"^\s*::", page, re.MULTILINE)
        assert not re.search(r"##[^\s\[\]]*\[", page)
    for line in render(report, "text", width=width).splitlines():
        assert measure(line) <= width, line


def test_a_redacted_value_passes_through() -> None:
    report = scene("argument_changed")
    comparison = report.traces[0].comparison
    assert comparison is not None
    comparison.changes[0].expected = comparison.changes[0].actual = "<secret:1>"
    for name in ("text", "json", "junit", "sarif", "markdown"):
        page = render(report, name)
        assert "secret:1" in page or name == "sarif"


def test_plain_text_loads_no_table_of_widths(tmp_path: Path) -> None:
    probe = (
        "import sys; from tests.report.scenes import scene; from goldentrace.report import render; "
        "render(scene(sys.argv[1]), 'text', color=True); print('rich' in {m.partition('.')[0] for m in sys.modules})"
    )
    root = Path(__file__).parents[2]
    for name, is_loaded in (("argument_changed", "False"), ("long_values", "True")):
        done = subprocess.run([sys.executable, "-c", probe, name], cwd=root, check=True, capture_output=True, text=True)
        assert done.stdout.strip() == is_loaded, name
