"""The command line as a whole: help, table of commands, variables of options, errors that are nobody's fault."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from goldentrace.cli import ci, main
from goldentrace.cli.commands import HELP, MODULES, Commands
from goldentrace.cli.commands import main as group
from goldentrace.cli.options import KNOWN, PREFIX, Option
from tests.cli.traces import searches, write
from tests.conftest import Cli


def command_of(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", HELP)
def test_the_table_of_commands_agrees_with_the_commands(name: str) -> None:
    found = command_of(name)
    assert found.name == name
    assert found.help, f"{name} has no help"
    assert importlib.import_module(f"goldentrace.cli.{MODULES.get(name, name)}").__doc__


@pytest.mark.parametrize("name", HELP)
def test_help_is_0_and_imports_no_other_command(here: Cli, name: str) -> None:
    done = here(name, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: goldentrace {name}")


def test_help_lists_every_command(here: Cli) -> None:
    done = here("--help")
    assert done.code == 0
    for name, text in HELP.items():
        assert f"  {name}" in done.stdout
        assert text.split(".")[0][:30] in done.stdout
    assert "Exit codes" in done.stdout


def test_bare_goldentrace_prints_help_and_gives_no_verdict(here: Cli) -> None:
    done = here()
    assert done.code == 3
    assert "Usage: goldentrace" in done.stdout


def test_version(here: Cli, cli: Cli) -> None:
    for run in (here, cli):
        done = run("--version")
        assert (done.code, done.stdout, done.stderr) == (0, "goldentrace 0.1.0\n", "")


def test_every_variable_of_an_option_is_known() -> None:
    names: set[str] = set()
    for name in HELP:
        for parameter in command_of(name).params:
            if isinstance(parameter, Option):
                assert isinstance(parameter.envvar, str)
                names.add(parameter.envvar.removeprefix(PREFIX))
    assert names == set(KNOWN)


def test_a_variable_sets_an_option_and_the_option_wins(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    env = {"GOLDENTRACE_OPT_OUTPUT_FORMAT": "json"}
    assert here("diff", "a.jsonl", "a.jsonl", env=env).stdout.startswith("{")
    assert not here("diff", "a.jsonl", "a.jsonl", "--output-format", "text", env=env).stdout.startswith("{")
    (tmp_path / "goldentrace.yaml").write_text("profile: lenient@1\ngoldens: yaml\n")
    done = here(
        "config", "--show-origin", env={"GOLDENTRACE_OPT_PROFILE": "strict@1", "GOLDENTRACE_OPT_OUTPUT_FORMAT": "text"}
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["profile", '"strict@1"', "GOLDENTRACE_OPT_PROFILE"] in rows
    assert ["goldens", '"yaml"', "goldentrace.yaml:2"] in rows
    done = here("config", "--show-origin", "--profile", "default@1")
    assert ["profile", '"default@1"', "--profile"] in [line.split() for line in done.stdout.splitlines()]


def test_the_default_format_in_github_actions_is_github(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    write(tmp_path / "b.jsonl", searches(2))
    done = here("diff", "a.jsonl", "b.jsonl", env={"GITHUB_ACTIONS": "true"})
    assert done.code == 2
    assert "::error" in done.stdout


@pytest.mark.parametrize(("environ", "found"), [({}, None), ({"CI": "true"}, "CI is set"), ({"CI": "1", "TF_BUILD": "True"}, "TF_BUILD is set"),
                                                 ({"CI": "False"}, None), ({"JENKINS_URL": "http://x"}, "JENKINS_URL is set")])  # fmt: skip
def test_continuous_integration_is_known_by_its_variables(environ: dict[str, str], found: str | None) -> None:
    assert ci.find_ci(environ=environ).reason == found


def test_an_internal_error_says_how_to_report_it(here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the\x1b[31m bug")

    monkeypatch.setattr(Commands, "resolve_command", fail)
    done = here("formats")
    assert done.code == 3
    assert done.stderr.startswith("goldentrace: internal error: RuntimeError: the\\x1b[31m bug\n")
    assert "report the command" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in here("formats", env={"GOLDENTRACE_DEBUG": "1"}).stderr


@pytest.mark.parametrize(
    "error", [SystemExit(1), SystemExit("x"), RecursionError(), MemoryError(), KeyboardInterrupt(), OSError("x")]
)
def test_whatever_happens_no_other_code_is_returned(
    here: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Commands, "resolve_command", fail)
    done = here("formats")
    assert done.code == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("code", [1, 4, None, "x", True, 2.5])
def test_a_command_cannot_return_another_code(monkeypatch: pytest.MonkeyPatch, code: object) -> None:
    monkeypatch.setattr("goldentrace.cli.commands.run_command", lambda _: code)
    assert main.run(["x"]) == 3


def test_colours_only_where_they_are_wanted(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    write(tmp_path / "b.jsonl", searches(2))
    assert "\x1b[" not in here("diff", "a.jsonl", "b.jsonl").stdout
    assert "\x1b[" in here("diff", "a.jsonl", "b.jsonl", "--color", "always").stdout
    assert "\x1b[" in here("diff", "a.jsonl", "b.jsonl", env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in here("diff", "a.jsonl", "b.jsonl", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\x1b[" not in here("diff", "a.jsonl", "b.jsonl", "--color", "never").stdout


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_width_is_kept(tmp_path: Path, here: Cli, width: int) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    write(
        tmp_path / "b.jsonl",
        searches(3, "a much longer query that does not fit into any narrow column at all, or does it"),
    )
    done = here("diff", "a.jsonl", "b.jsonl", "--width", str(width))
    assert max(map(len, done.stdout.splitlines())) <= width


def test_a_locale_without_utf8_is_no_crash(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "größe.jsonl", searches(1, "größe"))
    for locale in ("C", "POSIX"):
        done = cli("show", "größe.jsonl", env={"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
        assert done.code == 0
        assert "Traceback" not in done.stderr


def test_completion_of_a_shell(cli: Cli) -> None:
    done = cli(env={"_GOLDENTRACE_COMPLETE": "bash_source"})
    assert done.code == 0
    assert "complete" in done.stdout
    done = cli(env={"_GOLDENTRACE_COMPLETE": "bash_complete", "COMP_WORDS": "goldentrace di", "COMP_CWORD": "1"})
    assert "diff" in done.stdout


def test_a_name_of_a_file_that_is_no_text(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    name = os.fsencode(tmp_path) + b"/\xff.jsonl"
    Path(os.fsdecode(name)).write_bytes((tmp_path / "a.jsonl").read_bytes())
    program = Path(sys.executable).with_name("goldentrace")
    for command in (["diff", "a.jsonl"], ["show"], ["lint"], ["normalize"], ["import"]):
        done = subprocess.run([program, *command, name], cwd=tmp_path, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
