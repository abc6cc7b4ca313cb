"""The goldens of this project: its example agent keeps to them, and two of them were there before it was."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.config import read_config
from tests.demo.conftest import ROOT, environment, goldentrace

GOLDENS = sorted((ROOT / "goldens").rglob("*.jsonl"))
BY_HAND = ("429-then-success", "lost-response")


def as_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}


def test_the_example_agent_keeps_to_the_goldens(checkout: Path, tmp_path: Path) -> None:
    done = goldentrace("check", "--output-format", "json", cwd=checkout, env=environment(tmp_path, CI="true"))
    report = json.loads(done.stdout)
    assert (done.code, report["verdict"]) == (0, "clean"), done.stdout
    assert len(report["traces"]) == len(GOLDENS)


def test_recording_again_leaves_every_golden_as_it_is_byte_for_byte(checkout: Path, tmp_path: Path) -> None:
    done = goldentrace("record", "refund", cwd=checkout, env=environment(tmp_path))
    assert done.code == 0, done.stderr
    assert as_bytes(checkout / "goldens") == as_bytes(ROOT / "goldens")


@pytest.mark.parametrize("name", BY_HAND)
def test_a_first_recording_says_what_was_written_by_hand(told: Any, name: str) -> None:
    """But for what only a clock knows, and the status of a good answer, which the tool server adds."""

    def lines(path: Path) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in path.read_bytes().splitlines()]
        for line in found:
            line.pop("gap_ms", None)
            if line.get("status") == "ok":
                line.pop("http_status", None)
        return found

    assert lines(told.folder / "goldens" / "refund" / f"{name}.jsonl") == lines(
        ROOT / "goldens/refund" / f"{name}.jsonl"
    )


def test_the_goldens_are_in_canonical_form(tmp_path: Path) -> None:
    files = [str(path) for path in GOLDENS]
    assert goldentrace("fmt", "--check", *files, cwd=tmp_path, env=environment(tmp_path)).code == 0


def test_the_scenarios_of_the_checkout_are_those_of_the_example() -> None:
    """Key by key; only the folder differs."""
    example = read_config(((ROOT / "goldentrace/demo/goldentrace.yaml").read_bytes(), "goldentrace.yaml")).config
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["goldentrace"]
    ours = read_config(None, ((ROOT / "pyproject.toml").read_bytes(), "pyproject.toml")).config
    assert ours.limits == example.limits
    for name, scenario in example.scenarios.items():
        mine = ours.scenarios[name]
        assert mine.command == f"{scenario.command}".replace("agent.py", "goldentrace/demo/agent.py")
        assert mine.faults == f"goldentrace/demo/{scenario.faults}"
        same = ("suite", "description", "seed", "env", "backoff", "limits", "budgets", "profile", "model")
        assert [getattr(mine, key) for key in same] == [getattr(scenario, key) for key in same]
    suites = {f"{item['suite']}/{name}.jsonl" for name, item in table["scenarios"].items()}
    assert suites == {str(path.relative_to(ROOT / "goldens")) for path in GOLDENS}, "no golden without a scenario"
