"""Commands on archives: many traces are written and summed up, of one a choice is asked for, damage writes nothing."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from goldentrace.exitcodes import CHANGED, NO_VERDICT, OK
from tests.conftest import Cli

EIGHTY = {"COLUMNS": "80"}


def chat(text: str, tool: str = "find") -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def pack(path: Path, files: dict[str, bytes]) -> None:
    """Write a zip or a tar of files, as the suffix says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, data in files.items():
                zipped.writestr(name, data)
        return
    with tarfile.open(path, "w:gz") as tarred:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tarred.addfile(info, io.BytesIO(data))


TWO = {"runs/b.jsonl": chat("b"), "runs/a.jsonl": chat("a"), "README.md": b"# Runs\n", "runs/a.png": b"\x89PNG\r\n"}


@pytest.fixture(params=["runs.zip", "runs.tgz"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An archive of two runs and two files that are none."""
    pack(tmp_path / request.param, TWO)
    return str(request.param)


def test_the_traces_of_an_archive_are_listed(two: str, here: Cli) -> None:
    done = here("import", two, "--list", env=EIGHTY)
    assert done.code == OK
    assert done.stdout.splitlines() == [
        "runs/a.jsonl  1 calls  1 results  openai-chat",
        "runs/b.jsonl  1 calls  1 results  openai-chat",
    ]
    assert done.stderr == f"note: {two}: no run found in 2 members: README.md, runs/a.png\n"
    listed = json.loads(here("import", two, "--list", "--output-format", "json").stdout)
    assert [entry["trace"] for entry in listed["traces"]] == ["runs/a.jsonl", "runs/b.jsonl"]
    assert listed["left_out"] == ["README.md", "runs/a.png"]


def test_each_trace_of_an_archive_is_written_to_a_folder(two: str, tmp_path: Path, here: Cli) -> None:
    done = here("import", two, "-o", "out/", env=EIGHTY)
    assert (done.code, done.stdout) == (OK, "")
    assert done.stderr.splitlines() == [
        "2 traces written to out",
        f"note: {two}: no run found in 2 members: README.md, runs/a.png",
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["runs-a.jsonl", "runs-b.jsonl"]
    (tmp_path / "a.jsonl").write_bytes(TWO["runs/a.jsonl"])
    assert here("import", "a.jsonl", "-q").stdout == (tmp_path / "out" / "runs-a.jsonl").read_text()


def test_an_archive_comes_through_a_pipe_too(two: str, tmp_path: Path, here: Cli, cli: Cli) -> None:
    done = cli("import", "-", "--list", stdin=(tmp_path / two).read_bytes())
    assert (done.code, done.stdout) == (OK, here("import", two, "--list").stdout)


@pytest.mark.parametrize("command", [("show",), ("import",), ("record", "x", "--from"), ("script", "from-trace")])
def test_where_one_trace_is_needed_it_is_asked_for(
    command: tuple[str, ...], two: str, tmp_path: Path, here: Cli
) -> None:
    done = here(*command, two, env=EIGHTY)
    assert (done.code, done.stdout) == (NO_VERDICT, "")
    assert done.stderr.splitlines() == [
        "goldentrace: holds several traces",
        f"  {two}",
        "  name one with --trace (runs/a.jsonl, runs/b.jsonl, …), or split it with import -o DIR/",
    ]
    assert here(*command, two, "--trace", "runs/b.jsonl").code == OK
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".jsonl"] == []


def test_show_names_the_member_and_shows_its_lines(two: str, here: Cli) -> None:
    shown = here("show", two, "--trace", "runs/b.jsonl", "--native", env=EIGHTY)
    assert shown.code == OK
    assert shown.stdout.startswith(f"{two}!runs/b.jsonl  1 call")
    assert '   2  {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type":' in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert shown.stderr == f"note: {two}: no run found in 2 members: README.md, runs/a.png\n"


def test_one_trace_of_two_archives_is_compared(two: str, tmp_path: Path, here: Cli) -> None:
    pack(tmp_path / "new.zip", {"runs/a.jsonl": chat("a"), "runs/b.jsonl": chat("b", "search")})
    same = here("diff", two, "new.zip", "--trace", "runs/a.jsonl", env=EIGHTY)
    assert (same.code, same.stdout.startswith(f"{two}!runs/a.jsonl  CLEAN")) == (OK, True)
    assert f"note: {two}: no run found in 2 members: README.md, runs/a.png" in same.stdout
    other = here("diff", two, "new.zip", "--trace", "runs/b.jsonl", env=EIGHTY)
    assert other.code == CHANGED
    assert "now     new.zip!runs/b.jsonl" in other.stdout
    assert max(map(len, other.stdout.splitlines())) <= 80


def test_lint_and_stats_go_over_all_members(two: str, tmp_path: Path, here: Cli) -> None:
    unanswered = b"".join(chat("x").splitlines(keepends=True)[:2])
    pack(tmp_path / "open.zip", {"c/one.jsonl": chat("a"), "c/two.jsonl": unanswered, "notes.txt": b"x"})
    done = here("lint", "open.zip", env=EIGHTY)
    assert done.code == CHANGED
    assert "open.zip!c/two.jsonl:2  find#1" in done.stdout
    assert "note: open.zip: no run found in 1 member: notes.txt" in done.stdout
    summed = here("stats", two, env=EIGHTY)
    assert (summed.code, summed.stdout.startswith("2 runs, 2 calls")) == (OK, True)
    assert f"runs in {two}!runs/" in summed.stdout
    assert summed.stderr == f"note: {two}: no run found in 2 members: README.md, runs/a.png\n"


def test_runs_of_labelled_tasks_come_from_an_archive_too(tmp_path: Path, here: Cli) -> None:
    messages = [json.loads(line) for line in chat("x").splitlines()]
    runs = [{"task_id": f"task-{number}", "messages": messages} for number in range(2)]
    pack(tmp_path / "runs.zip", {f"{run['task_id']}.json": json.dumps([run]).encode() for run in runs})
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    (tmp_path / "labels.json").write_text(json.dumps([{"task_id": "task-0", "redundant_step_idx": [1, 2]}]))
    scores = [
        here("eval", "redundancy", "--annotations", "labels.json", "--traces", name)
        for name in ("runs.json", "runs.zip")
    ]
    assert [done.code for done in scores] == [OK, OK]
    assert scores[0].stdout == scores[1].stdout


def test_damage_is_refused_by_the_name_of_the_member_and_its_line(tmp_path: Path, here: Cli) -> None:
    lines = chat("x").splitlines(keepends=True)
    pack(tmp_path / "runs.zip", {"in/bad.jsonl": b"".join([*lines[:2], b"{oops}\n", lines[2]])})
    for command in (("import", "-o", "out.jsonl"), ("import", "-o", "out/"), ("show",), ("lint",), ("stats",)):
        done = here(*command, "runs.zip", env=EIGHTY)
        assert (done.code, done.stdout) == (NO_VERDICT, "")
        assert "  runs.zip!in/bad.jsonl:3" in done.stderr.splitlines()
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "runs.zip"]


@pytest.mark.parametrize(
    "name", ["../../up.jsonl", "/abs.jsonl", "..", "a/../../b.jsonl", "C:\\x.jsonl", "\x1b[2Jx.jsonl"]
)
def test_no_name_of_a_member_leads_out_of_the_folder(name: str, tmp_path: Path, here: Cli) -> None:
    inside = tmp_path / "deep" / "inside"
    inside.mkdir(parents=True)
    pack(inside / "runs.tgz", {name: chat("x"), "copy/" + name: chat("y")})
    done = here("import", "runs.tgz", "-o", "out/", "-v", cwd=inside)
    assert (done.code, "\x1b" in done.stdout + done.stderr) == (OK, False)
    files = [path.relative_to(inside) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {file.parts[0] for file in files} == {"out", "runs.tgz"}


def test_an_archive_without_a_run_is_code_3(tmp_path: Path, here: Cli) -> None:
    pack(tmp_path / "docs.zip", {"README.md": b"# x\n", "config.json": b"{}"})
    for command in ("import", "show", "lint", "stats"):
        done = here(command, "docs.zip")
        assert (done.code, done.stderr.splitlines()[0]) == (NO_VERDICT, "goldentrace: the archive holds no trace")


def test_what_an_archive_unpacks_to_is_bounded(tmp_path: Path, here: Cli) -> None:
    pack(tmp_path / "bomb.zip", {"a.jsonl": chat("0" * 5_000_000)})
    done = here("import", "bomb.zip", "--max-bytes", "1000000")
    assert done.code == NO_VERDICT
    assert "limit of 1,000,000 bytes" in done.stderr
    assert "raise the limit with --max-bytes" in done.stderr


def test_formats_say_that_archives_are_read(here: Cli) -> None:
    assert "of an archive (zip, tar) every member" in " ".join(here("formats").stdout.split())
