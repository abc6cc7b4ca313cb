"""Paths that lead to no ordinary file, as what is read and as what is written, for every command that takes a path.

The one message, nothing written, and nothing that waits for ever: a named pipe that nobody writes to is told so.
"""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_bad_input import check_message
from tests.cli.traces import dump, files_in, searches, write
from tests.conftest import Cli

GOOD = dump(searches(3))
PROGRAM = Path(sys.executable).with_name("goldentrace")

READ: dict[str, list[str]] = {
    "diff golden": ["diff", "BAD", "good.jsonl"],
    "diff candidate": ["diff", "good.jsonl", "BAD"],
    "record --from": ["record", "new", "--from", "BAD"],
    "show": ["show", "BAD"],
    "normalize": ["normalize", "BAD"],
    "import": ["import", "BAD", "-o", "out.jsonl"],
    "lint": ["lint", "BAD"],
    "lint --known": ["lint", "good.jsonl", "--known", "BAD"],
    "stats": ["stats", "BAD"],
    "cache simulate": ["cache", "simulate", "BAD"],
    "script from-trace": ["script", "from-trace", "BAD"],
    "fmt": ["fmt", "BAD"],
    "fmt --check": ["fmt", "--check", "BAD"],
    "eval annotations": ["eval", "redundancy", "--annotations", "BAD", "--traces", "good.jsonl"],
    "eval traces": ["eval", "redundancy", "--annotations", "labels.json", "--traces", "BAD"],
    "serve faults": ["serve", "faults", "BAD"],
    "config": ["config", "--config", "BAD"],
}
WRITTEN: dict[str, list[str]] = {
    "import": ["import", "good.jsonl", "-o", "BAD"],
    "normalize": ["normalize", "good.jsonl", "-o", "BAD"],
    "script from-trace": ["script", "from-trace", "good.jsonl", "-o", "BAD"],
    "lint --write-known": ["lint", "good.jsonl", "--write-known", "BAD"],
    "diff --report": ["diff", "good.jsonl", "good.jsonl", "--report", "json=BAD"],
    "lint --report": ["lint", "good.jsonl", "--report", "sarif=BAD"],
}
GOLDEN: dict[str, list[str]] = {
    "diff": ["diff", "good"],
    "record": ["record", "good", "--from", "good.jsonl"],
    "show": ["show", "good"],
    "fmt": ["fmt"],
    "fmt --check": ["fmt", "--check"],
    "accept": ["accept", "good"],
}


def make_pipe(place: Path) -> None:
    os.mkfifo(place)


def make_directory(place: Path) -> None:
    place.mkdir()


def make_nothing(place: Path) -> None:
    """It is not there."""


def make_loop(place: Path) -> None:
    place.symlink_to(place.name)


def make_dangling(place: Path) -> None:
    place.symlink_to("nowhere")


def make_socket(place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # a socket's name is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(here)


def make_device(place: Path) -> None:
    place.symlink_to("/dev/zero")


KINDS: dict[str, Callable[[Path], None]] = {
    "a pipe": make_pipe, "a directory": make_directory, "nothing": make_nothing, "a loop": make_loop,
    "a dangling link": make_dangling, "a socket": make_socket, "a device": make_device,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldentrace.sources.bytestream.PIPE_WAIT_S", 0.03)
    monkeypatch.setattr("goldentrace.store.atomic.PIPE_WAIT_S", 0.03)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "labels.json").write_text("[]")
    return tmp_path


def check_last_message(stderr: str, *parts: str) -> None:
    """The message at the end; `import` has said by then what it read."""
    check_message(stderr[stderr.index("goldentrace: ") :], *parts)


def put(words: list[str], place: str) -> list[str]:
    return [word.replace("BAD", place) for word in words]


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".goldentrace" not in path.parts)


@pytest.mark.parametrize("command", READ)
def test_what_is_no_file_is_not_read(folder: Path, here: Cli, command: str) -> None:
    for name, make in KINDS.items():
        place = folder / f"bad-{name.replace(' ', '-')}.jsonl"
        make(place)
        before = listing(folder)
        done = here(*put(READ[command], place.name))
        assert done.code == 3, (name, done.stdout, done.stderr)
        check_message(done.stderr)
        assert listing(folder) == before, name
    for place in ("x" * 5000, "good.jsonl/inside"):
        done = here(*put(READ[command], place))
        assert done.code == 3, place[:20]
        check_message(done.stderr)


@pytest.mark.parametrize("command", WRITTEN)
def test_what_takes_no_file_is_not_written(folder: Path, here: Cli, command: str) -> None:
    for name in ("a pipe", "a directory", "a loop", "a socket"):
        if (command, name) == ("import", "a directory"):
            continue  # a file in it, by its name
        place = folder / f"bad-{name.replace(' ', '-')}"
        KINDS[name](place)
        before = listing(folder)
        done = here(*put(WRITTEN[command], place.name))
        assert done.code == 3, (name, done.stdout, done.stderr)
        check_last_message(done.stderr)
        assert listing(folder) == before, name
    for place in ("x" * 300, "good.jsonl/inside", "nowhere/out", "/proc/nothing-can-be-made-here"):
        before = listing(folder)
        done = here(*put(WRITTEN[command], place))
        if place == "nowhere/out" and (folder / place).is_file():
            assert done.code == 0  # the folder of a report is made
            continue
        assert done.code == 3, place[:20]
        check_last_message(done.stderr)
        assert listing(folder) == before, place[:20]


@pytest.mark.parametrize("command", WRITTEN)
def test_a_full_disk_is_said(folder: Path, here: Cli, command: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no full device here")
    done = here(*put(WRITTEN[command], "/dev/full"))
    assert done.code == 3
    check_last_message(done.stderr, "space", "/dev/full")


def limited(args: list[str], folder: Path, size_bytes: int) -> "subprocess.CompletedProcess[str]":
    """A run that can write no file larger than that: what a full disk does in the middle of one."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))

    return subprocess.run(
        [PROGRAM, *args], cwd=folder, capture_output=True, text=True, timeout=30, check=False, preexec_fn=limit
    )


def test_a_golden_that_does_not_fit_leaves_the_old_one_and_nothing_else(folder: Path, here: Cli) -> None:
    assert here("record", "good", "--from", "good.jsonl").code == 0
    before = files_in(folder / "goldens")
    write(folder / "more.jsonl", searches(40))
    done = limited(["record", "good", "--from", "more.jsonl"], folder, 1500)
    assert done.returncode == 3, done.stdout
    check_message(done.stderr, "", "goldens/good.jsonl")
    assert files_in(folder / "goldens") == before


@pytest.fixture
def recorded(folder: Path, here: Cli) -> Path:
    assert here("record", "good", "--from", "good.jsonl").code == 0
    (folder / "goldentrace.yaml").write_text("scenarios: {good: {command: 'true'}}\n")
    return folder


@pytest.mark.parametrize("kind", ["a pipe", "a directory", "a loop", "a socket", "a device"])
def test_a_golden_that_is_no_file(recorded: Path, here: Cli, kind: str) -> None:
    golden = recorded / "goldens" / "good.jsonl"
    golden.unlink()
    KINDS[kind](golden)
    for command, words in GOLDEN.items():
        before = listing(recorded)
        done = here(*words)
        assert "internal error" not in done.stderr, command
        assert "Traceback" not in done.stderr
        assert done.code == 3 or (command, kind) in (("fmt", "a directory"), ("fmt --check", "a directory")), (
            command,
            done,
        )
        assert listing(recorded) == before, command
        assert golden.is_symlink() == (kind in ("a loop", "a device")), command


BROKEN = {
    "empty": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
    "a conflict": lambda data: data.replace(b"\n", b"\n<<<<<<< ours\n", 1),
    "another profile": lambda data: data.replace(b"default@1", b"shop@7"),
    "another profile hash": lambda data: data.replace(b'"profile_hash":"h:', b'"profile_hash":"h:0'),
    "binary": lambda _: bytes(range(256)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_pending_golden_is_not_accepted_over_one_that_was_broken_since(recorded: Path, here: Cli, how: str) -> None:
    run = recorded / ".goldentrace" / "runs" / "good.jsonl"
    write(run, searches(4))
    assert here("diff", "good").code == 2
    golden = recorded / "goldens" / "good.jsonl"
    broken = BROKEN[how](golden.read_bytes())
    assert broken != golden.read_bytes()
    golden.write_bytes(broken)
    for words in (["accept", "good"], ["accept", "--all"], ["diff", "good"]):
        done = here(*words)
        assert done.code == 3, (words, done.stdout)
        assert "internal error" not in done.stderr
        assert golden.read_bytes() == broken


def test_a_pipe_that_somebody_writes_to_is_read(folder: Path, here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldentrace.sources.bytestream.PIPE_WAIT_S", 5)
    os.mkfifo(folder / "pipe")
    writer = threading.Thread(target=(folder / "pipe").write_text, args=(GOOD,))
    writer.start()
    done = here("stats", "pipe")
    writer.join()
    assert done.code == 0, done.stderr


def test_a_pipe_that_somebody_reads_is_written(folder: Path, here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldentrace.store.atomic.PIPE_WAIT_S", 5)
    os.mkfifo(folder / "pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append((folder / "pipe").read_text()))
    reader.start()
    done = here("diff", "good.jsonl", "good.jsonl", "--report", "json=pipe")
    reader.join()
    assert done.code == 0
    assert got[0].startswith("{")


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outside")


def test_a_goldens_folder_that_leads_out_of_the_project_is_not_written(folder: Path, here: Cli, outside: Path) -> None:
    (folder / "goldens").symlink_to(outside)
    done = here("record", "new", "--from", "good.jsonl")
    assert done.code == 3
    check_message(done.stderr)
    assert list(outside.iterdir()) == []
    assert (folder / "goldens").is_symlink()


def test_a_suite_folder_that_leads_out_of_the_project_is_not_written(folder: Path, here: Cli, outside: Path) -> None:
    (folder / "goldens").mkdir()
    (folder / "goldens" / "pay").symlink_to(outside)
    (folder / "goldentrace.yaml").write_text("scenarios: {new: {suite: pay, command: 'true'}}\n")
    done = here("record", "new", "--from", "good.jsonl")
    assert done.code == 3
    check_message(done.stderr)
    assert list(outside.iterdir()) == []


def test_a_golden_that_is_a_link_out_of_the_project_stays_one_and_is_not_written(
    folder: Path, here: Cli, outside: Path
) -> None:
    (outside / "mine.jsonl").write_text("mine\n")
    (folder / "goldens").mkdir()
    (folder / "goldens" / "new.jsonl").symlink_to(outside / "mine.jsonl")
    done = here("record", "new", "--from", "good.jsonl")
    assert done.code == 3, done.stdout
    assert (outside / "mine.jsonl").read_text() == "mine\n"
    assert (folder / "goldens" / "new.jsonl").is_symlink()


def test_a_golden_that_is_a_link_within_the_project_stays_one(folder: Path, here: Cli) -> None:
    assert here("record", "new", "--from", "good.jsonl").code == 0
    golden = folder / "goldens" / "new.jsonl"
    golden.rename(folder / "goldens" / "real.jsonl")
    golden.symlink_to("real.jsonl")
    write(folder / "more.jsonl", searches(4))
    assert here("record", "new", "--from", "more.jsonl").code == 0
    assert golden.is_symlink()
    assert (folder / "goldens" / "real.jsonl").read_text().count("tool_call") == 4


@pytest.mark.parametrize("value", ["/tmp/elsewhere", "../elsewhere", "~/elsewhere"])
def test_a_goldens_folder_elsewhere_is_refused_wherever_it_is_named(folder: Path, here: Cli, value: str) -> None:
    (folder / "goldentrace.yaml").write_text(f"goldens: {value}\n")
    done = here("record", "new", "--from", "good.jsonl")
    assert done.code == 3
    check_message(done.stderr, "inside the project", "goldentrace.yaml:1 $.goldens")
    (folder / "goldentrace.yaml").unlink()
    done = here("record", "new", "--from", "good.jsonl", "--goldens", value)
    assert done.code == 3
    check_message(done.stderr)


def test_a_run_that_is_killed_while_it_writes_leaves_the_old_golden_or_the_new_one(folder: Path, here: Cli) -> None:
    write(folder / "old.jsonl", searches(300))
    write(folder / "new.jsonl", searches(301))
    assert here("record", "x", "--from", "new.jsonl").code == 0
    golden = folder / "goldens" / "x.jsonl"
    new = golden.read_bytes()
    assert here("record", "x", "--from", "old.jsonl").code == 0
    old = golden.read_bytes()
    seen = set()
    for wait_s in (0.05, 0.1, 0.13, 0.16):
        golden.write_bytes(old)
        started = subprocess.Popen(
            [PROGRAM, "record", "x", "--from", "new.jsonl"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            started.wait(wait_s)
        except subprocess.TimeoutExpired:
            started.kill()
        started.wait()
        seen.add(golden.read_bytes())
    assert seen <= {old, new}
    assert here("diff", "goldens/x.jsonl", "new.jsonl").code in (0, 2)  # and no lock is left that holds the next one
    assert here("record", "x", "--from", "new.jsonl").code == 0


@pytest.mark.parametrize("put_there", ["os.mkfifo(t)", "os.mkdir(t)", "os.symlink(t, t)", "os.symlink('/dev/zero', t)"])
def test_an_agent_that_puts_something_else_in_the_place_of_its_trace(tmp_path: Path, here: Cli, put_there: str) -> None:
    code = f"import os; t = os.environ['GOLDENTRACE_TRACE']; os.remove(t); {put_there}"
    command = json.dumps([sys.executable, "-c", code])
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios: {{a: {{command: {command}}}}}\n")
    for verb in ("run", "record", "check"):
        done = here(verb, "a")
        assert done.code == 3, (verb, done.stdout)
        assert "internal error" not in done.stdout + done.stderr
        assert ".goldentrace/runs/a.jsonl" in done.stdout + done.stderr
        assert not (tmp_path / "goldens").exists()
        shutil.rmtree(tmp_path / ".goldentrace")
