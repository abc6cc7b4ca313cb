"""The journal appends whole, numbered, ordered lines; who writes which file; what a reader sees when a write fails."""

import asyncio
import errno
import hashlib
import json
import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.shards import merge
from goldentrace.codec.trace import read_trace
from goldentrace.model.event import Message, ToolCall, ToolResult, TraceEnd, TraceStart
from goldentrace.model.trace import Trace
from goldentrace.store.claim import shard_paths
from goldentrace.store.clock import Moment, format_time
from goldentrace.store.journal import Journal

HEADER = TraceStart(format="goldentrace/1", trace_id="run-1")
END = TraceEnd(outcome="success", stop_reason="final_answer")


def message(text: str = "hello") -> Message:
    return Message(role="user", text=text)


def read(path: Path) -> Trace:
    return read_trace(path.read_bytes(), str(path))


def texts(path: Path) -> list[str | None]:
    return [event.text for event in read(path).events if isinstance(event, Message)]


class Sayings(list[str]):
    """What a journal says to a person."""

    def __call__(self, text: str) -> None:
        self.append(text)


class FrozenClock:
    """Shows what it is told."""

    def __init__(self, mono_ns: int = 5_000, time_ns: int = 1_700_000_000_123_456_789) -> None:
        self.mono_ns, self.now_ns = mono_ns, time_ns

    def monotonic_ns(self) -> int:
        return self.mono_ns

    def time_ns(self) -> int:
        return self.now_ns


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_whole_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER, clock=FrozenClock())
    assert journal.append(message("one"))
    assert journal.append(ToolCall(call_id="c1", tool_name="search", args=encode_raw({"q": "x"})))
    assert journal.end(END)
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[1] == (
        b'{"type":"message","seq":2,"ts":"2023-11-14T22:13:20.123456Z","mono_ns":5000,"role":"user","text":"one"}\n'
    )
    end = json.loads(lines[-1])
    assert end["events"] == 3
    assert end["sha256"] == hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    trace = read(path)
    assert trace.incomplete is None
    assert trace.start.trace_id == "run-1"
    assert [event.seq for event in trace.events] == [1, 2, 3, 4]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_an_end_the_last_line_says_unknown(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run.jsonl", HEADER)
    journal.close()
    end = read(tmp_path / "run.jsonl").end
    assert end is not None
    assert (end.outcome, end.stop_reason, end.events) == ("unknown", "unknown", 1)


def test_each_event_is_in_the_file_before_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    for count in range(2, 6):
        journal.append(message())
        assert path.read_bytes().count(b"\n") == count
    journal.close()


def test_the_clock_of_a_file_never_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER, clock=FrozenClock(mono_ns=100))
    journal.append(message("late"), Moment(900, 1_700_000_000_000_000_000))
    journal.append(message("early"), Moment(400, 1_600_000_000_000_000_000))
    journal.append(message("later"), Moment(901, 1_700_000_000_000_001_000))
    journal.close()
    events = read(path).events[1:4]
    assert [event.mono_ns for event in events] == [900, 900, 901]
    assert [event.ts for event in events] == sorted(event.ts or "" for event in events)


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_999_999_999, "2023-11-14T22:13:20.999999Z"),
        (4_102_444_800_000_001_000, "2100-01-01T00:00:00.000001Z"),
    ],
)
def test_times_are_utc_with_microseconds(time_ns: int, text: str, tmp_path: Path) -> None:
    assert format_time(time_ns) == text
    journal = Journal(tmp_path / "run.jsonl", HEADER, clock=FrozenClock(time_ns=time_ns))
    journal.close()
    assert read(tmp_path / "run.jsonl").start.ts == text


def test_a_line_break_in_a_value_does_not_break_the_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    journal.append(ToolCall(call_id="c", tool_name="t", args=Raw(b'{\n  "text": "a\\nb"\n}')))
    journal.append(message("two\nlines"))
    journal.close()
    call = read(path).calls()[0]
    assert json.loads(bytes(call.args)) == {"text": "a\nb"}
    assert texts(path) == ["two\nlines"]


def test_a_lone_surrogate_does_not_stop_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    assert journal.append(message("half of an emoji: \ud83d"))
    assert journal.end(END)
    journal.close()
    assert read(path).incomplete is None


# --- who writes which file -------------------------------------------------------------------------------------------


def test_a_trace_start_that_is_there_is_kept_and_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"type":"trace_start","format":"goldentrace/1","trace_id":"runner","scenario_id":"s"}\n')
    journal = Journal(path, HEADER)
    journal.append(message())
    journal.end(END)
    journal.close()
    trace = read(path)
    assert shard_paths(path) == [path]
    assert (trace.start.trace_id, trace.start.scenario_id) == ("runner", "s")
    assert [event.seq for event in trace.events] == [None, 2, 3]


@pytest.mark.parametrize("stated", [{"states": ["retry"]}, {"attributes": {"tools": []}}])
def test_what_a_recorder_states_is_not_lost_where_the_runner_wrote_the_start(stated: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"type":"trace_start","format":"goldentrace/1","trace_id":"runner","scenario_id":"s"}\n')
    journal = Journal(path, TraceStart(format="goldentrace/1", trace_id="own", **stated))
    journal.append(message("x"))
    journal.end(END)
    journal.close()
    merged = merge([read(shard) for shard in shard_paths(path)])
    assert (merged.start.trace_id, merged.start.scenario_id) == ("runner", "s")
    assert {name: getattr(merged.start, name) for name in stated} == stated
    assert merged.end is not None
    assert merged.end.outcome == "success"


def test_a_missing_line_feed_is_added_first(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"type":"trace_start","format":"goldentrace/1"}')
    journal = Journal(path, HEADER)
    journal.append(message("kept"))
    journal.end(END)
    journal.close()
    assert texts(path) == ["kept"]
    assert read(path).incomplete is None


def test_a_second_recorder_writes_a_shard_of_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first, second, third = (Journal(path, TraceStart(format="goldentrace/1", trace_id=f"t{n}")) for n in range(3))
    assert [first.path, second.path, third.path] == [
        path, tmp_path / f"run.jsonl.{os.getpid()}-0", tmp_path / f"run.jsonl.{os.getpid()}-1",
    ]  # fmt: skip
    for number, journal in enumerate((first, second, third)):
        journal.append(message(str(number)))
        journal.end(END)
        journal.close()
    assert shard_paths(path) == [first.path, second.path, third.path]
    assert [texts(shard) for shard in shard_paths(path)] == [["0"], ["1"], ["2"]]
    assert {read(shard).start.trace_id for shard in shard_paths(path)} == {"t0"}


def test_a_file_with_another_writers_events_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"type":"trace_start","format":"goldentrace/1"}\n{"type":"message","role":"user","text":"a"}\n')
    before = path.read_bytes()
    journal = Journal(path, HEADER)
    journal.append(message("b"))
    journal.close()
    assert path.read_bytes() == before
    assert texts(journal.path) == ["b"]


def test_after_a_torn_tail_the_next_process_loses_nothing_and_repairs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = Journal(path, HEADER)
    first.append(message("whole"))
    first.close()
    torn = path.read_bytes().rpartition(b'{"type":"trace_end"')[0] + b'{"type":"mess'
    path.write_bytes(torn)
    second = Journal(path, HEADER)
    second.append(message("after"))
    second.end(END)
    second.close()
    assert path.read_bytes() == torn
    assert "torn" in (read(path).incomplete or "")
    assert texts(path) == ["whole"]
    assert texts(second.path) == ["after"]


def test_beside_a_finished_trace_a_person_is_told(tmp_path: Path) -> None:
    path, said = tmp_path / "run.jsonl", Sayings()
    Journal(path, HEADER).close()
    second = Journal(path, HEADER, say=said)
    second.close()
    assert second.path != path
    assert said == [f"{path} holds a finished trace; another run needs another file. Recording beside it."]


def test_a_new_run_replaces_the_trace_of_an_earlier_one_with_its_shards(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journals = [Journal(path, HEADER), Journal(path, HEADER)]
    for journal in journals:
        journal.close()
    other = tmp_path / "run.jsonl.notes"
    other.write_text("mine")
    new = Journal(path, TraceStart(format="goldentrace/1", trace_id="run-2"), is_new_run=True)
    new.close()
    assert shard_paths(path) == [path]
    assert read(path).start.trace_id == "run-2"
    assert other.read_text() == "mine"


def test_a_new_run_does_not_replace_what_is_no_trace(tmp_path: Path) -> None:
    path, said = tmp_path / "notes.txt", Sayings()
    path.write_text("dear diary\n")
    journal = Journal(path, HEADER, is_new_run=True, say=said)
    assert not journal.append(message())
    journal.close()
    assert path.read_text() == "dear diary\n"
    assert len(said) == 1
    assert "is no trace" in said[0]


def test_a_running_recorder_is_not_replaced_by_a_new_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = Journal(path, HEADER)
    second = Journal(path, HEADER, is_new_run=True)
    first.append(message("first"))
    second.append(message("second"))
    first.close()
    second.close()
    assert texts(path) == ["first"]
    assert texts(second.path) == ["second"]


def test_without_kernel_locks_only_who_made_the_file_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    path = tmp_path / "run.jsonl"
    first, second = Journal(path, HEADER), Journal(path, HEADER)
    assert first.path == path
    assert second.path != path
    first.close()
    second.close()
    assert all(read(shard).incomplete is None for shard in shard_paths(path))


def test_an_event_after_the_end_is_not_lost_and_does_not_spoil_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    journal.end(END)
    assert journal.append(message("late"))
    journal.close()
    assert read(path).end == read(path).events[-1]
    assert texts(shard_paths(path)[1]) == ["late"]


def test_an_event_after_closing_is_refused_aloud(tmp_path: Path) -> None:
    path, said = tmp_path / "run.jsonl", Sayings()
    journal = Journal(path, HEADER, say=said)
    journal.close()
    journal.close()
    assert not journal.append(message())
    assert shard_paths(path) == [path]
    assert "is closed" in said[0]


def test_shards_are_found_by_their_names_only(tmp_path: Path) -> None:
    path = tmp_path / "run[1].jsonl"
    for name in ("run[1].jsonl", "run[1].jsonl.10-0", "run[1].jsonl.9-11", "run[1].jsonl.9-2", "run[1].jsonl.9-x",
                 "run[1].jsonl.bak", "run1.jsonl.9-1", "run[1].jsonl.9-1.tmp"):  # fmt: skip
        (tmp_path / name).touch()
    assert [shard.name for shard in shard_paths(path)] == [
        "run[1].jsonl", "run[1].jsonl.9-2", "run[1].jsonl.9-11", "run[1].jsonl.10-0",
    ]  # fmt: skip
    assert shard_paths(tmp_path / "none.jsonl") == []


# --- other writers in the same file ----------------------------------------------------------------------------------


def test_lines_of_another_writer_are_counted_and_hashed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    journal.append(message("mine"))
    with path.open("ab") as other:
        other.write(b'{"type":"message","role":"user","text":"other"}\n\n')
    journal.append(message("mine again"))
    journal.end(END)
    journal.close()
    trace = read(path)
    assert texts(path) == ["mine", "other", "mine again"]
    assert trace.incomplete is None
    assert trace.end is not None
    assert trace.end.events == 4


# --- failures --------------------------------------------------------------------------------------------------------


def failing(error: BaseException) -> Callable[..., int]:
    def write(descriptor: int, data: bytes) -> int:
        raise error

    return write


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT])
def test_a_write_that_fails_breaks_the_file_and_is_said_once(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = tmp_path / "run.jsonl", Sayings()
    journal = Journal(path, HEADER, say=said)
    journal.append(message("kept"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(OSError(code, os.strerror(code))))
        assert not journal.append(message("lost"))
    assert journal.is_broken
    assert not journal.append(message("not tried"))
    assert not journal.end(END)
    journal.close()
    assert texts(path) == ["kept"]
    assert "no trace_end" in (read(path).incomplete or "")
    assert said == [f"{path}: {os.strerror(code)}; recording stops, the trace stays incomplete, the agent goes on"]


def test_a_short_write_breaks_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said, real = tmp_path / "run.jsonl", Sayings(), os.write
    journal = Journal(path, HEADER, say=said)
    journal.append(message("kept"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:10]))
        assert not journal.append(message("lost"))
    assert not journal.append(message("not tried"))
    journal.close()
    trace = read(path)
    assert [event.text for event in trace.events if isinstance(event, Message)] == ["kept"]
    assert "torn" in (trace.incomplete or "")
    assert len(said) == 1
    assert "only 10 of" in said[0]


def test_an_interrupted_write_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, left = tmp_path / "run.jsonl", os.write, [3]

    def write(descriptor: int, data: bytes) -> int:
        if left[0]:
            left[0] -= 1
            raise InterruptedError(errno.EINTR, "Interrupted system call")
        return real(descriptor, data)

    journal = Journal(path, HEADER)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        assert journal.append(message("kept"))
    journal.end(END)
    journal.close()
    assert texts(path) == ["kept"]
    assert read(path).incomplete is None


@pytest.mark.parametrize("is_written", [True, False], ids=["after the write", "before the write"])
def test_an_interrupt_from_the_keyboard_leaves_the_numbers_whole(
    is_written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "run.jsonl", os.write

    def write(descriptor: int, data: bytes) -> int:
        if is_written:
            real(descriptor, data)
        raise KeyboardInterrupt

    journal = Journal(path, HEADER)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(KeyboardInterrupt):
            journal.append(message("interrupted"))
    journal.append(message("after"))
    journal.end(END)
    journal.close()
    assert texts(path) == [*(["interrupted"] if is_written else []), "after"]
    assert read(path).incomplete is None


def test_a_signal_handler_may_record_while_a_write_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, is_first = tmp_path / "run.jsonl", os.write, [True]
    journal = Journal(path, HEADER)

    def write(descriptor: int, data: bytes) -> int:
        if is_first[0]:
            is_first[0] = False
            signal.raise_signal(signal.SIGUSR1)
        return real(descriptor, data)

    def handle(*_: Any) -> None:
        journal.append(message("from the handler"))
        journal.end(END)
        journal.close()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            assert journal.append(message("interrupted"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert texts(path) == ["interrupted", "from the handler"]
    assert read(path).incomplete is None
    assert shard_paths(path) == [path]


def test_an_event_that_could_not_be_made_leaves_the_trace_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    journal.append(message("kept"))
    journal.note_lack("the first reason")
    journal.note_lack("another one")
    assert journal.append(message("still recorded"))
    assert journal.end(END)
    journal.close()
    assert texts(path) == ["kept", "still recorded"]
    trace = read(path)
    assert (trace.incomplete, trace.end) == ("the first reason", None)


@pytest.mark.parametrize("kind", ["missing folder", "folder", "pipe"])
def test_a_file_that_cannot_be_written_stops_nobody(kind: str, tmp_path: Path) -> None:
    path, said = tmp_path / "run.jsonl", Sayings()
    if kind == "missing folder":
        path = tmp_path / "missing" / "run.jsonl"
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    journal = Journal(path, HEADER, say=said)
    assert not journal.append(message())
    journal.close()
    assert len(said) == 1
    assert "the agent goes on" in said[0]


def test_a_full_device_is_said_once(tmp_path: Path) -> None:
    said = Sayings()
    journal = Journal(Path("/dev/full"), HEADER, say=said)
    assert not journal.append(message())
    journal.end(END)
    journal.close()
    assert said == [
        "/dev/full: No space left on device; recording stops, the trace stays incomplete, the agent goes on"
    ]


def test_a_device_may_take_the_events() -> None:
    said = Sayings()
    journal = Journal(Path("/dev/null"), HEADER, say=said)
    assert journal.append(message())
    assert journal.end(END)
    journal.close()
    assert said == []


# --- syncing ---------------------------------------------------------------------------------------------------------


def test_syncing_waits_outside_of_an_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr("goldentrace.store.journal._datasync", lambda _: synced.append(threading.current_thread().name))
    journal = Journal(tmp_path / "run.jsonl", HEADER)
    journal.append(message())
    assert synced == []
    journal.sync()
    assert synced == [threading.current_thread().name]
    journal.close()


def test_syncing_does_not_hold_an_event_loop_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_returned, was_in_time = threading.Event(), []
    monkeypatch.setattr("goldentrace.store.journal._datasync", lambda _: was_in_time.append(has_returned.wait(20)))
    journal = Journal(tmp_path / "run.jsonl", HEADER)

    async def sync() -> None:
        journal.sync()
        has_returned.set()

    asyncio.run(sync())
    journal.close()
    assert was_in_time
    assert all(was_in_time)


def test_where_no_thread_can_be_started_syncing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    synced: list[int] = []
    monkeypatch.setattr("goldentrace.store.journal._datasync", synced.append)
    journal = Journal(tmp_path / "run.jsonl", HEADER)

    async def end() -> None:
        journal.end(END)
        journal.close()

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        asyncio.run(end())
    assert len(synced) == 2
    assert read(tmp_path / "run.jsonl").incomplete is None


def test_a_file_that_cannot_be_synced_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Sayings()

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("goldentrace.store.journal._datasync", fail)
    journal = Journal(tmp_path / "run.jsonl", HEADER, say=said)
    journal.append(message())
    journal.sync()
    assert journal.is_broken
    journal.close()
    assert len(said) == 1
    assert read(tmp_path / "run.jsonl").incomplete is not None


def test_threads_get_each_number_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)

    def work(name: int) -> None:
        for number in range(50):
            journal.append(ToolResult(call_id=f"{name}-{number}", status="ok"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.end(END)
    journal.close()
    trace = read(path)
    assert trace.incomplete is None
    assert [event.seq for event in trace.events] == list(range(1, 403))
    times = [event.mono_ns for event in trace.events]
    assert times == sorted(time_ns for time_ns in times if time_ns is not None)
    assert len({result.call_id for result in trace.results()}) == 400
