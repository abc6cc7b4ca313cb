"""The process of the scripted model's server: `python -m goldentrace.replay.service`. Started by process.py alone.

Reads its settings as one JSON argument, then one command a line on standard input (`report`, `stop`), and answers each
with one JSON line. The end of the input ends it. This module must not outlive its parent.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from goldentrace.errors import GoldentraceError
from goldentrace.model.event import FORMAT, TraceStart
from goldentrace.replay.http import LoopbackServer
from goldentrace.replay.player import ScriptPlayer
from goldentrace.replay.recording import ModelRecording
from goldentrace.replay.script_file import read_script
from goldentrace.replay.server import ModelServer
from goldentrace.store.journal import Journal

SOURCE: Final = "goldentrace-script"
PARENT_CHECK_S: Final = 1.0
"""Standard input ends with the parent, unless another process of the parent's inherited it; then this notices."""


class Settings(msgspec.Struct, frozen=True):
    """What the parent says."""

    script: str
    journal: str
    parent: int
    seed: int | None = None
    scenario_id: str | None = None


class Started(msgspec.Struct, frozen=True):
    """The first line of the child: where it listens and records, or why it does not."""

    port: int = 0
    journal: str = ""
    problem: str | None = None


def main() -> None:
    """Serve until told to stop, or until the parent is gone."""
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    try:
        asyncio.run(serve(settings))
    except GoldentraceError as error:
        say(Started(problem=str(error)))
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # nobody is left to be told


async def serve(settings: Settings) -> None:
    """Serve one script. Raises: GoldentraceError where it cannot begin."""
    player = ScriptPlayer(read_script(settings.script), seed=settings.seed)
    header = TraceStart(format=FORMAT, scenario_id=settings.scenario_id, seed=player.seed, source=SOURCE)
    journal = Journal(Path(settings.journal), header)
    model = ModelServer(player, ModelRecording(journal.append))
    server = LoopbackServer(model.handle, model.client_gone)
    await server.start()
    say(Started(server.port, str(journal.path)))
    watch = asyncio.create_task(watch_parent(settings.parent))
    try:
        await answer_commands(model, watch)
    finally:
        watch.cancel()
        await server.stop()
        journal.close()
    with contextlib.suppress(BrokenPipeError):
        say(model.report())


async def answer_commands(model: ModelServer, watch: asyncio.Task[None]) -> None:
    """Answer commands until `stop`, the end of the input, or the end of the parent."""
    commands = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(commands)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while True:
        reading = asyncio.ensure_future(commands.readline())
        await asyncio.wait({reading, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            reading.cancel()
            return
        if reading.result().strip() != b"report":
            return
        say(model.report())


async def watch_parent(parent: int) -> None:
    """Return when this process has another parent than the one that started it."""
    while os.getppid() == parent:  # noqa: ASYNC110 (the kernel tells no event of it that all systems have)
        await asyncio.sleep(PARENT_CHECK_S)


def say(value: object) -> None:
    """Write one JSON line to the parent."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
