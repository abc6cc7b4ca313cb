"""Values, times, steps and waits as people read them."""

import re
from typing import Any

import pytest

from goldentrace.errors import ConfigError
from goldentrace.model.change import Change, Comparison, Tolerance
from goldentrace.model.finding import LintResult
from goldentrace.model.report import Report, TraceReport
from goldentrace.report import render
from goldentrace.report.page import Page
from goldentrace.report.rows import add_steps, step_diff
from goldentrace.report.values import as_json, brief_wait, offset, shown, wait
from tests.report import scenes
from tests.report.scenes import attempt, change, changed, decision, limited, operation, report, scene, side


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("A-100", '"A-100"'),
        ("str[5] h:e0445e937323", "str[5] h:e0445e937323"),
        ("h:0a1b2c3d4e5f<get_order#1/id>", "h:0a1b2c3d4e5f<get_order#1/id>"),
        ("<new:uuid>", "<new:uuid>"),
        ("<secret:1>", "<secret:1>"),
        ("<not> a placeholder", '"<not> a placeholder"'),
        ("int 5", '"int 5"'),
        ("{}", "{}"),
        ({"value": 3}, "3"),
        ({"value": 3, "more": 1}, '{"value": 3, "more": 1}'),
        (None, "(absent)"),
        (True, "true"),
        ([1, "é"], '[1, "é"]'),
    ],
)
def test_values_are_json_and_what_a_golden_writes_is_as_written(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_number_too_long_to_print_is_said() -> None:
    assert as_json(10**5000) == "(a number of more than 4,300 digits)"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, ""), (0, "+0.00s"), (410, "+0.41s"), (99_994, "+99.99s"), (100_000, "+100.0s"), (-250, "-0.25s"),
        (1_000_000, "+16m40s"), (3_723_000, "+1h02m03s"), (90_061_000, "+25h01m01s"),
    ],
)  # fmt: skip
def test_offsets(ms: float | None, text: str) -> None:
    assert offset(ms) == text


@pytest.mark.parametrize(
    ("ms", "text", "brief"),
    [
        (None, "?", "?"), (0, "0ms", "0ms"), (0.4, "0.4ms", "0.4ms"), (3, "3ms", "3ms"), (63.182, "63ms", "63ms"),
        (999.6, "1.000s", "1s"), (1000, "1.000s", "1s"), (2004, "2.004s", "2.004s"), (4200, "4.200s", "4.2s"), (-30, "-30ms", "-30ms"),
    ],
)  # fmt: skip
def test_waits(ms: float | None, text: str, brief: str) -> None:
    assert (wait(ms), brief_wait(ms)) == (text, brief)


# -- steps ---------------------------------------------------------------------------------------------------------


def symbols(before: list[Any], now: list[Any]) -> str:
    return "".join(symbol for symbol, _ in step_diff(before, now))


def test_steps_are_a_diff_with_common_ends() -> None:
    before = [limited(), decision("retry"), limited(2), decision("retry"), attempt(3)]
    assert symbols(before, before) == "     "
    assert symbols(before, before[:3]) == "   --"
    assert symbols(before, [limited(), decision("abort")]) == " ----+"
    assert symbols([], [attempt()]) == "+"


def test_common_steps_in_the_middle_are_kept() -> None:
    before = [decision("retry", "a"), attempt(2), decision("retry", "b"), attempt(3)]
    now = [decision("retry", "x"), attempt(2), decision("retry", "y"), attempt(3)]
    assert symbols(before, now) == "-+ -+ "


def test_waits_and_times_make_no_step_another_one() -> None:
    assert symbols([limited(owed_ms=2000, gap_ms=5)], [limited(owed_ms=1, at=7.0)]) == " "


def test_very_long_steps_are_still_a_diff() -> None:
    before = [attempt(n, "error") for n in range(1, 302)]
    now = [attempt(n, "timeout") for n in range(1, 302)]
    assert symbols(before, now) == "-" * 301 + "+" * 301


def test_the_middle_of_many_steps_is_left_out_and_counted() -> None:
    before = [attempt(n, "error") for n in range(1, 60)]
    page = Page(80)
    add_steps(page, step_diff(before, [*before, attempt(60)]))
    lines = page.text().splitlines()
    assert lines[0].strip() == "... 57 more ..."
    assert lines[-1].startswith("  +    attempt 60")
    page = Page(80)
    add_steps(page, step_diff(before, before))
    assert "... 23 more ..." in page.text()


# -- waits ---------------------------------------------------------------------------------------------------------


def retries(count: int) -> list[Any]:
    return [limited(), *(limited(n, gap_ms=100.0 * n, origin="harness") for n in range(2, count + 1))]


def test_many_waits_show_those_around_the_one_that_changed() -> None:
    golden = side([operation("poll#1", *retries(40))], is_golden=True)
    candidate = side([operation("poll#1", *retries(40))], is_golden=False)
    candidate.operations[0].attempts[19].gap_ms = 9.0
    one = change(
        "GT401", "poll#1: retry 19: wait out of its band", 0, 0, expected=2000, actual=9.0, attempt=20,
        tolerance=Tolerance(0, 3000, 5, "backoff.relative: 0.2"),
    )  # fmt: skip
    one.waits = scenes.judged_waits(one, "gap", 19)
    text = render(Report("diff", [report(golden, candidate, [(0, 0)], one)]), "text")
    assert text.count("\n       retry ") == 7
    assert "  ~    retry 19  2.000s" in text
    assert re.search(r"<= 3.000s +5ms too long", text)


def test_a_wait_without_a_deviation_is_ok_and_without_an_interval_not_known() -> None:
    text = render(scene("backoff_not_comparable"), "text")
    assert "  ~    retry 3       ?  4.301s\n" in text
    trace = scenes.backoff_out_of_band()
    assert trace.comparison is not None
    found = trace.comparison.changes[0]
    found.tolerance = Tolerance(0, 9900, 0, "")
    found.waits = scenes.judged_waits(found, "gap")
    text = render(Report("diff", [trace]), "text")
    assert re.search(r"<= 9.900s +ok", text)
    assert "tolerance:" not in text


# -- blocks --------------------------------------------------------------------------------------------------------


def test_two_changes_of_one_call_show_its_neighbours_once() -> None:
    trace = changed(
        change("GT101", "refund#1: argument /amount differs", 3, 3, pointers=("/amount",), expected=1, actual=2),
        change("GT401", "refund#1: retry 3: wait out of its band", 3, 3, expected=4272, actual=9000, attempt=4,
               tolerance=Tolerance(0, 5000, 4000, "backoff.policy: openai")),
    )  # fmt: skip
    text = render(Report("diff", [trace]), "text")
    assert text.count("get_order#1") == 1
    assert text.count("GT401 backoff-out-of-band") == 1


def test_more_pointers_than_fit_are_counted() -> None:
    pointers = tuple(f"/items/{n}" for n in range(9))
    trace = changed(change("GT101", "refund#1: 9 of 9 arguments differ", 3, 3, pointers=pointers, expected=1, actual=2))
    text = render(Report("diff", [trace]), "text")
    assert "       ... 4 more ...\n" in text
    whole = changed(
        change("GT101", "refund#1: argument (the whole value) differs", 3, 3, pointers=("",), expected=1, actual=2)
    )
    assert "(the whole value)\n" in render(Report("diff", [whole]), "text")


def test_a_new_call_shows_its_first_arguments() -> None:
    golden, candidate = scenes.sides()
    candidate.operations.append(operation("search#1", args={f"/{name}": "int h:4b227777d4dd" for name in "abcdefg"}))
    one = change("GT102", "search: a call that the golden does not have", None, 5)
    text = render(Report("diff", [report(golden, candidate, [*scenes.SAME, (None, 5)], one)]), "text")
    assert text.count("\n  +    /") == 4
    assert "... 3 more arguments ..." in text


def test_a_change_of_the_run_before_the_first_call_stands_above_it() -> None:
    one = change(
        "GT204", "the run: decided escalate (urgent) in addition", actual="escalate (urgent)", candidate_line=4
    )
    text = render(Report("diff", [changed(one)]), "text")
    lines = text.splitlines()
    assert lines.index("  +  decision escalate (urgent)") == lines.index("     get_order#1     +0.41s  ok") + 1


def test_a_value_of_many_items_is_shown_in_words() -> None:
    trace = changed(change("GT504", "effects", expected={"charge": 1, "mail": {"to": 2}}, actual=["charge", "mail"]))
    text = render(Report("diff", [trace]), "text")
    assert "  -  golden  charge: 1, mail: to: 2\n" in text
    assert "  +  now     charge, mail\n" in text


# -- concise and the door ------------------------------------------------------------------------------------------


def test_concise_lines_of_rules_and_of_added_calls() -> None:
    lines = render(scene("findings"), "concise").splitlines()
    assert lines == [
        "runs/refund.jsonl:6: GT1001 charge#2: repeats charge#1 in the same turn, byte by byte",
        "runs/refund.jsonl:3: GT1003 read#2: config.json was read in turn 2 and nothing touched it since [warning]",
        "runs/refund.jsonl:6: GT1507 no message or result holds this id [note]",
    ]
    assert render(scene("call_added"), "concise") == (
        ".goldentrace/runs/shop/refund.jsonl:14: GT102 get_order: a call that the golden does not have\n"
    )
    assert len(render(scene("findings"), "concise", verbosity=1).splitlines()) == 4


def test_a_very_long_message_is_cut_in_a_concise_line() -> None:
    trace = changed(change("GT501", "x" * 5000))
    line = render(Report("diff", [trace]), "concise")
    assert len(line) < 500
    assert line.endswith("...\n")


def test_a_format_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such output format: yaml") as error:
        render(Report("diff", []), "yaml")
    assert "one of: text, concise, json" in error.value.next_step


def test_a_huge_failure_is_cut_in_junit_and_markdown() -> None:
    changes: list[Change] = []
    golden = side(
        [operation(f"poll#{n}", args={f"/argument-{m}": "int h:4b227777d4dd" for m in range(9)}) for n in range(900)],
        is_golden=True,
    )
    for n in range(900):
        changes.append(change("GT103", f"poll#{n}: did not happen", n))
        changes[-1].label = f"poll#{n}"
        changes[-1].hint = "words " * 300
    comparison = Comparison(golden, side([], is_golden=False), [(n, None) for n in range(900)], changes)
    trace = TraceReport("poll", "g.jsonl", "c.jsonl", comparison)
    assert len(render(Report("diff", [trace]), "junit")) < 200_000
    assert len(render(Report("diff", [trace]), "markdown")) < 60_000


def test_rules_that_ran_beside_a_comparison_are_shown_with_it() -> None:
    trace = scenes.argument_changed()
    trace.lint = LintResult("runs/refund.jsonl", [], ("GT1001",), {"GT1003": "access of fetch is not declared"})
    assert "1 of 2 rules checked (-v: why not the others)\n" in render(Report("check", [trace]), "text")
    text = render(Report("check", [trace]), "text", verbosity=1)
    assert "1 of 2 rules checked\n  could not check: GT1003: access of fetch is not declared" in text
