"""The server's process: it starts with a script that is right, answers its parent, and ends with it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.trace import read_trace
from goldentrace.errors import ConfigError, InfrastructureError
from goldentrace.model.event import ToolCall, TraceEnd, TraceStart
from goldentrace.replay.process import ScriptHandle, start_script
from tests.replay.conftest import Serve
from tests.replay.sse import read_events

LOOP = 'turns: [{calls: [{tool: a, args: {n: größe}}]}, {text: "ü <a#1/id>"}]'


def ask(handle: ScriptHandle, messages: list[Any], **fields: Any) -> bytes:
    """Return what the server answers to a chat completion, as bytes."""
    body = json.dumps({"model": "m", "messages": messages, **fields}).encode()
    request = urllib.request.Request(
        handle.base_urls["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return bytes(answer.read())


def run(handle: ScriptHandle) -> list[bytes]:
    """Return the two answers of LOOP."""
    first = ask(handle, [{"role": "user", "content": "go"}], stream=True)
    call = next(
        call
        for _, data in read_events([first])
        if data != "[DONE]"
        for call in json.loads(data)["choices"][0]["delta"].get("tool_calls", [])
    )
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**call, "function": {"name": "a", "arguments": "{}"}}],
    }
    answer = {"role": "tool", "tool_call_id": call["id"], "content": '{"id": 7}'}
    return [first, ask(handle, [{"role": "user", "content": "go"}, said, answer])]


def test_a_run_is_the_same_for_the_same_seed(serve: Serve) -> None:
    def without_time(answers: list[bytes]) -> list[Any]:
        streamed = [json.loads(data) for _, data in read_events([answers[0]]) if data != "[DONE]"]
        return [{**value, "created": 0} for value in [*streamed, json.loads(answers[1])]]

    first, second, other = (without_time(run(serve(LOOP, seed=seed))) for seed in (3, 3, 4))
    assert first == second
    assert first != other
    assert first[-1]["choices"][0]["message"]["content"] == "ü 7"


def test_the_seed_of_the_run_wins_over_the_scripts(serve: Serve) -> None:
    text = "seed: 5\nturns: [{text: a}]"
    ids = [json.loads(ask(serve(text, seed=seed), [{"role": "user", "content": "x"}]))["id"] for seed in (None, 5, 6)]
    assert ids[0] == ids[1] != ids[2]


def test_the_handle_tells_how_to_reach_it_and_what_came_of_it(serve: Serve) -> None:
    handle = serve("turns: [{text: a}, {text: b}, {text: c, when: {status: error}}]")
    assert handle.base_urls == {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{handle.port}/v1",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{handle.port}",
    }
    assert set(handle.environment) == {*handle.base_urls, "OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    ask(handle, [{"role": "user", "content": "x"}])
    assert not handle.is_exhausted
    assert [turn.index for turn in handle.unused_turns] == [1]
    report = handle.stop()
    assert handle.stop() == report
    assert (report.requests, report.replies) == (1, 1)
    assert handle.report() == report


def test_the_journal_is_a_trace(serve: Serve) -> None:
    handle = serve(LOOP)
    run(handle)
    running = read_trace(handle.journal_path.read_bytes(), "journal")
    assert running.incomplete is not None
    assert sum(isinstance(event, ToolCall) for event in handle.events()) == 1
    handle.stop()
    trace = read_trace(handle.journal_path.read_bytes(), "journal")
    assert trace.incomplete is None
    assert isinstance(trace.events[0], TraceStart)
    assert (trace.start.scenario_id, trace.start.seed) == ("test", 7)
    assert isinstance(trace.events[-1], TraceEnd)
    assert not any(isinstance(event, TraceStart | TraceEnd) for event in handle.events())
    assert handle.journal_path.stat().st_mode & 0o777 == 0o600


def test_a_journal_that_another_writes_is_left_alone(tmp_path: Path) -> None:
    taken = tmp_path / "run.jsonl"
    line = b'{"type":"trace_start","format":"goldentrace/1"}\n{"type":"message","role":"user","text":"x"}\n'
    taken.write_bytes(line)
    script = tmp_path / "s.yaml"
    script.write_text(LOOP)
    with start_script(script, journal_path=taken) as handle:
        run(handle)
    assert handle.journal_path != taken
    assert taken.read_bytes() == line
    assert len(handle.events()) > 3


def test_a_wrong_script_is_the_callers_error_and_starts_nothing(tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("turns:\n  - texd: a\n")
    with pytest.raises(ConfigError) as caught:
        start_script(script, journal_path=tmp_path / "j.jsonl")
    assert caught.value.where is not None
    assert caught.value.where.line == 2
    assert not (tmp_path / "j.jsonl").exists()


def is_alive(pid: int) -> bool:
    """Whether a process runs (one that ended and was not yet waited for does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Any, what: str) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


PARENT = """
import sys, time
from goldentrace.replay.process import start_script
handle = start_script(sys.argv[1], journal_path=sys.argv[2])
print(handle._child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent(tmp_path: Path, ended_by: signal.Signals) -> None:
    script = tmp_path / "s.yaml"
    script.write_text(LOOP)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(script), str(tmp_path / "j.jsonl")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_alive(pid)
    parent.send_signal(ended_by)
    parent.wait(20)
    parent.stdout.close()
    wait_until(lambda: not is_alive(pid), "the server outlives its parent")
    wait_until(lambda: b"trace_end" in (tmp_path / "j.jsonl").read_bytes(), "the journal has no end")


def test_a_server_that_was_killed_is_an_error_of_the_infrastructure(tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text(LOOP)
    handle = start_script(script, journal_path=tmp_path / "j.jsonl")
    os.kill(handle._child.pid, signal.SIGKILL)
    handle._child.wait(20)
    for question in (handle.report, handle.stop, handle.stop):
        with pytest.raises(InfrastructureError, match="scripted model's server failed"):
            question()
    assert handle.events() == []


def test_no_process_is_left_behind(serve: Serve) -> None:
    handle = serve(LOOP)
    pid = handle._child.pid
    handle.stop()
    assert not is_alive(pid)


def test_a_browser_page_cannot_reach_it(serve: Serve) -> None:
    handle = serve(LOOP)
    request = urllib.request.Request(
        handle.base_urls["OPENAI_BASE_URL"] + "/chat/completions", b"{}", {"Host": "rebound.example"}
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=20)
    assert caught.value.code == 421
    caught.value.close()


def test_a_body_that_is_no_json_is_refused_in_the_providers_shape(serve: Serve) -> None:
    handle = serve(LOOP)
    request = urllib.request.Request(handle.base_urls["ANTHROPIC_BASE_URL"] + "/v1/messages", b"{oops")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=20)
    body = json.loads(caught.value.read())
    caught.value.close()
    assert (caught.value.code, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")


def test_hidden_reasoning_is_neither_served_nor_recorded(serve: Serve) -> None:
    handle = serve("turns: [{text: a}, {text: b}, {text: c}]")
    ask(
        handle, [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "reasoning_content": "HIDDEN"}]
    )
    thinking = {"role": "assistant", "content": [{"type": "thinking", "thinking": "HIDDEN", "signature": "HIDDEN"}]}
    body = {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "x"}, thinking, {"role": "user", "content": "y"}],
    }
    url = handle.base_urls["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"anthropic-version": "2023-06-01"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert b"thinking" not in answer.read()
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "HIDDEN"}], "encrypted_content": "HIDDEN"}
    ]
    body = {"model": "m", "input": [{"role": "user", "content": "x"}, *items]}
    request = urllib.request.Request(handle.base_urls["OPENAI_BASE_URL"] + "/responses", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert b"HIDDEN" not in answer.read()
    handle.stop()
    assert b"HIDDEN" not in handle.journal_path.read_bytes()


def test_keys_and_headers_are_not_recorded(serve: Serve) -> None:
    handle = serve("turns: [{text: a}]")
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    headers = {"Authorization": "Bearer MY-OWN-KEY-123", "X-Own": "MY-OWN-HEADER"}
    request = urllib.request.Request(handle.base_urls["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20):
        pass
    handle.stop()
    assert b"MY-OWN" not in handle.journal_path.read_bytes()
