"""The scripted model in process: neutral, and in the shapes of the providers."""

import asyncio
import time

import pytest

from goldentrace.errors import InfrastructureError
from goldentrace.model.event import ToolCall
from goldentrace.replay.clock import VirtualClock
from goldentrace.replay.conversation import Message, Result
from goldentrace.replay.script_file import parse_script
from goldentrace.replay.scripted_model import ProviderFailure, ScriptedModel

LOOP = """
turns:
  - calls: [{tool: find, args: {q: 1}}]
  - calls: [{tool: charge, args: {order: "<find#1/id>"}}]
  - text: done
"""
ASK = {"role": "user", "content": "go"}


def model_of(text: str, **fields: object) -> ScriptedModel:
    return ScriptedModel(parse_script(text), **fields)  # type: ignore[arg-type]


def test_a_loop_in_neutral_form() -> None:
    model = model_of(LOOP)
    messages = [Message("user", "go")]
    while True:
        reply = model.respond(messages, tools=("find", "charge"))
        messages.append(Message("assistant", reply.text, reply.calls))
        if not reply.calls:
            break
        messages.append(Message("tool", results=tuple(Result(c.call_id or "", '{"id":"o1"}') for c in reply.calls)))
    assert reply.text == "done"
    assert [event.tool_name for event in model.events if isinstance(event, ToolCall)] == ["find", "charge"]
    assert (model.failure, model.unused_turns, model.notes) == (None, (), ())


def chat_loop(model: ScriptedModel) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = [ASK]
    while True:
        message = model.chat_completion(model="m", messages=messages)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return messages
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": '{"id":"o1"}'} for c in message["tool_calls"]]


def responses_loop(model: ScriptedModel) -> list[dict[str, object]]:
    items: list[dict[str, object]] = [ASK]
    while True:
        output = model.response(model="m", input=items)["output"]
        items += output
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            return items
        items += [{"type": "function_call_output", "call_id": c["call_id"], "output": '{"id":"o1"}'} for c in calls]


def anthropic_loop(model: ScriptedModel) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = [ASK]
    while True:
        content = model.message(model="m", max_tokens=9, messages=messages)["content"]
        messages.append({"role": "assistant", "content": content})
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return messages
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": '{"id":"o1"}'} for use in uses]
        messages.append({"role": "user", "content": results})


@pytest.mark.parametrize("loop", [chat_loop, responses_loop, anthropic_loop])
def test_a_loop_in_a_providers_shape_makes_the_same_calls(loop: object) -> None:
    model = model_of(LOOP)
    loop(model)  # type: ignore[operator]
    calls = [(event.tool_name, bytes(event.args)) for event in model.events if isinstance(event, ToolCall)]
    assert calls == [("find", b'{"q":1}'), ("charge", b'{"order":"o1"}')]


def test_async_is_the_same() -> None:
    async def run() -> list[str]:
        model = model_of("turns: [{text: a}, {text: b}, {text: c}, {text: d}]")
        neutral = (await model.respond_async([Message("user", "go")])).text
        chat = (await model.chat_completion_async(model="m", messages=[ASK]))["choices"][0]["message"]["content"]
        response = (await model.response_async(model="m", input="go"))["output"][0]["content"][0]["text"]
        message = (await model.message_async(model="m", max_tokens=1, messages=[ASK]))["content"][0]["text"]
        return [neutral, chat, response, message]

    assert asyncio.run(run()) == ["a", "b", "c", "d"]


def test_a_response_is_continued_by_its_id() -> None:
    model = model_of("turns: [{calls: [{tool: a, id: c}]}, {text: done}]")
    first = model.response(model="m", input="go")
    answer = {"type": "function_call_output", "call_id": "c", "output": "x"}
    second = model.response(model="m", previous_response_id=first["id"], input=[answer])
    assert second["output"][0]["content"][0]["text"] == "done"


def test_what_a_provider_refuses_raises() -> None:
    model = model_of("turns: [{text: a}]")
    with pytest.raises(ProviderFailure) as caught:
        model.message(model="m", messages=[ASK])
    assert caught.value.status == 400
    assert caught.value.body["error"]["type"] == "invalid_request_error"


def test_what_the_script_has_the_provider_do_raises() -> None:
    model = model_of(
        "turns: [{error: {status: 529, headers: {retry-after: 3}}}, {calls: [{tool: a, args: {b: cdefgh}}], cut: arguments}]"
    )
    with pytest.raises(ProviderFailure) as refused:
        model.message(model="m", max_tokens=1, messages=[ASK])
    assert (refused.value.status, refused.value.headers) == (529, {"retry-after": "3"})
    with pytest.raises(ProviderFailure) as lost:
        model.respond([Message("user", "go")])
    assert lost.value.status is None
    assert lost.value.partial is not None
    assert lost.value.partial.calls[0].arguments == '{"b":"c'


@pytest.mark.parametrize(
    ("place", "text", "calls"), [("text", "hal", 0), ("end", "halves", 1), ("before_reply", None, 0)]
)
def test_what_arrives_before_a_cut(place: str, text: str | None, calls: int) -> None:
    model = model_of(f"turns: [{{text: halves, calls: [{{tool: a}}], cut: {place}}}]")
    with pytest.raises(ProviderFailure) as caught:
        model.respond([Message("user", "go")])
    partial = caught.value.partial
    assert (partial and (partial.text, len(partial.calls))) == (text and (text, calls))


def test_the_end_of_the_script_is_no_verdict() -> None:
    model = model_of("turns: [{text: a}]")
    model.respond([Message("user", "go")])
    with pytest.raises(InfrastructureError, match="no turn left"):
        model.respond([Message("user", "go")])
    assert model.failure is not None


def test_a_delay_takes_virtual_time() -> None:
    clock = VirtualClock()
    model = model_of("turns: [{text: a, delay_ms: 60000}, {text: b, delay_ms: 500}]", clock=clock)
    began = time.monotonic()
    model.respond([Message("user", "go")])
    assert clock.monotonic_ns() == 60_000_000_000
    clock.run(model.respond_async([Message("user", "go")]))  # type: ignore[arg-type]
    assert clock.monotonic_ns() == 60_500_000_000
    assert time.monotonic() - began < 30
