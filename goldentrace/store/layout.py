"""Where things lie in a project: goldens in git, everything else under `.goldentrace/`, which ignores itself.

Names of scenarios and suites are checked to be file names (`codec.config.check_name`), so every path here is lossless.
This module must not read or write what is in a file.
"""

import os
import shlex
from pathlib import Path
from typing import Final

import msgspec

from goldentrace.codec.config import check_name
from goldentrace.errors import ConfigError, InfrastructureError, Where

LOCAL_FOLDER: Final = ".goldentrace"
_IGNORE: Final = b"# Made by goldentrace: local runs, pending goldens and remembered values. Never committed.\n*\n"


class Layout(msgspec.Struct, frozen=True):
    """The places of one project.

    folder: absolute, the one that holds goldentrace.yaml; goldens: relative to it; artifacts: where candidates, logs
    and pending goldens go instead of `.goldentrace/`; base: absolute, what shown paths are relative to; options: those
    that named these places, for the commands that a message proposes.
    """

    folder: Path
    goldens: str = "goldens"
    artifacts: Path | None = None
    base: Path = msgspec.field(default_factory=Path.cwd)
    options: tuple[str, ...] = ()

    @property
    def local(self) -> Path:
        """The folder of what is never committed."""
        return self.folder / LOCAL_FOLDER

    @property
    def goldens_folder(self) -> Path:
        return self.folder / self.goldens

    def golden(self, name: str, suite: str | None) -> Path:
        """Return the file of a scenario's golden."""
        return _place(self.goldens_folder, name, suite, ".jsonl")

    def candidate(self, name: str, suite: str | None) -> Path:
        """Return the file of a scenario's latest run."""
        return _place(self._made("runs"), name, suite, ".jsonl")

    def log(self, name: str, suite: str | None) -> Path:
        """Return the file that keeps what the agent wrote to stdout and stderr."""
        return _place(self._made("runs"), name, suite, ".log")

    def pending(self, name: str, suite: str | None) -> Path:
        """Return the file of the golden that a diff proposes."""
        return _place(self.pending_folder, name, suite, ".jsonl")

    @property
    def pending_folder(self) -> Path:
        return self._made("pending")

    @property
    def values(self) -> Path:
        """The folder of remembered values, of this machine only."""
        return self.local / "values"

    @property
    def lock(self) -> Path:
        """The file whose holder may write goldens."""
        return self.local / "goldens.lock"

    def _made(self, name: str) -> Path:
        return (self.artifacts if self.artifacts is not None else self.local) / name

    def shown(self, path: Path) -> str:
        """Return a path as people are to read it: relative to where they stand, if it lies below or beside that."""
        if not path.is_absolute():
            return str(path)
        relative = os.path.relpath(path, self.base)
        return str(path) if Path(relative).parts[:3] == ("..", "..", "..") else relative

    def command(self, verb: str, *names: str, options: tuple[str, ...] = ()) -> str:
        """Return the command line that a message proposes, for the same places. options: further ones."""
        dashes = ["--"] if any(name.startswith("-") for name in names) else []
        return shlex.join(["goldentrace", verb, *self.options, *options, *dashes, *names])

    def make_local(self) -> None:
        """Make `.goldentrace/`, which git ignores by a file of its own. Raises: InfrastructureError."""
        make_folder(self.local)
        ignore = self.local / ".gitignore"
        if not ignore.exists():
            from goldentrace.store.atomic import write_atomically  # a comparison of two files writes nothing

            write_atomically(ignore, _IGNORE)

    def make_room(self, path: Path) -> Path:
        """Make the folders for a file inside the project (or the artifacts) and return the path.

        Raises: ConfigError where a symbolic link leads out of both; InfrastructureError where it cannot be made.
        """
        home = self.artifacts if self.artifacts is not None and path.is_relative_to(self.artifacts) else self.folder
        real_home, real = Path(os.path.realpath(home)), Path(os.path.realpath(path))
        if not real.is_relative_to(real_home):
            raise ConfigError(
                "the path leads out of the project folder", where=Where(self.shown(path)),
                next_step="remove the symbolic link: goldentrace writes only inside the project",
            )  # fmt: skip
        if path.is_relative_to(self.local):
            self.make_local()
        make_folder(path.parent)
        return path


def make_folder(path: Path) -> None:
    """Make a folder and those above it. Raises: InfrastructureError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"cannot make the folder: {error.strerror or error}", where=Where(str(path)), next_step="check the path"
        ) from None


def _place(folder: Path, name: str, suite: str | None, suffix: str) -> Path:
    check_name(name, "scenario")
    if suite:
        check_name(suite, "suite")
        folder = folder / suite
    return folder / (name + suffix)
