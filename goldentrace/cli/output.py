"""Where a command's words go: the report to stdout, progress and hints to stderr, further reports to files.

A closed pipe is no error: what was decided stays decided. Rendering is the report room's. Must not know any command.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from goldentrace.cli.terminal import is_colored, printable, width_of
from goldentrace.errors import GoldentraceError
from goldentrace.model.report import Problem, Report, TraceReport


class Output(msgspec.Struct, frozen=True):
    """How results are shown.

    format: of stdout; reports: further (format, path); verbosity: -1 quiet, 0, 1 verbose; color: auto, always, never;
    has_input: may the user be asked?
    """

    format: str = "text"
    reports: tuple[tuple[str, str], ...] = ()
    verbosity: int = 0
    color: str = "auto"
    width: int | None = None
    has_input: bool = True

    def write(self, report: Report) -> int:
        """Write a report to stdout and to the asked files; return its exit code."""
        for name, path in self.reports:
            self._write_file(report, name, path)
        self.put(self._rendered(report, self.format))
        return report.exit_code

    def _rendered(self, report: Report, name: str) -> str:
        from goldentrace.report import render

        return render(report, name, width=width_of(self.width), color=is_colored(self.color), verbosity=self.verbosity)

    def _write_file(self, report: Report, name: str, path: str) -> None:
        from goldentrace.report import render
        from goldentrace.store.atomic import write_atomically
        from goldentrace.store.layout import make_folder

        text = render(report, name, width=width_of(self.width), color=False, verbosity=self.verbosity)
        make_folder(Path(path).parent)
        write_atomically(Path(path), text.encode("utf-8", "backslashreplace"))

    def put(self, text: str) -> None:
        """Write text to stdout as it is; it must be safe already."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            pass  # the reader has seen enough; the exit code stands

    def put_bytes(self, data: bytes) -> None:
        """Write a file's bytes to stdout: JSON lines, in which nothing is left that a terminal would act upon."""
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            pass

    def put_lines(self, lines: Iterable[str]) -> None:
        """Write lines to stdout, each made safe."""
        self.put("".join(f"{printable(line)}\n" for line in lines))

    def put_json(self, value: Any) -> None:
        """Write a JSON document to stdout."""
        import json

        self.put(json.dumps(value, indent=2, ensure_ascii=True, default=str) + "\n")

    def say(self, text: str, *, level: int = 0) -> None:
        """Write a hint or progress to stderr. level: 0 unless quiet, 1 only if verbose, -1 always."""
        if self.verbosity >= level:
            try:
                sys.stderr.write("".join(f"{printable(line)}\n" for line in text.split("\n")))
                sys.stderr.flush()
            except (OSError, ValueError):
                pass


def problem_of(error: GoldentraceError) -> Problem:
    """Return an error as the reason why a trace has no verdict."""
    where = error.where
    if where is None:
        return Problem(error.what, next_step=error.next_step)
    return Problem(error.what, where.path, where.line, where.pointer, error.next_step)


def error_report(error: GoldentraceError, arguments: list[str]) -> str:
    """Return the JSON report of a command that failed before it had one."""
    from goldentrace.report import render

    command = next((word for word in arguments if not word.startswith("-")), "goldentrace")
    name = error.where.path if error.where is not None else command
    return render(Report(command, [TraceReport(name, problem=problem_of(error))]), "json")
