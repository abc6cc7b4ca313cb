"""HAR: conversations with a model in what a browser or proxy recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from goldentrace.errors import InputError
from tests.sources.reading import calls, read_one, results, said, turns

HAR = json.loads((Path(__file__).with_name("fixtures") / "har" / "model.har").read_text())


def test_a_conversation_is_one_trace_though_each_request_repeats_its_history() -> None:
    trace = read_one(HAR)
    assert calls(trace) == [("bash", {"cmd": "ls"})]
    assert results(trace) == [("t1", "ok", "a.txt")]
    assert said(trace) == [("user", "List files"), ("assistant", "a.txt")]


def test_times_are_those_of_requests_and_responses() -> None:
    trace = read_one(HAR)
    assert trace.calls()[0].ts == "2026-01-01T10:00:02.500000Z", "when the response that asks for it was there"
    assert trace.results()[0].ts == "2026-01-01T10:00:04.000000Z", "when the request that carries it was sent"


def test_streams_base64_and_a_stale_content_encoding_are_read() -> None:
    assert [turn.usage and turn.usage.output_tokens for turn in turns(read_one(HAR))] == [12, 3]
    assert [turn.finish_reason for turn in turns(read_one(HAR))] == ["tool_use", "end_turn"]


def test_a_request_that_failed_is_told_and_the_next_one_is_its_repetition() -> None:
    trace = read_one(HAR)
    assert [note.text for note in trace.notes] == ["a request to the model failed with HTTP 529"]
    assert turns(trace)[1].extra == {"failed_requests": [529]}


def test_a_duration_that_is_not_known_is_absent() -> None:
    har = json.loads(json.dumps(HAR))
    har["log"]["entries"][1]["time"] = -1
    assert read_one(har).calls()[0].ts is None


@pytest.mark.parametrize("entries", [[], HAR["log"]["entries"][:1]])
def test_traffic_without_a_model_is_refused(entries: list[Any]) -> None:
    with pytest.raises(InputError, match=f"none of its {len(entries)} entries"):
        read_one({"log": HAR["log"] | {"entries": entries}})
