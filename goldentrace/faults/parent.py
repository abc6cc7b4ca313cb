"""Notices that whoever started this process is gone, even by SIGKILL, so that no server outlives its run.

Two signs: the end of a pipe whose other end only the parent holds, and another parent process id. Linux's parent-death
signal is not used: it fires when the parent's *thread* ends, which is not the parent.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final

POLL_S: Final = 0.25
_READ_BYTES: Final = 4096


class ParentWatch:
    """Calls `on_gone` once. pipe: file descriptor that ends with the parent, None to go by the process id alone."""

    def __init__(self, on_gone: Callable[[], None], pipe: int | None = None) -> None:
        self._on_gone = on_gone
        self._pipe = pipe
        self._parent = os.getppid()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to watch."""
        if self._pipe is not None:
            os.set_blocking(self._pipe, False)
            self._loop.add_reader(self._pipe, self._read)
        self._poll()

    def stop(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            self._pipe = None

    def _read(self) -> None:
        assert self._pipe is not None, "stop() ends the reading"
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end()

    def _poll(self) -> None:
        if os.getppid() != self._parent:
            self._end()
        else:
            self._timer = self._loop.call_later(POLL_S, self._poll)

    def _end(self) -> None:
        self.stop()
        self._on_gone()
