"""GT1006: each budget, at its number, one above, and where the trace does not tell."""

from typing import Any

import msgspec
import pytest

from goldentrace.model.event import Usage
from goldentrace.model.finding import LintResult
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.rules.catalogue import declared_tools, merged
from goldentrace.rules.registry import run_rules
from tests.traces import Run, normal

DESTROYS = {"tools": {"drop": {"access": "write", "destructive": True}, "look": {"access": "read"}}}


def judged(trace: Trace, budgets: dict[str, Any], profile: dict[str, Any] | None = None) -> LintResult:
    known = msgspec.convert({"name": "test@1", **(profile or {})}, Profile)
    return run_rules(trace, normal(trace, known), known, budgets=budgets, select=["GT1006"])


def spent(*turns: Usage | None) -> Trace:
    run = Run()
    for usage in turns:
        run.turn(usage=usage)
        run.call("look", {})
    return run.end()


@pytest.mark.parametrize(("allowed", "lines"), [(30, []), (29, [[5]]), (9, [[2]])])
def test_tokens_are_those_of_all_turns_and_the_turn_that_passes_is_named(allowed: int, lines: list[list[int]]) -> None:
    trace = spent(Usage(input_tokens=10, output_tokens=5), Usage(input_tokens=10, output_tokens=5))
    found = judged(trace, {"tokens": allowed}).findings
    assert [list(finding.lines) for finding in found] == lines
    assert all(finding.actual == 30 for finding in found)


def test_cost_is_summed_and_absent_cost_is_no_cost_of_nothing() -> None:
    assert [f.actual for f in judged(spent(Usage(cost_usd=0.5), Usage(cost_usd=0.75)), {"cost_usd": 1}).findings] == [
        1.25
    ]
    unknown = judged(spent(Usage(input_tokens=10), None), {"cost_usd": 0})
    assert unknown.findings == []
    assert unknown.could_not_check["GT1006"] == "budget cost_usd: the source records no cost"
    assert judged(spent(None), {"tokens": 0}).could_not_check["GT1006"] == "budget tokens: the source records no usage"


def test_wall_time_needs_times() -> None:
    slow = Run().call("a", {}).at(3).call("b", {}).end()
    assert [f.actual for f in judged(slow, {"wall_ms": 2000}).findings] == [3000]
    assert judged(slow, {"wall_ms": 3000}).findings == []
    timeless = Run().at(None).call("a", {}).end()
    assert "wall_ms" in judged(timeless, {"wall_ms": 1}).could_not_check["GT1006"]


def test_writes_and_destructive_calls_are_counted_by_what_is_declared() -> None:
    trace = Run().call("drop", {"n": 1}).call("look", {}).call("drop", {"n": 2}).end()
    assert [f.pointer for f in judged(trace, {"writes": 1}, DESTROYS).findings] == ["writes"]
    assert [f.labels for f in judged(trace, {"destructive": 1}, DESTROYS).findings] == [("drop#2",)]
    assert judged(trace, {"writes": 2, "destructive": 2}, DESTROYS).findings == []
    assert "drop, look" in judged(trace, {"writes": 2}).could_not_check["GT1006"]


def test_calls_in_all_and_of_one_tool_and_attempts() -> None:
    trace = Run().call("a", {"n": 1}).call("a", {"n": 2}).call("b", {}, status="error", id="b1")
    trace.call("b", {}, id="b2", op_id="b1", attempt=2, origin="harness")
    run = trace.end()
    found = judged(run, {"tool_calls": 2, "attempts": 1, "tools": {"a": 1, "b": 1}}).findings
    assert sorted((f.pointer, f.actual) for f in found) == [("attempts", 2), ("tool_calls", 3), ("tools.a", 2)]
    assert judged(run, {"tool_calls": 3, "attempts": 2, "tools": {"a": 2}, "writes": None}).findings == []


def test_lists_of_tools_in_the_shapes_of_mcp_chat_and_anthropic() -> None:
    listed = declared_tools(
        {
            "tools": [
                {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
                {
                    "name": "drop",
                    "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False},
                },
                {"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}}},
                {"name": "say", "input_schema": {"type": "object"}, "output_schema": {"type": "string"}},
                {"type": "web_search"},
                {"description": "nameless"},
                "no tool at all",
            ]
        }
    )
    assert listed is not None
    assert sorted(listed) == ["ask", "drop", "look", "say", "web_search"]
    assert (listed["look"].access, listed["drop"].access, listed["drop"].destructive) == ("read", "write", True)
    assert listed["drop"].idempotent is False
    assert listed["ask"].schema == listed["say"].schema == {"type": "object"}
    assert listed["say"].output_schema == {"type": "string"}


@pytest.mark.parametrize("value", [None, [], {}, {"tools": "x"}, ["x"], [{"description": "nameless"}]])
def test_what_is_no_list_of_tools(value: Any) -> None:
    assert declared_tools(value) is None


def test_the_profile_outranks_the_list_and_is_completed_by_it() -> None:
    listed = (
        declared_tools([{"name": "t", "parameters": {"type": "object"}, "annotations": {"readOnlyHint": True}}]) or {}
    )["t"]
    own = msgspec.convert({"access": "write", "polling": True}, type(listed))
    both = merged(own, listed)
    assert (both.access, both.polling, both.schema) == ("write", True, {"type": "object"})
    assert merged(own, None) is own
    assert merged(type(listed)(), listed) is listed
