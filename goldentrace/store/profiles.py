"""Profiles on disk: the project's `normalizers/` first, then those that are shipped with the package.

Also the gate of a golden: its profile must still be there and say what it said. This module must not know what a
profile means for a trace.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

import goldentrace
from goldentrace.codec.patterns import remember
from goldentrace.codec.profile import profile_hash, read_profile, unknown_profile
from goldentrace.codec.yaml_document import read_yaml, show_pointer
from goldentrace.errors import ConfigError, NotComparableError, Where
from goldentrace.model.normal import Header
from goldentrace.model.profile import Profile
from goldentrace.sources.bytestream import read_file
from goldentrace.store.profile_check import check_profile, patterns_of

FOLDER: Final = "normalizers"
_NAME: Final = re.compile(r"(?P<stem>[A-Za-z0-9][A-Za-z0-9._-]*)(?:@(?P<number>[0-9]{1,6}))?")
"""A name is looked up as a file, so it can be nothing that leads elsewhere."""


class LoadedProfile(msgspec.Struct, frozen=True):
    """A profile with the digest that goldens carry, the file it came from, and the key of its digests, if it has
    one."""

    profile: Profile
    hash: str
    path: str
    key: bytes | None = None


class Profiles(msgspec.Struct):
    """Finds and keeps profiles. folder: of the project, None where there is no project."""

    folder: Path | None = None
    _loaded: dict[str, LoadedProfile] = msgspec.field(default_factory=dict)

    def load(self, name: str, where: Where | None = None) -> LoadedProfile:
        """Return the profile of that name; without a number the newest one.

        where: the place that names it, for the message. Raises: ConfigError where it does not exist, cannot be read, or
        names a policy, a code or a regular expression that is wrong.
        """
        found = self._loaded.get(name)
        if found is None:
            found = self._loaded[name] = self._load(self.newest(name, where), where)
        return found

    def of_golden(self, header: Header, path: str, *, record: str) -> LoadedProfile:
        """Return the profile that a golden was made with.

        record: the command that records the golden again. Raises: NotComparableError where the profile is gone or says
        something else now: digests cannot be made again.
        """
        again = f"record the golden again: {record}"
        try:
            found = self.load(header.profile, Where(path, 1, "$.profile"))
        except ConfigError as error:
            if not self._exists(header.profile):
                raise NotComparableError(
                    f"the golden's profile {header.profile!r} is gone", where=Where(path, 1, "$.profile"),
                    next_step=f"put it back under {FOLDER}/, or {again}",
                ) from None  # fmt: skip
            raise error from None
        if found.hash != header.profile_hash:
            raise NotComparableError(
                f"the golden was made with another {header.profile} ({header.profile_hash}, now {found.hash})",
                where=Where(path, 1, "$.profile_hash"), next_step=f"undo the change of {found.path}, or {again}",
            )  # fmt: skip
        return found

    def newest(self, name: str, where: Where | None = None) -> str:
        """Return the full name that a name without a number means. Raises: ConfigError where there is none."""
        parts = _NAME.fullmatch(name)
        if parts is None:
            raise ConfigError(
                f"{name!r} is no name of a profile", where=where, next_step="write it as NAME or NAME@NUMBER"
            )
        if parts["number"] is not None:
            return name
        numbers = [int(known.rpartition("@")[2]) for known in self.names() if known.rpartition("@")[0] == name]
        if numbers:
            return f"{name}@{max(numbers)}"
        if self._exists(name):
            return name
        error = unknown_profile(name, self.names())
        raise ConfigError(error.what, where=where, next_step=error.next_step)

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted."""
        return sorted({file.stem for folder in self._folders() if folder.is_dir() for file in folder.glob("*.yaml")})

    def _load(self, name: str, where: Where | None) -> LoadedProfile:
        found = self._find(name)
        if found is None:
            error = unknown_profile(name, self.names())
            raise ConfigError(error.what, where=where, next_step=error.next_step)
        data, path = found
        profile = read_profile(data, path, self._find)
        try:
            _check_name(profile, name, path)
            check_profile(profile, path)
            key = _key(profile, path)
        except ConfigError as error:
            raise _with_line(error, data, path) from None
        _remember_patterns(profile, data, path)
        return LoadedProfile(profile, profile_hash(profile), path, key)

    def _exists(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None and self._find(name) is not None

    def _find(self, name: str) -> tuple[bytes, str] | None:
        if _NAME.fullmatch(name) is None:
            return None
        for folder in self._folders():
            file = folder / f"{name}.yaml"
            try:
                return read_file(file), self._shown(file)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ConfigError(
                    f"the profile cannot be read: {error.strerror}",
                    where=Where(self._shown(file)),
                    next_step="check the file",
                ) from None
        return None

    def _folders(self) -> Iterator[Path]:
        if self.folder is not None:
            yield self.folder / FOLDER
        yield shipped_folder()

    def _shown(self, file: Path) -> str:
        if self.folder is not None and file.is_relative_to(self.folder):
            return str(file.relative_to(self.folder))
        return f"{FOLDER}/{file.name} (shipped)"


def shipped_folder() -> Path:
    """Return the folder of the shipped profiles: inside the installed package, else beside it in a checkout."""
    package = Path(goldentrace.__file__).parent
    inside = package / FOLDER
    return inside if inside.is_dir() else package.parent / FOLDER


def format_profile(data: bytes, path: str) -> bytes:
    """Return the canonical form of a profile's file: LF, no blanks at line ends, one LF at the end; comments stay.

    Raises: ConfigError where it is no valid profile, or where a text in it would change.
    """
    profile = read_yaml(data, path).convert(Profile)
    try:
        check_profile(profile, path)
    except ConfigError as error:
        raise _with_line(error, data, path) from None
    lines = [line.rstrip() for line in data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")]
    canonical = b"\n".join(lines).rstrip(b"\n") + b"\n"
    return canonical if read_yaml(canonical, path).convert(Profile) == profile else data


def _with_line(error: ConfigError, data: bytes, path: str) -> ConfigError:
    """The error with the line of the value that it is about, or of what holds it."""
    pointer = error.where.pointer if error.where is not None else None
    if pointer is None:
        return error
    lines = {show_pointer(place): line for place, line in read_yaml(data, path).lines.items()}
    inside = [shown for shown in lines if pointer == shown or pointer.startswith((f"{shown}.", f"{shown}["))]
    line = lines[max(inside, key=len)] if inside else None
    return ConfigError(error.what, where=Where(path, line, pointer), next_step=error.next_step)


def _check_name(profile: Profile, name: str, path: str) -> None:
    if profile.name != name:
        raise ConfigError(
            f"the profile is named {profile.name!r}, its file {name!r}", where=Where(path, None, "$.name"),
            next_step=f"name it {name!r}, or rename the file: a golden finds its profile by name",
        )  # fmt: skip


def _remember_patterns(profile: Profile, data: bytes, path: str) -> None:
    """A pattern that takes too long is found out far from here: its place is kept for the message."""
    patterns = list(patterns_of(profile))
    document = read_yaml(data, path) if patterns else None
    for pointer, text in patterns:
        assert document is not None
        remember(text, document.where(pointer))


def _key(profile: Profile, path: str) -> bytes | None:
    name = profile.arguments.key_env
    if name is None:
        return None
    value = os.environ.get(name)
    if not value:
        raise ConfigError(
            f"the key of the digests is not there: {name} is not set", where=Where(path, None, "$.arguments.key_env"),
            next_step=f"set {name}, as it was when the goldens were recorded",
        )  # fmt: skip
    return value.encode()
