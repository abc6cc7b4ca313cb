"""Where the bytes of an input come from: a file, a pipe, standard input, packed or not; bounded, errors of one shape.

The only module of the sources that opens files. Must not know what the bytes mean.
"""

import errno
import io
import os
import re
import stat
import sys
import time
import weakref
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from goldentrace.errors import InputError, Where

STDIN: Final = "-"
STDIN_NAME: Final = "<stdin>"
SPOOL_BYTES: Final = 32 << 20
BLOCK_BYTES: Final = 1 << 20
MAX_FILE_BYTES: Final = 1 << 30
STEP_BYTES: Final = 1 << 10
"""Compressed bytes taken at once: a block of 4 bytes of zstd may stand for 128 KiB (RFC 8878, 3.1.1.2), so this is 32
MiB; bytes of xz stand for less."""
XZ_MEMORY_BYTES: Final = 128 << 20
"""What a decoder of xz may take: `xz -9` needs 65 MiB, a header may claim 4 GiB."""

PIPE_WAIT_S = 5.0
"""How long somebody may take to begin to write to a named pipe: opening one that nobody writes to never ends."""

_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_BZIP2: Final = re.compile(rb"BZh[1-9]1AY&SY")
_XZ: Final = b"\xfd7zXZ\0"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_MAGIC_BYTES: Final = 10

Opener = Callable[[], IO[bytes]]
Progress = Callable[[int], None]
Value = TypeVar("Value")


def guard(name: str, action: Callable[..., Value], *arguments: int) -> Value:
    """Return action(*arguments). Raises: InputError naming the input where reading it or decompressing it fails."""
    try:
        return action(*arguments)
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"the compressed data is damaged: {error}", where=Where(name), next_step="copy or export it again"
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be read: {reason}", where=Where(name), next_step="check the file") from None


def too_large(name: str, max_bytes: int) -> InputError:
    """Return the error for an input beyond its limit."""
    return InputError(
        f"larger than the limit of {max_bytes:,} bytes", where=Where(name), next_step="raise the limit with --max-bytes"
    )


def file_opener(file: Path, max_bytes: int) -> Opener:
    """Return what opens a file from its start, again and again; a pipe is copied first.

    Raises: InputError where it is missing, a directory, a device, unreadable or larger than max_bytes.
    """
    name = str(file)
    status = _status(file)
    if stat.S_ISREG(status.st_mode):
        if status.st_size > max_bytes:
            raise too_large(name, max_bytes)
        return lambda: file.open("rb")
    if not stat.S_ISFIFO(status.st_mode):
        what = "is a directory" if stat.S_ISDIR(status.st_mode) else "is no regular file"
        raise InputError(what, where=Where(name), next_step="name a file, or - for standard input")
    with guard(name, lambda: open_pipe(file)) as stream:
        return spool(stream, name, max_bytes)


def read_file(file: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return what a file holds, or what is written to a pipe.

    Raises: OSError with a reason to show, also for a device, for a pipe that nobody writes to, and beyond max_bytes.
    """
    try:
        mode = file.stat().st_mode
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have this name") from None
    if stat.S_ISFIFO(mode):
        stream: IO[bytes] = open_pipe(file)
    elif stat.S_ISREG(mode):
        stream = file.open("rb")
    else:
        raise OSError(errno.EINVAL, "it is a directory" if stat.S_ISDIR(mode) else "it is no regular file")
    blocks: list[bytes] = []
    left = max_bytes
    with stream:
        while block := stream.read(BLOCK_BYTES):
            blocks.append(block)
            left -= len(block)
            if left < 0:
                raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes")
    return b"".join(blocks)


def open_pipe(file: Path) -> IO[bytes]:
    """Return what is written to a named pipe. Raises: OSError where nobody begins to write within PIPE_WAIT_S."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        first = _first_bytes(descriptor)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return io.BufferedReader(_Pipe(first, descriptor), BLOCK_BYTES)


def _first_bytes(descriptor: int) -> bytes:
    """What stands in a pipe, none where somebody has it open and did not write yet."""
    until = time.monotonic() + PIPE_WAIT_S
    while True:
        try:
            first = os.read(descriptor, io.DEFAULT_BUFFER_SIZE)
        except BlockingIOError:
            return b""
        if first:
            return first
        if time.monotonic() > until:
            raise OSError(errno.ENXIO, "nobody writes to the pipe")
        time.sleep(0.01)


def stdin_opener(max_bytes: int) -> Opener:
    """Return what opens a copy of standard input."""
    return spool(sys.stdin.buffer, STDIN_NAME, max_bytes)


def spool(stream: IO[bytes], name: str, max_bytes: int) -> Opener:
    """Copy what can be read only once, and return what opens the copy. Raises: InputError beyond max_bytes."""
    import tempfile  # slow to import, and most files are read where they are

    copy = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 (lives as long as its opener)
    size_bytes = 0
    while block := guard(name, stream.read, BLOCK_BYTES):
        size_bytes += len(block)
        if size_bytes > max_bytes:
            raise too_large(name, max_bytes)
        copy.write(block)

    def reopen() -> IO[bytes]:
        return _View(copy)  # type: ignore[return-value]

    weakref.finalize(reopen, copy.close)
    return reopen


def open_bounded(name: str, opener: Opener, max_bytes: int, on_progress: Progress | None) -> IO[bytes]:
    """Return the bytes from the start: decompressed, at most max_bytes of them, without a BOM."""
    raw = guard(name, opener)
    try:
        bounded = io.BufferedReader(_Bounded(_decompressed(raw, name), raw, name, max_bytes, on_progress), BLOCK_BYTES)
        if guard(name, bounded.peek, len(_BOM))[: len(_BOM)] == _BOM:  # the first bytes may be damaged
            bounded.read(len(_BOM))
    except BaseException:
        raw.close()
        raise
    return bounded


def _decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """The bytes as they are, or what they are compressed from; the first of them tell."""
    stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw, BLOCK_BYTES)  # type: ignore[type-var]
    magic = guard(name, stream.peek, _MAGIC_BYTES)[:_MAGIC_BYTES]
    if magic.startswith(_GZIP):
        import gzip

        return gzip.GzipFile(fileobj=stream, mode="rb")  # type: ignore[return-value]
    if _BZIP2.match(magic):
        import bz2

        return bz2.BZ2File(stream)
    if magic.startswith(_XZ):
        import lzma

        return _Frames(stream, lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES), lzma.LZMAError)  # type: ignore[return-value]
    if magic.startswith(_ZSTD):
        return _open_zstd(stream, name)
    return stream


def _status(file: Path) -> Any:
    where = Where(str(file))
    try:
        return file.stat()
    except FileNotFoundError:
        raise InputError("no such file", where=where, next_step="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where, next_step="check the path") from None
    except ValueError:
        raise InputError("no file can have this name", where=where, next_step="check the path") from None


def _open_zstd(raw: IO[bytes], name: str) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        raise InputError(
            "is compressed with zstd", where=Where(name), next_step="pip install goldentrace[zstd], or decompress it"
        ) from None
    return _Frames(raw, lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError)  # type: ignore[return-value]


class _Pipe(io.RawIOBase):
    """The first bytes of a pipe, then the rest of it."""

    def __init__(self, first: bytes, descriptor: int) -> None:
        self._first = first
        self._rest = os.fdopen(descriptor, "rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._first:
            return self._rest.readinto(buffer)
        size = min(len(buffer), len(self._first))
        buffer[:size], self._first = self._first[:size], self._first[size:]
        return size

    def close(self) -> None:
        self._rest.close()
        super().close()


class _Frames(io.RawIOBase):
    """Frames of zstd or streams of xz, one after another.

    The libraries' own readers take a file of zstd that was cut off for a whole one, and all memory that xz asks for.
    """

    def __init__(self, raw: IO[bytes], new_decoder: Callable[[], Any], error: type[Exception]) -> None:
        self._raw = raw
        self._new_decoder = new_decoder
        self._error = error
        self._frame: Any = None
        self._rest = b""
        self._plain = bytearray()

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._plain) < size:
            packed = self._rest or self._raw.read(STEP_BYTES)
            self._rest = b""
            if not packed:
                if self._frame is not None:
                    raise EOFError("the last frame was cut off")
                break
            self._decompress(packed)
        size = len(self._plain) if size < 0 else size
        taken = bytes(self._plain[:size])
        del self._plain[:size]
        return taken

    def _decompress(self, packed: bytes) -> None:
        if self._frame is None:
            self._frame = self._new_decoder()
        try:
            self._plain += self._frame.decompress(packed)
        except self._error as error:
            raise EOFError(str(error)) from None
        if self._frame.eof:
            self._rest = self._frame.unused_data
            self._frame = None


class _Bounded(io.RawIOBase):
    """Counts what is read, refuses more than the limit, tells the progress."""

    def __init__(
        self, stream: IO[bytes], raw: IO[bytes], name: str, max_bytes: int, on_progress: Progress | None
    ) -> None:
        self._stream = stream
        self._raw = raw
        self._name = name
        self._max_bytes = max_bytes
        self._on_progress = on_progress
        self._size_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._size_bytes += len(data)
        if self._size_bytes > self._max_bytes:
            raise too_large(self._name, self._max_bytes)
        buffer[: len(data)] = data
        if self._on_progress is not None:
            self._on_progress(self._size_bytes)
        return len(data)

    def readall(self) -> bytes:
        blocks: list[bytes] = []
        buffer = bytearray(BLOCK_BYTES)
        while size_bytes := self.readinto(buffer):
            blocks.append(bytes(buffer[:size_bytes]))
        return b"".join(blocks)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()


class _View(io.RawIOBase):
    """A temporary copy from its start; others may look at it too, and it stays open when this view is closed."""

    def __init__(self, copy: Any) -> None:
        self._copy = copy
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == os.SEEK_CUR:
            offset, whence = self._place + offset, os.SEEK_SET
        self._place = int(self._copy.seek(offset, whence))
        return self._place

    def readinto(self, buffer: Any) -> int:
        self._copy.seek(self._place)
        data = self._copy.read(len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)
