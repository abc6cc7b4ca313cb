"""`goldentrace stats`."""

import json
from pathlib import Path

import pytest

from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli

CHAT = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sun"},
]  # fmt: skip


def test_stats_sums_up_many_files_of_any_format(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "runs" / "a.jsonl", searches(3))
    write(
        tmp_path / "runs" / "b.jsonl", [start(), *call(1), *call(2, "pay", status="error"), end("failed", "tool_error")]
    )
    (tmp_path / "runs" / "c.json").write_text(json.dumps(CHAT))
    files = [f"runs/{name}" for name in ("a.jsonl", "b.jsonl", "c.json")]
    done = here("stats", *files)
    assert (done.code, done.stderr) == (0, "")
    words = [line.split() for line in done.stdout.splitlines()]
    assert words[0] == ["3", "runs,", "6", "calls"]
    assert ["search", "4", "100%", "-", "-", "-", "0", "0", "0"] in words
    assert ["pay", "1", "0.0%", "-", "-", "-", "0", "0", "0"] in words
    assert ["b.jsonl", "2", "50.0%", "-", "-", "-", "0", "0", "0", "failed"] in words
    value = json.loads(here("stats", *files, "--output-format", "json").stdout)
    assert [run["name"] for run in value["runs"]] == files
    assert (value["total"]["calls"], value["tools"]["look"]["calls"], value["tools"]["pay"]["success_rate"]) == (
        6,
        1,
        0,
    )
    assert value["tools"]["pay"]["latency_ms"] is None


def test_runs_of_one_file_are_told_apart_by_their_names(tmp_path: Path, here: Cli) -> None:
    rows = [{"task_id": f"task-{n}", "trial": 0, "reward": 1, "info": {}, "traj": CHAT} for n in range(2)]
    (tmp_path / "runs.json").write_text(json.dumps(rows))
    done = here("stats", "runs.json")
    assert done.code == 0, done.stderr
    words = [line.split() for line in done.stdout.splitlines()]
    assert ["runs", "in", "runs.json"] in words
    assert len([line for line in words if line[:1] and "task-" in line[0]]) == 2


@pytest.mark.parametrize("width", [40, 80])
def test_the_text_keeps_to_its_width(tmp_path: Path, here: Cli, width: int) -> None:
    events = [start(), *(event for n in range(4) for event in call(n, f"tool_with_a_name_that_is_long_{n}" * 4)), end()]
    for name in ("a" * 100, "b" * 100):
        write(tmp_path / f"{name}.jsonl", events)
    done = here("stats", f"{'a' * 100}.jsonl", f"{'b' * 100}.jsonl", "--width", str(width))
    assert done.code == 0
    assert max(map(len, done.stdout.splitlines())) <= width


def test_a_file_that_cannot_be_read_is_said_and_the_others_are_counted(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    done = here("stats", "a.jsonl", "none.jsonl")
    assert done.code == 3
    assert done.stdout.startswith("1 run, 3 calls, success")
    assert "not counted: none.jsonl" in done.stderr
    alone = here("stats", "none.jsonl")
    assert (alone.code, alone.stdout) == (3, "")


def test_a_run_that_was_cut_off_is_said_to_be(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(3)[:-1])
    assert here("stats", "a.jsonl").stdout.startswith("1 run, 3 calls, cut off")
    assert json.loads(here("stats", "a.jsonl", "--output-format", "json").stdout)["runs"][0]["outcome"] is None


def test_a_golden_has_no_figures(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    done = here("stats", "goldens/orders.jsonl")
    assert done.code == 3
    assert "golden" in done.stderr


def test_real_runs_have_figures(corpus: Path, here: Cli) -> None:
    files = sorted((corpus / "tracelint_samples").glob("*.json"))
    done = here("stats", *files, "--output-format", "json")
    assert done.code == 0, done.stderr
    value = json.loads(done.stdout)
    assert len(value["runs"]) >= len(files) > 0
    assert sum(run["calls"] for run in value["runs"]) == value["total"]["calls"] > 0
