"""Archives of files (zip, tar in any compression): each member that is a regular file is a document of its own.

Members are read where they are, in the order of their names; nothing is unpacked to disk. What a table or a header
claims bounds nothing: what comes out is counted. Must not know any format.
"""

import bisect
import fnmatch
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Protocol

from goldentrace.errors import InputError, Where
from goldentrace.sources.archivefaults import member_name
from goldentrace.sources.bytestream import Opener, Progress, guard
from goldentrace.sources.document import Document
from goldentrace.sources.tararchive import TarArchive
from goldentrace.sources.ziparchive import ZipArchive


def members(document: Document) -> Iterator[Document]:
    """Yield each regular file of an archive, by name, but for those that were read beside an earlier one.

    Links and devices go to `left_out`. A document may be read until the next one is asked for. Raises: InputError for
    an archive that is damaged, encrypted, packed in a way that is not read, too large or ambiguous.
    """
    with _opened(document) as archive:
        document.left_out += archive.others
        spent = _Spent(document)
        read: set[str] = set()
        for name in archive.names:
            if name not in read:
                yield _member(document, archive, name, spent, read)


class _Archive(Protocol):
    """names: of regular files, sorted; others: as they are shown."""

    names: list[str]
    others: list[str]

    def opener(self, name: str) -> Opener:
        """Return what opens a member from its start, again and again."""


class _Spent:
    """How much all that was read of an archive unpacks to; what is read again counts once."""

    def __init__(self, archive: Document) -> None:
        self._archive = archive
        self._size_bytes = 0

    def meter(self, name: str) -> Progress:
        """Return what is told how much of one member was read."""
        most_bytes = 0

        def tell(size_bytes: int) -> None:
            nonlocal most_bytes
            self._size_bytes += max(size_bytes - most_bytes, 0)
            most_bytes = max(size_bytes, most_bytes)
            if self._size_bytes > self._archive.max_bytes:
                raise InputError(
                    f"the archive unpacks to more than the limit of {self._archive.max_bytes:,} bytes",
                    where=Where(name), next_step="raise the limit with --max-bytes",
                )  # fmt: skip
            if self._archive.on_progress is not None:
                self._archive.on_progress(self._size_bytes)

        return tell


class _InArchive:
    """The files beside a member. What is opened is remembered in `read`: it is part of the run that asked for it."""

    def __init__(self, name: str, names: list[str], read: set[str], open_member: Callable[[str], Document]) -> None:
        path = PurePosixPath(name)
        self.name = path.name
        self._folder = name.removesuffix(path.name)
        self._names = names
        self._read = read
        self._open_member = open_member

    def paths(self, folder: str, pattern: str) -> list[str]:
        start = f"{self._folder}{folder}/"
        found: list[str] = []
        for place in range(bisect.bisect_left(self._names, start), len(self._names)):
            name = self._names[place]
            if not name.startswith(start):
                break
            if fnmatch.fnmatchcase(PurePosixPath(name).name, pattern):
                found.append(name.removeprefix(self._folder))
        return found

    def open(self, path: str) -> Document | None:
        name = self._folder + path
        place = bisect.bisect_left(self._names, name)
        if self._names[place : place + 1] != [name]:
            return None
        self._read.add(name)
        return self._open_member(name)


def _member(document: Document, archive: _Archive, name: str, spent: _Spent, read: set[str]) -> Document:
    def open_member(name: str) -> Document:
        known_as = member_name(document, name)
        opener = archive.opener(name)
        return Document(known_as, opener, max_bytes=document.max_bytes, on_progress=spent.meter(known_as))

    member = open_member(name)
    member.beside = _InArchive(name, archive.names, read, open_member)
    return member


@contextmanager
def _opened(document: Document) -> Iterator[_Archive]:
    if document.head.archive == "tar":
        yield TarArchive(document)
        return
    with guard(document.name, document.opener) as raw:
        yield ZipArchive(document, raw)
