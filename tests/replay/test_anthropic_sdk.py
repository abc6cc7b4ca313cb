"""Anthropic's own SDK against the scripted model over a real socket, unchanged: sync and async, whole and streamed."""

import asyncio
import json
from typing import Any

import pytest

from goldentrace.model.event import ModelTurn, ToolCall, ToolResult
from goldentrace.replay.process import ScriptHandle
from tests.replay.conftest import Serve

anthropic = pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed")

LOOP = """
turns:
  - text: "Ich prüfe die Bestellung 🧾"
    calls: [{tool: get_order, args: {order_ref: A-17, note: "größe ✓ 日本語"}}]
    usage: {input_tokens: 20, output_tokens: 7, cached_tokens: 5}
  - when: {status: error, tool: get_order}
    calls: [{tool: get_order, args: {order_ref: A-17}}]
  - calls:
      - {tool: charge_card, args: {order_id: "<get_order#2/id>", cents: 1250}}
      - {tool: log, args: {}}
  - text: "Done: <charge_card#1/charge_id>, thanks"
"""
TOOLS: Any = [{"name": name, "input_schema": {"type": "object"}} for name in ("get_order", "charge_card", "log")]
RESULTS = {"get_order": {"id": "ord_99"}, "charge_card": {"charge_id": "ch_1"}, "log": {}}
EXPECTED = [
    ("get_order", {"order_ref": "A-17", "note": "größe ✓ 日本語"}),
    ("get_order", {"order_ref": "A-17"}),
    ("charge_card", {"order_id": "ord_99", "cents": 1250}),
    ("log", {}),
]
ASK: Any = [{"role": "user", "content": "charge A-17"}]


def client(handle: ScriptHandle, **options: Any) -> Any:
    return anthropic.Anthropic(base_url=handle.base_urls["ANTHROPIC_BASE_URL"], api_key="none", **options)


def take(message: Any, messages: list[Any], made: list[tuple[str, Any]]) -> bool:
    """Append a message and the results of its calls, the first of which fails; whether there were any."""
    messages.append(
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}
    )
    results: list[Any] = []
    for use in message.content:
        if use.type == "tool_use":
            is_error = not made
            made.append((use.name, use.input))
            content = "busy" if is_error else json.dumps(RESULTS[use.name])
            results.append({"type": "tool_result", "tool_use_id": use.id, "content": content, "is_error": is_error})
    if results:
        messages.append({"role": "user", "content": results})
    return bool(results)


def check_run(handle: ScriptHandle, made: list[tuple[str, Any]], said: str) -> None:
    """Check what an agent saw, and that the model's side of the run says the same."""
    assert made == EXPECTED
    assert said == "Done: ch_1, thanks"
    report = handle.stop()
    assert (report.failure, report.refused, report.unused_turns) == (None, (), ())
    events = handle.events()
    assert [(e.tool_name, json.loads(bytes(e.args))) for e in events if isinstance(e, ToolCall)] == EXPECTED
    assert [e.status for e in events if isinstance(e, ToolResult)] == ["error", "ok", "ok", "ok"]
    assert [len(e.input_call_ids or []) for e in events if isinstance(e, ModelTurn)] == [0, 1, 2, 4]


def test_messages(serve: Serve) -> None:
    handle = serve(LOOP)
    messages, made = list(ASK), []
    with client(handle) as sdk:
        while True:
            message = sdk.messages.create(model="claude-x", max_tokens=100, messages=messages, tools=TOOLS)
            if not made:
                usage = message.usage
                assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (15, 5, 7)
                assert (message.model, message.stop_reason) == ("claude-x", "tool_use")
            if not take(message, messages, made):
                break
    assert message.stop_reason == "end_turn"
    check_run(handle, made, message.content[0].text)


def test_messages_streamed_with_the_helper(serve: Serve) -> None:
    handle = serve(LOOP)
    messages, made = list(ASK), []
    json_deltas, text = 0, ""
    with client(handle) as sdk:
        while True:
            with sdk.messages.stream(model="claude-x", max_tokens=100, messages=messages, tools=TOOLS) as stream:
                for event in stream:
                    json_deltas += event.type == "input_json"
                    text += event.text if event.type == "text" else ""
                message = stream.get_final_message()
            if not made:
                assert (message.usage.input_tokens, message.usage.output_tokens) == (15, 7)
            if not take(message, messages, made):
                break
    assert json_deltas > 10, "arguments come in pieces"
    assert text == "Ich prüfe die Bestellung 🧾Done: ch_1, thanks"
    check_run(handle, made, message.content[0].text)


def test_messages_async_streamed(serve: Serve) -> None:
    handle = serve(LOOP)
    messages, made = list(ASK), []

    async def run() -> Any:
        options = {"base_url": handle.base_urls["ANTHROPIC_BASE_URL"], "api_key": "none"}
        async with anthropic.AsyncAnthropic(**options) as sdk:
            while True:
                async with sdk.messages.stream(
                    model="claude-x", max_tokens=100, messages=messages, tools=TOOLS
                ) as stream:
                    message = await stream.get_final_message()
                if not take(message, messages, made):
                    return message

    check_run(handle, made, asyncio.run(run()).content[0].text)


def test_the_tool_runner_of_the_sdk(serve: Serve) -> None:
    handle = serve('turns: [{calls: [{tool: find, args: {q: größe}}]}, {text: "found <find#1>"}]')

    @anthropic.beta_tool
    def find(q: str) -> str:
        """Find something."""
        return f"{q}-7"

    with client(handle) as sdk:
        runner = sdk.beta.messages.tool_runner(model="claude-x", max_tokens=100, messages=ASK, tools=[find])
        last = runner.until_done()
    assert last.content[0].text == "found größe-7"
    assert handle.stop().failure is None


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [(400, "BadRequestError", "invalid_request_error"), (401, "AuthenticationError", "authentication_error"),
     (429, "RateLimitError", "rate_limit_error"), (500, "InternalServerError", "api_error"),
     (529, "APIStatusError", "overloaded_error")],
)  # fmt: skip
def test_errors_are_the_sdks_own(serve: Serve, status: int, error: str, kind: str) -> None:
    handle = serve(f"turns: [{{error: {{status: {status}}}}}]")
    with client(handle, max_retries=0) as sdk, pytest.raises(getattr(anthropic, error)) as caught:
        sdk.messages.create(model="m", max_tokens=1, messages=ASK)
    assert caught.value.status_code == status
    assert caught.value.body["error"]["type"] == kind
    assert caught.value.request_id.startswith("req_")


def test_the_sdk_retries_what_it_would(serve: Serve) -> None:
    handle = serve("turns: [{error: {status: 529, headers: {retry-after-ms: 1}}}, {cut: before_reply}, {text: a}]")
    with client(handle, max_retries=2) as sdk:
        assert sdk.messages.create(model="m", max_tokens=1, messages=ASK).content[0].text == "a"
    assert [(event.extra or {}).get("sdk_retry") for event in handle.events() if event.extra] == [None, 1]


def test_a_malformed_request_is_refused_as_the_api_would(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    use = {"type": "tool_use", "id": "toolu_1", "name": "log", "input": {}}
    with client(handle) as sdk, pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
        sdk.messages.create(model="m", max_tokens=1, messages=[*ASK, {"role": "assistant", "content": [use]}, *ASK])
    report = handle.stop()
    assert report.failure is None
    assert len(report.refused) == 1


def test_the_end_of_the_script_is_not_retried(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    with client(handle) as sdk:
        sdk.messages.create(model="m", max_tokens=1, messages=ASK)
        with pytest.raises(anthropic.BadRequestError, match="no turn left"):
            sdk.messages.create(model="m", max_tokens=1, messages=ASK)
    report = handle.stop()
    assert (report.requests, report.is_exhausted) == (2, True)


def test_an_error_in_a_stream_comes_after_its_beginning(serve: Serve) -> None:
    handle = serve("turns: [{text: abcdef, error: {status: 529, message: too much, in_stream: true}}]")
    said: list[str] = []
    with (
        client(handle, max_retries=0) as sdk,
        sdk.messages.stream(model="m", max_tokens=1, messages=ASK) as stream,
        pytest.raises(anthropic.APIStatusError, match="too much"),
    ):
        said.extend(stream.text_stream)
    assert "".join(said) == "abcdef"


def test_a_stream_that_is_cut_off_does_not_look_whole(serve: Serve) -> None:
    handle = serve("turns: [{calls: [{tool: log, args: {a: bcdefghijklmnop}}], cut: arguments}]")
    kinds: list[str] = []
    asked: Any = {"model": "m", "max_tokens": 1, "messages": ASK, "tools": TOOLS}
    with (
        client(handle, max_retries=0) as sdk,
        sdk.messages.stream(**asked) as stream,
        pytest.raises(Exception, match=r"(?i)incomplete|connection|peer closed"),
    ):
        kinds.extend(event.type for event in stream)
    assert "input_json" in kinds
    assert "message_stop" not in kinds


def test_malformed_arguments_reach_the_agent(serve: Serve) -> None:
    handle = serve("turns: [{calls: [{tool: log, args_raw: '{\"a\": 12'}], repeat: 2}]")
    with client(handle) as sdk:
        message = sdk.messages.create(model="m", max_tokens=1, messages=ASK, tools=TOOLS)
        assert message.content[0].input == '{"a": 12', "a text where an object belongs"
        raw = sdk.messages.create(model="m", max_tokens=1, messages=ASK, tools=TOOLS, stream=True)
        pieces = [event.delta.partial_json for event in raw if event.type == "content_block_delta"]
    assert "".join(pieces) == '{"a": 12'


def test_tokens_are_counted_as_none(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    with client(handle) as sdk:
        assert sdk.messages.count_tokens(model="m", messages=ASK).input_tokens == 0
        assert list(sdk.models.list()) == []
    assert handle.stop().failure is None
