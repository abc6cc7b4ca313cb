"""The agent's process: started in a group of its own, with its output in a log, and ended with all that it started.

Nothing of the group outlives `end`. This module must not read the trace.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from goldentrace.errors import InfrastructureError

GRACE_S: Final = 2.0
"""From the request to end (SIGTERM) to the end (SIGKILL): enough for a recorder to close its file, short for a
person."""
LINGER_S: Final = 1.0
"""How long a group may outlive its leader, to finish what it writes."""
STEP_S: Final = 0.01

_SHELL_MARKS: Final = ("|", "&&", ";", ">", "<", "$(", "&")


class Child:
    """A running command. Its stdout and stderr go to one file, in the order in which they were written."""

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str]) -> None:
        """Start it. Raises: InfrastructureError where it cannot be started."""
        with log.open("wb") as output:
            try:
                self._process = subprocess.Popen(
                    command, cwd=folder, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=output, start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                raise _cannot_start(command, error) from None
        self.started_s = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, timeout_s: float) -> bool:
        """Wait until the command has ended, at most so long; return whether it has. It is not reaped before `end`: its
        process id, which is that of the group, stays its own."""
        until = time.monotonic() + timeout_s
        while True:
            if self._has_ended():
                return True
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(STEP_S, left_s))

    def end(self, *, is_stopped: bool) -> int:
        """End what is left of the group and return the command's code, negative for the signal that ended it.

        is_stopped: end the command too (SIGTERM, then SIGKILL); otherwise it has ended, and what it left running gets a
        moment to finish.
        """
        if is_stopped:
            self._signal(signal.SIGTERM)
            self._wait_for_group(GRACE_S)
        elif self._has_others():
            self._wait_for_group(LINGER_S)
            self._signal(signal.SIGTERM)
            self._wait_for_group(LINGER_S)
        self._signal(signal.SIGKILL)
        return self._process.wait()

    def _has_ended(self) -> bool:
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: reaped here, its group is then known by number alone
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _wait_for_group(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until and (not self.wait(0) or self._has_others()):
            time.sleep(STEP_S)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _has_others(self) -> bool:
        """Does a process of the group run beside its leader? Asked of /proc; without one, no: the last signal takes
        it."""
        try:
            entries = [entry.name for entry in Path("/proc").iterdir()]
        except OSError:
            return False
        return any(name != str(self.pid) and name.isdigit() and _is_running_in(name, self.pid) for name in entries)


def _is_running_in(name: str, group: int) -> bool:
    try:
        stat = Path("/proc", name, "stat").read_bytes()
    except OSError:
        return False
    state, _, of_group = stat.rpartition(b")")[2].split()[:3]
    return int(of_group) == group and state not in (b"Z", b"X")


def _cannot_start(command: Sequence[str], error: Exception) -> InfrastructureError:
    reason = getattr(error, "strerror", None) or str(error)
    step = "check the command in goldentrace.yaml"
    if any(mark in word for word in command for mark in _SHELL_MARKS):
        step = "a command is started without a shell; where one is meant, write: sh -c '…'"
    return InfrastructureError(f"cannot start {command[0]!r}: {reason}", next_step=step)
