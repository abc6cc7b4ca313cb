"""Zips: a table of the members, each of which is packed for itself and read at any place.

zipfile reads them; it believes the table, and keeps it. Must not know what the members are.
"""

import io
import stat
import zipfile
from functools import partial
from typing import IO, Any, Final

from goldentrace.errors import InputError, Where
from goldentrace.sources.archivefaults import AGAIN, check_count, check_new, member_name, shown, told
from goldentrace.sources.bytestream import BLOCK_BYTES, Opener, guard
from goldentrace.sources.document import Document
from goldentrace.sources.head import ZIP_MAGIC

TABLE_BYTES: Final = 16 << 20
"""The table of a zip, which is decoded at once: 300 bytes for each of MAX_MEMBERS."""
_LOCAL_HEADER_BYTES: Final = 30


class ZipArchive:
    """The regular files of a zip. raw: its bytes, as long as they are read. Raises: InputError where it is damaged."""

    def __init__(self, document: Document, raw: IO[bytes]) -> None:
        self._document = document
        if guard(document.name, raw.read, 4) not in ZIP_MAGIC:
            raise InputError(
                "a zip within a compressed file", where=Where(document.name), next_step="decompress it first"
            )
        with told(document.name):
            self._file = zipfile.ZipFile(_Table(raw))
        self._entries = self._checked(self._file.infolist())
        self.names = sorted(self._entries)
        self.others = sorted(shown(entry.filename) for entry in self._file.infolist() if _is_special(entry))

    def opener(self, name: str) -> Opener:
        return partial(self._open, self._entries[name])

    def _open(self, entry: zipfile.ZipInfo) -> IO[bytes]:
        name = self._name(entry)
        with told(name):
            return io.BufferedReader(_Unzipped(self._file.open(entry), name), BLOCK_BYTES)

    def _name(self, entry: zipfile.ZipInfo) -> str:
        return member_name(self._document, entry.filename)

    def _checked(self, entries: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        """The regular files by name. Raises: InputError for what cannot be read, or only in more than one way."""
        check_count(self._document.name, len(entries))
        files: dict[str, zipfile.ZipInfo] = {}
        end = 0
        for entry in sorted(entries, key=lambda each: each.header_offset):
            where = Where(self._name(entry))
            if entry.header_offset < end:
                raise InputError("shares its bytes with another member", where=where, next_step=AGAIN)
            end = entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size
            if entry.is_dir() or _is_special(entry):
                continue
            if entry.flag_bits & 1:
                raise InputError("is encrypted", where=where, next_step="unpack the archive with its password first")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(
                    f"is packed by method {entry.compress_type} of zip, which is not read", where=where,
                    next_step="unpack the archive first, or pack it with deflate",
                )  # fmt: skip
            check_new(entry.filename, files, where)
            files[entry.filename] = entry
        return files


class _Table:
    """The file of a zip as zipfile asks for it: a table is read at once, so that it must not be larger than that."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self.seek, self.tell, self.seekable, self.close = raw.seek, raw.tell, raw.seekable, raw.close

    def read(self, size: int = -1) -> bytes:
        if size > TABLE_BYTES:
            raise zipfile.BadZipFile(f"its table is larger than {TABLE_BYTES:,} bytes")
        return self._raw.read(size)


class _Unzipped(io.RawIOBase):
    """A member of a zip, whose damage is told as everywhere."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with told(self._name):
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _is_special(entry: zipfile.ZipInfo) -> bool:
    """Whether the mode that Unix writes says that it is a link or a device."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    return kind not in (0, stat.S_IFREG, stat.S_IFDIR)
