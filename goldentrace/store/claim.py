"""Who writes which file of a run: FILE itself, or a shard `FILE.<pid>-<n>` beside it.

FILE belongs to whoever (1) holds the kernel's lock on it (flock, for life: a crash cannot leave it behind, and it needs
no second file) and (2) finds nothing in it but a trace_start. The second condition makes the first one enough: once a
recorder has written, a restarted process finds more than a trace_start and takes a shard. So `seq` never starts twice
in one file, nothing follows a trace_end, and a torn tail stays the end of its file, where a reader can tell it from
damage. Writers in other languages append whole lines to FILE without a lock; they are neither disturbed nor counted
out. A file made with O_EXCL as the claim was the alternative: it outlives a crash, and whether its maker lives is a
guess about process ids.

This module must not write events.
"""

import contextlib
import errno
import fcntl
import glob
import itertools
import os
import re
from functools import partial
from pathlib import Path
from typing import Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.store.atomic import is_file_at, try_flock

FILE_MODE: Final = 0o600
"""Traces hold what tools returned."""
HEADER_LIMIT_BYTES: Final = 1 << 20
"""A file longer than this holds more than a trace_start; attributes are small."""
_SHARD_SUFFIX: Final = re.compile(r"\.(?P<pid>\d+)-(?P<number>\d+)")
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


def shard_paths(path: Path) -> list[Path]:
    """Return the files of one recorded run that exist: FILE first, then its shards by process id and number."""
    found = []
    for candidate in path.parent.glob(glob.escape(path.name) + ".*-*"):
        match = _SHARD_SUFFIX.fullmatch(candidate.name.removeprefix(path.name))
        if match:
            found.append((int(match["pid"]), int(match["number"]), candidate))
    return [*([path] if path.exists() else []), *(candidate for _, _, candidate in sorted(found))]


def claim_file(path: Path, *, is_new_run: bool) -> tuple[int, bytes] | None:
    """Return FILE opened and locked, with what it holds (nothing, or one trace_start); None where it is somebody
    else's.

    is_new_run: a trace of an earlier run, and its shards, are removed first. Raises: OSError.
    """
    while True:
        try:
            descriptor, is_made_here = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, FILE_MODE), True
        except FileExistsError:
            descriptor, is_made_here = os.open(path, _FLAGS), False
        try:
            is_locked = try_flock(descriptor, or_else=partial(bool, is_made_here))
            is_current = is_file_at(descriptor, path)
            if is_locked and is_current:
                earlier = _content(path, descriptor, is_new_run=is_new_run)
                if not earlier or is_header(earlier):
                    return descriptor, earlier
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if is_current:
            return None


def open_shard(path: Path) -> tuple[int, Path]:
    """Return a new shard of FILE for this process, opened, and its path. Raises: OSError."""
    for number in itertools.count():
        shard = path.with_name(f"{path.name}.{os.getpid()}-{number}")
        with contextlib.suppress(FileExistsError):
            return os.open(shard, _FLAGS | os.O_CREAT | os.O_EXCL, FILE_MODE), shard
    raise AssertionError


def give_up_claim(descriptor: int) -> None:
    """Unlock a file that stays open a little longer."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _content(path: Path, descriptor: int, *, is_new_run: bool) -> bytes:
    earlier = os.pread(descriptor, HEADER_LIMIT_BYTES + 1, 0)
    if not is_new_run or not earlier or is_header(earlier):
        return earlier
    if not is_header(earlier.partition(b"\n")[0]):
        raise OSError(errno.EEXIST, "the file is there and is no trace, so it is left alone")
    for shard in shard_paths(path)[1:]:
        shard.unlink(missing_ok=True)
    os.ftruncate(descriptor, 0)
    return b""


def is_header(data: bytes) -> bool:
    """Is this one trace_start and nothing else?"""
    lines = data.splitlines()
    if len(data) > HEADER_LIMIT_BYTES or len(lines) != 1:
        return False
    try:
        value = decode(lines[0])
    except JsonError:
        return False
    return isinstance(value, dict) and value.get("type") == "trace_start"


def read_head(path: Path) -> bytes:
    """Return the first line of FILE, as far as it is there."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.readline(HEADER_LIMIT_BYTES)
    return b""


def read_last_line(path: Path) -> bytes:
    """Return the last line of FILE with its LF, if it has one, as far as it fits into HEADER_LIMIT_BYTES."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - HEADER_LIMIT_BYTES))
        lines = file.read().splitlines(keepends=True)
        return lines[-1] if lines else b""
    return b""


def trace_id_of(head: bytes) -> str | None:
    """Return the trace_id in a trace_start line; None where it states none, or is not written yet."""
    if not is_header(head):
        return None
    found = decode(head.splitlines()[0]).get("trace_id")
    return found if isinstance(found, str) else None
