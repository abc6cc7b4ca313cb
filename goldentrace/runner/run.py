"""One run of a scenario, and several at once.

Whatever ends a run, nothing that was started for it is left running. A failure of the surroundings is an
InfrastructureError: it says nothing about the agent.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

import goldentrace
from goldentrace.codec.trace import encode_event
from goldentrace.errors import GoldentraceError, InfrastructureError, Where
from goldentrace.model.event import FORMAT, TraceStart
from goldentrace.record.limits import LIMITS_VARIABLE
from goldentrace.record.payloads import STORAGE_VARIABLE
from goldentrace.record.recorder import SCENARIO_VARIABLE, SEED_VARIABLE
from goldentrace.record.session import TRACE_VARIABLE
from goldentrace.runner.child import Child
from goldentrace.runner.collect import Ending, check_recorded, encode_trace, finish, join, read_run
from goldentrace.runner.job import Breach, Job, RunResult
from goldentrace.runner.log_tail import last_lines
from goldentrace.runner.metering import TraceMeter, limits_text
from goldentrace.runner.services import Services
from goldentrace.runner.watch import TraceWatch
from goldentrace.store.atomic import hold_lock, write_atomically
from goldentrace.store.clock import Moment, format_time, read_clock
from goldentrace.store.reader_notes import reader_notes, unknown_types

LOOK_S: Final = 0.03
"""Between two looks at a running command: a limit is seen well within one call of a tool."""

Watcher = Callable[[Job], None]


class InterruptedRunError(InfrastructureError):
    """The run was given up because somebody asked goldentrace to stop."""


def run_job(job: Job, *, stop: threading.Event | None = None, on_look: Watcher | None = None) -> RunResult:
    """Run a scenario's command and leave its trace in `job.trace`.

    stop: set by another thread to give up; on_look: called now and then while it runs. Raises: InfrastructureError
    where the command cannot be started, recorded nothing, or a server failed; ConfigError for a fault plan or a script;
    InputError for a trace that cannot be read. `job.trace` is then not there.
    """
    job.trace.parent.mkdir(parents=True, exist_ok=True)
    live = job.trace.with_name(job.trace.name.removesuffix(".jsonl") + ".live")
    with hold_lock(live.with_suffix(".lock"), purpose=f"{job.name} is being run"):
        job.trace.unlink(missing_ok=True)
        shutil.rmtree(live, ignore_errors=True)
        live.mkdir()
        result = _run_in(job, live, stop or threading.Event(), on_look)
        shutil.rmtree(live, ignore_errors=True)
    return result


def _run_in(job: Job, live: Path, stop: threading.Event, on_look: Watcher | None) -> RunResult:
    file = live / "trace.jsonl"
    began = time.monotonic()
    with Services(job, live) as services:
        _write_start(file, job)
        environment = {**job.env, **services.environment(), **_variables(job, file)}
        child = Child(job.command, folder=job.folder, log=job.log, env=environment)
        breach, stopped, exit_code = _watch(child, job, file, stop, on_look)
        if on_look is not None:
            on_look(job)
        services.stop()
        wall_ms = (time.monotonic() - began) * 1000
        notes = services.check() if breach is None else []
        trace, lacking = read_run(file, job.shown(job.trace))
        read = trace.notes
        trace = join(trace, services.model_events(), services.tool_events(), exit_code)
    check_recorded(trace, job, Ending(exit_code, breach), read)
    trace, breach = finish(trace, job, Ending(exit_code, breach, stopped, lacking))
    write_atomically(job.trace, encode_trace(trace))
    if lacking is not None and breach is None:
        notes.append(f"the trace is incomplete: {lacking}")
    return RunResult(
        job,
        len(trace.events),
        wall_ms,
        exit_code if exit_code >= 0 else None,
        _signal_name(exit_code),
        breach,
        (*notes, *reader_notes(read)),
        tuple(unknown_types(read)),
        tuple(last_lines(job.log, job.profile.redact)) if exit_code != 0 and breach is None else (),
    )


def _watch(
    child: Child, job: Job, file: Path, stop: threading.Event, on_look: Watcher | None
) -> tuple[Breach | None, Moment | None, int]:
    """Let the command run to its end or to a limit; return the limit, when it was stopped, and its code."""
    watch = TraceWatch(file, TraceMeter(job.limits, job.profile))
    most_ms = job.limits.value("max_wall_ms")
    is_stopped = True
    breach: Breach | None = None
    moment: Moment | None = None
    try:
        while breach is None:
            if child.wait(LOOK_S):
                is_stopped = False
                break
            if stop.is_set():
                raise InterruptedRunError(f"{job.name}: the run was interrupted", next_step="run it again")
            if on_look is not None:
                on_look(job)
            took_ms = (time.monotonic() - child.started_s) * 1000
            if most_ms is not None and took_ms > most_ms:
                breach = Breach("max_wall_ms", round(took_ms), most_ms, "wall_clock_limit")
            else:
                breach = watch.look()
            if breach is not None:
                moment = read_clock(time)
    finally:
        exit_code = child.end(is_stopped=is_stopped)
    return breach, moment, exit_code


def _write_start(file: Path, job: Job) -> None:
    moment = read_clock(time)
    start = TraceStart(
        format=FORMAT,
        trace_id=uuid.uuid4().hex,
        scenario_id=job.name,
        seed=job.seed,
        source=f"goldentrace-run/{goldentrace.__version__}",
        cwd=str(job.folder),
        home=os.environ.get("HOME"),
        tmp=os.path.realpath(tempfile.gettempdir()),
        ts=format_time(moment.time_ns),
        mono_ns=moment.mono_ns,
        seq=1,
    )
    file.write_bytes(encode_event(start))
    file.chmod(0o600)


def _variables(job: Job, file: Path) -> dict[str, str]:
    """What the command finds in its environment."""
    redact = msgspec.to_builtins(job.profile.redact)
    storage = {**msgspec.to_builtins(job.storage), **({"redact": redact} if redact else {})}
    found = {
        TRACE_VARIABLE: str(file),
        SCENARIO_VARIABLE: job.name,
        LIMITS_VARIABLE: limits_text(job.limits),
        STORAGE_VARIABLE: msgspec.json.encode(storage).decode(),
    }
    return found if job.seed is None else {**found, SEED_VARIABLE: str(job.seed)}


def _signal_name(exit_code: int) -> str | None:
    if exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def run_jobs(
    jobs: Sequence[Job], *, count: int = 1, on_look: Watcher | None = None
) -> Iterator[tuple[Job, RunResult | GoldentraceError]]:
    """Run several scenarios, `count` at a time, and yield each as it ends, in the order of the jobs.

    One that fails does not stop the others. An interrupt, or SIGTERM, ends all commands first. Must be called in the
    main thread, where signals arrive.
    """
    stop = threading.Event()
    with _termination(stop), ThreadPoolExecutor(count, thread_name_prefix="goldentrace-run") as pool:
        futures = [pool.submit(_safely, job, stop, on_look) for job in jobs]
        try:
            for job, future in zip(jobs, futures, strict=True):
                yield job, _result(future, stop)
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


def _result(future: "Future[RunResult | GoldentraceError]", stop: threading.Event) -> RunResult | GoldentraceError:
    """Wait in steps: a signal is handled between them, whatever the thread library does."""
    while not wait([future], timeout=0.2, return_when=FIRST_COMPLETED).done:
        if stop.is_set():
            raise KeyboardInterrupt
    return future.result()


def _safely(job: Job, stop: threading.Event, on_look: Watcher | None) -> RunResult | GoldentraceError:
    if stop.is_set():
        return InterruptedRunError(f"{job.name}: the run was interrupted", next_step="run it again")
    try:
        return run_job(job, stop=stop, on_look=on_look)
    except GoldentraceError as error:
        return error
    except OSError as error:
        return InfrastructureError(
            f"{job.name}: {error.strerror or error}",
            where=Where(str(error.filename or job.trace)),
            next_step="run it again",
        )


@contextlib.contextmanager
def _termination(stop: threading.Event) -> Iterator[None]:
    """While commands run, SIGTERM ends them before it ends this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = signal.signal(signal.SIGTERM, give_up)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
