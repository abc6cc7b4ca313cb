"""The benchmark runner: measures both sides of a row in one run, judges nothing, and fails when something did not run."""

import json
import subprocess
import sys
from pathlib import Path

from tests.house.tracked import ROOT

PLAY = """
import sys
sys.path.insert(0, {bench!r})
import runner
from pathlib import Path
sys.exit(runner.main(sys.argv[1:], Path({folder!r})))
"""

BENCH = '''"""Made up."""
import sys
from timing import Command, Row

def rows(folder):
    (folder / "input").write_text("x")
    python = lambda code: Command([sys.executable, "-c", code], codes=(3,))
    yield Row("function", lambda: sum(range(1000)), lambda: sum(range(1000)), amount=1000, unit="numbers", repeat=3)
    yield Row("command", python("raise SystemExit(3)"), targets={"seconds": 0.0, "peak_mb": 1e6}, repeat=2)
'''


def play(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the runner over the benchmarks of a folder."""
    script = PLAY.format(bench=str(ROOT / "ci/bench"), folder=str(folder))
    argv = [sys.executable, "-c", script, *arguments, "--results", str(folder / "results")]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_rows_are_measured_and_written(tmp_path: Path) -> None:
    (tmp_path / "bench_made_up.py").write_text(BENCH)
    done = play(tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(next((tmp_path / "results").iterdir()).read_text())
    function, command = report["rows"]
    assert (len(function["runs"]), len(function["reference_runs"])) == (3, 3)
    assert function["ratio"] == function["seconds"] / function["reference_s"]
    assert (len(command["runs"]), command["reference_runs"]) == (2, [])
    assert command["peak_mb"] > 1
    assert report["machine"]["versions"]["msgspec"]
    assert "seconds ≤ 0 MISSED, peak_mb ≤ 1e+06 met" in done.stdout


def test_repeat_is_overridden(tmp_path: Path) -> None:
    (tmp_path / "bench_made_up.py").write_text(BENCH)
    assert play(tmp_path, "made_up", "--repeat", "1").returncode == 0
    report = json.loads(next((tmp_path / "results").iterdir()).read_text())
    assert [len(row["runs"]) for row in report["rows"]] == [1, 1]


def test_a_command_that_fails_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "bench_broken.py").write_text(BENCH.replace("codes=(3,)", "codes=(0,)"))
    done = play(tmp_path)
    assert done.returncode == 1
    assert "broken did not run" in done.stderr
    assert "ended with 3" in done.stderr


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bench_made_up.py").write_text(BENCH)
    done = play(tmp_path, "mode_up")
    assert done.returncode == 1
    assert "there are: made_up" in done.stderr
