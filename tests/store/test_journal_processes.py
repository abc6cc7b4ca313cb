"""Several processes of one run: forks, children of multiprocessing, a crowd; nothing is lost, doubled or torn.

The processes here are started and waited for by the test itself.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.shards import merge
from goldentrace.codec.trace import read_trace
from goldentrace.model.event import Message, TraceEnd, TraceStart
from goldentrace.model.trace import Trace
from goldentrace.store.claim import shard_paths
from goldentrace.store.journal import Journal

HEADER = TraceStart(format="goldentrace/1", trace_id="run-1")
END = TraceEnd(outcome="success", stop_reason="final_answer")


def shards(path: Path) -> list[Trace]:
    return [read_trace(shard.read_bytes(), str(shard)) for shard in shard_paths(path)]


def texts(trace: Trace) -> list[str | None]:
    return [event.text for event in trace.events if isinstance(event, Message)]


def fork(work: object) -> int:
    """Run `work` in a forked child and return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
        finally:
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_writes_a_shard_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    journal.append(Message(role="user", text="before"))

    def child() -> None:
        journal.append(Message(role="user", text="child"))
        journal.close()
        os._exit(0)

    assert fork(child) == 0
    journal.append(Message(role="user", text="after"))
    journal.end(END)
    journal.close()
    parent, forked = shards(path)
    assert texts(parent) == ["before", "after"]
    assert texts(forked) == ["child"]
    assert [trace.incomplete for trace in (parent, forked)] == [None, None]
    assert forked.start.trace_id == "run-1"
    assert [event.seq for event in forked.events] == [1, 2, 3]
    assert texts(merge([parent, forked])) == ["before", "child", "after"]


def test_a_child_that_records_nothing_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)

    def child() -> None:
        journal.close()
        os._exit(0)

    assert fork(child) == 0
    journal.close()
    assert shard_paths(path) == [path]


def test_a_child_that_is_killed_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)

    def child() -> None:
        journal.append(Message(role="user", text="child"))
        os.kill(os.getpid(), 9)

    assert fork(child) == -9
    journal.end(END)
    journal.close()
    parent, forked = shards(path)
    assert parent.incomplete is None
    assert forked.incomplete is not None
    assert str(shard_paths(path)[1]) in (merge([parent, forked]).incomplete or "")


def test_a_fork_amid_the_writes_of_other_threads_hangs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    is_done = threading.Event()
    counts = [0, 0]

    def write(name: int) -> None:
        while not is_done.is_set():
            journal.append(Message(role="user", text="x" * 2000))
            counts[name] += 1

    threads = [threading.Thread(target=write, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()

    def child() -> None:
        journal.append(Message(role="user", text="child"))
        journal.close()
        os._exit(0)

    try:
        assert [fork(child) for _ in range(20)] == [0] * 20
    finally:
        is_done.set()
        for thread in threads:
            thread.join()
    journal.end(END)
    journal.close()
    parent, *forked = shards(path)
    assert len(texts(parent)) == sum(counts)
    assert [texts(trace) for trace in forked] == [["child"]] * 20
    assert merge([parent, *forked]).incomplete is None


JOURNAL: list[Journal] = []


def record_in_child(number: int) -> int:
    JOURNAL[0].append(Message(role="user", text=f"child {number}"))
    return os.getpid()


@pytest.mark.parametrize("kind", ["process", "executor", "pool"])
def test_children_of_multiprocessing_end_their_shards(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    JOURNAL[:] = [Journal(path, HEADER)]
    context = multiprocessing.get_context("fork")
    if kind == "process":
        for number in range(4):
            child = context.Process(target=record_in_child, args=(number,))
            child.start()
            child.join()
            assert child.exitcode == 0
    elif kind == "executor":
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            list(pool.map(record_in_child, range(4)))
    else:
        workers = context.Pool(2)
        workers.map(record_in_child, range(4))
        workers.close()
        workers.join()
    JOURNAL[0].end(END)
    JOURNAL[0].close()
    merged = merge(shards(path))
    assert sorted(texts(merged), key=str) == [f"child {number}" for number in range(4)]
    assert merged.incomplete is None


def wait_for_ever(has_begun: Any) -> None:
    JOURNAL[0].append(Message(role="user", text="begun"))
    has_begun.set()
    while True:
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_a_signal_ends_leaves_the_run_incomplete(number: int, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    JOURNAL[:] = [Journal(path, HEADER)]
    context = multiprocessing.get_context("fork")
    has_begun = context.Event()
    child = context.Process(target=wait_for_ever, args=(has_begun,))
    child.start()
    assert has_begun.wait(20)
    os.kill(child.pid or 0, number)
    child.join()
    assert child.exitcode == -number
    JOURNAL[0].end(END)
    JOURNAL[0].close()
    merged = merge(shards(path))
    assert texts(merged) == ["begun"]
    assert merged.incomplete is not None


CROWD = """
import asyncio, sys, threading
from pathlib import Path
from goldentrace.model.event import Message, TraceEnd, TraceStart
from goldentrace.store.journal import Journal

path, process, threads, tasks, events = Path(sys.argv[1]), *map(int, sys.argv[2:])
journal = Journal(path, TraceStart(format="goldentrace/1"))

async def task(name):
    for number in range(events):
        journal.append(Message(role="user", text=f"{name}.{number}", extra={"padding": "x" * (number * 997 % 5000)}))
        await asyncio.sleep(0)

def thread(name):
    async def run():
        await asyncio.gather(*(task(f"{process}.{name}.{index}") for index in range(tasks)))
    asyncio.run(run())

crowd = [threading.Thread(target=thread, args=(name,)) for name in range(threads)]
for one in crowd: one.start()
for one in crowd: one.join()
journal.end(TraceEnd(outcome="success", stop_reason="final_answer"))
journal.close()
"""


def test_a_crowd_of_processes_threads_and_tasks_loses_nothing(tmp_path: Path) -> None:
    path, processes, threads, tasks, events = tmp_path / "run.jsonl", 4, 16, 3, 10
    arguments = [str(number) for number in (threads, tasks, events)]
    path.write_bytes(b'{"type":"trace_start","format":"goldentrace/1"}\n')
    crowd = [
        subprocess.Popen([sys.executable, "-c", CROWD, path, str(process), *arguments]) for process in range(processes)
    ]
    assert [process.wait() for process in crowd] == [0] * processes
    traces = shards(path)
    assert len(traces) == processes
    merged = merge(traces)
    assert merged.incomplete is None
    expected = {
        f"{process}.{thread}.{task}.{event}"
        for process in range(processes)
        for thread in range(threads)
        for task in range(tasks)
        for event in range(events)
    }
    found = texts(merged)
    assert len(found) == len(expected)
    assert set(found) == expected
    assert [event.seq for event in merged.events] == list(range(1, len(expected) + 3))


def test_each_task_keeps_its_order_through_the_merge(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    crowd = [
        subprocess.Popen([sys.executable, "-c", CROWD, path, str(process), "4", "2", "20"]) for process in range(2)
    ]
    assert [process.wait() for process in crowd] == [0, 0]
    seen: dict[str, int] = {}
    for text in texts(merge(shards(path))):
        name, _, number = str(text).rpartition(".")
        assert int(number) == seen.get(name, -1) + 1
        seen[name] = int(number)
    assert len(seen) == 16
