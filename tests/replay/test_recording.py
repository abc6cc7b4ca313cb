"""The model's side of a run as events."""

import json

from goldentrace.codec.trace import encode_event
from goldentrace.model.event import AnyEvent
from goldentrace.replay.clock import VirtualClock
from goldentrace.replay.conversation import Message, Result
from goldentrace.replay.script_file import parse_script
from goldentrace.replay.scripted_model import ProviderFailure, ScriptedModel


def plain(events: list[AnyEvent]) -> list[dict[str, object]]:
    """Return events as a reader of the file sees them, without stamps."""
    rows = [json.loads(encode_event(event)) for event in events]
    return [{key: value for key, value in row.items() if key not in ("seq", "ts", "mono_ns")} for row in rows]


def model_of(text: str) -> ScriptedModel:
    return ScriptedModel(parse_script(text), clock=VirtualClock(start_time_ns=1_767_225_600_000_000_000))


TWO_CALLS = """
turns:
  - text: looking
    calls: [{tool: get_order, args: {ref: A-17}, id: c1}, {tool: log, args_raw: "{oops", id: c2}]
    usage: {input_tokens: 10, output_tokens: 4}
  - text: done
"""


def test_a_run_becomes_turns_calls_and_results() -> None:
    model = model_of(TWO_CALLS)
    messages = [Message("system", "be brief"), Message("user", "charge it")]
    reply = model.respond(messages, tools=("get_order", "log"))
    messages += [
        Message("assistant", reply.text, reply.calls),
        Message("tool", results=(Result("c1", '{"id":"o1"}'), Result("c2", "Error: bad", is_error=True))),
    ]
    model.respond(messages, tools=("get_order", "log"))
    assert plain(model.events) == [
        {"type": "message", "role": "system", "text": "be brief"},
        {"type": "message", "role": "user", "text": "charge it"},
        {"type": "model_turn", "turn": 1, "model": "scripted", "finish_reason": "tool_calls", "input_call_ids": [],
         "usage": {"input_tokens": 10, "output_tokens": 4}},
        {"type": "message", "turn": 1, "role": "assistant", "text": "looking"},
        {"type": "tool_call", "turn": 1, "batch": 1, "call_id": "c1", "tool_name": "get_order", "args": {"ref": "A-17"}},
        {"type": "tool_call", "turn": 1, "batch": 1, "call_id": "c2", "tool_name": "log", "args_raw": "{oops"},
        {"type": "tool_result", "turn": 1, "call_id": "c1", "status": "ok", "result": {"id": "o1"}, "result_bytes": 11},
        {"type": "tool_result", "turn": 1, "call_id": "c2", "status": "error", "error_class": "tool_error",
         "result": "Error: bad", "result_bytes": 10},
        {"type": "model_turn", "turn": 2, "model": "scripted", "finish_reason": "stop", "input_call_ids": ["c1", "c2"]},
        {"type": "message", "turn": 2, "role": "assistant", "text": "done"},
    ]  # fmt: skip
    assert [event.seq for event in model.events] == list(range(1, 11))
    assert all(event.ts is not None and event.mono_ns is not None for event in model.events)


def test_a_history_that_is_sent_again_is_recorded_once() -> None:
    model = model_of("turns: [{text: a}, {text: b}, {text: c}]")
    messages = [Message("user", "hi")]
    for text in ("a", "hi", "hi again"):
        model.respond(messages)
        messages += [Message("assistant", text), Message("user", text)]
    said = [event["text"] for event in plain(model.events) if event.get("role") == "user"]
    assert said == ["hi", "a", "hi"], "the same words twice are two messages"


def test_a_refusal_and_a_cut_are_no_turns() -> None:
    model = model_of(
        "turns: [{error: {status: 429, headers: {Retry-After: 2, X-Other: y}}}, {cut: before_reply}, {text: a}]"
    )
    for _ in range(2):
        try:
            model.respond([Message("user", "hi")])
        except ProviderFailure:
            continue
    model.respond([Message("user", "hi")])
    rows = plain(model.events)
    assert [row["type"] for row in rows] == ["message", "message", "message", "model_turn", "message"]
    assert rows[1]["extra"] == {"http_status": 429, "retry-after": "2"}
    assert rows[2]["extra"] == {"cut": "before_reply", "cut_how": "close"}
    assert rows[1]["role"] == rows[2]["role"] == "provider"
    assert rows[3]["turn"] == 1


def test_secrets_do_not_reach_an_event() -> None:
    secret = "sk-" + "a1B2" * 8
    model = model_of(
        f"turns: [{{text: 'use {secret}', calls: [{{tool: a, args: {{key: {secret}, n: 1}}, id: c}}]}}, {{text: b}}]"
    )
    messages = [Message("user", f"my key is {secret}")]
    reply = model.respond(messages)
    assert secret in reply.text, "the agent gets what the script says"
    messages += [
        Message("assistant", "", reply.calls),
        Message("tool", results=(Result("c", f'{{"token":"{secret}"}}'),)),
    ]
    model.respond(messages)
    assert secret not in json.dumps(plain(model.events))
    assert json.dumps(plain(model.events)).count("<secret:1>") == 4


def test_a_call_without_an_id_has_one_in_the_events() -> None:
    model = model_of("turns: [{calls: [{tool: a, id: null}]}, {text: b}]")
    messages = [Message("user", "hi")]
    reply = model.respond(messages)
    messages += [Message("assistant", "", reply.calls), Message("tool", results=(Result("my-own", "x"),))]
    model.respond(messages)
    call, result, turn = (row for row in plain(model.events)[2:] if row["type"] != "message")
    assert call["call_id"] == result["call_id"] == "call-1-1"
    assert call["extra"] == {"call_id": "the reply carried none"}
    assert turn["input_call_ids"] == ["call-1-1"]


def test_tokens_are_recorded_only_where_the_script_states_them() -> None:
    model = model_of("turns: [{text: a}]")
    model.respond([Message("user", "hi")])
    assert "usage" not in next(row for row in plain(model.events) if row["type"] == "model_turn")
