"""`goldentrace demo`: what a newcomer sees first, and the folder that it leaves."""

import difflib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from goldentrace.cli import demo
from goldentrace.cli.output import Output
from goldentrace.codec.config import read_config, split_command
from goldentrace.errors import ConfigError, InfrastructureError
from tests.conftest import Cli
from tests.demo.conftest import BIN, ROOT, Told

EXAMPLE = ROOT / "goldentrace" / "demo"
BROKEN = {
    "ignores_retry_after": ("429-then-success", "GT402"),
    "new_key_on_retry": ("503-then-success", "GT109"),
    "forgets_to_look": ("lost-response", "GT203"),
}
"""Variant -> its scenario and the first code of its report: fixed before any of them was run."""

AS_TOLD = dict.fromkeys(("refund", "check"), (0, "", "", ())) | {
    scenario: (2, "", "", (first,)) for scenario, first in BROKEN.values()
}
"""What each command of the story comes to, by its argument."""


# -- the story ---------------------------------------------------------------------------------------------------------


def test_the_story_goes_as_told(told: Told) -> None:
    assert told.done.code == 0, told.done.stdout + told.done.stderr
    assert told.done.stderr == ""
    codes = [line.split()[2].rstrip(":") for line in told.done.stdout.splitlines() if line.startswith("   exit code")]
    assert codes == ["0", "0", "2", "2", "2"]


def test_each_broken_agent_is_shown_with_its_reason(told: Told) -> None:
    said = " ".join(told.done.stdout.split())
    assert "GT402 refund_order#1: retry 1: shorter than Retry-After" in said
    assert "GT109 refund_order#1: 2 ids come from elsewhere" in said
    assert "GT504 effects refund: 1 -> 2" in said
    assert "GT203 refund_order#1: did not decide reconcile" in said


def test_nothing_is_wider_than_80_columns(told: Told) -> None:
    assert [line for line in told.done.stdout.splitlines() if len(line) > 80] == []


def test_the_folder_is_left_whole_with_the_correct_agent(told: Told) -> None:
    here = {str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*") if "__pycache__" not in path.parts}
    there = {str(path.relative_to(told.folder)) for path in told.folder.rglob("*")}
    assert here <= there
    assert (told.folder / "agent.py").read_bytes() == (EXAMPLE / "agent.py").read_bytes()
    assert len(list((told.folder / "goldens" / "refund").glob("*.jsonl"))) == 4


def test_what_it_says_to_try_next_works(told: Told) -> None:
    for command, _ in demo.LOOK:
        assert command in told.done.stdout
    program, *words = demo.LOOK[0][0].split()
    assert (program, told.run(*words).code) == ("goldentrace", 2), "the last runs are the broken ones"
    for command, _ in demo.LOOK[1:3]:
        assert told.run(*command.split()[1:]).code == 0, command
    compared = subprocess.run(demo.LOOK[3][0].split(), cwd=told.folder, capture_output=True, timeout=10, check=False)
    assert compared.returncode == 1, "two files that differ"
    assert told.run("check", "lost-response").code == 0, "the correct agent is in place"


def test_the_goldens_of_the_folder_are_those_of_this_project(told: Told) -> None:
    for golden in sorted((ROOT / "goldens").rglob("*.jsonl")):
        done = told.run("diff", str(golden), f"goldens/refund/{golden.name}")
        assert done.code == 0, done.stdout


# -- the broken agents -------------------------------------------------------------------------------------------------


def test_the_table_of_the_story_is_the_one_fixed_here() -> None:
    assert {one.name: (one.scenario, one.first) for one in demo.VARIANTS} == BROKEN
    assert {path.stem for path in (EXAMPLE / "broken").glob("*.py")} == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_agent_differs_from_the_correct_one_in_at_most_ten_lines(name: str) -> None:
    correct = (EXAMPLE / "agent.py").read_text("utf-8").splitlines()
    broken = (EXAMPLE / "broken" / f"{name}.py").read_text("utf-8").splitlines()
    changed = [line for line in difflib.ndiff(correct, broken) if line[:1] in "+-"]
    assert 0 < len(changed) <= 10, "\n".join(changed)


@pytest.mark.parametrize("name", BROKEN)
def test_held_against_this_projects_goldens_a_broken_agent_shows_the_expected_code_first(told: Told, name: str) -> None:
    scenario, first = BROKEN[name]
    config = (EXAMPLE / "goldentrace.yaml").read_bytes()
    faults = read_config((config, "goldentrace.yaml")).config.scenarios[scenario].faults
    command = json.dumps([sys.executable, f"broken/{name}.py"])
    (told.folder / f"{name}.yaml").write_text(
        f"scenarios: {{{name}: {{command: {command}, faults: {faults}, seed: 7}}}}\n", "utf-8"
    )
    assert told.run("run", "--config", f"{name}.yaml", "--artifacts", "broken-runs").code == 0
    files = (str(ROOT / "goldens" / "refund" / f"{scenario}.jsonl"), f"broken-runs/runs/{name}.jsonl")
    done = told.run("diff", *files, "--output-format", "json")
    findings = json.loads(done.stdout)["traces"][0]["findings"]
    assert (done.code, findings[0]["rule"]) == (2, first)


# -- where it goes -----------------------------------------------------------------------------------------------------


def test_nothing_is_overwritten(cli: Cli, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "agent.py").write_text("mine")
    done = cli("demo", "taken")
    assert done.code == 3
    assert "nothing is overwritten" in done.stderr
    assert [path.name for path in taken.iterdir()] == ["agent.py"]
    assert (taken / "agent.py").read_text() == "mine"


def test_a_file_in_its_place_is_an_error_and_stays(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for name in ("file", "file/below"):
        assert cli("demo", name).code == 3
    assert (tmp_path / "file").read_text() == "mine"


def test_an_empty_folder_is_as_good_as_a_new_one(tmp_path: Path) -> None:
    assert demo.copy_example(tmp_path) == tmp_path
    with pytest.raises(ConfigError):
        demo.copy_example(tmp_path)


def test_where_python_is_another_one_the_commands_name_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    copied = demo.copy_example(tmp_path / "copy")
    config = read_config(((copied / "goldentrace.yaml").read_bytes(), "goldentrace.yaml")).config
    commands = [split_command(scenario.command or "") for scenario in config.scenarios.values()]
    assert commands == [[sys.executable, "agent.py"]] * 4


def test_where_the_shell_would_not_find_goldentrace_the_last_lines_say_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_run", lambda words, *, width: demo.Ran(*AS_TOLD[words[1] if words[1:] else words[0]]))
    line = f"   export PATH={BIN}:$PATH\n"
    place = demo.copy_example(tmp_path / "copy")
    for path, is_said in ((tmp_path, True), (BIN, False)):
        monkeypatch.setenv("PATH", str(path))
        with demo._inside(place):
            demo.Story(Output(), "copy").tell()
        assert (line in capfd.readouterr().out) == is_said


# -- a story that goes otherwise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "came",
    [demo.Ran(0, "", "", ()), demo.Ran(2, "", "", ("GT101", "GT402")), demo.Ran(3, "", "no port", ())],
    ids=["a broken agent that passes", "another reason", "no verdict"],
)
def test_a_story_that_goes_otherwise_is_no_success_and_leaves_the_correct_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], came: demo.Ran
) -> None:
    def run(words: list[str], *, width: int) -> demo.Ran:
        return came if "concise" in words else demo.Ran(0, "", "", ())

    monkeypatch.setattr(demo, "_run", run)
    place = demo.copy_example(tmp_path / "copy")
    with pytest.raises(InfrastructureError, match="otherwise than told"), demo._inside(place):
        demo.Story(Output(), "copy").tell()
    assert came.stderr in capfd.readouterr().err
    assert (place / "agent.py").read_bytes() == (EXAMPLE / "agent.py").read_bytes()
