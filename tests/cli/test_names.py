"""Names where files are expected, choices that an error lists, and words that only a shell knows."""

from pathlib import Path

import pytest

from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli


def test_show_finds_the_run_of_a_scenario_or_its_golden(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(), *call(1, "old_tool"), end()])
    assert cli("record", "orders", "--from", "a.jsonl", "--suite", "shop").code == 0
    (tmp_path / "goldentrace.yaml").write_text(
        "scenarios:\n  orders:\n    suite: shop\n    command: sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'\n"
    )
    assert "old_tool" in cli("show", "orders").stdout
    write(tmp_path / "events.jsonl", [*call(1, "new_tool"), end()])
    assert cli("run").code == 0
    assert "new_tool" in cli("show", "orders").stdout
    missing = cli("show", "nobody")
    assert (missing.code, "nobody" in missing.stderr) == (3, True)
    assert cli("show", "../orders").code == 3


def test_a_wrong_word_of_an_event_lists_the_choices(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(), {"type": "tool_result", "call_id": "c", "status": "okay"}])
    done = here("lint", "a.jsonl")
    assert done.code == 3
    assert "invalid enum value 'okay': one of ok, error" in done.stderr
    assert "a.jsonl:2 $.status" in done.stderr


@pytest.mark.parametrize(
    ("command", "is_told"),
    [("cat events.jsonl | cat", True), ("sh -c 'cat events.jsonl | cat >> $GOLDENTRACE_TRACE'", False)],
)
def test_a_word_of_a_shell_is_told_to_be_none(tmp_path: Path, cli: Cli, command: str, is_told: bool) -> None:
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: {command}\n")
    write(tmp_path / "events.jsonl", searches(1)[1:])
    done = cli("run", "orders")
    assert ("no shell reads the command, so '|' is passed on" in done.stderr) is is_told
    assert ("sh -c '…'" in done.stderr or "sh -c '\\u2026'" in done.stderr) is is_told
