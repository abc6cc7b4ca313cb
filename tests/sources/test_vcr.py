"""Cassettes: the names that recorders give bodies, compressed and streamed ones, YAML's own traps."""

import base64
import gzip
import json
from typing import Any

import pytest
import yaml

from goldentrace.errors import InputError
from goldentrace.sources import vcr
from goldentrace.sources.registry import detect
from tests.sources.reading import calls, document_of, read_all, read_one, results, shape

CHAT = "https://api.openai.com/v1/chat/completions"
CLAUDE = "https://api.anthropic.com/v1/messages?beta=true"
USER = {"role": "user", "content": "hi"}
ASKS = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}
SENT = {"model": "m", "messages": [USER]}
BACK = {"object": "chat.completion", "choices": [{"index": 0, "message": ASKS, "finish_reason": "tool_calls"}]}
AGAIN = {"model": "m", "messages": [USER, ASKS, {"role": "tool", "tool_call_id": "c", "content": "done"}]}
END = {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "bye"}, "finish_reason": "stop"}]}


def cassette(*pairs: tuple[str, dict[str, Any], dict[str, Any]]) -> str:
    recorded = [{"request": {"method": "POST", "uri": uri} | sent, "response": {"status": {"code": 200}} | got} for uri, sent, got in pairs]
    return yaml.safe_dump({"interactions": recorded, "version": 1})


FORMS = {
    "parsed_body": lambda value: {"parsed_body": value},
    "body": lambda value: {"body": json.dumps(value)},
    "body string": lambda value: {"body": {"string": json.dumps(value)}},
    "bytes": lambda value: {"body": {"string": json.dumps(value).encode()}},
    "gzip": lambda value: {"body": {"string": gzip.compress(json.dumps(value).encode())}, "headers": {"Content-Encoding": ["gzip"]}},
    "told to be gzip, kept plain": lambda value: {"body": {"string": json.dumps(value)}, "headers": {"content-encoding": ["gzip"]}},
    "deflate, kept plain": lambda value: {"body": {"string": json.dumps(value)}, "headers": {"content-encoding": ["deflate"]}},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_body_is_read(form) -> None:
    file = cassette((CHAT, form(SENT), form(BACK)), (CHAT, form(AGAIN), form(END)))
    trace = read_one(file)
    assert trace.format == "vcr"
    assert shape(trace) == ["message", "model_turn", "tool_call c", "tool_result c", "model_turn", "message"]


def test_a_json_cassette_is_read() -> None:
    file = {"interactions": [{"request": {"method": "POST", "uri": CHAT, "body": json.dumps(SENT)}, "response": {"status": {"code": 200}, "body": {"string": json.dumps(BACK)}}}]}
    assert calls(read_one(file)) == [("t", {})]
    assert detect(document_of(json.dumps(file, indent=1))).name == "vcr"


def test_a_streamed_body_is_put_together() -> None:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": ASKS | {"content": ""}, "finish_reason": "tool_calls"}]}]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    assert calls(read_one(cassette((CHAT, {"parsed_body": SENT}, {"body": {"string": stream}})))) == [("t", {})]


def test_each_provider_is_told_by_itself_and_each_conversation_is_a_trace() -> None:
    claude = {"type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {}}], "stop_reason": "tool_use"}
    responses = {"object": "response", "status": "completed", "output": [{"type": "function_call", "call_id": "r", "name": "g", "arguments": "{}"}]}
    traces = read_all(cassette(
        (CHAT, {"parsed_body": SENT}, {"parsed_body": BACK}),
        (CLAUDE, {"parsed_body": {"model": "m", "messages": [{"role": "user", "content": "other"}]}}, {"parsed_body": claude}),
        ("https://api.openai.com/v1/responses", {"parsed_body": {"model": "m", "input": "third"}}, {"parsed_body": responses}),
        ("https://example.com/tool", {"body": "{}"}, {"body": {"string": "{}"}}),
    ))  # fmt: skip
    assert [name for trace in traces for name, _ in calls(trace)] == ["t", "f", "g"]


def test_dates_stay_text() -> None:
    # As a person or another recorder may write it; a date object could not be an argument.
    file = cassette((CHAT, {"parsed_body": SENT}, {"parsed_body": BACK})).replace("content: hi", "content: 2026-01-02")
    trace = read_one(file)
    assert shape(trace)[0] == "message"
    block = {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {"day": "DAY"}}]}
    dated = cassette((CLAUDE, {"parsed_body": SENT}, {"parsed_body": block})).replace("DAY", "2026-01-02")
    assert calls(read_one(dated)) == [("f", {"day": "2026-01-02"})]


def test_a_cassette_of_other_traffic_is_no_such_file() -> None:
    with pytest.raises(InputError, match="no known format"):
        detect(document_of(cassette(("https://example.com/x", {"body": ""}, {"body": {"string": ""}}))))


@pytest.mark.parametrize("data", [b"interactions: [", b"interactions:\n- a\n b: c\n", b"interactions: \xff", b"interactions: " + b"[" * 3000 + b"]" * 3000, b"interactions: !!python/object:os.system {}", b"interactions: 0000-99-99"])
def test_damaged_yaml_is_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError):
        read_all(data, "vcr")


def test_a_bomb_of_aliases_meets_a_limit() -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))
    with pytest.raises(InputError, match=f"{vcr.MAX_NODES:,} values"):
        read_all(f"a0: &a0 [x]\n{levels}\ninteractions: *a11\n", "vcr")


def test_a_compressed_body_that_is_a_bomb_or_damaged_is_no_response() -> None:
    damaged = base64.b64encode(b"\x1f\x8b not gzip").decode()
    for body in (gzip.compress(bytes(80 << 20)), b"\x1f\x8b\x08 damaged"):
        trace = read_one(cassette((CHAT, {"parsed_body": SENT}, {"body": {"string": body}})))
        assert results(trace) == []
    assert read_one(cassette((CHAT, {"parsed_body": SENT}, {"body": {"base64_string": damaged}}))).calls() == []
