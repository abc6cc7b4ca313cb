"""From the files of a run to its one trace: shards and server journals joined, cut at the limit, ended, storable.

What a limit means is settled here from the events alone, so that it does not depend on how fast the command was
stopped: what the agent did after the event that passed the limit is left out, and counted. This module must not start
or stop anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from goldentrace.codec.shards import merge
from goldentrace.codec.trace import NO_END, encode_event, read_trace
from goldentrace.errors import InfrastructureError, Where
from goldentrace.model.event import (
    AnyEvent,
    Limit,
    ModelTurn,
    ToolCall,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.trace import Note, Trace
from goldentrace.runner.job import Breach, Job
from goldentrace.runner.log_tail import last_lines
from goldentrace.runner.metering import TraceMeter
from goldentrace.sources.bytestream import read_file
from goldentrace.store.claim import shard_paths
from goldentrace.store.clock import Moment, format_time
from goldentrace.store.reader_notes import reader_notes, unknown_types
from goldentrace.store.storage import Storage


def _read(path: Path, shown: str) -> bytes:
    """What a process of the run wrote; an agent may put anything in the place of its trace."""
    try:
        return read_file(path)
    except OSError as error:
        raise InfrastructureError(
            f"the trace of the run cannot be read: {error.strerror or error}", where=Where(shown),
            next_step="the command must append to the file that is there, and leave it there",
        ) from error  # fmt: skip


def read_run(file: Path, shown: str) -> tuple[Trace, str | None]:
    """Return what the agent wrote, FILE and its shards as one trace, and why it is not whole, None if it is.

    A FILE that only lacks its trace_end is whole: the agent need not write one. A recorder always writes it, except
    where it could not record something or was killed. Raises: InputError naming the damaged line.
    """
    traces: list[Trace] = []
    lacking: list[str] = []
    for path in shard_paths(file):
        data = _read(path, shown)
        if not data:
            if path != file:  # its process was ended before its first line, or could not write it
                lacking.append(f"{shown}{path.name.removeprefix(file.name)}: a process of the run wrote nothing")
            continue
        trace = read_trace(data, shown + path.name.removeprefix(file.name))
        traces.append(trace)
        is_own_matter = path == file and trace.incomplete == NO_END and not _is_recorders(trace.events)
        if trace.incomplete is not None and not is_own_matter:
            lacking.append(trace.incomplete if path == file else f"{trace.path}: {trace.incomplete}")
    if not traces:
        raise InfrastructureError(
            "the command removed the trace that it was to write", where=Where(shown), next_step="append to it only"
        )
    return merge(traces), "; ".join(lacking) or None


def _is_recorders(events: Sequence[AnyEvent]) -> bool:
    """Did a recorder write these? Its journal numbers and times every event behind the trace_start."""
    rest = events[1:]
    return bool(rest) and all(event.seq is not None and event.mono_ns is not None for event in rest)


def join(trace: Trace, model: list[AnyEvent], tools: list[AnyEvent], exit_code: int) -> Trace:
    """Return the trace with what the servers saw: nothing twice, the agent's word for what it recorded itself.

    model: the scripted model's side, used where the agent recorded neither turns nor calls, and its turns where it
    recorded calls alone; tools: the tool server's; exit_code: of the command. A silent agent that ended well after a
    turn without calls ended with its final answer.
    """
    is_silent = not any(isinstance(event, ModelTurn | ToolCall) for event in trace.events)
    if is_silent and (model or tools):
        start = msgspec.structs.replace(trace.start, states=[])  # neither server can say what the agent decided
        rest = trace.events[1:]
        if trace.end is None and exit_code == 0 and _ends_with_answer(model):
            rest = [*rest, TraceEnd(outcome="unknown", stop_reason="final_answer")]
        trace = msgspec.structs.replace(trace, events=[start, *model, *rest], lines=None)
    elif not any(isinstance(event, ModelTurn) for event in trace.events):
        turns = [_for_agent(event, trace) for event in model if isinstance(event, ModelTurn)]
        if turns:
            trace = merge([trace, Trace([trace.start, *turns], trace.path)])
    if tools:
        from goldentrace.faults.merge import merge_journal

        trace = merge_journal(trace, tools)
    return trace


def _for_agent(turn: ModelTurn, trace: Trace) -> ModelTurn:
    """A turn without the call ids of the wire, where the agent has its own."""
    known = {event.call_id for event in trace.events if isinstance(event, ToolCall)}
    is_shared = turn.input_call_ids is not None and known.issuperset(turn.input_call_ids)
    return turn if is_shared else msgspec.structs.replace(turn, input_call_ids=None)


def _ends_with_answer(model: list[AnyEvent]) -> bool:
    kinds = [type(event) for event in model if isinstance(event, ModelTurn | ToolCall)]
    return bool(kinds) and kinds[-1] is ModelTurn


def check_recorded(trace: Trace, job: Job, ending: "Ending", read: Sequence[Note] = ()) -> None:
    """Refuse a run that nobody recorded anything of. read: what the reader had to say of the agent's own files.

    Raises: InfrastructureError with the end of the log.
    """
    if any(not isinstance(event, TraceStart | TraceEnd) for event in trace.events):
        return
    breach = ending.breach
    if unknown_types(read):
        what = "the command recorded no event of a known type"
        steps = [*reader_notes(read), "`goldentrace schema trace` prints the format"]
    elif breach is not None:
        what = f"the command was stopped at {breach.limit} ({breach.maximum:g}) and recorded nothing"
        steps = ["raise the limit, or find out from the log what it waited for"]
    elif ending.exit_code != 0:
        what = f"the command ended with {_code(ending.exit_code)} and recorded nothing"
        steps = ["read its output in the log"]
    else:
        what = "the command recorded nothing"
        steps = ["have the agent append events to the file in $GOLDENTRACE_TRACE, or use `goldentrace.Recorder`"]
    lines = last_lines(job.log, job.profile.redact)
    if lines:
        steps = ["its log ends:", *(f"| {line}" for line in lines), *steps]
    raise InfrastructureError(f"{job.name}: {what}", where=Where(job.shown(job.log)), next_step="\n".join(steps))


def _code(exit_code: int) -> str:
    return f"exit code {exit_code}" if exit_code >= 0 else f"signal {-exit_code}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the command came to its end.

    exit_code: negative for a signal; breach: the limit that it was stopped at; stopped: when that was; lacking: why
    what it wrote is not whole.
    """

    exit_code: int
    breach: Breach | None = None
    stopped: Moment | None = None
    lacking: str | None = None


def finish(trace: Trace, job: Job, ending: Ending) -> tuple[Trace, Breach | None]:
    """Return the trace as it is kept, and the limit that it passed.

    Ended here where the agent wrote no trace_end: `unknown`, or `aborted` with the reason of the limit. What is not
    whole, and what a signal cut off, ends by saying so: no verdict can be passed on it.
    """
    last: TraceEnd
    events, breach, left_out = _cut(trace.events, job, ending)
    end = events[-1] if isinstance(events[-1], TraceEnd) else None
    if end is not None:
        events = events[:-1]
    storage = Storage(job.profile.redact, job.storage)
    if breach is not None:
        limit = _limit_event(breach, left_out, ending.stopped)
        last = TraceEnd(outcome="aborted", stop_reason=breach.stop_reason, ts=limit.ts, mono_ns=limit.mono_ns)
        events = [*events, limit]
    elif ending.lacking is not None or (end is None and ending.exit_code < 0):
        why = ending.lacking or f"{_code(ending.exit_code)} ended the command"
        last = TraceEnd(outcome="unknown", stop_reason="unknown", events=len(events), incomplete=why)
        return msgspec.structs.replace(trace, events=_numbered(storage.events([*events, last])), lines=None), None
    else:
        last = end or TraceEnd(outcome="unknown", stop_reason="unknown")
    last = msgspec.structs.replace(last, events=len(events), sha256=None, extra=_extra(last, ending, breach))
    numbered = _numbered(storage.events([*events, last]))
    return msgspec.structs.replace(trace, events=numbered, lines=None, incomplete=None), breach


def _extra(last: TraceEnd, ending: Ending, breach: Breach | None) -> dict[str, Any] | None:
    """What the agent said at its end, and how its process ended, where that was not as usual."""
    found = dict(last.extra or {})
    if ending.exit_code > 0 and breach is None:
        found["exit_code"] = ending.exit_code
    elif ending.exit_code < 0 and breach is None:
        found["signal"] = -ending.exit_code
    return found or None


def _cut(events: list[AnyEvent], job: Job, ending: Ending) -> tuple[list[AnyEvent], Breach | None, int]:
    """The events up to the first limit that is passed, that limit, and how many events were left out behind it."""
    meter = TraceMeter(job.limits, job.profile)
    if meter.is_counting:
        for index, event in enumerate(events):
            if isinstance(event, Limit):
                break  # the agent stopped itself, and says so
            breach = meter.add(event)
            if breach is not None:
                rest = [e for e in events[index + 1 :] if not isinstance(e, TraceEnd)]
                return events[: index + 1], breach, len(rest)
    if ending.breach is None or any(isinstance(event, Limit) for event in events):
        return list(events), None, 0
    kept: list[AnyEvent] = [
        event for event in events if not isinstance(event, TraceEnd) and not _is_after(event, ending.stopped)
    ]
    return kept, ending.breach, sum(not isinstance(event, TraceEnd) for event in events) - len(kept)


def _is_after(event: AnyEvent, stopped: Moment | None) -> bool:
    """Did this happen after the stop, as far as its clocks tell?"""
    if stopped is None or isinstance(event, TraceStart):
        return False
    if event.mono_ns is not None:
        return event.mono_ns > stopped.mono_ns
    return event.ts is not None and event.ts > format_time(stopped.time_ns)


def _limit_event(breach: Breach, left_out: int, stopped: Moment | None) -> Limit:
    about: dict[str, Any] = {"tool_name": breach.tool_name} if breach.tool_name is not None else {}
    if left_out:
        about["events_left_out"] = left_out
    return Limit(
        limit=breach.limit,
        value=_whole(breach.value),
        max=_whole(breach.maximum),
        extra=about or None,
        ts=None if stopped is None else format_time(stopped.time_ns),
        mono_ns=None if stopped is None else stopped.mono_ns,
    )


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else round(value, 3)


def _numbered(events: list[AnyEvent]) -> list[AnyEvent]:
    """The events with `seq` from 1: they come from several writers."""
    return [msgspec.structs.replace(event, seq=number) for number, event in enumerate(events, start=1)]


def encode_trace(trace: Trace) -> bytes:
    """Return the file of a trace."""
    return b"".join(encode_event(event) for event in trace.events)
