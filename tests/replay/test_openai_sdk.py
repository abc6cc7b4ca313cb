"""OpenAI's own SDK against the scripted model over a real socket, unchanged: sync and async, whole and streamed."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from goldentrace.model.event import ModelTurn, ToolCall, ToolResult
from goldentrace.replay.process import ScriptHandle
from tests.replay.conftest import Serve

openai = pytest.importorskip("openai", reason="the OpenAI SDK is not installed")

LOOP = """
turns:
  - text: "Ich prüfe die Bestellung 🧾"
    calls: [{tool: get_order, args: {order_ref: A-17, note: "größe ✓ 日本語"}}]
    usage: {input_tokens: 20, output_tokens: 7, cached_tokens: 5}
  - calls:
      - {tool: charge_card, args: {order_id: "<get_order#1/id>", cents: 1250}}
      - {tool: log, args: {}}
  - text: "Done: <charge_card#1/charge_id>, thanks"
"""
NAMES = ("get_order", "charge_card", "log")
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in NAMES]
TOOLS: Any = [{"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False} for name in NAMES]
RESULTS = {"get_order": {"id": "ord_99"}, "charge_card": {"charge_id": "ch_1"}, "log": {}}
EXPECTED = [
    ("get_order", {"order_ref": "A-17", "note": "größe ✓ 日本語"}),
    ("charge_card", {"order_id": "ord_99", "cents": 1250}),
    ("log", {}),
]


def client(handle: ScriptHandle, **options: Any) -> Any:
    return openai.OpenAI(base_url=handle.base_urls["OPENAI_BASE_URL"], api_key="none", **options)


def async_client(handle: ScriptHandle, **options: Any) -> Any:
    return openai.AsyncOpenAI(base_url=handle.base_urls["OPENAI_BASE_URL"], api_key="none", **options)


def result_of(name: str) -> str:
    return json.dumps(RESULTS[name])


def check_run(handle: ScriptHandle, made: list[tuple[str, Any]], said: str) -> None:
    """Check what an agent saw, and that the model's side of the run says the same."""
    assert made == EXPECTED
    assert said == "Done: ch_1, thanks"
    report = handle.stop()
    assert (report.failure, report.refused, report.unused_turns, report.ended_with) == (None, (), (), "final_answer")
    events = handle.events()
    assert [(e.tool_name, json.loads(bytes(e.args))) for e in events if isinstance(e, ToolCall)] == EXPECTED
    assert [e.status for e in events if isinstance(e, ToolResult)] == ["ok"] * 3
    assert [len(e.input_call_ids or []) for e in events if isinstance(e, ModelTurn)] == [0, 1, 3]


def take(message: Any, messages: list[Any], made: list[tuple[str, Any]]) -> bool:
    """Append a chat message and the results of its calls; whether there were any."""
    messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
    for call in message.tool_calls or []:
        made.append((call.function.name, json.loads(call.function.arguments)))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result_of(call.function.name)})
    return bool(message.tool_calls)


def test_chat_completions(serve: Serve) -> None:
    handle = serve(LOOP)
    messages: list[Any] = [{"role": "user", "content": "charge A-17"}]
    made: list[tuple[str, Any]] = []
    with client(handle) as sdk:
        first = True
        while True:
            done = sdk.chat.completions.create(model="gpt-x", messages=messages, tools=CHAT_TOOLS)
            if first:
                assert done.choices[0].message.content == "Ich prüfe die Bestellung 🧾"
                assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (20, 7)
                assert done.usage.prompt_tokens_details.cached_tokens == 5
                assert (done.model, done.choices[0].finish_reason) == ("gpt-x", "tool_calls")
            first = False
            if not take(done.choices[0].message, messages, made):
                break
    check_run(handle, made, messages[-1]["content"])


def test_chat_completions_streamed_with_the_helper(serve: Serve) -> None:
    handle = serve(LOOP)
    messages: list[Any] = [{"role": "user", "content": "charge A-17"}]
    made: list[tuple[str, Any]] = []
    argument_deltas = 0
    with client(handle) as sdk:
        while True:
            with sdk.chat.completions.stream(
                model="gpt-x", messages=messages, tools=CHAT_TOOLS, stream_options={"include_usage": True}
            ) as stream:
                for event in stream:
                    argument_deltas += event.type == "tool_calls.function.arguments.delta"
                done = stream.get_final_completion()
            if len(messages) == 1:
                assert done.usage.total_tokens == 27
            if not take(done.choices[0].message, messages, made):
                break
    assert argument_deltas > 10, "arguments come in pieces"
    check_run(handle, made, messages[-1]["content"])


def test_chat_completions_streamed_raw(serve: Serve) -> None:
    handle = serve(LOOP)
    with client(handle) as sdk:
        pieces = [
            chunk.choices[0].delta.content
            for chunk in sdk.chat.completions.create(
                model="gpt-x", messages=[{"role": "user", "content": "go"}], tools=CHAT_TOOLS, stream=True
            )
            if chunk.choices[0].delta.content
        ]
    assert "".join(pieces) == "Ich prüfe die Bestellung 🧾"
    assert len(pieces) > 3


def test_chat_completions_async_streamed(serve: Serve) -> None:
    handle = serve(LOOP)
    messages: list[Any] = [{"role": "user", "content": "charge A-17"}]
    made: list[tuple[str, Any]] = []

    async def run() -> None:
        async with async_client(handle) as sdk:
            while True:
                async with sdk.chat.completions.stream(model="gpt-x", messages=messages, tools=CHAT_TOOLS) as stream:
                    done = await stream.get_final_completion()
                if not take(done.choices[0].message, messages, made):
                    return

    asyncio.run(run())
    check_run(handle, made, messages[-1]["content"])


def answers(response: Any, made: list[tuple[str, Any]]) -> list[Any]:
    """Return the outputs for the calls of a response."""
    calls = [item for item in response.output if item.type == "function_call"]
    made += [(call.name, json.loads(call.arguments)) for call in calls]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": result_of(call.name)} for call in calls]


def test_responses(serve: Serve) -> None:
    handle = serve(LOOP)
    items: list[Any] = [{"role": "user", "content": "charge A-17"}]
    made: list[tuple[str, Any]] = []
    with client(handle) as sdk:
        while True:
            response = sdk.responses.create(model="gpt-x", input=items, tools=TOOLS, instructions="be brief")
            assert (response.status, response.instructions, len(response.tools)) == ("completed", "be brief", 3)
            items += [item.model_dump(exclude_none=True) for item in response.output]
            if not (results := answers(response, made)):
                break
            items += results
    check_run(handle, made, response.output_text)


def test_responses_streamed_with_the_helper_and_continued_by_id(serve: Serve) -> None:
    handle = serve(LOOP)
    made: list[tuple[str, Any]] = []
    kinds: set[str] = set()
    with client(handle) as sdk:
        asked: Any = {"input": "charge A-17"}
        while True:
            with sdk.responses.stream(model="gpt-x", tools=TOOLS, **asked) as stream:
                numbers = []
                for event in stream:
                    kinds.add(event.type)
                    numbers.append(event.sequence_number)
                response = stream.get_final_response()
            assert numbers == list(range(len(numbers)))
            if not (results := answers(response, made)):
                break
            asked = {"input": results, "previous_response_id": response.id}
        assert sdk.responses.retrieve(response.id).output_text == response.output_text
    assert {"response.output_text.delta", "response.function_call_arguments.delta", "response.completed"} <= kinds
    check_run(handle, made, response.output_text)


def test_responses_async(serve: Serve) -> None:
    handle = serve(LOOP)
    made: list[tuple[str, Any]] = []

    async def run() -> str:
        asked: Any = {"input": "charge A-17"}
        async with async_client(handle) as sdk:
            while True:
                async with sdk.responses.stream(model="gpt-x", tools=TOOLS, **asked) as stream:
                    response = await stream.get_final_response()
                if not (results := answers(response, made)):
                    return str(response.output_text)
                asked = {"input": results, "previous_response_id": response.id}

    check_run(handle, made, asyncio.run(run()))


ASK: Any = [{"role": "user", "content": "go"}]


def test_the_sdk_retries_and_waits_as_it_would(serve: Serve) -> None:
    handle = serve(
        "turns: [{error: {status: 429, headers: {retry-after-ms: 150}}}, {error: {status: 500, headers: {retry-after-ms: 1}}}, {text: a}]"
    )
    with client(handle) as sdk:
        began = time.monotonic()
        done = sdk.chat.completions.create(model="m", messages=ASK)
        assert time.monotonic() - began >= 0.145, "it waits at least what it is told"
    assert done.choices[0].message.content == "a"
    told = [event.extra for event in handle.events() if event.extra]
    assert told == [
        {"http_status": 429, "retry-after-ms": "150"},
        {"http_status": 500, "retry-after-ms": "1", "sdk_retry": 1},
    ]


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, "BadRequestError"), (401, "AuthenticationError"), (404, "NotFoundError"), (429, "RateLimitError"),
     (500, "InternalServerError")],
)  # fmt: skip
def test_errors_are_the_sdks_own(serve: Serve, status: int, error: str) -> None:
    handle = serve(f"turns: [{{error: {{status: {status}, code: why, message: because}}}}]")
    with client(handle, max_retries=0) as sdk, pytest.raises(getattr(openai, error)) as caught:
        sdk.responses.create(model="m", input="go")
    assert (caught.value.code, caught.value.body["message"]) == ("why", "because")
    assert caught.value.request_id.startswith("req_")


def test_a_malformed_request_is_refused_as_the_api_would_and_takes_no_turn(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    said = {"role": "assistant", "content": None, "tool_calls": CHAT_TOOLS and [
        {"id": "call_1", "type": "function", "function": {"name": "log", "arguments": "{}"}}
    ]}  # fmt: skip
    with client(handle) as sdk:
        with pytest.raises(openai.BadRequestError, match="did not have response messages: call_1"):
            sdk.chat.completions.create(model="m", messages=[*ASK, said])
        assert sdk.chat.completions.create(model="m", messages=ASK).choices[0].message.content == "a"
    report = handle.stop()
    assert report.failure is None
    assert "did not have response messages" in report.refused[0]


def test_the_end_of_the_script_is_not_retried_and_fails_the_run(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    with client(handle) as sdk:
        sdk.chat.completions.create(model="m", messages=ASK)
        with pytest.raises(openai.BadRequestError, match="no turn left for request 2") as caught:
            sdk.chat.completions.create(model="m", messages=ASK)
    assert caught.value.code == "script_exhausted"
    report = handle.stop()
    assert (report.requests, report.is_exhausted) == (2, True)
    assert report.failure is not None


def pieces(stream: Any) -> Iterator[str]:
    """Yield the texts and arguments of chat chunks as they come."""
    for chunk in stream:
        delta = chunk.choices[0].delta
        yield delta.content or ""
        yield from (call.function.arguments for call in delta.tool_calls or [])


def test_a_stream_that_is_cut_off_is_a_lost_connection(serve: Serve) -> None:
    handle = serve(
        "turns: [{calls: [{tool: log, args: {a: bcdefghijklmnop}}], cut: arguments}, "
        "{text: abcdefghijklmnop, cut: {at: text, how: reset}}, {text: x, cut: end}]"
    )
    heard: list[list[str]] = []
    with client(handle, max_retries=0) as sdk:
        for _ in range(3):
            got: list[str] = []
            heard.append(got)
            with pytest.raises(openai.APIConnectionError):
                got.extend(pieces(sdk.chat.completions.create(model="m", messages=ASK, stream=True)))
    arguments, text, whole = ("".join(got) for got in heard)
    assert '{"a":"bcdefghijklmnop"}'.startswith(arguments)
    assert 0 < len(arguments) < 23
    assert "abcdefghijklmnop".startswith(text)
    assert 0 < len(text) < 16
    assert whole == "x", "only the end is missing"


def test_a_whole_reply_that_is_cut_off_is_a_lost_connection(serve: Serve) -> None:
    handle = serve(
        "turns: [{text: abc, cut: text}, {text: abc, cut: {at: end, how: reset}}, {cut: before_reply}, {text: whole}]"
    )
    with client(handle, max_retries=0) as sdk:
        for _ in range(3):
            with pytest.raises(openai.APIConnectionError):
                sdk.responses.create(model="m", input="go")
        assert sdk.responses.create(model="m", input="go").output_text == "whole"


def test_an_error_in_a_stream_comes_after_its_beginning(serve: Serve) -> None:
    handle = serve("turns: [{text: abcdef, error: {status: 500, message: broke, in_stream: true}, repeat: 2}]")
    said: list[str] = []
    with client(handle, max_retries=0) as sdk:
        with pytest.raises(openai.APIError, match="broke"):
            said.extend(pieces(sdk.chat.completions.create(model="m", messages=ASK, stream=True)))
        events = list(sdk.responses.create(model="m", input="go", stream=True))
    assert "".join(said) == "abcdef"
    assert (events[-1].type, events[-1].message, events[-1].sequence_number) == ("error", "broke", len(events) - 1)


def test_a_reply_that_is_cut_short_by_length_says_so(serve: Serve) -> None:
    handle = serve("turns: [{text: ab, finish: length, repeat: 2}, {text: ab, finish: content_filter}]")
    with client(handle) as sdk:
        assert sdk.chat.completions.create(model="m", messages=ASK).choices[0].finish_reason == "length"
        response = sdk.responses.create(model="m", input="go")
        assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        events = list(sdk.responses.create(model="m", input="go", stream=True))
    assert events[-1].type == "response.incomplete"


def test_a_delay_runs_into_the_sdks_timeout(serve: Serve) -> None:
    handle = serve("turns: [{text: late, delay_ms: 20000}, {text: next}]")
    with client(handle, max_retries=0) as sdk:
        with pytest.raises(openai.APITimeoutError):
            sdk.chat.completions.create(model="m", messages=ASK, timeout=0.3)
        assert sdk.chat.completions.create(model="m", messages=ASK).choices[0].message.content == "next"
    assert any("went away" in note for note in handle.stop().notes)


def test_the_list_of_models_is_empty(serve: Serve) -> None:
    with client(serve("turns: [{text: a}]")) as sdk:
        assert list(sdk.models.list()) == []


def test_what_is_not_scripted_fails_the_run(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    with client(handle) as sdk, pytest.raises(openai.NotFoundError, match="nothing that a scripted model serves"):
        sdk.embeddings.create(model="m", input="x")
    failure = handle.stop().failure
    assert failure is not None
    assert "/v1/embeddings" in failure


def test_long_arguments_come_whole(serve: Serve) -> None:
    text = "ß日" * 20_000
    handle = serve(f"turns: [{{calls: [{{tool: log, args: {{text: {text}}}}}]}}]")
    with client(handle) as sdk, sdk.chat.completions.stream(model="m", messages=ASK, tools=CHAT_TOOLS) as stream:
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"text": text}
