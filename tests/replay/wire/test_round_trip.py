"""Any reply comes back the same through each wire format, whole and streamed, however the bytes are cut."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.codec.canonical import decode
from goldentrace.replay.conversation import Call, Message, ModelRequest, Reply, TokenUsage
from goldentrace.replay.server import WIRES
from goldentrace.replay.wire import anthropic_messages, openai_chat, openai_responses
from goldentrace.replay.wire.wire import Wire, split_bytes, split_text
from tests.replay.sse import read_events
from tests.replay.strategies import replies

wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
CREATED_S = 1_767_225_600


def request(**fields: object) -> ModelRequest:
    """Return a request that asks for the tokens too."""
    return ModelRequest("m", (Message("user", "go"),), **fields)  # type: ignore[arg-type]


def streamed(wire: Wire, reply: Reply, seed: int) -> list[bytes]:
    """Return a stream as it is sent, chunk by chunk."""
    draw = random.Random(seed)
    parts = wire.stream_reply(reply, request(), CREATED_S, draw)
    return list(split_bytes((part.encode() for part in parts), draw))


@wires
@given(reply=replies())
@settings(max_examples=40)
def test_a_whole_reply_comes_back(wire: Wire, reply: Reply) -> None:
    back = wire.read_reply(wire.write_reply(reply, request(), CREATED_S))
    assert back.content == reply.content
    assert [call.call_id for call in back.calls] == [call.call_id for call in reply.calls]
    assert (back.reply_id, back.model) == (reply.reply_id, reply.model)


@wires
@given(reply=replies(), seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_streamed_reply_comes_back(wire: Wire, reply: Reply, seed: int) -> None:
    back = wire.read_stream(read_events(streamed(wire, reply, seed)))
    assert back.content == reply.content
    assert [call.call_id for call in back.calls] == [call.call_id for call in reply.calls]


@wires
@given(reply=replies())
@settings(max_examples=25)
def test_a_reply_goes_back_to_the_model_as_it_was(wire: Wire, reply: Reply) -> None:
    if any(call.args is None for call in reply.calls) and wire is anthropic_messages.WIRE:
        return  # an input that is no object is refused in a request
    history = next_request(wire, reply)
    read = wire.read_request(history, {"anthropic-version": "x"}, True)
    said = [message for message in read.messages if message.role == "assistant"]
    if reply.text or reply.calls:
        assert [call.key for message in said for call in message.calls] == [call.key for call in reply.calls]
        assert "".join(message.text for message in said) == reply.text
    assert [result.call_id for result in read.new_results()] == [call.call_id for call in reply.calls]


def next_request(wire: Wire, reply: Reply) -> dict[str, object]:
    """Return the body of the request that follows a reply: the reply as it came, and a result for each call."""
    body = wire.write_reply(reply, request(), CREATED_S)
    ids = [call.call_id for call in reply.calls]
    ask = {"role": "user", "content": "go"}
    if wire is openai_chat.WIRE:
        results = [{"role": "tool", "tool_call_id": call_id, "content": "ok"} for call_id in ids]
        return {"model": "m", "messages": [ask, body["choices"][0]["message"], *results]}
    if wire is openai_responses.WIRE:
        results = [{"type": "function_call_output", "call_id": call_id, "output": "ok"} for call_id in ids]
        return {"model": "m", "input": [ask, *body["output"], *results]}
    results = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"} for call_id in ids]
    said = [{"role": "assistant", "content": body["content"]}] if body["content"] else []
    after = [{"role": "user", "content": results}] if results else []
    return {"model": "m", "max_tokens": 5, "messages": [ask, *said, *after]}


@wires
def test_a_stream_is_the_same_for_the_same_seed(wire: Wire) -> None:
    reply = Reply("r", "m", "two words and more", (Call("a", '{"b":"größe"}', "call_1"),), "tool_calls")
    assert streamed(wire, reply, 5) == streamed(wire, reply, 5)
    assert streamed(wire, reply, 5) != streamed(wire, reply, 6)


@wires
def test_arguments_are_split_inside_tokens_and_bytes_inside_characters(wire: Wire) -> None:
    arguments = '{"customer":"Łukasz Żółć","note":"日本語 🧾🧾🧾"}'
    reply = Reply("r", "m", "", (Call("charge_card", arguments, "call_1"),), "tool_calls")
    parts = [
        part for part in wire.stream_reply(reply, request(), CREATED_S, random.Random(3)) if part.kind == "arguments"
    ]
    assert len(parts) > 5
    chunks = streamed(wire, reply, 3)
    torn = [chunk for chunk in chunks if chunk.decode("utf-8", "ignore").encode() != chunk]
    assert len(torn) > 3, "no chunk ends inside a character"
    assert wire.read_stream(read_events(chunks)).calls == reply.calls


@given(st.text(max_size=3000), st.integers(0, 99))
def test_pieces_join_to_the_text_and_are_bounded_in_number(text: str, seed: int) -> None:
    pieces = split_text(text, random.Random(seed))
    assert "".join(pieces) == text
    assert all(pieces)
    assert len(pieces) <= max(128, len(text) / 3)


def test_a_reply_without_text_and_calls_is_empty_in_each_format() -> None:
    for wire in WIRES:
        reply = Reply("r", "m")
        assert wire.read_reply(wire.write_reply(reply, request(), CREATED_S)).content == reply.content
        assert wire.read_stream(read_events(streamed(wire, reply, 1))).content == reply.content


def test_a_call_without_an_id_has_none_on_the_wire() -> None:
    reply = Reply("r", "m", "", (Call("a", "{}", None),), "tool_calls")
    chat = openai_chat.write_reply(reply, request(), CREATED_S)["choices"][0]["message"]["tool_calls"][0]
    item = openai_responses.write_reply(reply, request(), CREATED_S)["output"][0]
    block = anthropic_messages.write_reply(reply, request(), CREATED_S)["content"][0]
    assert ("id" in chat, "call_id" in item, "id" in block) == (False, False, False)
    for wire in WIRES:
        assert wire.read_reply(wire.write_reply(reply, request(), CREATED_S)).calls == reply.calls
        assert wire.read_stream(read_events(streamed(wire, reply, 1))).calls == reply.calls


def test_empty_arguments_are_an_empty_object_in_an_anthropic_stream() -> None:
    reply = Reply("r", "m", "", (Call("a", "", "call_1"),), "tool_calls")
    for wire in WIRES:
        (call,) = wire.read_stream(read_events(streamed(wire, reply, 1))).calls
        assert call.arguments == ("{}" if wire is anthropic_messages.WIRE else "")


def test_responses_have_no_word_for_a_stop_with_calls() -> None:
    reply = Reply("r", "m", "", (Call("a", "{}", "call_1"),), "stop")
    assert openai_responses.read_reply(openai_responses.write_reply(reply, request(), 1)).finish == "tool_calls"
    assert openai_chat.read_reply(openai_chat.write_reply(reply, request(), 1)).finish == "stop"
    assert anthropic_messages.read_reply(anthropic_messages.write_reply(reply, request(), 1)).finish == "stop"


def test_tokens_are_counted_as_each_provider_counts_them() -> None:
    reply = Reply("r", "m", "hi", usage=TokenUsage(100, 20, 30))
    chat = openai_chat.write_reply(reply, request(), 1)["usage"]
    assert (chat["prompt_tokens"], chat["prompt_tokens_details"]["cached_tokens"], chat["total_tokens"]) == (
        100,
        30,
        120,
    )
    anthropic = anthropic_messages.write_reply(reply, request(), 1)["usage"]
    assert (anthropic["input_tokens"], anthropic["cache_read_input_tokens"]) == (70, 30), (
        "cached ones are not counted in"
    )


def test_a_chat_stream_tells_its_tokens_only_where_asked() -> None:
    reply = Reply("r", "m", "hi", usage=TokenUsage(1, 2))
    quiet = openai_chat.stream_reply(reply, request(wants_usage=False), 1, random.Random(1))
    assert all("usage" not in decode(part.data) for part in quiet if part.data != "[DONE]")


# --- replies of other senders, with what ours do not hold -----------------------------------------------------------


def test_hidden_reasoning_is_left_out_of_what_is_read() -> None:
    chat = openai_chat.read_reply({
        "choices": [{"message": {"content": "out", "reasoning_content": "SECRET", "reasoning": "SECRET"}, "finish_reason": "stop"}]
    })  # fmt: skip
    responses = openai_responses.read_reply({
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "SECRET"}], "encrypted_content": "SECRET"},
            {"type": "message", "content": [{"type": "output_text", "text": "out"}]},
        ]
    })  # fmt: skip
    anthropic = anthropic_messages.read_reply({
        "content": [
            {"type": "thinking", "thinking": "SECRET", "signature": "SECRET"},
            {"type": "redacted_thinking", "data": "SECRET"},
            {"type": "text", "text": "out"},
        ],
        "stop_reason": "end_turn",
    })  # fmt: skip
    streamed_thinking = anthropic_messages.read_stream([
        ("message_start", '{"type":"message_start","message":{"id":"m","content":[]}}'),
        ("content_block_start", '{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}'),
        ("content_block_delta", '{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"SECRET"}}'),
        ("content_block_delta", '{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SECRET"}}'),
        ("content_block_start", '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"o"}}'),
        ("content_block_delta", '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ut"}}'),
    ])  # fmt: skip
    for reply in (chat, responses, anthropic, streamed_thinking):
        assert reply.text == "out"
        assert "SECRET" not in repr(reply)


def test_a_stream_of_responses_that_breaks_off_gives_its_finished_items() -> None:
    item = '{"type":"function_call","call_id":"call_1","name":"a","arguments":"{}"}'
    events = [
        ("x", '{"type":"response.created","response":{"id":"resp_1","model":"m","output":[]}}'),
        ("x", f'{{"type":"response.output_item.done","output_index":0,"item":{item}}}'),
    ]
    reply = openai_responses.read_stream(events)
    assert (reply.reply_id, [call.call_id for call in reply.calls]) == ("resp_1", ["call_1"])
