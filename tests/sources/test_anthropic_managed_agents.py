"""Managed agents: events of a session, bare or logged, whose usage comes after the calls."""

import json
from pathlib import Path

from goldentrace.model.event import Approval
from tests.sources.reading import read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "anthropic_managed_agents"
LOG = tuple(json.loads(line) for line in (FIXTURES / "log.jsonl").read_text().splitlines())
EVENTS = tuple(json.loads(line) for line in (FIXTURES / "events.jsonl").read_text().splitlines())


def test_usage_comes_after_the_calls_and_belongs_to_their_turn() -> None:
    trace = read_one(LOG)
    assert [turn.usage and (turn.usage.input_tokens, turn.usage.output_tokens) for turn in turns(trace)] == [(9, 5), (2, 1), (2, 1)]
    assert [call.turn for call in trace.calls()] == [1, 1, 2]


def test_what_the_client_sent_comes_back_in_the_stream_and_counts_once() -> None:
    assert said(read_one(LOG)) == [("system", "Find."), ("user", "What is new?"), ("assistant", "I will look."), ("assistant", "Blue.")]


def test_a_refused_call_is_denied_and_a_failed_one_an_error() -> None:
    trace = read_one(LOG)
    assert [(call_id, status) for call_id, status, _ in results(trace)] == [("c1", "denied"), ("c2", "error"), ("c3", "ok")]
    assert [(event.call_id, event.verdict, event.by) for event in trace.events if isinstance(event, Approval)] == [("c1", "denied", "user")]


def test_calls_of_one_request_are_a_batch_and_keep_their_kind() -> None:
    found = [(call.batch, (call.extra or {}).get("event")) for call in read_one(LOG).calls()]
    assert found == [("r1", "agent.mcp_tool_use"), ("r1", None), ("r2", "agent.custom_tool_use")]


def test_bare_events_and_a_log_of_them_are_one() -> None:
    assert results(read_one(EVENTS)) == results(read_one(LOG)) == results(read_one(list(EVENTS)))


def test_an_event_that_a_stream_delivers_again_counts_once() -> None:
    trace = read_one((*EVENTS[:10], *EVENTS[4:10], *EVENTS[10:]))
    assert len(trace.calls()) == 3
    assert [note.text for note in trace.notes] == ["an event that repeats an earlier one was left out"]


def test_the_last_state_says_how_the_session_ended() -> None:
    whole, waiting = read_one(EVENTS), read_one(EVENTS[:15])
    assert whole.end is not None
    assert waiting.end is not None
    assert (whole.end.stop_reason, waiting.end.stop_reason) == ("final_answer", "unknown")
    assert results(waiting)[-1][1] == "unfinished"
