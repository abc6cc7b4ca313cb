"""Gemini CLI: the status that the file tells, messages that are written again, changes and rewinds."""

import json
from pathlib import Path

from tests.sources.reading import calls, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "gemini_cli"
CHAT = json.loads((FIXTURES / "chat.json").read_text())
LINES = tuple(json.loads(line) for line in (FIXTURES / "chat.jsonl").read_text().splitlines())


def test_success_is_what_the_file_says_whatever_the_command_printed() -> None:
    assert results(read_one(CHAT)) == [("c1", "ok", "Exit Code: 1"), ("c2", "error", "missing"), ("c3", "cancelled", "cancelled by user"), ("c4", "unfinished", None)]


def test_calls_of_one_message_ran_together_and_ended_at_their_own_times() -> None:
    trace = read_one(CHAT)
    assert [call.turn for call in trace.calls()] == [1, 1, 1, 1]
    assert (trace.calls()[0].ts, trace.results()[0].ts) == ("2026-01-01T10:00:03.000000Z", "2026-01-01T10:00:05.000000Z")


def test_thoughts_are_dropped_but_paid_for() -> None:
    trace = read_one(CHAT)
    assert "hidden" not in repr(trace.events)
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (10, 7, 2)


def test_a_message_that_is_written_again_counts_once_in_its_last_form() -> None:
    trace = read_one(LINES)
    assert calls(trace) == [("shell", {"command": "ls"})]
    assert said(trace) == [("user", "List"), ("assistant", "I look."), ("assistant", "Done.")]


def test_what_a_rewind_left_behind_is_left_out_and_told() -> None:
    trace = read_one(LINES)
    assert "wrong" not in repr(trace.events)
    assert [note.text for note in trace.notes] == ["2 messages that a rewind left behind were left out"]


def test_set_changes_the_header_and_can_replace_all_messages() -> None:
    replaced = (*LINES, {"$set": {"lastUpdated": "2026-01-01T11:00:00.000Z", "messages": CHAT["messages"][:1]}})
    trace = read_one(replaced)
    assert said(trace) == [("user", "List")]
    assert trace.end is not None
    assert trace.end.ts == "2026-01-01T11:00:00.000000Z"


def test_the_model_was_once_called_by_another_type() -> None:
    old = CHAT | {"messages": [CHAT["messages"][0], {"id": "x", "type": "model", "parts": [{"text": "Hi"}]}, {"id": "y", "type": "telemetry", "content": "?"}]}
    trace = read_one(old)
    assert said(trace) == [("user", "List"), ("assistant", "Hi")]
    assert [note.text for note in trace.notes] == ["a message of type 'telemetry' was left out"]
