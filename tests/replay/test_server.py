"""The server's answers to requests, without a socket: any script says the same on each wire, and no request breaks it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.replay.clock import VirtualClock
from goldentrace.replay.conversation import Message, Reply, Result
from goldentrace.replay.http import HttpReply, HttpRequest
from goldentrace.replay.player import ScriptPlayer
from goldentrace.replay.recording import EventList, ModelRecording
from goldentrace.replay.script import AgentScript, Script, ScriptTurn
from goldentrace.replay.script_file import parse_script, write_script
from goldentrace.replay.scripted_model import ScriptedModel
from goldentrace.replay.server import WIRES, ModelServer
from goldentrace.replay.wire import anthropic_messages, openai_chat, openai_responses
from goldentrace.replay.wire.wire import Wire
from tests.replay.sse import read_events
from tests.replay.strategies import json_values, turns

PATHS = {wire.name: "/v1" + wire.paths[0] for wire in WIRES}
VERSION = {"anthropic-version": "2023-06-01"}


def server_of(script: Script) -> ModelServer:
    clock = VirtualClock(start_time_ns=0)
    return ModelServer(ScriptPlayer(script, seed=1), ModelRecording(EventList(clock).append), clock)


def post(server: ModelServer, wire: Wire, body: Any) -> HttpReply:
    return server.handle(HttpRequest("POST", PATHS[wire.name], VERSION, json.dumps(body).encode()))


def whole(reply: HttpReply) -> bytes:
    return reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)


class Talk:
    """A conversation with one wire, as its SDK would keep it; each call is answered with `ok`."""

    def __init__(self, wire: Wire, *, is_stream: bool) -> None:
        self.wire, self.is_stream = wire, is_stream
        self.history: list[Any] = [{"role": "user", "content": "go"}]

    def body(self) -> dict[str, Any]:
        key = "input" if self.wire is openai_responses.WIRE else "messages"
        return {"model": "m", "max_tokens": 9, key: self.history, "stream": self.is_stream,
                "stream_options": {"include_usage": True}}  # fmt: skip

    def take(self, reply: HttpReply) -> Reply:
        """Read a reply and put it, and results for its calls, into the history."""
        data = whole(reply)
        read = self.wire.read_stream(read_events([data])) if self.is_stream else self.wire.read_reply(json.loads(data))
        ids = [call.call_id for call in read.calls]
        if self.wire is openai_chat.WIRE:
            made = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.tool_name, "arguments": call.arguments},
                }
                for call in read.calls
            ]
            self.history.append({"role": "assistant", "content": read.text, **({"tool_calls": made} if made else {})})
            self.history += [{"role": "tool", "tool_call_id": call_id, "content": "ok"} for call_id in ids]
        elif self.wire is openai_responses.WIRE:
            self.history.append({"role": "assistant", "content": read.text})
            self.history += [
                {"type": "function_call", "call_id": c.call_id, "name": c.tool_name, "arguments": c.arguments}
                for c in read.calls
            ]
            self.history += [{"type": "function_call_output", "call_id": call_id, "output": "ok"} for call_id in ids]
        else:
            uses = [
                {"type": "tool_use", "id": c.call_id, "name": c.tool_name, "input": c.args or {}} for c in read.calls
            ]
            self.history.append({"role": "assistant", "content": [{"type": "text", "text": read.text}, *uses]})
            answers = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"} for call_id in ids]
            self.history.append({"role": "user", "content": answers or "and?"})
        return read


def plain(turn: ScriptTurn) -> ScriptTurn:
    """Return a turn as a plain reply with a finish that every wire has a word for and ids that are drawn."""
    given = (
        call for call in turn.calls if call.args_raw != ""
    )  # no text at all is an empty object in one of the streams
    calls = tuple(replace(call, call_id=None, has_id=True) for call in given)
    finish = turn.finish if turn.finish in ("length", "content_filter") else None
    return ScriptTurn(text=turn.text or "x", calls=calls, finish=finish, usage=turn.usage, is_literal=True)


plain_scripts = st.lists(turns().map(plain), min_size=1, max_size=4).map(
    lambda made: Script("drawn", (AgentScript(turns=tuple(made)),))
)


@given(plain_scripts)
@settings(max_examples=40)
def test_any_script_says_the_same_on_every_wire_and_in_process(script: Script) -> None:
    script = parse_script(write_script(script))
    model = ScriptedModel(script, seed=1, clock=VirtualClock(start_time_ns=0))
    messages = [Message("user", "go")]
    expected = []
    for _ in script.agents[0].turns:
        reply = model.respond(messages, model="m")
        expected.append(reply.content)
        messages.append(Message("assistant", reply.text, reply.calls))
        messages.append(Message("tool", results=tuple(Result(call.call_id or "", "ok") for call in reply.calls)))
    for wire in WIRES:
        for is_stream in (False, True):
            server, talk = server_of(script), Talk(wire, is_stream=is_stream)
            said = [talk.take(post(server, wire, talk.body())).content for _ in script.agents[0].turns]
            assert said == expected, (wire.name, is_stream)
            assert server.report().failure is None


def bodies() -> Iterator[st.SearchStrategy[Any]]:
    """Yield, for each wire, bodies that are right but for one value somewhere."""
    call = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    yield st.just({
        "model": "m", "stream": False, "n": 1, "tools": [{"type": "function", "function": {"name": "a"}}], "stream_options": {},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "y"},
        ],
    })  # fmt: skip
    yield st.just({
        "model": "m", "stream": False, "instructions": "i", "previous_response_id": None, "tools": [{"type": "function", "name": "a"}],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "function_call", "call_id": "c1", "name": "a", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "y"},
        ],
    })  # fmt: skip
    yield st.just({
        "model": "m", "max_tokens": 1, "stream": False, "system": [{"type": "text", "text": "s"}], "tools": [{"name": "a"}],
        "thread": {"type": "continue", "previous_message_id": "m1"}, "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "a", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "y", "is_error": True}]},
        ],
    })  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value below."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in pairs] + [place for _, inner in pairs for place in places(inner)]


@pytest.mark.parametrize(("wire", "right"), list(zip(WIRES, bodies(), strict=True)), ids=[wire.name for wire in WIRES])
@given(data=st.data())
@settings(max_examples=60)
def test_no_request_breaks_the_server(wire: Wire, right: st.SearchStrategy[Any], data: st.DataObject) -> None:
    """Whatever stands where: a reply, or a refusal in the provider's shape; never an exception."""
    body = json.loads(json.dumps(data.draw(right)))
    if data.draw(st.booleans()):
        body.pop("thread", None)
    container, key = data.draw(st.sampled_from(places(body)))
    if data.draw(st.booleans()):
        container[key] = data.draw(json_values)
    else:
        del container[key]
    for is_strict in (True, False):
        script = replace(parse_script("turns: [{text: fine, repeat: forever}]"), is_strict=is_strict)
        reply = post(server_of(script), wire, body)
        assert reply.status in (200, 400, 404)
        if reply.status != 200:
            assert json.loads(whole(reply))["error"]["message"]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@given(body=json_values)
@settings(max_examples=30)
def test_no_body_breaks_the_server(wire: Wire, body: Any) -> None:
    reply = post(server_of(parse_script("turns: [{text: fine, repeat: forever}]")), wire, body)
    assert reply.status == 400


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"nul", b'{"a": NaN}'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    for wire in WIRES:
        server = server_of(parse_script("turns: [{text: fine}]"))
        reply = server.handle(HttpRequest("POST", PATHS[wire.name], VERSION, data))
        assert reply.status == 400
        assert "could not parse" in json.loads(whole(reply))["error"]["message"]
        assert server.report().failure is None


def test_another_method_is_refused_and_another_path_fails_the_run() -> None:
    server = server_of(parse_script("turns: [{text: fine}]"))
    assert server.handle(HttpRequest("GET", "/v1/messages", VERSION, b"")).status == 405
    assert server.report().failure is None
    reply = server.handle(HttpRequest("POST", "/v1/messages/batches", VERSION, b"{}"))
    assert (reply.status, json.loads(whole(reply))["type"]) == (404, "error")
    assert server.report().failure == "POST /v1/messages/batches is nothing that a scripted model serves"


def test_base_urls_with_and_without_a_version_are_served() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    server = server_of(parse_script("turns: [{text: fine, repeat: forever}]"))
    for path in ("/v1/chat/completions", "/chat/completions", "/openai/v1/chat/completions"):
        assert server.handle(HttpRequest("POST", path, {}, body)).status == 200


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("place", ["text", "arguments", "end"])
def test_a_cut_ends_where_it_says(wire: Wire, place: str) -> None:
    script = parse_script(
        f"turns: [{{text: abcdefgh, calls: [{{tool: a, args: {{b: cdefghijklmnopq}}}}], cut: {place}, repeat: 2}}]"
    )
    server = server_of(script)
    full = server_of(replace(script, agents=(AgentScript(turns=(replace(script.agents[0].turns[0], cut=None),)),)))
    streamed, complete = (whole(post(one, wire, Talk(wire, is_stream=True).body())) for one in (server, full))
    assert complete.startswith(streamed[: len(streamed) // 2])
    assert len(streamed) < len(complete)
    assert (b"arguments" in streamed or b"partial_json" in streamed) == (place != "text")
    assert (streamed.endswith(b"\n\n")) == (place == "end")
    reply = post(server, wire, Talk(wire, is_stream=False).body())
    assert reply.cut == "close"
    assert reply.announced_bytes is not None
    assert len(whole(reply)) < reply.announced_bytes


def test_hidden_reasoning_that_a_request_asks_for_is_not_served() -> None:
    server = server_of(parse_script("turns: [{text: fine, repeat: forever}]"))
    ask = [{"role": "user", "content": "x"}]
    bodies = {
        anthropic_messages.WIRE: {"thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": ask},
        openai_responses.WIRE: {
            "reasoning": {"effort": "high", "summary": "auto"},
            "input": ask,
            "include": ["reasoning.encrypted_content"],
        },
    }
    for wire, body in bodies.items():
        reply = json.loads(whole(post(server, wire, {"model": "m", "max_tokens": 2000, **body})))
        assert [part["type"] for part in reply.get("content") or reply["output"]] in (["text"], ["message"])
