"""The agents of docs/record-any-language.md, in shell and in Node: what they append is read back as what they did."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from goldentrace import Recorder
from goldentrace.codec.shards import merge
from goldentrace.codec.trace import read_trace
from goldentrace.model.event import Message
from goldentrace.store.claim import shard_paths
from tests.conftest import Cli
from tests.house.documents import File, steps
from tests.house.tracked import ROOT
from tests.record.conftest import Run

PAGE = ROOT / "docs" / "record-any-language.md"
OUTLINE = [
    "turn 1",
    "call get_order 1 model", "result 1 ok",
    "turn 2",
    "call charge 1 model", "result 1 timeout", "decision retry",
    "call charge 2 harness", "result 2 ok",
    "end success final_answer",
]  # fmt: skip

NODE = pytest.param(
    ["node", "agent.mjs"],
    id="node",
    marks=pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
)


def program(name: str, folder: Path) -> Path:
    """Write the program of that name from the page into a folder."""
    (file,) = [step for step in steps(PAGE.read_text()) if isinstance(step, File) and step.name == name]
    (folder / name).write_text(file.body)
    return folder / name


def start(command: list[str], run: Run, *, is_recorded: bool = True) -> None:
    program(command[1], run.path.parent)
    environment = {"PATH": os.environ["PATH"]} | ({"GOLDENTRACE_TRACE": str(run.path)} if is_recorded else {})
    done = subprocess.run(
        command, cwd=run.path.parent, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [pytest.param(["sh", "agent.sh"], id="shell"), NODE])
def test_an_agent_in_another_language(command: list[str], run: Run) -> None:
    start(command, run)
    assert run.outline() == OUTLINE
    assert run.trace.incomplete is None
    assert run.trace.notes == ()
    first, second = run.events("tool_call")[1:]
    assert (second["op_id"], second["idempotency_key"]) == (first["call_id"], "k1")
    decision, retried = run.trace.events[-4], run.trace.calls()[-1]
    assert retried.ts is not None
    assert decision.ts is not None
    assert retried.ts > decision.ts


@pytest.mark.parametrize("command", [pytest.param(["sh", "agent.sh"], id="shell"), NODE])
def test_a_trace_start_that_is_there_is_not_written_again(command: list[str], run: Run) -> None:
    run.path.write_text('{"type":"trace_start","format":"goldentrace/1","scenario_id":"from the runner"}\n')
    start(command, run)
    assert run.trace.start.scenario_id == "from the runner"
    assert run.outline() == OUTLINE


@pytest.mark.parametrize("command", [pytest.param(["sh", "agent.sh"], id="shell"), NODE])
def test_an_agent_that_nothing_records_runs_all_the_same(command: list[str], run: Run) -> None:
    start(command, run, is_recorded=False)
    assert [path.name for path in run.path.parent.iterdir()] == [command[1]]


def test_a_shell_agent_that_starts_a_python_agent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines go to FILE, the recorder's to a shard; each is whole, together they are one run."""
    line = '{"type":"message","ts":"2026-01-01T00:00:00Z","role":"user","text":"from the shell"}\n'
    run.path.write_text('{"type":"trace_start","format":"goldentrace/1","ts":"2026-01-01T00:00:00Z"}\n' + line)
    monkeypatch.setenv("GOLDENTRACE_TRACE", str(run.path))
    with Recorder() as recorder:
        recorder.message("user", "from Python")
    with run.path.open("a") as file:
        file.write('{"type":"trace_end","outcome":"success","stop_reason":"final_answer"}\n')
    trace = merge([read_trace(path.read_bytes(), str(path)) for path in shard_paths(run.path)])
    assert [event.text for event in trace.events if isinstance(event, Message)] == ["from the shell", "from Python"]
    assert trace.incomplete is None
    assert trace.end is not None
    assert trace.end.outcome == "success"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_two_agents_behave_alike(tmp_path: Path, cli: Cli) -> None:
    files = [tmp_path / "shell.jsonl", tmp_path / "node.jsonl"]
    start(["sh", "agent.sh"], Run(files[0]))
    start(["node", "agent.mjs"], Run(files[1]))
    done = cli("diff", *files)
    assert done.code == 0, done.stdout + done.stderr


def test_the_examples_are_short() -> None:
    for step in steps(PAGE.read_text()):
        if isinstance(step, File):
            lines = [line for line in step.body.splitlines() if line.strip()]
            assert len(lines) <= 36, step.name
