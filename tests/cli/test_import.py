"""`goldentrace import`: what is written."""

from pathlib import Path

import pytest

from goldentrace.cli import importing
from goldentrace.sources.registry import read_traces
from tests.cli.traces import end, searches, start, write
from tests.conftest import Cli


def test_a_limit_keeps_its_value(cli: Cli, tmp_path: Path) -> None:
    limit = {"type": "limit", "limit": "max_turns", "value": 5, "max": 5}
    write(tmp_path / "run.jsonl", [start(), limit, end()])
    done = cli("import", "run.jsonl", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert '"value":5' in done.stdout


def test_a_long_trace_is_written_block_by_block(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run.jsonl", searches(20))
    done = cli("import", "run.jsonl", "-o", "out.jsonl", cwd=tmp_path)
    assert done.code == 0, done.stderr
    monkeypatch.setattr(importing, "BLOCK_BYTES", 500)
    (trace,) = read_traces(tmp_path / "run.jsonl")
    blocks = list(importing._blocks(trace))
    assert len(blocks) > 5
    assert max(len(block) for block in blocks) < 1000
    assert b"".join(blocks) == (tmp_path / "out.jsonl").read_bytes()
