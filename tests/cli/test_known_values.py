"""Values of a golden are shown where this machine remembers them, whatever the change."""

from pathlib import Path

from tests.cli.traces import call, end, write
from tests.conftest import Cli

CAT = "sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'"


def test_the_arguments_of_a_removed_call_are_shown_as_values(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: {CAT}\n")
    write(tmp_path / "events.jsonl", [*call(1, "find", city="Lisbon"), *call(2, "pay", cents=4999), end()])
    assert cli("record", "orders").code == 0
    write(tmp_path / "events.jsonl", [*call(1, "find", city="Lisbon"), end()])
    done = cli("check")
    assert done.code == 2
    assert "GT103" in done.stdout
    assert "/cents  4999" in done.stdout
    for file in (tmp_path / ".goldentrace/values").iterdir():
        file.unlink()
    assert "/cents  int h:" in cli("check").stdout


def test_every_argument_of_a_changed_call_is_shown_as_a_value(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: {CAT}\n")
    write(tmp_path / "events.jsonl", [*call(1, "pay", cents=4999, note="first"), end()])
    assert cli("record", "orders").code == 0
    write(tmp_path / "events.jsonl", [*call(1, "pay", cents=1, note="other"), end()])
    told = cli("check").stdout
    assert '"first"' in told
    assert '"other"' in told
    assert "4999" in told
