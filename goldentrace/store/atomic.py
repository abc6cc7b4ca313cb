"""Whole files on disk: written to a temporary file and renamed, guarded by a lock where two programs could meet.

A golden, a report or a configuration is either the old one or the new one, never a half. Journals are not written here
(they are appended to). This module must not know what is in a file.
"""

import contextlib
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from goldentrace.errors import InfrastructureError, Where

NEW_FILE_MODE: Final = 0o666
"""Of a file that did not exist; the umask of the process is taken from it, as for any file a program makes."""


PIPE_WAIT_S = 5.0
"""How long somebody may take to begin to read from a named pipe."""


def write_atomically(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file so that every reader, also after a crash, sees the old content or the new one.

    data: the content, or its blocks one after another, for a file that need not stand in memory.

    The mode of an existing file is kept, a symbolic link is followed and stays; a device or a pipe (`/dev/null`,
    `/dev/stdout`) is written to, never replaced. Temporary file: same folder, removed on
    failure. Raises: InfrastructureError when the file cannot be written (no folder, no space, no permission).
    """
    target = Path(os.path.realpath(path))
    blocks = (data,) if isinstance(data, bytes) else data
    if _is_special(target):
        _write_through(target, blocks, path)
        return
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    try:
        try:
            _write_new(temporary, blocks, _mode_of(target))
            os.replace(temporary, target)  # noqa: PTH105 - the call whose guarantee is relied on (rename(2))
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write the file: {error.strerror or error}",
            where=Where(str(path)),
            next_step="the old content is untouched; make room or change the permissions, then run the command again",
        ) from error


def _is_special(path: Path) -> bool:
    """Is it there, and neither a file nor a folder? Replacing a device would take it from the whole machine."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _write_through(target: Path, blocks: Iterable[bytes], path: Path) -> None:
    try:
        with os.fdopen(_open_special(target), "wb", buffering=0) as file:
            for block in blocks:
                view = memoryview(block)
                while view:
                    view = view[file.write(view) or 0 :]
    except OSError as error:
        raise InfrastructureError(
            f"cannot write: {error.strerror or error}", where=Where(str(path)), next_step="name an ordinary file"
        ) from error


def _open_special(target: Path) -> int:
    """Open a device or a pipe. A pipe that nobody reads would never open: it is waited for a while."""
    until = time.monotonic() + PIPE_WAIT_S
    while True:
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "nobody reads from it") from None
            time.sleep(0.01)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _write_new(path: Path, blocks: Iterable[bytes], mode: int | None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, NEW_FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.writelines(blocks)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a crash of the machine, where folders can be synced at all."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def hold_lock(path: Path, *, purpose: str) -> Iterator[None]:
    """Hold a lock file while the block runs; the second program gets an error that names the first.

    The lock is the kernel's (flock), so that it ends with its process, however that ends; the file's content only says
    who holds it, and a file that a dead process left behind is taken over. On a file system without flock the process
    id in the file decides, as well as it can. path: in an existing folder; purpose: what the holder does, as the other
    one will read it ("goldens are being recorded"). Raises: InfrastructureError when another process holds it, or when
    the file cannot be made.
    """
    try:
        descriptor = _acquire(path, purpose)
    except OSError as error:
        raise InfrastructureError(
            f"cannot make the lock file: {error.strerror or error}",
            where=Where(str(path)),
            next_step="check that the folder exists and can be written to",
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # before the lock is given up: a waiting program then sees that its file is not this one
        os.close(descriptor)


def _acquire(path: Path, purpose: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            owner = _read_owner(descriptor)
            if not try_flock(descriptor, or_else=partial(_is_abandoned, owner)):
                raise _held(path, owner)
            if not is_file_at(descriptor, path):
                os.close(descriptor)
                continue  # its owner removed it between our two calls
            os.ftruncate(descriptor, 0)
            myself = {
                "pid": os.getpid(),
                "host": os.uname().nodename,
                "program": Path(sys.argv[0]).name,
                "does": purpose,
            }
            os.pwrite(descriptor, msgspec.json.encode(myself) + b"\n", 0)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def try_flock(descriptor: int, *, or_else: Callable[[], bool] | None = None) -> bool:
    """Take the kernel's exclusive lock on an open file, without waiting. Ends with the last copy of the descriptor.

    or_else: decides where the system or the file system has no such lock; without it the answer is then False.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # ENOLCK, EOPNOTSUPP: no locks here
        return or_else is not None and or_else()
    return True


def is_file_at(descriptor: int, path: Path) -> bool:
    """Is the open file still the one that the path leads to?"""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read_owner(descriptor: int) -> dict[str, Any]:
    try:
        owner = msgspec.json.decode(os.pread(descriptor, 4096, 0))
    except (msgspec.DecodeError, OSError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _is_abandoned(owner: dict[str, Any]) -> bool:
    """Is the process that the file names gone? One on another host counts as alive: it cannot be asked."""
    pid = owner.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return True
    if owner.get("host") != os.uname().nodename:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _held(path: Path, owner: dict[str, Any]) -> InfrastructureError:
    pid, host = owner.get("pid"), owner.get("host")
    who = f"process {pid}" if isinstance(pid, int) else "another process"
    if isinstance(host, str) and host.isprintable() and host != os.uname().nodename:
        who += f" on {host}"
    does = owner.get("does")
    return InfrastructureError(
        f"{who} holds the lock" + (f": {does}" if isinstance(does, str) and does.isprintable() else ""),
        where=Where(str(path)),
        next_step=f"wait until {who} is done, then run the command again; if it hangs, end it: the lock ends with it",
    )
