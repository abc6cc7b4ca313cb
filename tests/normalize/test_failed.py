"""A call finds the failed one that it retries as a plain walk over all of them would, in time that grows with the trace."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.codec.canonical import encode_raw
from goldentrace.model.event import AnyEvent, Message, ToolCall, ToolResult, TraceEnd, TraceStart
from goldentrace.model.profile import Arguments, Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.failed import is_beside
from goldentrace.normalize.ids import id_values
from goldentrace.normalize.leaves import LeafReader, Mixed, Moment
from goldentrace.normalize.likeness import RUN_WITHIN_MS, ArgumentLikeness
from goldentrace.normalize.literals import given_ids
from goldentrace.normalize.offsets import wall_ms
from goldentrace.normalize.operations import Group, Grouped, Try, _Grouping
from goldentrace.normalize.paths import path_step
from goldentrace.normalize.payloads import flatten_call
from tests.fuzz.soups import UUID, soups
from tests.traces import AlikeByBytes

OTHER, THIRD = "9f1c2a77-0d3e-4b60-9d3a-5f0e6a7b8c9d", "11111111-2222-4333-8444-555555555555"
NOW, SOON, LONG_AGO = "2026-03-01T09:00:01Z", "2026-03-01T09:05:00Z", "2020-01-01T00:00:00Z"
VALUES = [
    1,
    "a",
    UUID,
    OTHER,
    THIRD,
    f"see {UUID}",
    f"see {OTHER} {THIRD}",
    NOW,
    SOON,
    LONG_AGO,
    None,
    True,
    "call_abc12345",
    {"x": UUID},
]
PROFILES = [Profile(name="test@1"), Profile(name="keep@1", arguments=Arguments(keep=["*"]))]


class Plain:
    """Every failed call is asked, the last one first: what the index must find."""

    def __init__(self, trace: Trace, reader: LeafReader) -> None:
        self.trace, self.reader = trace, reader
        self.given = given_ids(trace)
        self.failed: list[Group] = []

    @property
    def entries(self) -> list[Group]:
        return self.failed

    def clear(self) -> None:
        self.failed.clear()

    def add(self, group: Group) -> None:
        self.failed.append(group)

    def discard(self, group: Group) -> None:
        if group in self.failed:
            self.failed.remove(group)

    def find(self, call: ToolCall, turn: int | None, parent: Group | None, index: int) -> Group | None:
        for earlier in reversed(self.failed):
            first = earlier.last.call
            if earlier.parent is not parent:
                continue
            if call.batch is not None and is_beside(earlier, call, turn):
                continue
            if earlier.closer is not None and not is_beside(earlier.closer, call, turn):
                continue
            if (first.tool_name, first.agent) == (call.tool_name, call.agent) and self.is_same(first, call, index):
                return earlier
        return None

    def close(self, new: Group) -> None:
        call = new.first.call
        still: list[Group] = []
        for earlier in self.failed:
            if earlier.parent is not new.parent or (call.batch is not None and is_beside(earlier, call, new.turn)):
                still.append(earlier)
            elif earlier.closer is None:
                earlier.closer = new
                still.append(earlier)
            elif is_beside(earlier.closer, call, new.turn):
                still.append(earlier)
        self.failed = still

    def is_same(self, earlier: ToolCall, later: ToolCall, index: int) -> bool:
        if bytes(earlier.args) == bytes(later.args) and earlier.args_raw == later.args_raw:
            return True
        first, second = (flatten_call(self.reader, call, None).leaves for call in (earlier, later))
        first.pop("#idempotency_key", None)
        second.pop("#idempotency_key", None)
        return first.keys() == second.keys() and all(self.same_leaf(first[p], second[p], index) for p in first)

    def same_leaf(self, one: Any, other: Any, index: int) -> bool:
        if one == other:
            return True
        if isinstance(one, Moment) and isinstance(other, Moment):
            return self.is_now(one) and self.is_now(other)
        if not isinstance(one, Mixed) or not isinstance(other, Mixed) or len(one.segments) != len(other.segments):
            return False
        for left, right in zip(one.segments, other.segments, strict=True):
            if left == right:
                continue
            if isinstance(left, str) or isinstance(right, str) or left.kind != right.kind:
                return False
            if left.value != right.value and (self.is_known(left.value, index) or self.is_known(right.value, index)):
                return False
        return True

    def is_now(self, moment: Moment) -> bool:
        start = wall_ms(self.trace.start)
        return start is not None and abs(moment.at_ms - start) < RUN_WITHIN_MS

    def is_known(self, value: str, index: int) -> bool:
        raws = [bytes(getattr(event, "result", b"")) for event in self.trace.events[:index]]
        return value in self.given or any(value in id_values(raw) for raw in raws if raw)


def told(grouped: Grouped) -> list[Any]:
    def steps(group: Group) -> list[Any]:
        return [(step.call_index, step.result_index) if isinstance(step, Try) else step[1] for step in group.steps]

    units = [[steps(member) for member in unit] for unit in grouped.units]
    return [[steps(group) for group in grouped.groups], units, grouped.loose, grouped.unmatched_results]


def both(trace: Trace, profile: Profile) -> tuple[list[Any], list[Any]]:
    def reader() -> LeafReader:
        return LeafReader(profile, path_step(trace.start, profile.paths), None)

    found = _Grouping(ArgumentLikeness(trace, reader(), given_ids(trace))).run(trace)
    plain = _Grouping(ArgumentLikeness(trace, reader(), {}))
    plain.failed = Plain(trace, reader())  # type: ignore[assignment]
    return told(found), told(plain.run(trace))


calls = st.builds(
    ToolCall, call_id=st.sampled_from("abcdefgh"), tool_name=st.sampled_from(["t", "t", "u"]),
    args=st.dictionaries(st.sampled_from("pq"), st.sampled_from(VALUES), max_size=2).map(encode_raw),
    turn=st.sampled_from([None, 1, 2]), batch=st.sampled_from([None, None, "x", "y"]), idempotency_key=st.sampled_from([None, UUID, OTHER]),
    op_id=st.sampled_from([None, None, None, "a", "b"]), agent=st.sampled_from(["main", "main", "sub"]),
)  # fmt: skip
results = st.builds(
    ToolResult, call_id=st.sampled_from("abcdefgh"), status=st.sampled_from(["error", "error", "timeout", "ok"]),
    result=st.sampled_from([None, UUID, [OTHER], {"id": THIRD}, "call_abc12345"]).map(encode_raw),
)  # fmt: skip
messages = st.builds(Message, role=st.sampled_from(["user", "assistant"]), text=st.sampled_from(["hi", UUID]))


@st.composite
def retries(draw: st.DrawFn) -> Trace:
    """A trace of many failures of alike calls."""
    start = TraceStart(format="goldentrace/1", ts=draw(st.sampled_from([None, "2026-03-01T09:00:00.000000Z"])))
    inner: list[AnyEvent] = draw(st.lists(st.one_of(calls, calls, results, results, results, messages), max_size=30))
    return Trace([start, *inner, TraceEnd(outcome="unknown", stop_reason="unknown")], "run.jsonl")


@st.composite
def retries_with_ids(draw: st.DrawFn) -> Trace:
    """A trace of calls that differ in their ids alone, some of which results hold before or behind them."""
    events: list[AnyEvent] = [TraceStart(format="goldentrace/1")]
    ids = st.sampled_from([UUID, OTHER, THIRD])
    for turn in (1, 2):
        unanswered: list[str] = []
        for _ in range(draw(st.integers(0, 12))):
            if unanswered and draw(st.booleans()):
                call_id = unanswered.pop(draw(st.integers(0, len(unanswered) - 1)))
                status = draw(st.sampled_from(["error", "error", "error", "ok"]))
                held = encode_raw(draw(st.none() | ids))
                events.append(ToolResult(call_id=call_id, status=status, result=held))
            else:
                call_id = str(len(events))
                unanswered.append(call_id)
                batch = draw(st.sampled_from([None, "x", "y"]))
                args = encode_raw({"p": draw(ids)})
                events.append(ToolCall(call_id=call_id, tool_name="t", args=args, turn=turn, batch=batch))
    return Trace([*events, TraceEnd(outcome="unknown", stop_reason="unknown")], "run.jsonl")


@settings(max_examples=400)
@given(st.one_of(retries(), retries_with_ids(), retries_with_ids()), st.sampled_from(PROFILES))
def test_the_index_finds_what_asking_each_failed_call_finds(trace: Trace, profile: Profile) -> None:
    found, expected = both(trace, profile)
    assert found == expected


@settings(max_examples=100)
@given(soups())
def test_the_index_finds_it_in_any_soup(trace: Trace) -> None:
    found, expected = both(trace, PROFILES[0])
    assert found == expected


@pytest.mark.parametrize("batch", [None, "b"])
def test_many_failures_before_many_other_calls_cost_no_more_than_there_are(batch: str | None) -> None:
    count = 2000
    start = TraceStart(format="goldentrace/1")

    def sent(name: str, n: int, batch: str | None) -> ToolCall:
        return ToolCall(call_id=f"{name}{n}", tool_name="t", args=encode_raw({name: n}), turn=1, batch=batch)

    failing = [sent("a", n, batch and f"{batch}1") for n in range(count)]
    errors = [ToolResult(call_id=f"a{n}", status="error") for n in range(count)]
    others = [sent("b", n, batch and f"{batch}2") for n in range(count)]
    likeness = AlikeByBytes()
    grouped = _Grouping(likeness).run(Trace([start, *failing, *errors, *others], "run.jsonl"))
    assert len(grouped.groups) == 2 * count
    assert likeness.asked < 20 * count
