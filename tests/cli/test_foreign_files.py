"""`lint`, `show` and `diff` directly on files of other formats, which may be one JSON document without lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from goldentrace.report.stops import Stop, stop_words
from tests.conftest import Cli

READ = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}


def chat(*texts: str) -> list[dict[str, Any]]:
    """A run that reads one file again and again; its results are the texts."""
    found: list[dict[str, Any]] = [{"role": "user", "content": "read it"}]
    for number, text in enumerate(texts, start=1):
        found.append({"role": "assistant", "content": None, "tool_calls": [{**READ, "id": f"c{number}"}]})
        found.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return [*found, {"role": "assistant", "content": "done"}]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat("same words", "same words")))
    return path


def test_a_finding_in_a_document_without_lines_names_the_file_alone(document: Path, here: Cli) -> None:
    for name in ("text", "concise", "markdown", "github", "gitlab"):
        told = here("lint", "chat.json", "--output-format", name).stdout
        assert "GT1004" in told
        assert "chat.json:0" not in told
        assert "line=0" not in told
        assert '"begin": 0' not in told
    sarif = json.loads(here("lint", "chat.json", "--output-format", "sarif").stdout)
    (result,) = sarif["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    (trace,) = json.loads(here("lint", "chat.json", "--output-format", "json").stdout)["traces"]
    (finding,) = trace["findings"]
    assert (finding["lines"], finding["candidate"], finding["operations"]) == ([], None, ["read#1", "read#2"])
    assert "line 0" not in here("lint", "chat.json", "--checklist").stdout


def test_a_finding_in_a_document_without_lines_stands_at_its_calls(document: Path, here: Cli) -> None:
    lines = here("show", "chat.json").stdout.splitlines()
    marked = [number for number, line in enumerate(lines) if "^ GT1004" in line]
    assert [lines[number - 1].split()[:2] for number in marked] == [["result", "read#1"], ["result", "read#2"]]
    assert lines[marked[0]].strip() == "^ GT1004 repeated-result, 1 of 2: see read#2"


def test_where_a_run_without_lines_stopped_is_said_without_one() -> None:
    stop = Stop(None, None, None, "failed", "turn_limit", label="read#1", line=None, is_running=True)
    assert stop_words(stop) == "failed, turn_limit, while read#1 was running"


def test_show_native_has_each_line_of_the_file_above_what_was_made_of_it(tmp_path: Path, here: Cli) -> None:
    run = chat("first", "second")
    arguments = json.dumps({"password": "hunter2-and-more", "path": "é " * 300})
    run[1]["tool_calls"][0]["function"] = {"name": "read", "arguments": arguments}
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in run))
    lines = here("show", "--native", "chat.jsonl").stdout.splitlines()
    begins = [
        n for n, line in enumerate(lines) if line.lstrip().partition(" ")[0] in ("2", "3", "4", "5") and "{" in line
    ]
    assert [lines[n].split()[0] for n in begins] == ["2", "3", "4", "5"]
    following = [next(line for line in lines[n:] if "read#" in line).split() for n in begins]
    assert [(words[-1] if words[-1] != "ok" else words[-2], "ok" in words) for words in following] == [
        ("read#1", False),
        ("read#1", True),
        ("read#2", False),
        ("read#2", True),
    ]
    assert "..." in "".join(lines)
    whole = here("show", "--native", "-v", "chat.jsonl").stdout
    assert "hunter2" not in "".join(lines) + whole
    assert whole.count("é") == 300 > "".join(lines).count("é")


def test_show_native_of_a_document_says_that_it_has_no_lines(document: Path, here: Cli) -> None:
    done = here("show", "--native", "chat.json")
    assert done.stdout == here("show", "chat.json").stdout
    assert "no lines to show" in done.stderr


@pytest.mark.parametrize("options", [(), ("-v",)])
def test_the_list_of_formats_fits_the_terminal(options: tuple[str, ...], here: Cli) -> None:
    for width in (60, 80, 120):
        lines = here("formats", *options, env={"COLUMNS": str(width)}).stdout.splitlines()
        assert max(map(len, lines)) <= width


TOKEN = "ghp_" + "a1B2" * 9


def leaky(*texts: str) -> list[dict[str, Any]]:
    """A run with a secret in every place that a chat has."""
    run = chat(*texts)
    run[0]["content"] = f"use {TOKEN}"
    calls = run[1]["tool_calls"]
    calls[0]["function"] = {
        "name": "login",
        "arguments": json.dumps({"token": TOKEN, "url": f"https://x/?key={TOKEN}", "n": texts[0]}),
    }
    calls.append(
        {"id": "broken", "type": "function", "function": {"name": "login", "arguments": f'{{"token": "{TOKEN}", '}}
    )
    run.insert(3, {"role": "tool", "tool_call_id": "broken", "content": f"no {TOKEN}"})
    run[-1]["content"] = f"done with {TOKEN}"
    return run


COMMANDS = [
    "lint -v a.json", "lint --checklist -v a.json", "show -v a.json", "normalize -v a.json", "import a.json", "import a.json --list",
    "script from-trace a.json", "stats a.json b.json", "cache simulate a.json", "diff -v a.json b.json",
    *(f"{command} --output-format {name}" for command in ("lint a.json", "diff a.json b.json") for name in ("json", "concise", "markdown", "sarif")),
    "show a.json --output-format json", "record new --from a.json",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_says_or_writes_a_secret_of_a_foreign_file(command: str, tmp_path: Path, here: Cli) -> None:
    files = {"a.json": leaky(f"session {TOKEN}", "x"), "b.json": leaky(f"other {TOKEN}", "y")}
    for name, run in files.items():
        (tmp_path / name).write_text(json.dumps(run))
    (tmp_path / "goldentrace.yaml").write_text("scenarios:\n  new: {command: [never]}\n")
    done = here(*command.split())
    assert done.code in (0, 2), done.stderr
    assert TOKEN not in done.stdout + done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in files]
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]
