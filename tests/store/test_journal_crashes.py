"""What a crash leaves behind: every acknowledged event, and a file that says that it is not whole.

The processes here are started, killed and waited for by the test itself.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.trace import read_trace
from goldentrace.errors import InputError
from goldentrace.model.event import Message, ToolCall, TraceEnd, TraceStart
from goldentrace.store.claim import shard_paths
from goldentrace.store.journal import Journal

HEADER = TraceStart(format="goldentrace/1", trace_id="run-1")


def recorded(path: Path) -> bytes:
    """Return a small whole recording."""
    journal = Journal(path, HEADER)
    journal.append(Message(role="user", text="Zürich \N{SNOWMAN}"))
    for number in range(6):
        journal.append(ToolCall(call_id=f"c{number}", tool_name="search", args=encode_raw({"q": "x" * number * 7})))
    journal.end(TraceEnd(outcome="success", stop_reason="final_answer"))
    journal.close()
    return path.read_bytes()


def test_cut_at_any_byte_exactly_the_whole_events_come_back(tmp_path: Path) -> None:
    data = recorded(tmp_path / "run.jsonl")
    whole = read_trace(data, "whole").events
    line_ends = [index + 1 for index, byte in enumerate(data) if byte == 0x0A]
    assert len(data) > 1000
    for size in range(len(data) + 1):
        complete = sum(end <= size for end in line_ends)
        # A line that lacks only its line feed is whole; nothing of it was lost.
        complete += size + 1 in line_ends
        if complete == 0:
            with pytest.raises(InputError):
                read_trace(data[:size], "cut")
            continue
        trace = read_trace(data[:size], "cut")
        assert trace.events == whole[:complete], size
        assert (trace.incomplete is None) == (complete == len(whole)), size


def test_cut_at_any_byte_the_next_process_still_records_everything(tmp_path: Path) -> None:
    data = recorded(tmp_path / "whole.jsonl")
    path = tmp_path / "run.jsonl"
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        journal = Journal(path, HEADER, say=lambda _: None)
        journal.append(Message(role="user", text="after the crash"))
        journal.end(TraceEnd(outcome="success", stop_reason="final_answer"))
        journal.close()
        found = [event for event in read_trace(journal.path.read_bytes(), "after").events if isinstance(event, Message)]
        assert [event.text for event in found] == ["after the crash"], size
        for shard in shard_paths(path):
            shard.unlink()


def test_no_flip_of_a_bit_before_the_end_goes_unnoticed(tmp_path: Path) -> None:
    """The checksum stands in the last line, so that line alone is not covered by it."""
    data = recorded(tmp_path / "run.jsonl")
    for place in range(data.rfind(b'{"type":"trace_end"')):
        flipped = bytearray(data)
        flipped[place] ^= 1 << (place % 8)
        with pytest.raises(InputError):
            read_trace(bytes(flipped), "flipped")


# --- SIGKILL ---------------------------------------------------------------------------------------------------------

WRITER = """
import os, sys
from pathlib import Path
from goldentrace.model.event import Message, TraceStart
from goldentrace.store.journal import Journal

path, size, acknowledge = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
journal = Journal(path, TraceStart(format="goldentrace/1"))
text = "x" * size
number = 0
while True:
    number += 1
    if journal.append(Message(role="user", text=text, extra={"number": number})):
        os.write(acknowledge, b"%d\\n" % number)
"""
"""Acknowledges each event on a pipe once the journal has it."""


def kill_while_writing(path: Path, size: int, after_events: int) -> tuple[int, list[int], str | None]:
    """Return the last acknowledged number, the numbers in the file and why the file is not whole."""
    read_end, write_end = os.pipe()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path, str(size), str(write_end)], pass_fds=[write_end])
    os.close(write_end)
    acknowledged = b""
    try:
        while acknowledged.count(b"\n") < after_events:
            more = os.read(read_end, 65536)
            assert more, "the writer ended by itself"
            acknowledged += more
        time.sleep((after_events * 7919 % 97) / 97 * 0.002)  # at any point of a write, not right after one
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    while more := os.read(read_end, 65536):
        acknowledged += more
    os.close(read_end)
    trace = read_trace(path.read_bytes(), str(path))
    numbers = [event.extra["number"] for event in trace.events if isinstance(event, Message) and event.extra]
    return int(acknowledged.rpartition(b"\n")[0].rpartition(b"\n")[2]), numbers, trace.incomplete


def prove_that_a_kill_loses_nothing(folder: Path, size: int, kills: int) -> None:
    for kill in range(kills):
        path = folder / f"run-{kill}.jsonl"
        last, numbers, incomplete = kill_while_writing(path, size, after_events=1 + kill % 13)
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= last, f"acknowledged {last}, found {len(numbers)}"
        assert incomplete is not None
        path.unlink()


SIZES = [200, 70_000, 1_000_000]


@pytest.mark.parametrize("size", SIZES)
def test_a_kill_loses_no_acknowledged_event(size: int, tmp_path: Path) -> None:
    prove_that_a_kill_loses_nothing(tmp_path, size, kills=10)


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", SIZES)
def test_two_hundred_kills_lose_no_acknowledged_event(size: int, tmp_path: Path) -> None:
    prove_that_a_kill_loses_nothing(tmp_path, size, kills=200)


# --- no space --------------------------------------------------------------------------------------------------------


def test_a_file_at_its_size_limit_breaks_aloud_and_only_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The kernel writes what fits, without an error (46 of 318 bytes were measured); only the next write fails."""
    path = tmp_path / "run.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Journal(path, HEADER)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, before[1]))
    try:
        accepted = [journal.append(Message(role="user", text="x" * 200)) for _ in range(20)]
        journal.end(TraceEnd(outcome="success", stop_reason="final_answer"))
        journal.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    trace = read_trace(path.read_bytes(), str(path))
    kept = [event for event in trace.events if isinstance(event, Message)]
    assert 0 < len(kept) < 20
    assert accepted == [True] * len(kept) + [False] * (20 - len(kept))
    assert "torn" in (trace.incomplete or "")
    assert capfd.readouterr().err.count("recording stops") == 1


TMPFS_WRITER = """
import sys
from pathlib import Path
from goldentrace.model.event import Message, TraceStart
from goldentrace.store.journal import Journal

journal = Journal(Path(sys.argv[1]), TraceStart(format="goldentrace/1"))
count = 0
while journal.append(Message(role="user", text="x" * 1000)):
    count += 1
journal.close()
print(count)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small tmpfs")
def test_a_full_file_system_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        path = tmp_path / "run.jsonl"
        done = subprocess.run([sys.executable, "-c", TMPFS_WRITER, path], capture_output=True, text=True, check=True)
        trace = read_trace(path.read_bytes(), str(path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert sum(isinstance(event, Message) for event in trace.events) == int(done.stdout)
    assert int(done.stdout) > 10
    assert trace.incomplete is not None
    assert done.stderr.count("goldentrace: ") == 1
