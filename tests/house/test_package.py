"""What a user installs: the package with its profiles, its licence and its types, and nothing else."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import goldentrace
from tests.house.tracked import ROOT, tracked


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel, built from the files that git knows."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_the_wheel_holds_every_module_and_every_profile(wheel: zipfile.ZipFile) -> None:
    profiles = {f"goldentrace/{path}" for path in tracked("normalizers/*.yaml")}
    modules = {str(path) for path in tracked("goldentrace/*")}
    assert profiles | modules <= set(wheel.namelist())


def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    roots = {Path(name).parts[0] for name in wheel.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"goldentrace"}


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    info = f"goldentrace-{goldentrace.__version__}.dist-info"
    metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "goldentrace = goldentrace.cli.main:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_the_package_is_typed(wheel: zipfile.ZipFile) -> None:
    assert "goldentrace/py.typed" in wheel.namelist()


def test_every_optional_part_that_a_message_or_a_page_names_exists() -> None:
    named = {
        extra
        for path in (*tracked("goldentrace/*.py"), *tracked("*.md"))
        for group in re.findall(r"\bgoldentrace\[([a-z, ]+)\]", (ROOT / path).read_text())
        for extra in re.split(r" *, *", group)
    }
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert named
    assert named <= set(declared)
