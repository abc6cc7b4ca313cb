"""A file is the old one or the new one, whatever happens in between; two programs never hold one lock."""

import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from goldentrace.errors import InfrastructureError
from goldentrace.store.atomic import hold_lock, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "golden.jsonl", b"one\n")
    finally:
        os.umask(before)
    assert (tmp_path / "golden.jsonl").read_bytes() == b"one\n"
    assert stat.S_IMODE((tmp_path / "golden.jsonl").stat().st_mode) == 0o640
    assert names(tmp_path) == ["golden.jsonl"]


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_bytes(b"old\n")
    path.chmod(0o604)
    write_atomically(path, b"new\n")
    assert path.read_bytes() == b"new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "golden.jsonl", tmp_path / "link.jsonl"
    target.write_bytes(b"old\n")
    link.symlink_to(target)
    write_atomically(link, b"new\n")
    assert link.is_symlink()
    assert target.read_bytes() == b"new\n"


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_bytes(b"old\n")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(InfrastructureError, match="cannot write the file: Input/output error") as caught:
        write_atomically(path, b"new\n")
    assert caught.value.where is not None
    assert caught.value.where.path == str(path)
    assert "the old content is untouched" in caught.value.next_step
    assert path.read_bytes() == b"old\n"
    assert names(tmp_path) == ["golden.jsonl"]


def test_an_interrupt_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_bytes(b"old\n")
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new\n")
    assert path.read_bytes() == b"old\n"
    assert names(tmp_path) == ["golden.jsonl"]


def test_no_space_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_bytes(b"old\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(InfrastructureError, match="cannot write the file"):
            write_atomically(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old\n"
    assert names(tmp_path) == ["golden.jsonl"]


def test_a_folder_that_is_not_there_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="No such file or directory"):
        write_atomically(tmp_path / "missing" / "golden.jsonl", b"new\n")


def test_a_reader_sees_the_old_or_the_new_content_only(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    contents = {bytes([letter]) * 200_000 for letter in b"ab"}
    path.write_bytes(b"a" * 200_000)
    is_done = threading.Event()

    def write() -> None:
        for round_number in range(60):
            write_atomically(path, b"ab"[round_number % 2 :][:1] * 200_000)
        is_done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not is_done.is_set():
        seen.add(path.read_bytes())
    writer.join()
    assert seen <= contents


def test_the_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    lock = tmp_path / "record.lock"
    with hold_lock(lock, purpose="goldens are being recorded"):
        with pytest.raises(InfrastructureError) as caught, hold_lock(lock, purpose="another"):
            pytest.fail("two held one lock")
        assert caught.value.what == f"process {os.getpid()} holds the lock: goldens are being recorded"
        assert caught.value.where is not None
        assert caught.value.where.path == str(lock)
        assert f"wait until process {os.getpid()} is done" in caught.value.next_step
    assert names(tmp_path) == []
    with hold_lock(lock, purpose="another"):
        pass


def test_the_lock_is_given_up_when_the_block_fails(tmp_path: Path) -> None:
    lock = tmp_path / "record.lock"
    with pytest.raises(RuntimeError), hold_lock(lock, purpose="one"):
        raise RuntimeError
    with hold_lock(lock, purpose="two"):
        assert json.loads(lock.read_bytes())["does"] == "two"


HOLDER = """
import sys, time
from pathlib import Path
from goldentrace.store.atomic import hold_lock
with hold_lock(Path(sys.argv[1]), purpose="recording"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    lock = tmp_path / "record.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        who = f"process {holder.pid} holds the lock: recording"
        with pytest.raises(InfrastructureError, match=who), hold_lock(lock, purpose="mine"):
            pytest.fail("two held one lock")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert lock.exists()
    with hold_lock(lock, purpose="mine"):
        assert json.loads(lock.read_bytes())["pid"] == os.getpid()


@pytest.mark.parametrize("content", [b"", b"junk", b'{"pid": "x"}', b"[1]", b'{"pid": 1, "host": "a\\u001b[31m"}'])
def test_what_stands_in_a_lock_file_does_not_matter(content: bytes, tmp_path: Path) -> None:
    lock = tmp_path / "record.lock"
    lock.write_bytes(content)
    with hold_lock(lock, purpose="mine"):
        assert json.loads(lock.read_bytes())["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("owner", "is_free"),
    [
        ({"pid": 2**22 + 1, "host": socket.gethostname()}, True),
        ({"pid": os.getppid(), "host": socket.gethostname()}, False),
        ({"pid": 2**22 + 1, "host": "elsewhere.example"}, False),
        ({}, True),
    ],
    ids=["dead", "alive", "other host", "nobody"],
)
def test_without_kernel_locks_the_process_id_decides(
    owner: dict[str, object], is_free: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    lock = tmp_path / "record.lock"
    lock.write_text(json.dumps(owner))
    if is_free:
        with hold_lock(lock, purpose="mine"):
            pass
    else:
        with pytest.raises(InfrastructureError, match="holds the lock"), hold_lock(lock, purpose="mine"):
            pytest.fail("two held one lock")


def test_one_at_a_time(tmp_path: Path) -> None:
    lock, inside, most = tmp_path / "record.lock", [0], [0]

    def work() -> None:
        done = 0
        while done < 30:
            try:
                with hold_lock(lock, purpose="work"):
                    inside[0] += 1
                    time.sleep(0.0005)
                    most[0] = max(most[0], inside[0])
                    inside[0] -= 1
                    done += 1
            except InfrastructureError:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_lock_in_no_folder_is_an_error(tmp_path: Path) -> None:
    lock = tmp_path / "missing" / "lock"
    with pytest.raises(InfrastructureError, match="cannot make the lock file"), hold_lock(lock, purpose="mine"):
        pytest.fail("there is no such folder")


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """What is no file is never replaced: a rename over a device would take it from the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, b"some lines\n")
        assert os.read(reader, 100) == b"some lines\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
