"""Errors that a user can cause or must act on: one shape, always what, where and what to do next.

Imports nothing of ours. `cli/main.py` alone turns them into exit code 3; nothing below it prints or exits.
"""

from typing import NamedTuple


class Where(NamedTuple):
    """A place in an input.

    path: as the user wrote it; line: 1-based, 0 as None: a document without lines; pointer: JSON Pointer style path
    inside the line, `$.args`; byte: 0-based offset in the file, for damage that has no line of its own.
    """

    path: str
    line: int | None = None
    pointer: str | None = None
    byte: int | None = None

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        if self.pointer not in (None, "", "$"):
            place += f" {self.pointer}"
        if self.byte is not None:
            place += f" (byte {self.byte})"
        return place


class GoldentraceError(Exception):
    """No verdict is possible; the message says what, where and what to do next.

    what: one clause, no full stop, no secret and no raw control character; next_step: an instruction or a command.
    """

    def __init__(self, what: str, *, where: Where | None = None, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next_step = next_step

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  {self.where}")
        if self.next_step:
            lines.append(f"  {self.next_step}")
        return "\n".join(lines)


class InputError(GoldentraceError):
    """A file that was given cannot be read as what it should be."""


class NoTraceError(InputError):
    """A file can be read, and there is no trace in it."""


class ConfigError(GoldentraceError):
    """An option, a configuration file, a profile or a fault plan is wrong."""


class NotComparableError(GoldentraceError):
    """Both sides were read but cannot be compared."""


class InfrastructureError(GoldentraceError):
    """Something around the agent failed: a port, a crash or a time-out of the runner itself. Never a regression."""
