"""What a simulated cache says of a recorded run. Expected numbers are counted by hand."""

from typing import Any

import pytest

from goldentrace.cache.simulation import Settings, Simulation, simulate, sums_of
from goldentrace.model.event import Usage
from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.subject import Subject
from tests.traces import Run


def simulated(trace: Trace, declared: dict[str, Tool] | None = None, **settings: Any) -> Simulation:
    profile = Profile(name="default@1", tools=declared or {})
    normal = normalize(trace, profile, "h:0")
    place_in_time(normal, trace)
    return simulate(Subject(trace, normal, profile), Settings(**settings))


def repeated(count: int, every_s: float, *, usage: Usage | None = None) -> Trace:
    """So many identical calls in a row, each 0.5 s long."""
    run = Run()
    for number in range(count):
        run.at(number * every_s).turn(usage=usage)
        run.call("search", {"q": "tea"}, status=None, id=f"s{number}")
        run.at(number * every_s + 0.5).result(f"s{number}", {"found": 3})
    return run.end()


def test_43_identical_calls_in_a_row_are_one_call_within_600_s() -> None:
    usage = Usage(input_tokens=1000, cached_tokens=900, output_tokens=20, cost_usd=0.002)
    found = simulated(repeated(43, 10, usage=usage), ttl_s=600)
    assert (found.calls, len(found.hits), found.wrong, found.unverified) == (43, 42, [], [])
    assert sums_of(found.tools) == (21_500, 500)
    whole, repeats = found.all_turns, found.repeat_turns
    assert (whole.turns, whole.input_tokens, whole.output_tokens, whole.cost_usd) == (43, 43_000, 860, 0.086)
    assert (repeats.turns, repeats.input_tokens, repeats.uncached_input_tokens) == (42, 42_000, 4_200)
    assert [hit.age_ms for hit in found.hits[:2]] == [9_500, 19_500]


def test_entries_expire_by_the_clock_of_the_trace() -> None:
    # kept at 0.5; hits at 10 to 90; at 100 it is 99.5 s old; at 110 it has expired, and so on
    found = simulated(repeated(43, 10), ttl_s=100)
    assert found.calls - len(found.hits) == 4
    assert max(hit.age_ms or 0 for hit in found.hits) < 100_000


def test_a_hit_whose_recorded_result_differs_would_have_been_wrong() -> None:
    run = Run()
    for second, price in enumerate((1, 1, 2)):
        run.at(second).call("price", {"of": "tea"}, {"cents": price})
    found = simulated(run.end())
    (wrong,) = found.wrong
    assert (wrong.label, wrong.first_label, wrong.age_ms) == ("price#3", "price#1", 2000)
    assert (len(found.hits), found.tools[0].wrong) == (2, 1)


def test_a_write_between_makes_the_second_read_a_miss() -> None:
    tools = {
        "read": Tool(access="read", resource="doc:{id}"),
        "write": Tool(access="write", resource="doc:{id}"),
    }
    for touched, hits in ((1, 0), (2, 1)):
        run = Run().call("read", {"id": 1}, "a").call("write", {"id": touched}, "ok").call("read", {"id": 1}, "a")
        assert len(simulated(run.end(), tools).hits) == hits


def test_the_resource_that_the_recorder_wrote_counts() -> None:
    for touched, hits in (("doc:1", 0), ("doc:2", 1), (None, 0)):
        run = Run().call("read", {"id": 1}, "a", access="read", resource="doc:1")
        run.call("write", {"id": 1}, "ok", access="write", resource=touched)
        run.call("read", {"id": 1}, "a", access="read", resource="doc:1")
        assert len(simulated(run.end()).hits) == hits


def test_arguments_that_do_not_parse_are_not_kept() -> None:
    run = Run().call("get", None, 1, args_raw='{"id": ').call("get", None, 1, args_raw='{"id": ')
    assert simulated(run.end()).hits == []


def test_the_access_that_the_recorder_wrote_counts() -> None:
    run = Run().call("pay", {"id": 1}, "a", access="write").call("pay", {"id": 1}, "a", access="write")
    found = simulated(run.end())
    assert (found.hits, found.tools[0].why_not) == ([], "write")


@pytest.mark.parametrize("tool", [Tool(access="read", polling=True), Tool(idempotent=False)])
def test_what_the_metadata_keeps_out_is_never_a_hit(tool: Tool) -> None:
    run = Run().call("poll", {}, 1).call("poll", {}, 1)
    assert simulated(run.end(), {"poll": tool}).hits == []


def test_failed_calls_are_not_kept_and_hits_in_their_place_are_not_called_right() -> None:
    run = Run()
    run.call("get", {"id": 1}, status="timeout").call("get", {"id": 1}, "a").call("get", {"id": 1}, status="timeout")
    found = simulated(run.end())
    assert [(hit.label.partition("#")[0], hit.is_right, hit.why) for hit in found.hits] == [
        ("get", None, "the recorded call ended with timeout")
    ]


def test_calls_that_overlap_do_not_answer_each_other() -> None:
    run = Run().call("get", {"id": 1}, status=None, id="a").call("get", {"id": 1}, status=None, id="b")
    run.result("a", 1).result("b", 1)
    assert simulated(run.end()).hits == []


def test_undeclared_tools_may_count_as_writes() -> None:
    run = Run().call("get", {"id": 1}, 1).call("odd", {}, 1).call("get", {"id": 1}, 1)
    tools = {"get": Tool(access="read")}
    assert len(simulated(run.end(), tools).hits) == 1
    assert len(simulated(run.end(), tools, undeclared="write").hits) == 0


def test_only_the_named_tools_are_kept() -> None:
    run = Run().call("get", {}, 1).call("get", {}, 1).call("look_up", {}, 1).call("look_up", {}, 1)
    found = simulated(run.end(), {"get": Tool(access="read")}, tools=("look_*",))
    assert [(tool.tool_name, tool.hits, tool.why_not) for tool in found.tools] == [
        ("get", 0, "excluded"), ("look_up", 1, None),
    ]  # fmt: skip


def test_what_the_trace_does_not_tell_is_unknown_and_not_zero() -> None:
    run = Run().at(None)
    run.turn().call("get", {}, 1).turn().call("get", {}, 1)
    found = simulated(run.end())
    assert (found.hits[0].age_ms, found.hits[0].saved_ms, sums_of(found.tools)) == (None, None, (None, None))
    assert (found.repeat_turns.turns, found.repeat_turns.known, found.all_turns.input_tokens) == (1, 0, None)


def test_a_turn_that_also_asked_for_something_new_is_no_repeat() -> None:
    run = Run().turn().call("get", {"id": 1}, 1)
    run.turn(usage=Usage(input_tokens=5)).call("get", {"id": 1}, 1).call("get", {"id": 2}, 1)
    assert simulated(run.end()).repeat_turns.turns == 0
