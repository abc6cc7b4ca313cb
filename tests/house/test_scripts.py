"""The scripts under ci/ and .ci/ are sound before anything runs them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.house.tracked import ROOT, tracked

SCRIPTS = [
    path
    for path in (*tracked("ci/*"), *tracked(".ci/*"))
    if path.suffix == ".sh" or (ROOT / path).read_bytes().startswith(b"#!/usr/bin/env bash")
]


def test_there_are_scripts() -> None:
    assert {Path(".ci/run"), Path("ci/test"), Path("ci/demo"), Path("ci/setup")} <= set(SCRIPTS)


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_a_script_parses_and_stops_at_the_first_error(path: Path) -> None:
    checked = subprocess.run(["bash", "-n", ROOT / path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    # Without -e only where the script takes exit codes as answers itself.
    assert re.search(r"^set -e?uo pipefail\b", (ROOT / path).read_text(), re.MULTILINE), "an error would pass unseen"


def test_ci_run_sets_the_corpus_and_calls_ci_test(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    (checkout / "ci").mkdir()
    (checkout / ".ci/run").write_bytes((ROOT / ".ci/run").read_bytes())
    (checkout / "ci/test").write_text('echo "$PWD|$GOLDENTRACE_CORPUS|$#"; exit 7\n')
    done = subprocess.run(
        ["bash", checkout / ".ci/run"],
        cwd="/",
        env=os.environ | {"CI": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    folder, corpus, arguments = done.stdout.strip().split("|")
    assert done.returncode == 7
    assert Path(folder) == checkout
    assert Path(corpus).is_relative_to(tmp_path)
    assert Path(corpus).is_absolute()
    assert arguments == "0"
