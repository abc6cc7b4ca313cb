"""Misspelt events must not make a run green: what the reader left out is told, and no empty golden is made of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli

CAT = "sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'"


def misspelt(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    words = {"tool_call": "toolcall", "tool_result": "toolresult"}
    return [{**event, "type": words.get(event["type"], event["type"])} for event in events]


def other_field(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"arguments" if name == "args" else name: value for name, value in event.items()} for event in events]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: {CAT}\n")
    return tmp_path


def test_no_golden_is_made_of_events_that_nobody_knows(project: Path, cli: Cli) -> None:
    write(project / "events.jsonl", [*misspelt(call(1)), {"type": "model_turn", "turn": 1}, end()])
    done = cli("record", "orders")
    assert done.code == 3
    assert "did you mean tool_call?" in done.stderr
    assert "'toolcall', 'toolresult'" in done.stderr
    assert not (project / "goldens").exists()


def test_a_run_of_unknown_events_alone_says_which(project: Path, cli: Cli) -> None:
    write(project / "events.jsonl", misspelt(call(1)))
    done = cli("run", "orders")
    assert done.code == 3
    assert "no event of a known type" in done.stderr
    assert "did you mean tool_call?" in done.stderr


def test_no_golden_is_made_of_a_file_of_unknown_events(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(), *misspelt(call(1)), end()])
    done = here("record", "orders", "--from", "a.jsonl")
    assert done.code == 3
    assert "did you mean tool_call?" in done.stderr
    assert not (tmp_path / "goldens").exists()


def test_a_golden_without_calls_is_warned_of(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(), {"type": "model_turn", "turn": 1}, end()])
    done = here("record", "orders", "--from", "a.jsonl")
    assert (done.code, "warning: the golden has no call" in done.stderr) == (0, True)
    write(tmp_path / "a.jsonl", searches(1))
    assert "warning" not in here("record", "orders", "--from", "a.jsonl").stderr


@pytest.mark.parametrize("command", ["run", "record", "check"])
def test_unknown_fields_are_told_once_by_what_runs(project: Path, cli: Cli, command: str) -> None:
    write(project / "events.jsonl", [*other_field(call(1)), end()])
    if command == "check":
        assert cli("record", "orders").code == 0
    done = cli(command, "orders")
    assert done.code == 0, done.stderr
    assert (done.stdout + done.stderr).count("did you mean arguments -> args?") == 1
    document = json.loads(cli(command, "orders", "--output-format", "json").stdout)
    notes = {"run": "runs", "record": "goldens"}
    told = document["notes"] if command == "check" else document[notes[command]][0]["notes"]
    assert any("arguments -> args" in note for note in told)


def test_lint_tells_them_too(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(), *other_field(call(1)), *misspelt(call(2)), end()])
    done = here("lint", "a.jsonl")
    assert "did you mean tool_result?" in " ".join(done.stdout.split())
    document = json.loads(here("lint", "a.jsonl", "--output-format", "json").stdout)
    assert any("arguments -> args" in note for note in document["traces"][0]["rules"]["notes"])


def test_a_diff_of_files_tells_them_with_the_file(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    write(tmp_path / "b.jsonl", [start(), *other_field(searches(1)[1:-1]), end()])
    done = here("diff", "a.jsonl", "b.jsonl")
    assert done.code == 2
    assert "b.jsonl: unknown fields kept in extra: arguments" in " ".join(done.stdout.split())
