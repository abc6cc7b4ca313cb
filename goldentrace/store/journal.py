"""The journal: a file of events that a running agent appends to, and that loses nothing it has acknowledged.

One `write(2)` per event on a file opened with O_APPEND: the kernel places it, so that processes cannot overwrite each
other, and what was written survives the process. `seq`, clocks and checksum are settled under one lock. Which file a
process writes is `claim.py`'s. This module must never raise into an agent because a disk is full, and must not know
what an event means.

What a reader sees of a failure: a shard that could not take an event (no space, an input/output error, a write cut
short) gets no trace_end, so it is incomplete and no verdict is passed on it. Nor does a shard whose process was killed.

fdatasync runs only for write intents, the end and on closing, never in a thread that runs an event loop: it takes 4 ms,
12 at the 99th percentile, and stalled a loop for 18.
"""

import contextlib
import errno
import hashlib
import os
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from goldentrace.codec.trace import encode_event
from goldentrace.model.event import Event, TraceEnd, TraceStart
from goldentrace.store import claim
from goldentrace.store.clock import Clock, Moment, format_time, read_clock

UNKNOWN_END: Final = TraceEnd(outcome="unknown", stop_reason="unknown")
_datasync: Final = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
_HEADS: Final = {kind: b'{"type":"%b"' % str(kind.__struct_config__.tag).encode() for kind in Event.__subclasses__()}
"""What a line of each type begins with; seq and clocks follow it."""


def say_on_stderr(text: str) -> None:
    """Write one line to stderr, if there is one."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"goldentrace: {text}\n")
        sys.stderr.flush()


class Journal:
    """Appends events; see the module for what it promises.

    path: FILE of the run; header: the trace_start to write where FILE has none and at the head of each shard, without
    seq and clocks; is_new_run: what an earlier run left at FILE is replaced (only if it is a trace); say: takes one
    line for a person. Safe to use from threads, after a fork, and from a signal handler that interrupts it.
    """

    def __init__(
        self,
        path: Path,
        header: TraceStart,
        *,
        clock: Clock = time,
        is_new_run: bool = False,
        say: Callable[[str], None] = say_on_stderr,
    ) -> None:
        self._file = path
        self._header = header
        self._clock = clock
        self._say = say
        self._is_closed = False
        self._is_writing = False
        self._lacking: str | None = None
        self._make_locks()
        self._forget_file()
        with self._lock:
            self._try_to(partial(self._open, is_new_run=is_new_run))
        _LIVE.add(self)

    @property
    def path(self) -> Path:
        """The file that this process writes: FILE or a shard."""
        return self._path

    @property
    def is_broken(self) -> bool:
        """Could an event not be written? Nothing is written after it, and no trace_end."""
        return self._is_broken

    def append(self, event: Event, at: Moment | None = None) -> bool:
        """Write one event, and return whether it is in the file: True is an acknowledgement that a kill cannot undo.

        event: without seq, ts and mono_ns, which are set here; at: when it happened, default now. In one file the clock
        never goes back: an event that waited for a slower one's line gets that one's time. Raises: JsonError for a
        value in `extra` or `attributes` that JSON has no form for; nothing else.
        """
        line = encode_event(event)
        if line.find(b"\n") != len(line) - 1:
            line = (
                line[:-1].replace(b"\n", b" ") + b"\n"
            )  # white space between tokens of a Raw; in a string it is escaped
        moment = at or read_clock(self._clock)
        with self._lock:
            if self._is_writing:
                # A signal handler or a finalizer interrupted a write of this very thread; its event comes right after.
                self._deferred.append(partial(self.append, event, moment))
                return True
            self._is_writing = True
            try:
                return self._write(event, line, moment)
            finally:
                self._is_writing = False
                while self._deferred:
                    self._deferred.pop(0)()

    def end(self, event: TraceEnd) -> bool:
        """Write trace_end with the count and the checksum of all that stands before it; return whether it is there.

        An event after it goes to a shard of its own. A journal that is broken gets no trace_end.
        """
        is_written = self.append(event)
        self.sync()
        return is_written

    def close(self, unended: TraceEnd = UNKNOWN_END) -> None:
        """End the file, if nobody did, sync it and give it up. Events after it are not recorded."""
        with self._lock:
            if self._is_writing:
                self._deferred.append(partial(self.close, unended))
                return
            if self._is_closed:
                return
            if self._descriptor >= 0 and not self._is_ended:
                self.append(unended)
            self._is_closed = True
            self._let_go()

    def note_lack(self, why: str) -> None:
        """Have the end say that the recording is not whole: something that happened could not be recorded. why: the
        first reason stands."""
        if self._lacking is None:
            self._lacking = why

    def sync(self) -> None:
        """Have what was written survive a crash of the machine (a crash of the process it survives anyway).

        Waits, except in a thread that runs an event loop: there another thread does it, as waiting would stall the
        loop, and handing control back could reorder the agent's tasks or run a virtual clock ahead.
        """
        if self._descriptor >= 0 and not self._is_broken:
            self._run_off_loop(self._sync_now)

    # --- opening ----------------------------------------------------------------------------------------------------

    def _make_locks(self) -> None:
        self._lock = threading.RLock()  # re-entrant: a signal handler of the writing thread may record too
        self._sync_lock = threading.Lock()
        self._deferred: list[Callable[[], object]] = []
        self._is_writing = False

    def _forget_file(self) -> None:
        self._path = self._file
        self._descriptor = -1
        self._is_broken = False
        self._is_ended = False
        self._lacking = None
        self._is_sure_of_content = True
        self._count = 0
        self._size = 0
        self._hash = hashlib.sha256()
        self._last = Moment(0, 0)
        self._second = (-1, b"")

    def _try_to(self, open_it: Callable[[], None]) -> bool:
        try:
            open_it()
        except OSError as error:
            self._break(error.strerror or str(error))
        return not self._is_broken

    def _open(self, *, is_new_run: bool) -> None:
        if self._file.exists() and not self._file.is_file():
            self._open_device()
            return
        claimed = claim.claim_file(self._file, is_new_run=is_new_run)
        if claimed is None:
            if claim.read_last_line(self._file).startswith(_HEADS[TraceEnd]):
                self._say(f"{self._file} holds a finished trace; another run needs another file. Recording beside it.")
            self._open_shard()
            return
        self._descriptor, earlier = claimed
        if not earlier:
            self._write_header()
            return
        if self._header.states is not None or self._header.attributes is not None:
            # There is no second trace_start in a file, so what this one states has to stand at the head of a shard.
            os.close(self._descriptor)
            self._open_shard()
            return
        self._header = msgspec.structs.replace(self._header, trace_id=claim.trace_id_of(earlier))
        if not earlier.endswith(b"\n"):
            os.write(self._descriptor, b"\n")
            earlier += b"\n"
        self._account(earlier, 1)

    def _open_shard(self) -> None:
        self._descriptor, self._path = claim.open_shard(self._file)
        self._header = msgspec.structs.replace(self._header, trace_id=claim.trace_id_of(claim.read_head(self._file)))
        self._write_header()

    def _open_device(self) -> None:
        """A character device, as /dev/null or /dev/full; what would block or cannot be written is refused."""
        if not stat.S_ISCHR(self._file.stat().st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._write_header()

    def _write_header(self) -> None:
        self._write(self._header, encode_event(self._header), read_clock(self._clock))

    def enter_child(self) -> None:
        """Let go of the parent's file after a fork: the next event of this process opens a shard of its own."""
        if self._descriptor >= 0:
            os.close(self._descriptor)  # the parent's copy keeps the lock
        self._make_locks()
        self._forget_file()
        util = sys.modules.get("multiprocessing.util")
        if util is not None and not self._is_closed:
            # Its children leave by os._exit, after their own finalizers; those of the parent they have forgotten.
            util.register_after_fork(self, _close_with_process)

    # --- writing (all under the lock) -------------------------------------------------------------------------------

    def _write(self, event: Event, line: bytes, moment: Moment) -> bool:
        if not self._is_ready():
            return False
        if type(event) is TraceEnd:
            line = encode_event(self._with_totals(event))
        head = _HEADS[type(event)]
        seq, moment = self._count + 1, max(moment, self._last)
        line = b'%b,"seq":%d,"ts":"%b","mono_ns":%d%b' % (
            head,
            seq,
            self._ts(moment.time_ns),
            moment.mono_ns,
            line[len(head) :],
        )
        try:
            written = self._write_once(line)
            if written == len(line):
                self._account(line, seq)
        except OSError as error:
            self._break(error.strerror or str(error))
            return False
        except BaseException:  # a signal handler raised before, amid or after the write: the file knows
            self._is_sure_of_content = False
            if self._is_last(line):
                self._count = seq
            raise
        if written != len(line):
            self._break(f"only {written} of {len(line)} bytes were written")
            return False
        self._last = moment
        self._is_ended = type(event) is TraceEnd
        return True

    def _is_ready(self) -> bool:
        if self._is_closed:
            self._say(f"{self._file}: the recorder is closed; what happens after it is not recorded")
            return False
        if self._is_broken:
            return False
        if self._is_ended:
            self._let_go()
            self._forget_file()
        return self._descriptor >= 0 or self._try_to(self._open_shard)

    def _write_once(self, line: bytes) -> int:
        while True:
            try:
                return os.write(self._descriptor, line)
            except InterruptedError:
                continue  # nothing was written (write(2)); Python retries by itself, a replaced os.write may not

    def _account(self, line: bytes, count: int) -> None:
        self._hash.update(line)
        self._size += len(line)
        self._count = count

    def _is_last(self, line: bytes) -> bool:
        """Does the file end with this line? It holds its seq, so no other line is equal."""
        with contextlib.suppress(OSError):
            size = os.fstat(self._descriptor).st_size
            return os.pread(self._descriptor, len(line), max(0, size - len(line))) == line
        return False

    def _with_totals(self, event: TraceEnd) -> TraceEnd:
        """The event with what stands before it, and what does not; read back where another writer appended to the same
        file."""
        event = msgspec.structs.replace(event, incomplete=self._lacking)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            return msgspec.structs.replace(event, events=self._count)
        count, digest = self._count, self._hash
        if not self._is_sure_of_content or status.st_size != self._size:
            count, digest = 0, hashlib.sha256()
            with open(self._descriptor, "rb", closefd=False) as file:  # the path may be gone by now
                file.seek(0)
                for line in file:
                    digest.update(line)
                    count += not line.isspace()
        return msgspec.structs.replace(event, events=count, sha256=digest.hexdigest())

    def _ts(self, time_ns: int) -> bytes:
        seconds, rest_ns = divmod(time_ns, 1_000_000_000)
        if seconds != self._second[0]:
            self._second = (seconds, format_time(time_ns).encode()[:20])
        return b"%b%06dZ" % (self._second[1], rest_ns // 1000)

    def _break(self, reason: str) -> None:
        if self._is_broken:
            return
        self._is_broken = True
        self._say(f"{self._path}: {reason}; recording stops, the trace stays incomplete, the agent goes on")

    # --- syncing and letting go -------------------------------------------------------------------------------------

    def _run_off_loop(self, work: Callable[[], None]) -> None:
        """Run at once, or in a thread where this one runs an event loop. The interpreter waits for such a thread."""
        asyncio = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:  # noqa: SLF001 - documented for this use
            try:
                threading.Thread(target=work, name="goldentrace-sync").start()
            except RuntimeError:  # no threads any more: the interpreter is on its way out
                work()
        else:
            work()

    def _sync_now(self) -> None:
        with self._sync_lock:  # closing takes it too, so that the descriptor stays this file's
            if self._descriptor >= 0:
                self._datasync(self._descriptor)

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            claim.give_up_claim(descriptor)
            self._run_off_loop(partial(self._release, descriptor))

    def _release(self, descriptor: int) -> None:
        with self._sync_lock:
            self._datasync(descriptor)
            os.close(descriptor)

    def _datasync(self, descriptor: int) -> None:
        try:
            _datasync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):  # a device that has nothing to sync
                self._break(error.strerror or str(error))


_LIVE: weakref.WeakSet[Journal] = weakref.WeakSet()


def _after_fork() -> None:
    for journal in list(_LIVE):
        journal.enter_child()


os.register_at_fork(after_in_child=_after_fork)


def _close_with_process(journal: Journal) -> None:
    """Have a child of multiprocessing end its shard. Called by multiprocessing itself, in the child.

    A child that a signal ends does not get here. A handler for SIGTERM would close its shard too, but a process that is
    about to enter a blocking call, or is in one that Python cannot interrupt, would then no longer end when it is told
    to.
    """
    from multiprocessing import util

    util.Finalize(None, journal.close, exitpriority=0)
