"""`run` and `check`: the commands that CI calls."""

import json
from pathlib import Path

from tests.cli.traces import call, end, files_in, searches, write
from tests.conftest import Cli

COPY = "sh -c 'cat {file} >> $GOLDENTRACE_TRACE'"


def project(folder: Path, cli: Cli, **files: list[dict[str, object]]) -> None:
    """A scenario for each file of events, recorded."""
    lines = ["scenarios:"]
    for name, events in files.items():
        write(folder / f"{name}.events", events)
        lines.append(f"  {name}: {{command: {json.dumps(COPY.format(file=f'{name}.events'))}}}")
    (folder / "goldentrace.yaml").write_text("\n".join(lines) + "\n")
    done = cli("record", *files)
    assert done.code == 0, done.stderr


def test_a_run_that_behaves_as_recorded(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:], b=searches(3)[1:])
    done = cli("check", "--jobs", "2")
    assert done.code == 0, done.stderr
    done = cli("check", "--output-format", "json")
    assert [t["status"] for t in json.loads(done.stdout)["traces"]] == ["clean", "clean"]


def test_a_changed_behaviour_is_2_and_leaves_the_goldens_alone(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:])
    before = files_in(tmp_path / "goldens")
    write(tmp_path / "a.events", searches(3)[1:])
    done = cli("check", env={"CI": "true"})
    assert done.code == 2
    assert "GT102" in done.stdout
    assert "CI is set" in done.stderr
    assert files_in(tmp_path / "goldens") == before


def test_a_defect_that_the_golden_does_not_show_is_2(tmp_path: Path, cli: Cli) -> None:
    """A result that answers no call is no operation, so only a rule sees it."""
    project(tmp_path, cli, a=searches(2)[1:])
    stray = {"type": "tool_result", "call_id": "nobody", "status": "ok"}
    write(tmp_path / "a.events", [*searches(2)[1:-1], stray, end()])
    done = cli("check")
    assert done.code == 2
    assert "GT1401" in done.stdout
    assert cli("diff").code == 0


def test_a_budget_is_checked_afterwards(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:])
    config = tmp_path / "goldentrace.yaml"
    config.write_text(config.read_text().replace("  a: {", "  a: {budgets: {tool_calls: 1}, "))
    done = cli("check")
    assert done.code == 2
    assert "GT1006" in done.stdout


def test_a_finding_that_a_change_explains_counts_once(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:])
    unanswered = call(3, page=3, q="abc")[:1]
    write(tmp_path / "a.events", [*searches(2)[1:-1], *unanswered, end()])
    report = json.loads(cli("check", "--output-format", "json").stdout)
    assert report["exit_code"] == 2
    assert report["summary"]["errors"] == 1
    assert report["summary"]["by_rule"] == {"GT102": 1}


def test_a_failure_of_the_command_wins_over_a_change(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:], b=searches(2)[1:])
    write(tmp_path / "a.events", searches(3)[1:])
    (tmp_path / "b.events").unlink()
    done = cli("check")
    assert done.code == 3
    assert "GT102" in done.stdout
    assert "recorded nothing" in done.stdout


def test_a_scenario_without_a_golden_has_no_verdict(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:])
    (tmp_path / "goldens/a.jsonl").unlink()
    done = cli("check")
    assert done.code == 3
    assert "goldentrace record a" in done.stdout


def test_candidates_go_to_the_artifacts(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:])
    assert cli("check", "--artifacts", "out").code == 0
    assert {"runs/a.jsonl", "runs/a.log"} <= set(files_in(tmp_path / "out"))


def test_run_says_what_it_left_and_where(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(2)[1:])
    done = cli("run", "--output-format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    assert (done.code, run["trace"], run["exit_code"], run["limit"]) == (0, ".goldentrace/runs/a.jsonl", 0, None)
    assert run["events"] == 6


def test_limits_of_an_environment(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(5)[1:])
    config = tmp_path / "goldentrace.yaml"
    config.write_text(config.read_text() + "environments: {tight: {limits: {max_tool_calls: 2}}}\n")
    done = cli("run", "--environment", "tight", "--output-format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    assert run["limit"] == {"limit": "max_tool_calls", "value": 3, "max": 2}
    done = cli("check", "--environment", "tight")
    assert done.code == 2
    assert "GT503" in done.stdout


def test_an_unknown_environment_names_the_nearest(tmp_path: Path, cli: Cli) -> None:
    project(tmp_path, cli, a=searches(1)[1:])
    config = tmp_path / "goldentrace.yaml"
    config.write_text(config.read_text() + "environments: {staging: {}}\n")
    done = cli("run", "--environment", "stagin")
    assert (done.code, "did you mean staging?" in done.stderr) == (3, True)
