"""The suite as its tests use it: a copy with other agents, checked by the installed command line."""

import difflib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import KEPT_VARIABLES, text

SUITE = Path(__file__).parent
BIN = Path(sys.executable).parent
PARTS = ("agents", "faults", "scripts", "goldens")
CHECK_S = 100  # of one command; the whole suite takes a fifth of that

SCENARIOS: dict[str, Any] = yaml.safe_load((SUITE / "goldentrace.yaml").read_text("utf-8"))["scenarios"]
BROKEN: dict[str, dict[str, Any]] = yaml.safe_load((SUITE / "broken.yaml").read_text("utf-8"))
VARIANTS = [(scenario, name) for scenario, variants in BROKEN.items() for name in variants]


def agent_of(scenario: str) -> Path:
    """Return the program of a scenario's agent, relative to the suite."""
    return Path(SCENARIOS[scenario]["command"].split()[1])


def source_of(scenario: str, variant: str | None = None) -> str:
    """Return the text of an agent. variant: of broken.yaml. Each replaced text must be there exactly once."""
    source = (SUITE / agent_of(scenario)).read_text("utf-8")
    for old, new in BROKEN[scenario][variant]["change"] if variant is not None else ():
        assert source.count(old) == 1, f"{scenario}, {variant}: {source.count(old)} times {old!r}"
        source = source.replace(old, new)
    return source


def changed_lines(scenario: str, variant: str) -> list[str]:
    """Return the lines that a broken agent lacks or adds."""
    lines = difflib.ndiff(source_of(scenario).splitlines(), source_of(scenario, variant).splitlines())
    return [line for line in lines if line[:1] in "+-"]


@dataclass(frozen=True)
class Judged:
    """What `check` said of one scenario. first: the code that its report begins with, None where nothing changed; codes:
    all of them, in the order of the report."""

    status: str
    first: str | None
    codes: tuple[str, ...]
    report: dict[str, Any]


@dataclass(frozen=True)
class Checked:
    """One `goldentrace check`: its exit code, and what it said of each scenario."""

    code: int
    scenarios: dict[str, Judged]


def make_project(folder: Path, *, is_virtual: bool = False) -> Path:
    """Return a folder with all agents: each scenario, and beside it its broken variants, `SCENARIO--VARIANT`, with the same
    services and a copy of its golden. is_virtual: the agents wait on the virtual clock."""
    folder.mkdir(parents=True)
    for part in PARTS:
        shutil.copytree(SUITE / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SUITE / "virtual.py", folder)
    config = yaml.safe_load((SUITE / "goldentrace.yaml").read_text("utf-8"))
    for scenario, variant in VARIANTS:
        name = full_name(scenario, variant)
        (folder / "agents" / f"{name}.py").write_text(source_of(scenario, variant), "utf-8")
        shutil.copy(folder / "goldens" / f"{scenario}.jsonl", folder / "goldens" / f"{name}.jsonl")
        config["scenarios"][name] = SCENARIOS[scenario] | {"command": f"python agents/{name}.py"}
    if is_virtual:
        for one in config["scenarios"].values():
            one["command"] = one["command"].replace("python ", "python virtual.py ")
    (folder / "goldentrace.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    return folder


def full_name(scenario: str, variant: str) -> str:
    """Return the name of a broken variant's scenario."""
    return f"{scenario}--{variant}"


def goldentrace(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run a command of the installed goldentrace as CI does; return its exit code and its report."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        [BIN / "goldentrace", *words, "--output-format", "json"], check=False, cwd=folder,
        env=kept | {"HOME": str(folder), "PATH": path, "CI": "true"}, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=CHECK_S,
    )  # fmt: skip
    assert done.stdout, text(done.stderr)
    return done.returncode, json.loads(done.stdout)


def check(folder: Path, *names: str) -> Checked:
    """Run `goldentrace check` over the scenarios of these names, all without any."""
    code, report = goldentrace(folder, "check", *names)
    return Checked(code, {one["name"]: _judged(one) for one in report["traces"]})


def _judged(report: dict[str, Any]) -> Judged:
    rules = {one["fingerprint"]: one["rule"] for one in report["findings"]}
    first = report["first_divergence"]
    return Judged(report["status"], None if first is None else rules[first], tuple(rules.values()), report)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the suite with its broken variants."""
    return make_project(tmp_path_factory.mktemp("scenarios") / "suite")


@pytest.fixture(scope="session")
def correct(project: Path) -> Checked:
    """What `check` says of the correct agents."""
    return check(project, *SCENARIOS)


@pytest.fixture(scope="session")
def broken(project: Path) -> Checked:
    """What `check` says of the broken ones."""
    return check(project, "*--*")
