"""Figures of runs, counted by hand."""

import msgspec
import pytest

from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.subject import Subject
from goldentrace.scale.stats import RunStats, percentile, stats_of, stats_of_run
from tests.traces import Run


def figures(trace: Trace, tools: dict[str, Tool] | None = None) -> RunStats:
    profile = Profile(name="default@1", tools=tools or {})
    normal = normalize(trace, profile, "h:0")
    place_in_time(normal, trace)
    return stats_of_run(Subject(trace, normal, profile), "a.jsonl")


def lasting(run: Run, tool: str, second: float, took_s: float, args: object = None, **fields: object) -> Run:
    """A call whose result comes so many seconds later."""
    run.at(second).call(tool, args, status=None, id=f"{tool}-{second}")
    return run.at(second + took_s).result(f"{tool}-{second}", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([5], 50, 5), ([5], 99, 5), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (list(range(1, 101)), 95, 95), (list(range(1, 101)), 99, 99), ([1, 2, 3, 4], 95, 4)],
)  # fmt: skip
def test_a_percentile_is_a_value_that_was_measured(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_success_and_latency_per_tool() -> None:
    run = Run()
    for number in range(4):
        lasting(run, "get", number * 10, number + 1, {"id": number})
    lasting(run, "get", 50, 9, {"id": 9}, status="error", error_class="not_found")
    lasting(run, "put", 70, 0.25, {"id": 1})
    found = figures(run.end())
    get = found.tools["get"]
    assert (get.calls, get.ok, get.failed, get.success_rate) == (5, 4, 1, 0.8)
    assert get.percentiles_ms() == {50: 3000, 95: 9000, 99: 9000}
    assert (found.total.calls, found.tools["put"].percentiles_ms()) == (6, {50: 250, 95: 250, 99: 250})


def test_attempts_429s_and_timeouts() -> None:
    run = Run().call("get", {"id": 1}, status="error", http_status=429, error_class="rate_limited", id="a", op_id="a")
    run.call("get", {"id": 1}, status="timeout", id="a", op_id="a", attempt=2, origin="harness")
    run.call("get", {"id": 1}, 1, id="a", op_id="a", attempt=3, origin="harness").call("get", {"id": 2}, 1)
    total = figures(run.end()).total
    assert (total.calls, dict(total.attempts), total.success_rate) == (2, {3: 1, 1: 1}, 1.0)
    assert (total.rate_limited, total.timeouts, total.asks) == (1, 1, 2)


def test_an_unknown_outcome_counts_until_it_is_reconciled() -> None:
    tools = {"pay": Tool(access="write"), "find": Tool(access="read", reconciles="pay")}
    run = Run().call("pay", {"id": 1}, status="timeout").call("pay", {"id": 2}, status="timeout")
    assert figures(run.end(), tools).tools["pay"].unknown_outcomes == 2
    run = Run().call("pay", {"id": 1}, status="timeout").call("find", {"id": 1}, {"paid": True})
    assert figures(run.end(), tools).tools["pay"].unknown_outcomes == 0
    run = Run().call("pay", {"id": 1}, status="timeout", sent=False)
    assert figures(run.end(), tools).tools["pay"].unknown_outcomes == 0


def test_a_lost_answer_of_an_undeclared_tool_is_told_apart() -> None:
    total = figures(Run().call("pay", {"id": 1}, status="timeout").end()).total
    assert (total.unknown_outcomes, total.unknown_access) == (0, 1)


def test_repeats_are_labelled_by_what_they_are() -> None:
    tools = {"get": Tool(access="read"), "put": Tool(access="write")}
    run = Run()
    for tool in ("get", "get", "get", "put", "put", "odd", "odd"):
        run.turn().call(tool, {"id": 1}, {"same": tool})
    total = figures(run.end(), tools).total
    assert dict(total.repeats) == {"idempotent read": 2, "side effect": 1, "unclassified": 1}
    assert total.rate("idempotent read") == 2 / 7


def test_the_same_call_after_a_terminal_error_is_an_error_repeat() -> None:
    run = Run()
    for _ in range(2):
        run.turn().call("get", {"id": 1}, "no", status="error", error_class="bad_request", http_status=400)
    assert dict(figures(run.end(), {"get": Tool(access="read")}).total.repeats) == {"error repeat": 1}


def test_a_polling_tool_repeats_nothing() -> None:
    run = Run().call("wait", {}, 1).call("wait", {}, 1)
    assert dict(figures(run.end(), {"wait": Tool(access="read", polling=True)}).total.repeats) == {}


def test_limits_are_counted_in_all_and_for_the_tool_that_they_name() -> None:
    run = Run().call("get", {}, 1).limit("max_tool_calls", value=2, max=1)
    run.limit("max_elapsed_ms", extra={"tool_name": "get"})
    found = figures(run.end("aborted", "call_limit"))
    assert dict(found.total.limits) == {"max_tool_calls": 1, "max_elapsed_ms": 1}
    assert dict(found.tools["get"].limits) == {"max_elapsed_ms": 1}
    assert (found.outcome, found.stop_reason) == ("aborted", "call_limit")


def test_what_is_not_recorded_is_absent() -> None:
    found = figures(Run().at(None).call("get", {}, status=None).cut())
    assert (found.total.open, found.total.success_rate, found.total.percentiles_ms(), found.outcome) == (
        1,
        None,
        None,
        None,
    )


def test_success_is_unknown_where_the_source_does_not_tell_failures() -> None:
    trace = Run().call("get", {"id": 1}, "ok").call("get", {"id": 2}, "Error").end()
    silent = msgspec.structs.replace(trace, coverage={"status": "the format has no flag for a failed tool"})
    total = figures(silent).total
    assert (total.success_rate, total.untold, total.ok, total.has_failures) == (None, 2, 0, False)
    assert figures(trace).total.success_rate == 1.0


def test_many_runs_add_up() -> None:
    runs = [figures(lasting(Run(), "get", 0, seconds).end()) for seconds in (1, 2, 3)]
    found = stats_of([*runs, figures(Run().call("put", {}, status="error").end())])
    assert (len(found.runs), found.total.calls, found.total.success_rate) == (4, 4, 0.75)
    assert found.tools["get"].percentiles_ms() == {50: 2000, 95: 3000, 99: 3000}
    assert found.runs[0].total.calls == 1  # adding up leaves the runs as they are
