"""Real runs, changed in one thing at a time: exactly that change is told; redrawn in all that is random: nothing is.

The runs are real, the mutations are made on their events here, by code that shares nothing with the differ.
"""

import random
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from goldentrace.codec.canonical import decode, encode_raw
from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.change import Comparison
from goldentrace.model.event import AnyEvent, Message, ToolCall, ToolResult, TraceEnd
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.registry import read_traces

PROFILE = Profile(name="default@1")
UUID_LIKE = re.compile(rb"(?<![0-9A-Za-z])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,36}|(?:call_|toolu_|req_)[0-9A-Za-z]{8,})(?![0-9A-Za-z])")  # fmt: skip


@pytest.fixture(scope="module")
def runs(corpus: Path) -> list[Trace]:
    """Every Toolathlon run, and every fifth of tau-bench."""
    paths = sorted((corpus / "toolathlon").glob("*_*.json"))
    found = [trace for path in paths for trace in read_traces(str(path))]
    return found + list(read_traces(str(corpus / "tau_bench" / "gpt-4o-airline.json")))[::5]


def diff(golden: Trace, candidate: Trace) -> Comparison:
    """Compare by way of the golden file; the raw run must give the same verdict, re-recording must follow the changes."""
    one, other = (normalize(trace, PROFILE, "h:test") for trace in (golden, candidate))
    data = encode_golden(as_golden(one, PROFILE))
    by_file = compare(read_golden(data, "golden"), other, PROFILE)
    by_run = compare(one, other, PROFILE)
    assert [(c.code, c.label, c.is_root) for c in by_file.changes] == [
        (c.code, c.label, c.is_root) for c in by_run.changes
    ]
    assert (encode_golden(rerecord(by_file, PROFILE)) != data) == bool(by_file.changes)
    return by_file


def with_events(trace: Trace, events: list[AnyEvent]) -> Trace:
    renumbered = [msgspec.structs.replace(event, seq=None) for event in events]
    end = renumbered[-1]
    if isinstance(end, TraceEnd):
        renumbered[-1] = msgspec.structs.replace(end, events=None, sha256=None)
    return msgspec.structs.replace(trace, events=renumbered, lines=None)


def reid(trace: Trace, seed: int) -> Trace:
    """Draw every random id anew (equal ones alike), except those that the prompts hold, and shuffle what ran in parallel."""
    rng = random.Random(seed)
    literal = b" ".join(event.text.encode() for event in trace.events if isinstance(event, Message) and event.text)
    drawn: dict[bytes, bytes] = {}

    def fresh(match: re.Match[bytes]) -> bytes:
        text = match[0]
        is_random = re.search(rb"[0-9]", text) and re.search(rb"[a-z]", text.rpartition(b"_")[2])
        if text in literal or not is_random or (text.isalnum() and len(text) >= 40):
            return text
        if text not in drawn:
            head = text[: text.find(b"_") + 1]
            letters = b"abcdef" if not head else b"abcdefghijk"
            drawn[text] = head + bytes(
                rng.choice(b"0123456789") if 48 <= c <= 57 else rng.choice(letters) if c != 45 else c
                for c in text[len(head) :]
            )
        return drawn[text]

    def redraw(raw: Raw) -> Raw:
        return Raw(UUID_LIKE.sub(fresh, bytes(raw)))

    def renamed(event: AnyEvent) -> AnyEvent:
        if isinstance(event, ToolCall):
            op_id = event.op_id and f"{event.op_id}-{seed}"
            return msgspec.structs.replace(
                event, call_id=f"{event.call_id}-{seed}", args=redraw(event.args), op_id=op_id
            )
        if isinstance(event, ToolResult):
            return msgspec.structs.replace(event, call_id=f"{event.call_id}-{seed}", result=redraw(event.result))
        return event

    events = [renamed(event) for event in trace.events]
    return with_events(trace, list(shuffled(events, rng)))


def shuffled(events: list[AnyEvent], rng: random.Random) -> Iterator[AnyEvent]:
    """Neighbouring calls of one turn are a batch, and so are their neighbouring results: both arrive in any order."""
    run: list[AnyEvent] = []
    for event in [*events, None]:
        if run and (event is None or type(event) is not type(run[0]) or event.turn != run[0].turn):
            if isinstance(run[0], ToolCall | ToolResult):
                rng.shuffle(run)
            yield from run
            run = []
        if event is not None:
            run.append(event)


def operations_of(trace: Trace) -> list[tuple[ToolCall, list[AnyEvent]]]:
    """Calls that stand alone: one attempt, answered, no equal call in the run, no neighbour that has failed."""
    normal = normalize(trace, PROFILE, "h:test")
    keys = [o.key for o in normal.operations]
    found: list[tuple[ToolCall, list[AnyEvent]]] = []
    for n, operation in enumerate(normal.operations):
        near = normal.operations[max(0, n - 2) : n + 3]
        is_alone = keys.count(operation.key) == 1 and all(len(o.steps) == 1 and o.last.status == "ok" for o in near)
        if is_alone and operation.batch is None and operation.first.result_index is not None and operation.args:
            call = trace.events[operation.first.call_index]
            assert isinstance(call, ToolCall)
            found.append((call, [call, trace.events[operation.first.result_index]]))
    return found


def each(
    runs: list[Trace], change: Callable[[list[AnyEvent], list[AnyEvent], random.Random], list[AnyEvent] | None]
) -> Iterator[tuple[Trace, Comparison]]:
    """One mutation in every run that has a call to mutate."""
    for n, trace in enumerate(runs):
        rng = random.Random(n)
        choices = operations_of(trace)
        if not choices:
            continue
        _, about = rng.choice(choices)
        events = change(list(trace.events), about, rng)
        if events is not None:
            yield trace, diff(trace, with_events(trace, events))


def roots(found: Comparison) -> list[str]:
    return [c.code for c in found.changes if c.is_root and c.severity == "error"]


def check(runs: list[Trace], code: str, change: Callable[..., Any], *, least: int = 20) -> None:
    count = 0
    for trace, found in each(runs, change):
        assert roots(found) == [code], (
            trace.path,
            trace.start.trace_id,
            [(c.code, c.message) for c in found.changes if c.is_root],
        )
        count += 1
    assert count >= least


def test_redrawn_runs_are_clean(runs: list[Trace]) -> None:
    for n, trace in enumerate(runs):
        found = diff(trace, reid(trace, n + 1))
        assert not found.changes, (
            trace.path,
            trace.start.trace_id,
            [(c.code, c.message, c.expected, c.actual) for c in found.changes],
        )
        assert not found.not_comparable


def test_a_dropped_call_is_one_change(runs: list[Trace]) -> None:
    check(runs, "GT103", lambda events, about, rng: [e for e in events if not any(e is one for one in about)])


def test_a_doubled_call_is_one_change(runs: list[Trace]) -> None:
    def double(events: list[AnyEvent], about: list[AnyEvent], rng: random.Random) -> list[AnyEvent]:
        place = max(n for n, e in enumerate(events) if any(e is one for one in about)) + 1
        twins = [msgspec.structs.replace(one, call_id="twin") for one in about]
        return events[:place] + twins + events[place:]

    check(runs, "GT102", double)


def test_a_changed_argument_is_one_change(runs: list[Trace]) -> None:
    def alter(events: list[AnyEvent], about: list[AnyEvent], rng: random.Random) -> list[AnyEvent] | None:
        call = about[0]
        assert isinstance(call, ToolCall)
        value = decode(call.args)
        names = [name for name, item in value.items() if isinstance(item, str | int)] if isinstance(value, dict) else []
        if not names:
            return None
        name = rng.choice(names)
        other = msgspec.structs.replace(call, args=encode_raw({**value, name: "something else entirely"}))
        return [other if e is call else e for e in events]

    check(runs, "GT101", alter)


def test_another_tool_is_one_change(runs: list[Trace]) -> None:
    def rename(events: list[AnyEvent], about: list[AnyEvent], rng: random.Random) -> list[AnyEvent]:
        other = msgspec.structs.replace(about[0], tool_name="quite_another_tool")
        return [other if e is about[0] else e for e in events]

    check(runs, "GT105", rename)


def test_another_status_is_one_change(runs: list[Trace]) -> None:
    def fail(events: list[AnyEvent], about: list[AnyEvent], rng: random.Random) -> list[AnyEvent]:
        other = msgspec.structs.replace(about[1], status="error")
        return [other if e is about[1] else e for e in events]

    check(runs, "GT301", fail)


def test_another_outcome_is_one_change(runs: list[Trace]) -> None:
    def other_end(events: list[AnyEvent], about: list[AnyEvent], rng: random.Random) -> list[AnyEvent]:
        return [*events[:-1], msgspec.structs.replace(events[-1], outcome="needs_human")]

    check(runs, "GT501", other_end)


def test_swapped_neighbours_are_one_move(runs: list[Trace]) -> None:
    count = 0
    for trace in runs:
        choices = operations_of(trace)
        events: list[AnyEvent] = list(trace.events)
        for (_, one), (_, other) in pairwise(choices):
            places = [next(n for n, e in enumerate(events) if e is item) for item in (*one, *other)]
            if places != sorted(places) or any(isinstance(e, ToolCall) for e in events[places[1] : places[2]]):
                continue
            swapped = list(events)
            for place, item in zip(places, (*other, *one), strict=True):
                swapped[place] = msgspec.structs.replace(item, turn=events[place].turn)
            found = diff(trace, with_events(trace, swapped))
            assert roots(found) == ["GT104"], (trace.path, [(c.code, c.message) for c in found.changes if c.is_root])
            count += 1
            break
    assert count >= 20
