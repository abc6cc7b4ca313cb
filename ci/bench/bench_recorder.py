"""What recording costs an agent: calls of a tool that does nothing, redaction on, against json.dumps and a flush.

An event is one line: a call makes two. `clean` values hold nothing that could belong to a secret; `suspect` ones hold
a URL and an idempotency key, so that the detectors have to look at each of their strings. Targets: at most 25 µs an
event, at least 40,000 events a second; on a machine that is busy with other things only the CPU time says something.
"""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from timing import Row

from goldentrace import Recorder

EVENTS = 40_000
TARGET_S = EVENTS * 25e-6
ITEMS = [{"sku": f"a-{number}", "n": 1, "price": 2.5} for number in range(3)]
NOTE = "please leave it at the door, thank you " * 2
CLEAN = {"order_id": "ord_1", "items": ITEMS, "note": NOTE, "region": "eu"}
SUSPECT = {"order_id": "ord_1", "items": ITEMS, "note": NOTE, "idempotency_key": "k-1"}


def charge(order_id: str, items: list[Any], note: str, region: str = "", idempotency_key: str = "") -> dict[str, Any]:
    """Do nothing; the lines come to 400 bytes each."""
    link = "https://shop.example/orders/1" if idempotency_key else region
    return {"id": order_id, "status": "succeeded", "items": items, "link": link, "note": note, "total_cents": 49900}


def rows(folder: Path) -> Iterator[Row]:
    """Yield one row for each kind of value and of agent."""
    files = (folder / f"{number}.jsonl" for number in itertools.count())
    for name, arguments, work in (
        ("a tool, clean values", CLEAN, record_calls),
        ("a tool, suspect values", SUSPECT, record_calls),
        ("a tool in 8 threads, clean values", CLEAN, record_in_threads),
        ("a coroutine in 8 tasks, clean values", CLEAN, record_in_tasks),
        ("message events", CLEAN, record_messages),
    ):
        yield Row(
            name,
            partial(run, work, files, arguments),
            partial(write_naively, files, arguments),
            "json + flush",
            amount=EVENTS,
            unit="events",
            targets={"seconds": TARGET_S, "cpu_s": TARGET_S},
        )


def run(work: Callable[[Recorder, dict[str, Any]], None], files: Iterator[Path], arguments: dict[str, Any]) -> None:
    """Record into a new file and remove it."""
    path = next(files)
    with Recorder(path) as recorder, recorder.turn():
        work(recorder, arguments)
    path.unlink()


def record_calls(recorder: Recorder, arguments: dict[str, Any]) -> None:
    """Call a wrapped tool one time after the other."""
    tool = recorder.tool()(charge)
    for _ in range(EVENTS // 2):
        tool(**arguments)


def record_in_threads(recorder: Recorder, arguments: dict[str, Any]) -> None:
    """Call it in threads."""
    tool = recorder.tool()(charge)

    def work() -> None:
        for _ in range(EVENTS // 2 // 8):
            tool(**arguments)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def record_in_tasks(recorder: Recorder, arguments: dict[str, Any]) -> None:
    """Call it in tasks of an event loop."""

    @recorder.tool()
    async def charge_later(**values: Any) -> dict[str, Any]:
        return charge(**values)

    async def task() -> None:
        for _ in range(EVENTS // 2 // 8):
            await charge_later(**arguments)

    async def main() -> None:
        await asyncio.gather(*(task() for _ in range(8)))

    asyncio.run(main())


def record_messages(recorder: Recorder, arguments: dict[str, Any]) -> None:
    """Write events of one text."""
    text = json.dumps(arguments)
    for _ in range(EVENTS):
        recorder.message("user", text)


def write_naively(files: Iterator[Path], arguments: dict[str, Any]) -> None:
    """Write as many lines of the same values, unnumbered and unsearched."""
    path = next(files)
    with path.open("w") as file:
        for number in range(EVENTS // 2):
            call = {
                "type": "tool_call",
                "seq": number,
                "call_id": f"c{number}",
                "tool_name": "charge",
                "args": arguments,
            }
            result = {"type": "tool_result", "seq": number, "call_id": f"c{number}", "result": charge(**arguments)}
            for event in (call, result):
                file.write(json.dumps(event) + "\n")
                file.flush()
    path.unlink()
