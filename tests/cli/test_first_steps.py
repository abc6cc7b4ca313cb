"""What a newcomer is told: commands alone, goldens without scenarios, CI."""

from pathlib import Path

import pytest
import yaml

from tests.cli.traces import searches, write
from tests.conftest import Cli

CAT = "sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'"


@pytest.mark.parametrize("command", ["serve", "script", "eval", "cache"])
def test_a_group_alone_shows_its_help(cli: Cli, command: str) -> None:
    alone, asked = cli(command), cli(command, "--help")
    assert (alone.code, alone.stderr) == (3, "")
    assert alone.stdout == asked.stdout
    assert "\nCommands:\n" in alone.stdout


@pytest.mark.parametrize("command", ["diff", "check"])
def test_goldens_without_scenarios_say_what_works(tmp_path: Path, cli: Cli, command: str) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    assert "nothing to do" in cli(command).stderr
    assert cli("record", "orders", "--from", "a.jsonl").code == 0
    done = cli(command)
    assert done.code == 3
    assert "no scenario, but 1 golden under goldens/" in done.stderr
    assert "goldentrace diff goldens/orders.jsonl NEW_FILE" in done.stderr
    assert cli("diff", "goldens/orders.jsonl", "a.jsonl").code == 0


def test_the_workflow_is_valid_and_leaves_the_source_to_the_user(tmp_path: Path, here: Cli) -> None:
    done = here("init", "--with-ci")
    assert "where goldentrace comes from" in done.stderr
    text = (tmp_path / ".github/workflows/goldentrace.yml").read_text()
    steps = yaml.safe_load(text)["jobs"]["check"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert "install goldentrace\n" not in text
    runs = [step["run"] for step in steps if "run" in step]
    assert ['"$GOLDENTRACE"' in runs[0], "requirements.txt" in runs[1], "goldentrace check" in runs[2]] == [True] * 3


def test_ci_refuses_in_one_clause(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    done = here("record", "orders", "--from", "a.jsonl", env={"CI": "true"})
    assert done.code == 3
    assert "not written: CI is set (goldens are not recorded in CI)" in done.stderr
    assert "--write-in-ci writes all the same" in done.stderr


def test_in_ci_nothing_is_to_be_accepted_that_will_be_gone(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: {CAT}\n")
    write(tmp_path / "events.jsonl", searches(1)[1:])
    assert cli("record", "orders").code == 0
    write(tmp_path / "events.jsonl", searches(2)[1:])
    assert "goldentrace accept orders" in cli("check").stdout
    gone = cli("check", env={"CI": "true"})
    assert (gone.code, "goldentrace accept" in gone.stdout) == (2, False)
