"""Start and end of the server: quick, on a free port, and gone with whoever started it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from goldentrace.codec.trace import read_trace
from goldentrace.errors import ConfigError, InfrastructureError
from goldentrace.faults import FaultsHandle, start_faults
from goldentrace.model.event import Effect
from tests.faults.serving import Client, connect, served

PLAN = "plan: p\ntools: {a: {}, hangs: {steps: [{fault: hang}], after_steps: repeat}}\n"
PATHS = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
Serve = Callable[..., FaultsHandle]


def port_of(server: FaultsHandle) -> int:
    return int(server.url.rpartition(":")[2])


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def is_running(pid: int) -> bool:
    """Is there such a process, other than as one that nobody has asked about yet?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_so: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_so()


def test_it_listens_on_127_0_0_1_alone(tmp_path: Path) -> None:
    with served(tmp_path, PLAN) as server:
        for place in (server.url, server.admin_url):
            port = int(place.rpartition(":")[2])
            rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            bound = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
            assert bound == {f"0100007F:{port:04X}"}


def test_what_lies_in_the_working_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h11.py").write_text("raise SystemExit('not the library')\n")
    monkeypatch.chdir(tmp_path)
    with served(tmp_path, PLAN) as server:
        assert server.is_alive()


def test_a_port_in_use_is_an_error_of_the_infrastructure(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InfrastructureError) as caught, served(tmp_path, PLAN, port=port):
            pass
    assert f"port {port} is in use" in caught.value.what
    assert "port 0" in caught.value.next_step


def test_a_number_that_is_no_port_is_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught, served(tmp_path, PLAN, port=70000):
        pass
    assert "70000 is no port" in caught.value.what


def test_a_wrong_plan_is_raised_where_the_server_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught, served(tmp_path, "plan: p\ntools: {a: {stesp: []}}\n"):
        pass
    error = caught.value
    assert error.where is not None
    assert (error.what, error.where.line, error.next_step) == ("unknown key 'stesp'", 2, "did you mean steps?")


def test_a_journal_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as caught, served(tmp_path, PLAN, journal_path=tmp_path):
        pass
    assert "journal cannot be written" in caught.value.what


@pytest.mark.parametrize("run_id", ["", "../x", "a b"])
def test_a_run_id_that_is_no_file_name_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ConfigError), served(tmp_path, PLAN, run_id=run_id):
        pass


def test_stop_ends_the_process_closes_hung_sockets_and_keeps_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN + "expect: {effects: {charge: 1}}\n")
    server = start_faults(path, journal_path=tmp_path / "j.jsonl")
    client = Client(server)
    client.call("a")
    with connect(server) as hung:
        hung.sendall(b"POST /tools/hangs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}")
        time.sleep(0.1)
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < 3
        assert hung.recv(10) == b""
    client.close()
    assert not is_running(server.pid)
    assert not is_listening(port_of(server))
    assert [item.name for item in server.verify().differences] == ["charge"]
    assert server.failures() == []
    trace = read_trace((tmp_path / "j.jsonl").read_bytes(), "j")
    assert trace.incomplete is None
    assert [result.status for result in trace.results()] == ["ok", "unfinished"]
    server.stop()


def test_after_the_end_a_question_is_an_error_not_a_hang(tmp_path: Path) -> None:
    with served(tmp_path, PLAN) as server:
        pass
    with pytest.raises(InfrastructureError):
        server.effects()
    assert server.events() == []


def test_a_crash_is_a_failure_of_the_infrastructure(tmp_path: Path) -> None:
    plan = "plan: p\ntools: {a: {effect_record: {charge: 1}}}\n"
    with served(tmp_path, plan, journal_path=tmp_path / "j.jsonl") as server:
        client = Client(server)
        client.call("a")
        client.close()
        os.kill(server.pid, signal.SIGKILL)
        assert wait_until(lambda: not server.is_alive())
        with pytest.raises(InfrastructureError) as caught:
            server.check()
        assert "crashed" in caught.value.what
        with pytest.raises(InfrastructureError):
            server.verify()
        assert [event.name for event in server.events() if isinstance(event, Effect)] == ["charge"], (
            "an effect is written down before its answer leaves"
        )
    assert server.failures()[0].what


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_goes_when_its_parent_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    script = (
        "import sys, time; from pathlib import Path; from goldentrace.faults import start_faults\n"
        "server = start_faults(Path(sys.argv[1]))\n"
        "print(server.pid, server.url, server.admin_url, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "plan.yaml")], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **PATHS},
    )  # fmt: skip
    assert parent.stdout is not None
    pid, url, admin_url = parent.stdout.readline().split()
    ports = [int(place.rpartition(":")[2]) for place in (url, admin_url)]
    with socket.create_connection(("127.0.0.1", ports[0])) as hung:
        hung.sendall(b"POST /tools/hangs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}")
        time.sleep(0.1)
        assert is_running(int(pid))
        parent.send_signal(number)
        parent.wait()
        parent.stdout.close()
        assert wait_until(lambda: not is_running(int(pid)), 5)
        assert not any(is_listening(port) for port in ports)
        hung.settimeout(5)
        assert hung.recv(10) == b""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from goldentrace.cli.main import run; sys.exit(run(sys.argv[1:]))",
            "serve", "faults", *arguments]  # fmt: skip


def test_a_server_that_was_started_by_command_goes_with_its_parent_too(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    script = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n"
        "print(server.pid, server.stdout.readline(), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *command(str(tmp_path / "plan.yaml"), "--json")], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **PATHS},
    )  # fmt: skip
    assert parent.stdout is not None
    pid, _, line = parent.stdout.readline().partition(" ")
    port = int(json.loads(line)["url"].rpartition(":")[2])
    assert is_listening(port)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not is_running(int(pid)), 5)
    assert not is_listening(port)


@pytest.mark.parametrize(
    ("calls", "code", "said"),
    [
        (["charge"], 0, ""),
        ([], 2, "effect charge: expected 1, got 0"),
        (["charge", "charge"], 2, "effect charge: expected 1, got 2"),
        (["charge", "gone"], 3, "POST /tools/gone matches no tool of the plan"),
    ],
)
def test_the_command_ends_with_the_verdict(tmp_path: Path, calls: list[str], code: int, said: str) -> None:
    (tmp_path / "p.yaml").write_text(
        "plan: p\ntools: {charge: {effect_record: {charge: 1}}}\nexpect: {effects: {charge: 1}}\n"
    )
    server = subprocess.Popen(
        command(str(tmp_path / "p.yaml"), "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **PATHS},
    )  # fmt: skip
    assert server.stdout is not None
    place = json.loads(server.stdout.readline())["url"]
    for tool in calls:
        with socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2]))) as sock:
            sock.sendall(b"POST /tools/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}" % tool.encode())
            sock.recv(1000)
    server.send_signal(signal.SIGINT)
    _, stderr = server.communicate(timeout=20)
    assert server.returncode == code
    assert said in stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.yaml"], "the fault plan cannot be read"),
        (["p.yaml", "--host", "0.0.0.0"], "does not listen on 0.0.0.0"),
        (["p.yaml", "--port", "x"], "--port"),
        (["p.yaml", "--stdio"], "needs HTTP"),
    ],
)
def test_a_wrong_command_line_is_3(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "p.yaml").write_text("plan: p\ntools: {a: {steps: [{fault: reset}]}}\n")
    done = subprocess.run(
        command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False,
        env={**os.environ, **PATHS}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 3
    assert said in done.stderr
    assert "Traceback" not in done.stderr
