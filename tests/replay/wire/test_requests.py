"""Requests are read as the providers read them: history, results, declared tools; and what they refuse is refused."""

from typing import Any

import pytest

from goldentrace.replay.conversation import Message, ModelRequest, Result
from goldentrace.replay.script import ProviderError
from goldentrace.replay.wire import anthropic_messages, openai_chat, openai_responses
from goldentrace.replay.wire.stored import MAX_STORED, ResponseStore, ThreadStore
from goldentrace.replay.wire.wire import RequestRefused, Wire

VERSION = {"anthropic-version": "2023-06-01"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q":1}'}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": 1}}
ITEM = {"type": "function_call", "call_id": "call_1", "name": "search", "arguments": '{"q":1}'}
ASK = {"role": "user", "content": "go"}


def chat(*messages: Any, strict: bool = True, **fields: Any) -> ModelRequest:
    return openai_chat.read_request({"model": "m", "messages": list(messages), **fields}, {}, strict)


def responses(*items: Any, strict: bool = True, **fields: Any) -> ModelRequest:
    return openai_responses.read_request({"model": "m", "input": list(items), **fields}, {}, strict)


def anthropic(*messages: Any, strict: bool = True, **fields: Any) -> ModelRequest:
    return anthropic_messages.read_request(
        {"model": "m", "max_tokens": 9, "messages": list(messages), **fields}, VERSION, strict
    )


def test_a_chat_history_is_read() -> None:
    request = chat(
        {"role": "developer", "content": "be brief"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL, {**CALL, "id": "call_2"}],
            "reasoning_content": "HIDDEN",
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "one"},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "two"}]},
        tools=[{"type": "function", "function": {"name": "search"}}, {"type": "custom", "custom": {"name": "patch"}}],
        stream=True,
        stream_options={"include_usage": True},
        parallel_tool_calls=False,
    )
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert request.last_user_text() == "look\n[image_url]"
    assert [(result.call_id, result.text, result.is_error) for result in request.new_results()] == [
        ("call_1", "one", None), ("call_2", "two", None),
    ]  # fmt: skip
    assert (request.tool_names, request.is_stream, request.wants_usage, request.is_parallel) == (
        ("search", "patch"), True, True, False,
    )  # fmt: skip
    assert "HIDDEN" not in repr(request)


def test_a_responses_history_is_read() -> None:
    request = responses(
        {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "HIDDEN"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        ITEM,
        {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "***"},
        {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "two"}]},
        instructions="be brief",
        tools=[{"type": "function", "name": "search"}, {"type": "web_search"}],
    )
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert [call.tool_name for call in request.messages[2].calls] == ["search", "patch"]
    assert [result.text for result in request.new_results()] == ["one", "two"]
    assert request.tool_names == ("search", "web_search")
    assert "HIDDEN" not in repr(request.messages)


def test_an_anthropic_history_is_read() -> None:
    request = anthropic(
        ASK,
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "HIDDEN", "signature": "x"}, {"type": "text", "text": "I look"}, USE,
            {**USE, "id": "toolu_2"},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "two"}], "is_error": True},
            {"type": "text", "text": "and?"},
        ]},
        system=[{"type": "text", "text": "be brief"}],
        tools=[{"name": "search", "input_schema": {}}],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
    )  # fmt: skip
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "user"]
    assert [(result.text, result.is_error) for result in request.new_results()] == [("one", None), ("two", True)]
    assert (request.last_user_text(), request.is_parallel) == ("and?", False)
    assert "HIDDEN" not in repr(request)


def test_consecutive_messages_of_a_role_are_one_for_anthropic() -> None:
    request = anthropic(
        ASK,
        {"role": "assistant", "content": [USE]},
        {"role": "assistant", "content": [{**USE, "id": "toolu_2"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "b"}]},
    )
    assert [len(message.calls) + len(message.results) for message in request.messages] == [0, 2, 2]


SAID = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("messages", "fields", "what"),
    [
        ([], {}, "empty array"),
        ([ASK], {"model": None}, "must provide a model"),
        ([ASK], {"n": 2}, "'n' must be 1"),
        ([ASK], {"stream": "yes"}, "'stream'"),
        ([ASK], {"tools": [{"type": "function"}]}, "tools[0].function"),
        ([{"role": "bot", "content": "x"}], {}, "Supported values"),
        ([{"role": "user"}], {}, "messages[0].content"),
        ([{"role": "user", "content": 5}], {}, "messages[0].content"),
        ([{"role": "user", "content": ["x"]}], {}, "messages[0].content"),
        ([ASK, {"role": "assistant", "content": None}], {}, "expected a string, got null"),
        ([ASK, SAID], {}, "did not have response messages: call_1"),
        ([ASK, SAID, ASK], {}, "did not have response messages: call_1"),
        ([ASK, {"role": "tool", "tool_call_id": "call_1", "content": "x"}], {}, "must be a response"),
        ([ASK, SAID, {"role": "tool", "tool_call_id": "call_9", "content": "x"}], {}, "must be a response"),
        ([ASK, {**SAID, "tool_calls": [{**CALL, "id": None}]}], {}, "tool_calls[0].id"),
        ([ASK, {**SAID, "tool_calls": [{"id": "a", "type": "function"}]}], {}, "tool_calls[0].function"),
        (
            [ASK, {**SAID, "tool_calls": [{**CALL, "function": {"name": "a", "arguments": {}}}]}],
            {},
            "function.arguments",
        ),
    ],
)
def test_what_chat_completions_refuses(messages: list[Any], fields: dict[str, Any], what: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        chat(*messages, **fields)
    assert what in str(caught.value)
    assert caught.value.error.status == 400


@pytest.mark.parametrize(
    ("items", "fields", "what"),
    [
        ([], {}, "empty array"),
        ([{"role": "tool", "content": "x"}], {}, "Supported values"),
        ([ASK, ITEM], {}, "No tool output found for function call call_1"),
        ([ASK, {"type": "function_call_output", "call_id": "call_9", "output": "x"}], {}, "No tool call found"),
        ([ASK, {**ITEM, "call_id": None}], {}, "input[1].call_id"),
        ([ASK], {"background": True}, "'background' is not supported"),
        ([ASK], {"conversation": "conv_1"}, "'conversation' is not supported"),
        ([ASK], {"stream": 1}, "'stream'"),
    ],
)
def test_what_responses_refuses(items: list[Any], fields: dict[str, Any], what: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        responses(*items, **fields)
    assert what in str(caught.value)


RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
USED = {"role": "assistant", "content": [USE]}


@pytest.mark.parametrize(
    ("messages", "fields", "what"),
    [
        ([], {}, "empty array"),
        ([ASK], {"max_tokens": None}, "max_tokens: Field required"),
        ([ASK], {"max_tokens": 0}, "max_tokens"),
        ([{"role": "system", "content": "x"}], {}, "'user' or 'assistant'"),
        ([{"role": "user"}], {}, "content: Field required"),
        ([{"role": "assistant", "content": "x"}], {}, 'first message must use the "user" role'),
        ([ASK, USED], {}, "without `tool_result` blocks immediately after: toolu_1"),
        ([ASK, USED, ASK], {}, "without `tool_result` blocks immediately after: toolu_1"),
        ([ASK, RESULT], {}, "unexpected `tool_use_id`"),
        ([ASK, USED, {"role": "user", "content": RESULT["content"] * 2}], {}, "must have a single result"),
        ([ASK, {"role": "assistant", "content": [{**USE, "input": "{"}]}], {}, "valid dictionary"),
        ([ASK], {"tools": [{"type": "x"}]}, "tools.0.name"),
    ],
)
def test_what_messages_refuses(messages: list[Any], fields: dict[str, Any], what: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        anthropic(*messages, **fields)
    assert what in str(caught.value)


def test_messages_needs_its_version_header() -> None:
    with pytest.raises(RequestRefused, match="anthropic-version: header is required"):
        anthropic_messages.read_request({"model": "m", "max_tokens": 1, "messages": [ASK]}, {}, True)


def test_a_lenient_script_takes_what_pairs_badly() -> None:
    assert chat(ASK, SAID, strict=False).messages[1].calls[0].call_id == "call_1"
    assert chat(ASK, {**SAID, "tool_calls": [{**CALL, "id": None}]}, strict=False).messages[1].calls[0].call_id is None
    assert responses(ASK, ITEM, strict=False).messages[1].calls[0].call_id == "call_1"
    assert anthropic(ASK, RESULT, strict=False).messages[1] == Message("tool", results=(Result("toolu_1", "x"),))


def test_a_body_that_is_no_object_is_refused() -> None:
    for wire in (openai_chat.WIRE, openai_responses.WIRE, anthropic_messages.WIRE):
        with pytest.raises(RequestRefused, match="JSON object"):
            wire.read_request([1], VERSION, True)


# --- stored responses -----------------------------------------------------------------------------------------------


def response(response_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": response_id, "output": [{**ITEM, "call_id": f"call_{response_id}"}], **fields}


def test_a_response_continues_an_earlier_one() -> None:
    store = ResponseStore()
    store.keep({"input": "go"}, response("r1"))
    answer = {"type": "function_call_output", "call_id": "call_r1", "output": "x"}
    expanded = store.expand({"previous_response_id": "r1", "input": [answer]})
    assert expanded["input"] == [ASK, response("r1")["output"][0], answer]
    store.keep(expanded, response("r2"))
    longer = store.expand({"previous_response_id": "r2", "input": "and?"})
    assert [item.get("type", "message") for item in longer["input"]] == [
        "message", "function_call", "function_call_output", "function_call", "message",
    ]  # fmt: skip


def test_a_response_that_was_not_kept_cannot_be_continued() -> None:
    store = ResponseStore()
    store.keep({"input": "go"}, response("r1", store=False))
    with pytest.raises(RequestRefused, match="not found") as caught:
        store.expand({"previous_response_id": "r1"})
    assert caught.value.error.code == "previous_response_not_found"


def test_the_store_is_bounded() -> None:
    store = ResponseStore()
    for number in range(MAX_STORED + 2):
        store.keep({"input": "go"}, response(str(number)))
    assert store.get("1") is None
    assert store.get("2") is not None


def test_a_thread_is_continued_with_what_is_new_and_each_reply_once() -> None:
    store = ThreadStore()
    created = {"thread": {"type": "create"}, "system": "be brief", "tools": [{"name": "a"}], "messages": [ASK]}
    store.keep(created, {"id": "m1", "content": [USE]})
    body = {"thread": {"type": "continue", "previous_message_id": "m1"}, "messages": [RESULT]}
    expanded = store.expand(body)
    assert expanded["messages"] == [ASK, USED, RESULT]
    assert (expanded["system"], expanded["tools"]) == ("be brief", [{"name": "a"}])
    assert store.expand(body) == expanded, "a lost reply may be asked for again"
    store.keep(expanded, {"id": "m2", "content": []})
    with pytest.raises(RequestRefused) as twice:
        store.expand(body)
    assert twice.value.error.code == "thread_already_continued"
    with pytest.raises(RequestRefused) as lost:
        store.expand({"thread": {"type": "continue", "previous_message_id": "m9"}})
    assert (lost.value.error.status, lost.value.error.code) == (404, "thread_not_found")


def test_what_is_no_thread_is_not_held() -> None:
    store = ThreadStore()
    store.keep({"messages": [ASK]}, {"id": "m1", "content": []})
    with pytest.raises(RequestRefused):
        store.expand({"thread": {"type": "continue", "previous_message_id": "m1"}})


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "status", "kind"),
    [
        (openai_chat.WIRE, 400, "invalid_request_error"),
        (openai_chat.WIRE, 429, "requests"),
        (openai_responses.WIRE, 500, "server_error"),
        (anthropic_messages.WIRE, 400, "invalid_request_error"),
        (anthropic_messages.WIRE, 401, "authentication_error"),
        (anthropic_messages.WIRE, 429, "rate_limit_error"),
        (anthropic_messages.WIRE, 500, "api_error"),
        (anthropic_messages.WIRE, 529, "overloaded_error"),
    ],
)
def test_errors_have_the_type_that_the_provider_gives_the_status(wire: Wire, status: int, kind: str) -> None:
    body = wire.write_error(ProviderError(status), None, "req_1")
    assert body["error"]["type"] == kind
    assert body["error"]["message"]


def test_a_script_may_say_the_error_itself() -> None:
    error = ProviderError(429, "tokens", "rate_limit_exceeded", "slow down")
    for wire in (openai_chat.WIRE, openai_responses.WIRE, anthropic_messages.WIRE):
        fields = wire.write_error(error, None, "req_1")["error"]
        code = fields["code"] if "code" in fields else fields["details"]["error_code"]
        assert (fields["type"], code, fields["message"]) == ("tokens", "rate_limit_exceeded", "slow down")
