"""A run that came to nothing says why: the end of its log, and the limit that ended it."""

from pathlib import Path

import pytest

from tests.conftest import Cli

SECRET = "sk-" + "a1B2" * 10
CRASH = f"for n in 1 2 3 4 5 6 7 8 9 10 11; do echo line $n; done; printf 'key {SECRET} \\033[31mred\\n'; exit 3"


def configure(folder: Path, agent: str, more: str = "") -> None:
    (folder / "agent.sh").write_text(agent + "\n")
    (folder / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: sh agent.sh\n{more}")


@pytest.mark.parametrize("command", ["run", "record", "check"])
def test_the_end_of_the_log_is_shown(tmp_path: Path, cli: Cli, command: str) -> None:
    configure(tmp_path, CRASH)
    done = cli(command, "orders")
    assert done.code == 3
    told = done.stdout + done.stderr
    assert "exit code 3 and recorded nothing" in told
    assert "| line 3\n" in told
    assert "| line 11\n" in told
    assert "line 2\n" not in told
    assert "orders.log" in told
    assert SECRET not in told
    assert "<secret:1>" in told
    assert "\x1b" not in told


def test_a_crash_after_some_events_shows_the_log_too(tmp_path: Path, cli: Cli) -> None:
    event = '{"type":"tool_call","call_id":"c","tool_name":"t","args":{}}'
    configure(tmp_path, f"echo '{event}' >> $GOLDENTRACE_TRACE; echo boom; kill -9 $$")
    done = cli("run", "orders")
    assert done.code == 0
    assert "SIGKILL" in done.stdout
    assert "| boom" in done.stderr
    assert "orders.log" in done.stderr


def test_the_limit_that_ended_a_silent_run_is_named(tmp_path: Path, cli: Cli) -> None:
    configure(tmp_path, "echo waiting; sleep 60", "limits: {max_wall_ms: 400}\n")
    done = cli("check", "orders")
    assert done.code == 3
    assert "stopped at max_wall_ms (400) and recorded nothing" in " ".join(done.stdout.split())
    assert "| waiting" in done.stdout


def test_a_run_that_went_well_shows_no_log(tmp_path: Path, cli: Cli) -> None:
    event = '{"type":"tool_call","call_id":"c","tool_name":"t","args":{}}'
    configure(tmp_path, f"echo fine; echo '{event}' >> $GOLDENTRACE_TRACE")
    done = cli("run", "orders")
    assert (done.code, "fine" in done.stderr) == (0, False)


def test_what_the_recorder_could_not_write_is_said_by_every_command(tmp_path: Path, cli: Cli) -> None:
    agent = """
from goldentrace import Recorder
with Recorder() as rec:
    rec.wrap_tools({"look": lambda x: x})["look"](1)
    rec.end("failed", "error")
"""
    (tmp_path / "agent.py").write_text(agent)
    (tmp_path / "goldentrace.yaml").write_text("scenarios:\n  orders:\n    command: python agent.py\n")
    recorded = cli("record", "orders")
    (tmp_path / "agent.py").write_text(agent.replace('"error"', '"tool_error"'))
    assert cli("record", "orders").code == 0
    (tmp_path / "agent.py").write_text(agent)
    for done in (recorded, cli("check"), cli("diff", "orders"), cli("show", "orders")):
        told = " ".join((done.stdout + done.stderr).split())
        assert "an event could not be recorded: stop_reason 'error' is none of final_answer, user_cancelled," in told
        assert "cut off" not in told
    assert recorded.code == cli("check").code == 3
