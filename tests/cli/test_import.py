"""A trace with a limit that was reached, whose value is a plain number, can be imported."""

from pathlib import Path

from tests.cli.traces import end, start, write
from tests.conftest import Cli


def test_a_limit_keeps_its_value(cli: Cli, tmp_path: Path) -> None:
    limit = {"type": "limit", "limit": "max_turns", "value": 5, "max": 5}
    write(tmp_path / "run.jsonl", [start(), limit, end()])
    done = cli("import", "run.jsonl", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert '"value":5' in done.stdout
