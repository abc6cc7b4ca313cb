"""The timeline of `show`, the coverage of `import`, masked values, and the rules' own report."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.trace import read_trace
from goldentrace.model.finding import LintResult
from goldentrace.model.normal import Masked, NormalTrace
from goldentrace.model.operation import ApprovalStep, LooseEvent
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.report.cells import measure
from goldentrace.report.coverage import render_coverage
from goldentrace.report.lint import render_lint
from goldentrace.report.masked import render_masked, render_masked_summary
from goldentrace.report.timeline import render_timeline
from goldentrace.sources.coverage import coverage_table
from tests.report import scenes
from tests.report.scenes import attempt, decision, limited, operation, side

TRACE = """\
{"type":"trace_start","ts":"2026-03-01T09:00:00.000000Z","format":"goldentrace/1","scenario_id":"charge"}
{"type":"model_turn","ts":"2026-03-01T09:00:00.100000Z","turn":1}
{"type":"tool_call","ts":"2026-03-01T09:00:00.500000Z","turn":1,"call_id":"a","tool_name":"get_order","args":{"ref":"A-100"},"batch":"b"}
{"type":"tool_call","ts":"2026-03-01T09:00:00.510000Z","turn":1,"call_id":"b","tool_name":"get_stock","args":{"sku":"S"},"batch":"b"}
{"type":"tool_result","ts":"2026-03-01T09:00:00.700000Z","call_id":"b","status":"ok","result":{"n":3}}
{"type":"tool_result","ts":"2026-03-01T09:00:00.800000Z","call_id":"a","status":"ok","result":{"id":"0b9d7d3e-7c5e-4f0a-9a55-5d1f0f6a2f11"}}
{"type":"model_turn","ts":"2026-03-01T09:00:01.000000Z","turn":2}
{"type":"tool_call","ts":"2026-03-01T09:00:01.500000Z","turn":2,"call_id":"c","tool_name":"charge","args":{"order":"0b9d7d3e-7c5e-4f0a-9a55-5d1f0f6a2f11","key":"11111111-7c5e-4f0a-9a55-5d1f0f6a2f22"}}
{"type":"tool_result","ts":"2026-03-01T09:00:01.700000Z","call_id":"c","status":"error","error_class":"rate_limited","http_status":429,"owed_ms":2000}
{"type":"decision","ts":"2026-03-01T09:00:01.700000Z","call_id":"c","decision":"retry","by":"harness","reason":"rate_limited","delay_ms":2000}
{"type":"tool_call","ts":"2026-03-01T09:00:03.704000Z","turn":2,"call_id":"d","op_id":"c","attempt":2,"origin":"harness","tool_name":"charge","args":{"order":"0b9d7d3e-7c5e-4f0a-9a55-5d1f0f6a2f11","key":"11111111-7c5e-4f0a-9a55-5d1f0f6a2f22"}}
{"type":"tool_result","ts":"2026-03-01T09:00:03.900000Z","call_id":"d","status":"ok","result":{}}
{"type":"limit","ts":"2026-03-01T09:00:04.000000Z","limit":"max_tool_calls","value":3,"max":3}
{"type":"trace_end","ts":"2026-03-01T09:00:04.100000Z","outcome":"partial","stop_reason":"call_limit"}
"""


def normal_of(text: str = TRACE) -> tuple[NormalTrace, Trace]:
    trace = read_trace(text.encode(), "runs/charge.jsonl")
    normal = normalize(trace, Profile(name="default@1"), "h:0", is_explained=True)
    place_in_time(normal, trace)
    return normal, trace


def test_a_timeline_shows_events_as_they_happened() -> None:
    assert (
        render_timeline(*normal_of())
        == """\
charge  3 calls, 2 turns, 4.10s
  runs/charge.jsonl

  +0.50s     1  call       get_order#1       batch 1
  +0.51s        call       get_stock#1       batch 1
  +0.70s        result     get_stock#1       ok
  +0.80s        result     get_order#1       ok
  +1.50s     2  call       charge#1
  +1.70s        result     charge#1          error rate_limited 429  owed 2s
  +1.70s        decision   charge#1          retry  rate_limited, wait 2s
  +3.70s        attempt 2  charge#1          by harness  waited 2.004s #########
  +3.90s        result     charge#1          ok
  +4.00s        limit      max_tool_calls 3
  +4.10s        end        partial           call_limit
  stopped: by max_tool_calls (3 reached, 3 allowed), after charge#1 (line 11)
"""
    )


def test_a_timeline_says_where_a_recording_stopped() -> None:
    cut = "".join(TRACE.splitlines(keepends=True)[:8])
    text = render_timeline(*normal_of(cut))
    assert "           charge#1     no result" in text
    assert text.splitlines()[-1].startswith("  stopped here: ")
    assert "  end  " not in text


def test_bars_are_on_one_scale() -> None:
    calls = [
        operation("a#1", limited(), attempt(2, gap_ms=1000, origin="harness")),
        operation("b#1", limited(), attempt(2, gap_ms=4000, origin="model"), attempt(3, gap_ms=100)),
    ]
    text = render_timeline(side(calls, is_golden=True), None)
    bars = re.findall(r"waited (\S+) ?(#*)", text)
    assert [(wait, len(bar)) for wait, bar in bars] == [("1s", 4), ("4s", 16), ("100ms", 0)]


def test_a_golden_without_times_has_a_timeline_too() -> None:
    golden = side(
        [operation("main#1", decision("abort", "denied"), ApprovalStep(verdict="denied", by="boss"), attempt(status="denied"))],
        is_golden=True,
        loose=[LooseEvent(kind="effect", position=0, fields={"name": "charge", "value": {"/cents": "int h:1"}}),
               LooseEvent(kind="decision", position=1, fields={"decision": "escalate", "reason": "denied", "delay_ms": 5})],
    )  # fmt: skip
    golden.notes = ("line 3: an unknown event type",)
    text = render_timeline(golden, None)
    rows = [line.split() for line in text.splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows[1:-1]] == ["effect", "decision", "approval", "call", "result", "decision", "end"]
    assert "+" not in text
    assert text.endswith("  note: line 3: an unknown event type\n")


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_of_a_table_is_wider_than_the_page(width: int) -> None:
    normal, trace = normal_of()
    pages = [
        render_timeline(normal, trace, width=width),
        render_masked(normal, width=width),
        render_masked_summary(normal, width=width),
        render_coverage(coverage_table(trace), trace.path, trace.format, width=width),
    ]
    assert all(measure(line) <= width for page in pages for line in page.splitlines())


@given(st.text(st.sampled_from("a\x1b\n\u202e:#[漢]"), min_size=1, max_size=30))
def test_nothing_of_a_trace_acts_on_the_terminal(text: str) -> None:
    golden = side([operation("x#1", decision("retry", text))], is_golden=True)
    golden.operations[0].label = golden.path = text
    golden.notes = (text,)
    golden.masked = [Masked(text, text, text, text, text)]
    for page in (render_timeline(golden, None), render_masked(golden), render_masked_summary(golden)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", page)
        assert not re.search(r"^\s*::", page, re.MULTILINE)


def test_every_masked_value_is_listed_with_its_rule() -> None:
    normal, _ = normal_of()
    text = render_masked(normal)
    assert text.startswith("charge#1\n")
    assert text.count(" -> ") == len(normal.masked)
    assert "-> <get_order#1/id>  ids/1 uuid\n" in text
    assert "-> <new:uuid>" in text
    assert f"{len(normal.masked)} values masked" in text


def test_nothing_masked_is_said() -> None:
    normal = side([operation("a#1")], is_golden=True)
    assert render_masked(normal) == "nothing was masked\n"
    assert render_masked_summary(normal) == ""


def test_the_summary_lists_what_the_agent_made_up() -> None:
    text = render_masked_summary(normal_of()[0])
    assert "1 id that no result supplied" in text
    assert "  charge#1 /key  <new:uuid>\n" in text


def test_coverage_says_what_is_missing_and_why() -> None:
    trace = read_trace(
        b'{"type":"trace_start","format":"goldentrace/1"}\n{"type":"trace_end","outcome":"unknown","stop_reason":"unknown"}\n',
        "x.jsonl",
    )
    text = render_coverage(coverage_table(trace), trace.path, trace.format)
    assert text.startswith("x.jsonl  read as goldentrace/1\n")
    assert re.search(r"^  times +no: not in the file$", text, re.MULTILINE)
    assert re.search(r"^  calls +0$", text, re.MULTILINE)


def test_lint_is_a_report_of_its_own() -> None:
    lint = scenes.findings().lint
    assert lint is not None
    text = render_lint([lint])
    assert "    runs/refund.jsonl:6  charge#1\n    runs/refund.jsonl:8  charge#2\n" in text
    assert "5 of 8 rules checked (-v: why not the others)" in text
    assert "could not check: GT1004, GT1101: results are not recorded" in render_lint([lint], verbosity=1)
    assert text.endswith("structural defect (exit 2)\n  explain  goldentrace explain GT1001\n")
    both = render_lint([lint, LintResult("other.jsonl", [], ("GT1001",))], verbosity=1)
    assert "CLEAN    other.jsonl" in both
    assert "1 of 1 rule checked" in both
