"""`goldentrace fmt`: goldens and profiles in canonical form."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from goldentrace.cli.options import option, output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.errors import ConfigError, GoldentraceError, InputError, Where
from goldentrace.exitcodes import CHANGED, NO_VERDICT, OK
from goldentrace.sources.bytestream import read_file
from goldentrace.store.atomic import write_atomically
from goldentrace.store.goldens import Formatted, format_golden
from goldentrace.store.profiles import FOLDER, format_profile

PROFILE_SUFFIXES = (".yaml", ".yml")


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE…]")
@option("--check", is_flag=True, help="Change nothing; exit code 2 if a file is not in canonical form.")
@project_options
@output_options()
def fmt(files: tuple[str, ...], project: Project, output: Output, *, check: bool) -> int:
    """Bring goldens and profiles into canonical form, byte for byte.

    FILE: goldens (.jsonl), profiles (.yaml) or folders; without any, those of the project. Also finds what formatting
    cannot repair: conflict markers and other damage (exit code 3), secrets in clear (2).
    """
    if not check:
        project.ci.guard("files are not formatted")
    paths = list(_paths(files, project))
    if not paths:
        raise ConfigError(
            "nothing to format",
            where=Where(project.shown(project.layout.goldens_folder)),
            next_step="name files, or record a golden first",
        )
    return _Session(project, output, is_check=check).run(paths)


def _paths(files: tuple[str, ...], project: Project) -> Iterator[Path]:
    roots = [Path(file) for file in files] or [
        folder for folder in (project.layout.goldens_folder, project.layout.folder / FOLDER) if folder.is_dir()
    ]
    for root in roots:
        if os.path.isdir(root):  # noqa: PTH112 - answers no where Path.is_dir raises (a name that is too long)
            suffixes = (".jsonl", *PROFILE_SUFFIXES)
            yield from sorted(path for path in root.rglob("*") if path.suffix in suffixes and path.is_file())
        else:
            yield root


class _Session:
    """One call of `fmt`."""

    def __init__(self, project: Project, output: Output, *, is_check: bool) -> None:
        self.project = project
        self.output = output
        self.is_check = is_check
        self.rows: list[dict[str, Any]] = []
        self.code = OK

    def run(self, paths: list[Path]) -> int:
        """Format the files, and say what was found."""
        errors: list[GoldentraceError] = []
        for path in paths:
            try:
                self.one(path)
            except GoldentraceError as error:
                errors.append(error)
                self.rows.append({"path": str(path), "status": "unreadable", "what": str(error)})
        if errors and len(paths) == 1:
            raise errors[0]
        if errors:
            self.code = NO_VERDICT
        if self.output.format == "json":
            self.output.put_json({"command": "fmt", "files": self.rows, "exit_code": self.code})
            return self.code
        for failure in errors:
            lines = str(failure).split("\n")
            self.output.say("\n".join([f"goldentrace: {lines[0]}", *lines[1:]]), level=-1)
        for row in self.rows:
            if row["status"] not in ("canonical", "unreadable") or self.output.verbosity > 0:
                self.output.put_lines([f"{row['path']}: {row['what']}"])
        return self.code

    def one(self, path: Path) -> None:
        """Format one file. Raises: InputError, ConfigError where it is damaged."""
        found = self.read(path)
        for line, what in found.problems:
            self.rows.append({"path": f"{found.shown}:{line}", "status": "problem", "what": what})
            self.code = CHANGED
        if found.is_canonical:
            self.rows.append({"path": found.shown, "status": "canonical", "what": "in canonical form"})
        elif self.is_check:
            what = "not in canonical form: goldentrace fmt writes it so"
            self.rows.append({"path": found.shown, "status": "not-canonical", "what": what})
            self.code = CHANGED
        else:
            write_atomically(path, found.canonical)
            self.rows.append({"path": found.shown, "status": "formatted", "what": "formatted"})

    def read(self, path: Path) -> Formatted:
        shown = self.project.shown(path)
        try:
            data = read_file(path)
        except OSError as error:
            reason = (error.strerror or "unknown error").lower()
            raise InputError(f"cannot be read: {reason}", where=Where(shown), next_step="check the file") from None
        if path.suffix in PROFILE_SUFFIXES:
            canonical = format_profile(data, shown)
            return Formatted(shown, data, canonical)
        return format_golden(data, shown)
