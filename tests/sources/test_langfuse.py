"""Langfuse traces: each trap of the format."""

import json
from typing import Any

from tests.sources.reading import calls, read_all, read_one, results, turns
from tests.sources.reading import said as messages
from tests.sources.spanning import FIXTURES, duration_ms, one, statuses


def value() -> dict[str, Any]:
    return dict(json.loads((FIXTURES / "langfuse" / "trace.json").read_text()))


def test_observations_are_unsorted_and_ids_stand_in_the_responses() -> None:
    trace = one("langfuse", "trace.json")
    assert [(call.call_id, call.turn) for call in trace.calls()] == [("call_s", 1), ("call_p", 2)]
    assert messages(trace) == [("user", "Search.")]
    assert [turn.input_call_ids for turn in turns(trace)] == [None, ["call_s"]]
    usage = turns(trace)[1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (20, 5, 4)


def test_a_span_of_an_older_sdk_is_a_tool_where_its_output_says_so() -> None:
    trace = one("langfuse", "trace.json")
    assert calls(trace)[0] == ("Web-Search", {"q": "x"})
    assert results(trace)[0] == ("call_s", "ok", "found it")


def test_a_span_of_an_older_sdk_is_a_tool_where_a_response_called_it() -> None:
    given = value()
    for each in given["observations"]:
        if each["name"] == "Web-Search":
            each["output"] = json.dumps("plain text")
    trace = read_one(given)
    assert results(trace)[0] == ("call_s", "ok", "plain text")


def test_nodes_and_chains_are_no_tools() -> None:
    assert [call.tool_name for call in one("langfuse", "trace.json").calls()] == ["Web-Search", "pay"]


def test_the_level_of_an_observation_tells_its_failure() -> None:
    trace = one("langfuse", "trace.json")
    assert statuses(trace)[1] == ("call_p", "error", "tool_error")
    assert (trace.results()[1].extra or {})["error"] == "card declined"
    assert calls(trace)[1] == ("pay", {"cents": 5})
    assert duration_ms(trace, "call_p") == 4


def test_attributes_in_the_metadata_fill_what_is_empty() -> None:
    trace = one("langfuse", "observations.jsonl")
    assert (calls(trace), results(trace)) == ([("say_hello", {})], [("adk-1", "ok", {"greeting": "hi"})])
    assert messages(trace) == [("user", "hi")]
    assert all("thinking aloud" not in str(event) for event in trace.events)


def test_a_trace_with_its_observations_inside_and_several_in_a_file() -> None:
    given = value()
    inside = {**given["trace"], "observations": given["observations"]}
    other = json.loads(json.dumps(inside).replace("lf1", "lf2"))
    traces = read_all((inside, other))
    assert [trace.start.trace_id for trace in traces] == ["lf1", "lf2"]
    assert [calls(trace) for trace in traces] == [calls(read_one(given))] * 2
    assert (traces[0].start.attributes or {})["session_id"] == "s1"


def test_a_tool_that_had_not_ended_is_a_call_without_a_result() -> None:
    given = value()
    for each in given["observations"]:
        if each["type"] == "TOOL":
            each |= {"endTime": None, "level": "DEFAULT"}
    assert statuses(read_one(given))[1] == ("call_p", "unfinished", None)


def test_what_a_run_was_given_is_its_prompt_where_no_request_says_it() -> None:
    given = value()
    for each in given["observations"]:
        if each["type"] == "GENERATION":
            each["input"] = None
    assert messages(read_one(given)) == [("user", "Search.")]
