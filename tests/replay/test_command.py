"""`goldentrace script from-trace`."""

import json
from pathlib import Path

import pytest

from goldentrace.cli.main import run
from goldentrace.replay.script_file import parse_script, read_script

TRACE = [
    {"type": "trace_start", "format": "goldentrace/1", "scenario_id": "incident", "trace_id": "t1"},
    {"type": "model_turn", "turn": 1},
    {"type": "tool_call", "turn": 1, "call_id": "c1", "tool_name": "find", "args": {"q": "x"}},
    {"type": "tool_result", "turn": 1, "call_id": "c1", "status": "ok", "result": {"token": "abc"}},
    {"type": "decision", "decision": "retry", "call_id": "c1"},
    {"type": "model_turn", "turn": 2},
    {"type": "tool_call", "turn": 2, "call_id": "c2", "tool_name": "use", "args": {"token": "abc"}},
    {"type": "tool_result", "turn": 2, "call_id": "c2", "status": "ok"},
    {"type": "model_turn", "turn": 3},
    {"type": "message", "turn": 3, "role": "assistant", "text": "done"},
    {"type": "trace_end", "outcome": "success", "stop_reason": "final_answer"},
]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "incident.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in TRACE))
    return str(path)


def test_a_script_is_printed_and_what_it_lacks_said(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["script", "from-trace", trace]) == 0
    out, err = capsys.readouterr()
    script = parse_script(out)
    assert script.name == "incident"
    assert script.agents[0].turns[1].calls[0].args == {"token": "<find#1/token>"}
    assert err == "note: left to the agent: 1 decision\n"


def test_a_script_is_written_to_a_file(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "script.yaml"
    assert run(["script", "from-trace", trace, "-o", str(out), "--name", "fixture", "--no-references"]) == 0
    script = read_script(out)
    assert script.name == "fixture"
    assert script.agents[0].turns[1].calls[0].args == {"token": "abc"}
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert "3 turns" in stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["{trace}", "--trace", "other"], "no trace 'other'"),
        (["{trace}", "--format", "nothing"], "no format 'nothing'"),
        (["nowhere.jsonl"], "no such file"),
        (["{trace}", "-o", "/nowhere/at/all.yaml"], "cannot write"),
        (["{trace}", "--max-bytes", "10"], "10 bytes"),
        ([], "missing argument"),
    ],
)
def test_what_goes_wrong_is_code_3_and_one_message(
    trace: str, arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["script", "from-trace", *(argument.format(trace=trace) for argument in arguments)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert what in err.lower()
    assert "Traceback" not in err


def test_one_of_several_traces_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chats.jsonl"
    chat = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    path.write_text("".join(json.dumps({**chat, "id": name}) + "\n" for name in ("one", "two")))
    code = run(["script", "from-trace", str(path)])
    err = capsys.readouterr().err
    assert code == 3
    assert "holds several traces" in err
    assert "--trace" in err
