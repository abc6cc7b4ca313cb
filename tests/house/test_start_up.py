"""What a command does not need is not imported: start-up time is a feature, and some libraries cost 100 ms and more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tracked import ROOT

HEAVY = {"asyncio", "deepdiff", "h11", "httpx", "hypothesis", "jinja2", "jsonschema", "numpy", "pytest", "rich", "yaml"}

PROBE = """
import json, sys
loaded_before = set(sys.modules)
into, *sys.argv[1:] = sys.argv[1:]
code = None
try:
    from goldentrace.cli.main import run
    code = run()
except SystemExit as stop:
    code = stop.code
with open(into, "w") as out:
    json.dump({"code": code, "modules": sorted(set(sys.modules) - loaded_before)}, out)
"""

pytestmark = pytest.mark.skipif(
    not (ROOT / "goldentrace/cli/main.py").is_file(), reason="there is no command line yet: goldentrace/cli/main.py"
)


def imported_by(folder: Path, *args: str) -> tuple[int, set[str]]:
    """Return the exit code of `goldentrace ARGS` and the top-level modules that it imported."""
    into = folder / "modules.json"
    subprocess.run([sys.executable, "-c", PROBE, into, *args], cwd=folder, check=True, capture_output=True, timeout=60)
    seen = json.loads(into.read_text())
    return seen["code"] or 0, {name.partition(".")[0] for name in seen["modules"]}


def write_trace(path: Path, calls: int) -> str:
    """Write a trace of as many calls, one a turn, and return its path."""
    events: list[dict[str, object]] = [{"type": "trace_start", "format": "goldentrace/1", "scenario_id": "start-up"}]
    for turn in range(1, calls + 1):
        call = {"turn": turn, "call_id": f"call-{turn}"}
        events.append({"type": "tool_call", **call, "tool_name": "search", "args": {"page": turn}})
        events.append({"type": "tool_result", **call, "status": "ok", "result": {"found": turn}})
    events.append({"type": "trace_end", "outcome": "success", "stop_reason": "final_answer"})
    stamped = [
        {"type": e.pop("type"), "seq": n, "ts": f"2026-03-01T00:00:{n:02d}.000000Z", **e} for n, e in enumerate(events)
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in stamped))
    return str(path)


def test_version_imports_nothing_heavy(tmp_path: Path) -> None:
    code, modules = imported_by(tmp_path, "--version")
    assert code == 0
    assert not modules & (HEAVY | {"jsonlines", "rapidfuzz"})


def test_a_diff_without_a_change_imports_nothing_heavy(tmp_path: Path) -> None:
    golden, candidate = write_trace(tmp_path / "a.jsonl", 3), write_trace(tmp_path / "b.jsonl", 3)
    code, modules = imported_by(tmp_path, "diff", golden, candidate)
    assert code == 0
    assert not modules & HEAVY


def test_a_diff_with_a_missing_call_imports_nothing_heavy(tmp_path: Path) -> None:
    golden, candidate = write_trace(tmp_path / "a.jsonl", 3), write_trace(tmp_path / "b.jsonl", 2)
    code, modules = imported_by(tmp_path, "diff", golden, candidate)
    assert code == 2
    assert not modules & HEAVY


def test_the_probe_sees_an_import(tmp_path: Path) -> None:
    into = tmp_path / "modules.json"
    probe = PROBE.replace("from goldentrace.cli.main import run", "import yaml; run = lambda: 0")
    subprocess.run([sys.executable, "-c", probe, into], check=True, timeout=60)
    assert "yaml" in json.loads(into.read_text())["modules"]
