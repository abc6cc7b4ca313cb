"""Starts the scripted model's server in a process of its own, and is the runner's handle on it.

The child binds 127.0.0.1, is spoken to over its standard input and output, one line each way, and ends when that input
ends: with its parent, however the parent went. This module must not know HTTP or a wire format.
"""

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

import msgspec

import goldentrace
from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError
from goldentrace.model.event import AnyEvent, TraceEnd, TraceStart
from goldentrace.replay.player import TurnUse
from goldentrace.replay.script_file import read_script
from goldentrace.replay.server import ScriptReport
from goldentrace.replay.service import Settings, Started

ANSWER_TIMEOUT_S: Final = 20.0
"""Until the child answers; it starts in about 0.3 s and answers in under 1 ms, a busy machine takes a good deal
more."""
SERVICE: Final = "goldentrace.replay.service"
PLACEHOLDER_KEY: Final = "scripted-model-needs-no-key"
"""The SDKs refuse to start without a key; a real one must not reach a local server."""


class ScriptHandle:
    """A scripted model that serves. A context manager: leaving it stops the server.

    base_urls: the variables that point the SDKs to it; environment: those and placeholder keys; journal_path: the
    file of the model's side of the run (`goldentrace/1`), which may be a shard beside the path asked for."""

    def __init__(self, child: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        self._child = child
        self._stderr = stderr
        self._lock = threading.Lock()
        self._unread = b""
        self._last: ScriptReport | None = None
        self._failure: InfrastructureError | None = None
        try:
            started = msgspec.json.decode(self._read_line(), type=Started)
            if started.problem is not None:
                raise self._broken(started.problem)
        except BaseException:  # an interrupt too leaves no process behind
            self._end()
            self._stderr.close()
            raise
        self.port = started.port
        self.journal_path = Path(started.journal)

    @property
    def base_urls(self) -> dict[str, str]:
        root = f"http://127.0.0.1:{self.port}"
        return {"OPENAI_BASE_URL": f"{root}/v1", "ANTHROPIC_BASE_URL": root}

    @property
    def environment(self) -> dict[str, str]:
        return {**self.base_urls, "OPENAI_API_KEY": PLACEHOLDER_KEY, "ANTHROPIC_API_KEY": PLACEHOLDER_KEY}

    @property
    def is_exhausted(self) -> bool:
        """Has the script run out of turns? Then the run has no verdict."""
        return self.report().is_exhausted

    @property
    def unused_turns(self) -> tuple[TurnUse, ...]:
        """The turns that the script takes for certain and that nobody asked for."""
        return self.report().unused_turns

    def report(self) -> ScriptReport:
        """Return what has come of the script so far; after `stop`, in all. Raises: InfrastructureError where the
        child is gone."""
        if self._last is not None:
            return self._last
        with self._lock:
            return self._ask(b"report\n")

    def events(self) -> list[AnyEvent]:
        """Return the model's side of the run so far: model_turn, tool_call, tool_result and message events.

        Raises: InputError where the journal is damaged.
        """
        trace = read_trace(self.journal_path.read_bytes(), str(self.journal_path))
        return [event for event in trace.events if not isinstance(event, TraceStart | TraceEnd)]

    def stop(self) -> ScriptReport:
        """Stop serving and return the final report; a second call returns it again.

        Raises: InfrastructureError where the child died or does not answer; it is ended in any case.
        """
        with self._lock:
            if self._last is not None:
                return self._last
            try:
                self._last = self._ask(b"stop\n")
            finally:
                self._end()
                self._stderr.close()
        return self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(InfrastructureError) if error is not None else contextlib.nullcontext():
            self.stop()

    def _ask(self, command: bytes) -> ScriptReport:
        assert self._child.stdin is not None, "the child was started with a pipe"
        if self._failure is not None:
            raise self._failure
        try:
            self._child.stdin.write(command)
            self._child.stdin.flush()
        except OSError:
            raise self._broken("it ended before it was told to") from None
        return msgspec.json.decode(self._read_line(), type=ScriptReport)

    def _read_line(self) -> bytes:
        assert self._child.stdout is not None, "the child was started with a pipe"
        descriptor = self._child.stdout.fileno()
        until = time.monotonic() + ANSWER_TIMEOUT_S
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                self._end()
                raise self._broken(f"no answer within {ANSWER_TIMEOUT_S:g} s")
            block = os.read(descriptor, 1 << 16)
            if not block:
                raise self._broken("it ended without an answer")
            self._unread += block
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _broken(self, why: str) -> InfrastructureError:
        self._end()
        self._stderr.seek(0)
        last = self._stderr.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        said = f" ({last})" if last else ""
        self._failure = InfrastructureError(
            f"the scripted model's server failed: {why}{said}", next_step="run the scenario again"
        )
        return self._failure

    def _end(self) -> None:
        """Close the pipes, which ends the child; end it by force if that does not."""
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            self._child.wait(ANSWER_TIMEOUT_S / 4)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def start_script(
    script_path: str | Path, *, seed: int | None = None, journal_path: str | Path, scenario_id: str | None = None
) -> ScriptHandle:
    """Start the server for a script and return the handle, once it listens.

    seed: of ids and stream splits, None for the script's own; journal_path: file to record the model's side of the
    run into. Raises: ConfigError where the script is wrong (file, line and key); InfrastructureError where the server
    does not start."""
    read_script(script_path)
    settings = Settings(
        script=str(script_path), journal=str(journal_path), parent=os.getpid(), seed=seed, scenario_id=scenario_id
    )
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the handle)
    child = subprocess.Popen(
        [sys.executable, "-m", SERVICE, msgspec.json.encode(settings).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=_child_environment(),
        start_new_session=True,  # an interrupt from the terminal is the parent's to handle
    )
    return ScriptHandle(child, stderr)


def _child_environment() -> dict[str, str]:
    """Return this environment, with the package found where this process found it."""
    folder = str(Path(goldentrace.__file__).parent.parent)
    earlier = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": folder if not earlier else f"{folder}{os.pathsep}{earlier}"}
