"""The agents of docs/record-python.md, run with modules of LangGraph's shape: recorded alike, whatever the clock does."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from goldentrace.model.event import Outcome, StopReason
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from tests.house.documents import File, steps
from tests.house.tracked import ROOT
from tests.record.conftest import Run

PAGE = ROOT / "docs" / "record-python.md"
ANSWER = '    return {"id": f"ord_{ref}", "cents": 4990}\n'
SLOW_ONCE = '    if ref == "A-200" and not tried:\n        tried.append(ref)\n        raise TimeoutError\n' + ANSWER


def program(name: str) -> str:
    """The text of that agent, as the page has it."""
    (file,) = [step for step in steps(PAGE.read_text()) if isinstance(step, File) and step.name == name]
    return file.body


def start(text: str, folder: Path, trace: Path | None) -> None:
    (folder / "agent.py").write_text(text)
    environment = {"PATH": os.environ["PATH"]} | ({} if trace is None else {"GOLDENTRACE_TRACE": str(trace)})
    command = [sys.executable, "-m", "tests.record.langgraph_shapes", str(folder / "agent.py")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["langgraph_agent.py", "prebuilt_agent.py"])
def test_the_calls_of_one_answer_are_one_batch(name: str, run: Run) -> None:
    start(program(name), run.path.parent, run.path)
    assert run.trace.incomplete is None
    (one, other), turns = run.events("tool_call"), run.events("model_turn")
    assert {one["args"]["ref"], other["args"]["ref"]} == {"A-100", "A-200"}
    assert one["batch"] == other["batch"]
    assert [turn["turn"] for turn in turns] == [1, 2]
    normal = normalize(run.trace, Profile(name="p@1"), "sha256:0")
    assert [(operation.turn, operation.batch) for operation in normal.operations] == [(1, 1), (1, 1)]


def test_a_policy_that_runs_the_node_again_makes_no_call_of_the_model(run: Run) -> None:
    text = program("langgraph_agent.py").replace(ANSWER, SLOW_ONCE).replace("rec = Rec", "tried = []\nrec = Rec")
    start(text, run.path.parent, run.path)
    calls = {}
    for event in run.events("tool_call"):
        calls.setdefault(event["args"]["ref"], []).append((event.get("attempt", 1), event.get("origin", "model")))
    assert calls == {"A-100": [(1, "model"), (2, "harness")], "A-200": [(1, "model"), (2, "harness")]}
    (decision,) = run.events("decision")
    assert (decision["decision"], decision["reason"]) == ("retry", "timeout")
    failed = next(event["call_id"] for event in run.events("tool_result") if event["status"] == "timeout")
    assert decision["call_id"] == failed


@pytest.mark.parametrize("name", ["langgraph_agent.py", "prebuilt_agent.py"])
def test_without_a_recording_the_agent_runs_as_before(name: str, tmp_path: Path) -> None:
    start(program(name), tmp_path, None)
    assert [path.name for path in tmp_path.iterdir()] == ["agent.py"]


@pytest.mark.parametrize("page", ["record-python.md", "record-any-language.md"])
def test_a_page_lists_the_words_for_the_end(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    listed = [" ".join(f"`{word}`," for word in get_args(words))[:-1] for words in (Outcome, StopReason)]
    assert all(words in " ".join(text.split()) for words in listed)
