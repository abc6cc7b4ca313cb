"""Where the bytes of an input come from: a file, a pipe, standard input, gzip, zstd; bounded, errors of one shape.

The only module of the sources that opens files. Must not know what the bytes mean.
"""

import errno
import io
import os
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
ZSTD_STEP_BYTES: Final = 1 << 10
"""Compressed bytes taken at once: a block of 4 bytes may stand for 128 KiB (RFC 8878, 3.1.1.2), so this is 32 MiB."""

PIPE_WAIT_S = 5.0
"""How long somebody may take to begin to write to a named pipe: opening one that nobody writes to never ends."""

_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

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
        copy.seek(0)
        return _View(copy)  # type: ignore[return-value]

    weakref.finalize(reopen, copy.close)
    return reopen


def open_bounded(name: str, opener: Opener, max_bytes: int, on_progress: Progress | None) -> IO[bytes]:
    """Return the bytes from the start: decompressed, at most max_bytes of them, without a BOM."""
    raw = guard(name, opener)
    stream = raw
    try:
        magic = guard(name, raw.read, 4)
        raw.seek(0)
        if magic[:2] == _GZIP:
            import gzip

            stream = gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[assignment]
        elif magic == _ZSTD:
            stream = _open_zstd(raw, name)
        bounded = io.BufferedReader(_Bounded(stream, raw, name, max_bytes, on_progress), BLOCK_BYTES)
        if guard(name, bounded.peek, len(_BOM))[: len(_BOM)] == _BOM:  # the first bytes may be damaged
            bounded.read(len(_BOM))
    except BaseException:
        raw.close()
        raise
    return bounded


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
    return _Zstd(raw, zstandard)  # type: ignore[return-value]


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


class _Zstd(io.RawIOBase):
    """Frames of zstd, one after another. zstandard's own reader takes a file that was cut off for a whole one."""

    def __init__(self, raw: IO[bytes], zstandard: Any) -> None:
        self._raw = raw
        self._zstandard = zstandard
        self._frame: Any = None
        self._rest = b""
        self._plain = bytearray()

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._plain) < size:
            packed = self._rest or self._raw.read(ZSTD_STEP_BYTES)
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
            self._frame = self._zstandard.ZstdDecompressor().decompressobj()
        try:
            self._plain += self._frame.decompress(packed)
        except self._zstandard.ZstdError as error:
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
    """A temporary copy that stays open when the view of it is closed."""

    def __init__(self, copy: Any) -> None:
        self._copy = copy

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._copy.seek(offset, whence))

    def read(self, size: int = -1) -> bytes:
        return bytes(self._copy.read(size))
