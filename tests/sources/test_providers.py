"""Logged HTTP exchanges with a model: whose API it is, and what the times of a log say about calls and results."""

import base64
import json
from typing import Any

import pytest

from goldentrace.sources import httpbody
from goldentrace.sources.document import Document
from goldentrace.sources.providers import dialect_of, read_exchange
from goldentrace.sources.requestlog import read_exchanges

USER = {"role": "user", "content": "hi"}
ASKS = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}
SENT = {"model": "m", "messages": [USER]}
BACK = {"object": "chat.completion", "choices": [{"index": 0, "message": ASKS, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    ("url", "request_body", "response_body", "expected"),
    [
        ("https://api.openai.com/v1/chat/completions", SENT, BACK, "openai-chat"),
        ("http://127.0.0.1:9/gateway/v1/messages?beta=true", SENT, {}, "anthropic-messages"),
        ("https://x/openai/responses/", {"input": "hi"}, {}, "openai-responses"),
        ("https://x/anything", {}, BACK, "openai-chat"),
        ("https://x/anything", {}, [{"type": "message_start", "message": {}}], "anthropic-messages"),
        ("https://x/v1/messages", {"to": "ann"}, {"sent": True}, None),
        ("https://x/v1/embeddings", {"model": "m", "input": "hi"}, {"object": "list", "data": []}, None),
        ("", {}, None, None),
    ],
)
def test_the_path_and_what_was_sent_tell_the_api(url: str, request_body: Any, response_body: Any, expected: str | None) -> None:
    found = dialect_of(url, request_body, response_body)
    assert (found.name if found else None) == expected


def test_the_times_of_a_log_bound_calls_and_results() -> None:
    history = [USER, ASKS, {"role": "tool", "tool_call_id": "c", "content": "done"}]
    moments = [f"2026-01-01T10:00:0{n}.000000Z" for n in range(4)]
    url = "https://api.openai.com/v1/chat/completions"
    end = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "bye"}, "finish_reason": "stop"}]}
    exchanges = [
        read_exchange(url, json.dumps(SENT), base64.b64encode(json.dumps(BACK).encode()).decode(), is_base64=True, status=200, started_ts=moments[0], ended_ts=moments[1]),
        read_exchange(url, {"model": "m", "messages": history}, end, status=200, started_ts=moments[2], ended_ts=moments[3]),
    ]
    (trace,) = read_exchanges(Document.of(b"{}", "log"), "test", [each for each in exchanges if each])
    assert trace.start.ts == moments[0]
    assert [call.ts for call in trace.calls()] == [moments[1]]
    assert [result.ts for result in trace.results()] == [moments[2]]
    assert "times" not in trace.coverage


def test_events_of_a_stream_may_span_lines_and_have_names() -> None:
    text = ": comment\r\nevent: ping\r\ndata: {}\r\n\r\nevent: made\ndata: {\"a\":\ndata: 1}\n\ndata: [DONE]\n\ndata: {\"b\": 2}"
    assert httpbody.sse_events(text) == [{"type": "made", "a": 1}, {"b": 2}]


@pytest.mark.parametrize("body", [None, "", b"", 5, "plain", "12", b"\xff\xfe", "<html>"])
def test_a_body_that_is_neither_json_nor_a_stream_has_no_value(body: Any) -> None:
    assert httpbody.read_body(body) is None
    assert httpbody.read_body(body, {"content-encoding": ["zstd"], "x": None}, is_base64=True) is None
