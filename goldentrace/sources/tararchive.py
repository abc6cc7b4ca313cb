"""Tars: members one after another, each behind its header; read forwards only, from the start whenever needed.

tarfile reads the headers; it takes damage for the end, and keeps what a header claims. Must not know what the members
are.
"""

import bisect
import io
import tarfile
from collections.abc import Iterator
from functools import partial
from typing import IO, Any, Final

from goldentrace.errors import InputError, Where
from goldentrace.sources.archivefaults import AGAIN, check_count, check_new, member_name, shown, told
from goldentrace.sources.bytestream import BLOCK_BYTES, Opener, guard, open_bounded
from goldentrace.sources.document import Document

HEADER_BYTES: Final = 256 << 10
"""All headers before one member together, and thereby its name: those of real ones take some KB."""
KEPT_BYTES: Final = 64 << 20
"""Members that are held at once: names stand in a tar in any order, and are read in their own."""


class TarArchive:
    """The regular files of a tar, whose headers are read at once. Raises: InputError where it is damaged."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._sizes: dict[str, int] = {}
        self._kept: dict[str, bytes] = {}
        self.others: list[str] = []
        for count, (entry, _) in enumerate(self._walk(), start=1):
            check_count(document.name, count)
            if entry.isreg() and not entry.issparse():
                check_new(entry.name, self._sizes, Where(self._name(entry.name)))
                self._sizes[entry.name] = entry.size
            elif not entry.isdir():
                self.others.append(shown(entry.name))
        self.others.sort()
        self.names = sorted(self._sizes)

    def opener(self, name: str) -> Opener:
        if self._sizes[name] > KEPT_BYTES:
            return partial(self._open, name)
        if name not in self._kept:
            self._keep_from(name)
        if name not in self._kept:
            raise self._changed(name)
        return partial(io.BytesIO, self._kept[name])

    def _keep_from(self, name: str) -> None:
        """Hold a member and those that follow it by name, as many as may be held."""
        self._kept = {}
        wanted: set[str] = set()
        size_bytes = 0
        for each in self.names[bisect.bisect_left(self.names, name) :]:
            size_bytes += self._sizes[each]
            if size_bytes > KEPT_BYTES:
                break
            wanted.add(each)
        for entry, file in self._walk():
            if entry.name in wanted and entry.isreg():
                self._kept[entry.name] = file.take(self._sizes[entry.name], self._name(entry.name))
                if len(self._kept) == len(wanted):
                    return

    def _open(self, name: str) -> IO[bytes]:
        walk = self._walk()
        file = next((file for entry, file in walk if entry.name == name and entry.isreg()), None)
        if file is None:
            raise self._changed(name)
        return io.BufferedReader(_Part(walk, file, self._sizes[name], self._name(name)), BLOCK_BYTES)

    def _changed(self, name: str) -> InputError:
        return InputError("the archive was changed while it was read", where=Where(self._name(name)), next_step=AGAIN)

    def _name(self, name: str) -> str:
        return member_name(self._document, name)

    def _walk(self) -> Iterator[tuple[tarfile.TarInfo, "_Forwards"]]:
        """Every member, and the file where its bytes begin."""
        document = self._document
        with open_bounded(document.name, document.opener, document.max_bytes, None) as stream:
            file = _Forwards(stream, document.name)
            with told(document.name):
                tar = tarfile.TarFile(fileobj=file)  # type: ignore[arg-type]
            while True:
                with told(document.name):
                    file.header_bytes = HEADER_BYTES
                    entry = tar.next()
                    if entry is None:
                        file.check_end()
                    elif entry.size < 0:
                        raise tarfile.ReadError("a size is below zero")
                if entry is None:
                    return
                tar.members = []  # type: ignore[attr-defined]  # it would keep every one
                entry.name = entry.name.removeprefix("./")  # as `tar -c .` writes all of them
                yield entry, file


class _Forwards:
    """The bytes of a tar as tarfile asks for them; it goes forwards only, and takes so much for a header.

    header_bytes: what tarfile may read yet; block: what it read last.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._place = 0
        self.header_bytes = HEADER_BYTES
        self.block = b""

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> None:
        if place < self._place:
            raise tarfile.ReadError("a size is below zero")
        while self._place < place and self._read(min(BLOCK_BYTES, place - self._place)):
            pass

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.header_bytes:
            raise tarfile.ReadError(f"a header of more than {HEADER_BYTES:,} bytes")
        self.header_bytes -= size
        self.block = self._read(size)
        return self.block

    def check_end(self) -> None:
        """Refuse what tarfile takes for the end too: damage, and that nothing more is there; read what fills a tape."""
        if len(self.block) < tarfile.BLOCKSIZE:
            raise tarfile.ReadError("it is cut off")
        rest = self.block
        while rest:
            if rest.strip(b"\0"):
                raise tarfile.ReadError("a header is none, or something follows the end")
            rest = self._read(BLOCK_BYTES)

    def take(self, size: int, name: str) -> bytes:
        """Return so many bytes of a member. Raises: InputError where there are less."""
        data = self._read(size)
        if len(data) < size:
            raise InputError("the archive is cut off within it", where=Where(name), next_step=AGAIN)
        return data

    def _read(self, size: int) -> bytes:
        data = guard(self._name, self._stream.read, size)
        self._place += len(data)
        return data


class _Part(io.RawIOBase):
    """A member of a tar that is too large to be held, in a walk of its own."""

    def __init__(self, walk: Iterator[Any], file: _Forwards, size: int, name: str) -> None:
        self._walk = walk
        self._file = file
        self._left = size
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._left)
        buffer[:size] = self._file.take(size, self._name)
        self._left -= size
        return size

    def close(self) -> None:
        self._walk.close()  # type: ignore[attr-defined]
        super().close()
