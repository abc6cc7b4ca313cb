"""Thirty failures (failures.yaml): for each a careful agent passes, and a careless one is caught by the code written there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from goldentrace.model.profile import Profile
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.replay.simulator import simulate
from goldentrace.rules.registry import run_rules
from tests.scenarios.conftest import BROKEN, SUITE, Checked, check, full_name, goldentrace

for library in ("openai", "anthropic", "mcp"):
    pytest.importorskip(library, reason=f"{library} is not installed")

ROWS: dict[int, dict[str, Any]] = yaml.safe_load((SUITE / "failures.yaml").read_text("utf-8"))
SHOWN = [(row, name, shown) for row, entry in ROWS.items() for name, shown in entry["shown"].items()]
SCENARIO = [one for one in SHOWN if "scenario" in one[2]]
SIMULATED = [one for one in SHOWN if "simulated" in one[2]]
STAGED = {f"{row}-{name}": shown for row, name, shown in SHOWN if "wrong" in shown}


def ids(found: list[tuple[int, str, dict[str, Any]]]) -> list[str]:
    return [f"{row}-{name}" for row, name, _ in found]


# -- the table ---------------------------------------------------------------------------------------------------------


def test_no_row_is_missing() -> None:
    assert list(ROWS) == list(range(1, 31))
    assert all(entry["failure"] and entry["expected"] and entry["shown"] for entry in ROWS.values())


def test_every_row_is_shown_in_a_way_that_is_run() -> None:
    assert len(SCENARIO) + len(SIMULATED) + len(STAGED) == len(SHOWN)
    assert all(shown["code"].startswith("GT") for _, _, shown in SHOWN)
    assert all(shown["variant"] in BROKEN[shown["scenario"]] for _, _, shown in SCENARIO)


# -- agents of the suite -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "name", "shown"), SCENARIO, ids=ids(SCENARIO))
def test_an_agent_of_the_suite_shows_it(
    correct: Checked, broken: Checked, row: int, name: str, shown: dict[str, Any]
) -> None:
    assert correct.scenarios[shown["scenario"]].status == "clean"
    assert shown["code"] not in correct.scenarios[shown["scenario"]].codes
    assert shown["code"] in broken.scenarios[full_name(shown["scenario"], shown["variant"])].codes


# -- bugs of the tool loop ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "name", "shown"), SIMULATED, ids=ids(SIMULATED))
def test_a_simulated_loop_shows_it(row: int, name: str, shown: dict[str, Any]) -> None:
    codes = []
    for is_sound in (True, False):
        trace, profile = simulate(shown["simulated"], is_sound=is_sound), Profile(name="simulated")
        normal = normalize(trace, profile, "h:simulated")
        place_in_time(normal, trace)
        found = run_rules(trace, normal, profile)
        codes.append({finding.code for finding in found.findings})
    assert shown["code"] not in codes[0]
    assert shown["code"] in codes[1]


# -- services that fail, and a client that is more or less careful -----------------------------------------------------


def make_table(folder: Path) -> Path:
    """Return a project with one scenario for each staged row, whose agent is the careful one."""
    (folder / "faults").mkdir(parents=True)
    shutil.copytree(SUITE / "table", folder / "table", ignore=shutil.ignore_patterns("__pycache__"))
    scenarios: dict[str, Any] = {}
    for name, shown in STAGED.items():
        plan = {"plan": name, "tools": shown.get("tools") or {"act": shown["act"]}}
        if "connect" in shown:
            plan["connect"] = shown["connect"]
        (folder / "faults" / f"{name}.yaml").write_text(yaml.safe_dump(plan), "utf-8")
        command = command_of(shown, shown.get("agent", {}))
        scenarios[name] = {"command": command, "faults": f"faults/{name}.yaml", "seed": 7}
    write_config(folder, scenarios)
    return folder


def command_of(shown: dict[str, Any], behaviour: dict[str, Any]) -> list[str]:
    program = f"table/{shown.get('program', 'client.py')}"
    shim = ["-m", "goldentrace.faults.shim"] if "connect" in shown else []
    return ["python", *shim, program, json.dumps(behaviour)]


def write_config(folder: Path, scenarios: dict[str, Any]) -> None:
    config = {"jobs": 4, "limits": {"max_wall_ms": 40000}, "scenarios": scenarios}
    (folder / "goldentrace.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checked, Checked]:
    """Record the careful client, check it again, then check the careless one against the same goldens."""
    folder = make_table(tmp_path_factory.mktemp("table") / "project")
    config = yaml.safe_load((folder / "goldentrace.yaml").read_text("utf-8"))
    code, report = goldentrace(folder, "record", "*", "--write-in-ci")
    assert code == 0, report
    careful = check(folder)
    for name, shown in STAGED.items():
        config["scenarios"][name]["command"] = command_of(shown, shown.get("agent", {}) | shown["wrong"])
    write_config(folder, config["scenarios"])
    return careful, check(folder)


@pytest.mark.parametrize("name", STAGED)
def test_a_client_shows_it(staged: tuple[Checked, Checked], name: str) -> None:
    careful, careless = staged[0].scenarios[name], staged[1].scenarios[name]
    assert careful.status == "clean", careful.report["findings"]
    assert STAGED[name]["code"] not in careful.codes
    assert STAGED[name]["code"] in careless.codes
    assert careless.status == "changed"
