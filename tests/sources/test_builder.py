"""The builder: pairing, made-up ids, early and missing results, and what it says about absence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.model.event import ABSENT, ToolCall, ToolResult, TraceEnd, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import NO_LINE, TraceBuilder
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.fields import read_arguments
from tests.sources.reading import results, shape

DOCUMENT = Document.of(b"{}", "file")


def builder(**about: object) -> TraceBuilder:
    return TraceBuilder(DOCUMENT, "test", **about)  # type: ignore[arg-type]


def test_a_result_answers_the_nearest_earlier_open_call_of_its_id() -> None:
    trace = builder()
    trace.turn()
    trace.call("first", call_id="same")
    trace.turn()
    trace.call("second", call_id="same")
    trace.result("same", value="of second")
    trace.result("same", value="of first")
    found = [(event.call_id, event.turn) for event in trace.finish().results()]
    assert found == [("same", 2), ("same", 1)]


def test_a_reused_id_is_kept() -> None:
    trace = builder()
    for text in ("a", "b"):
        trace.turn()
        trace.call("tool", call_id="x")
        trace.result("x", value=text)
    assert results(trace.finish()) == [("x", "ok", "a"), ("x", "ok", "b")]


def test_calls_without_ids_are_numbered_and_answered_in_their_order() -> None:
    trace = builder()
    trace.turn()
    trace.call("a")
    trace.call("b")
    trace.result(tool_name="b", value=1)
    trace.result(value=2)
    built = trace.finish()
    assert [event.call_id for event in built.calls()] == ["call:1", "call:2"]
    assert [event.call_id for event in built.results()] == ["call:2", "call:1"]
    assert "numbered" in built.coverage["call_ids"]


def test_a_made_up_id_is_never_one_of_the_file() -> None:
    trace = builder()
    trace.call("a", call_id="call:2")
    assert trace.call("b") == "call:3"


def test_an_early_result_is_placed_after_the_whole_batch() -> None:
    trace = builder()
    trace.result("two", value="early")
    trace.turn()
    trace.call("a", call_id="one")
    trace.call("b", call_id="two")
    trace.call("c", call_id="three")
    trace.result("one")
    built = trace.finish()
    assert shape(built) == [
        "model_turn", "tool_call one", "tool_call two", "tool_call three",
        "tool_result two", "tool_result one", "tool_result three",
    ]  # fmt: skip
    early = built.results()[0]
    assert (early.turn, early.extra) == (1, {"came_before_call": True})
    assert coverage_table(built).batches == 1


def test_a_result_of_no_call_stays_where_it_is_and_is_told() -> None:
    trace = builder()
    trace.turn()
    trace.result("nobody", value=1, line=7)
    built = trace.finish()
    assert results(built) == [("nobody", "ok", 1)]
    assert [(note.text, note.line) for note in built.notes] == [("a result without an earlier call nobody", 7)]


def test_a_second_result_is_kept_and_told() -> None:
    trace = builder()
    trace.call("a", call_id="x")
    trace.result("x", value=1)
    trace.result("x", value=2)
    built = trace.finish()
    assert results(built) == [("x", "ok", 1), ("x", "ok", 2)]
    assert built.notes[0].text == "a second result for call x"


def test_open_calls_end_unfinished_with_turn_agent_and_attempt() -> None:
    trace = builder()
    trace.turn(agent="helper")
    trace.call("a", call_id="x", agent="helper", attempt=2, line=5)
    built = trace.finish()
    (answer,) = built.results()
    assert (answer.status, answer.turn, answer.agent, answer.attempt) == ("unfinished", 1, "helper", 2)
    assert built.lines == [NO_LINE, NO_LINE, 5, 5, NO_LINE]


def test_turns_are_unique_over_agents_and_each_agent_has_its_own_current_one() -> None:
    trace = builder()
    trace.turn()
    trace.turn(agent="helper")
    trace.call("a", call_id="1")
    trace.call("b", call_id="2", agent="helper")
    assert [event.turn for event in trace.finish().calls()] == [1, 2]


@pytest.mark.parametrize(
    ("text", "args", "args_raw"),
    [
        ('{"b": 1, "a": 2}', b'{"b": 1, "a": 2}', None),
        ('{\n "a": [1,\n 2]}', b'{"a":[1,2]}', '{\n "a": [1,\n 2]}'),
        ("", b"{}", ""),
        ("  ", b"{}", "  "),
        ('{"path": "/tmp/a', b"", '{"path": "/tmp/a'),
        ("{'a': 1}", b"", "{'a': 1}"),
        ('{"a": NaN}', b"", '{"a": NaN}'),
        ('"just text"', b'"just text"', None),
        ('{"a": 123456789012345678901234567890}', b'{"a": 123456789012345678901234567890}', None),
    ],
)
def test_arguments_are_kept_as_they_were_sent(text: str, args: bytes, args_raw: str | None) -> None:
    assert read_arguments(text) == (Raw(args), args_raw)


def test_a_value_that_json_cannot_hold_is_left_out_and_told() -> None:
    trace = builder()
    trace.call("a", call_id="x", args={"a": float("nan")}, line=3)
    built = trace.finish()
    assert built.calls()[0].args == ABSENT
    assert built.notes[0].line == 3


def test_reasons_for_absence_go_where_the_thing_turns_up() -> None:
    absent = {"times": "no clock", "usage": "no counts", "models": "no names", "status": "no flag"}
    empty = builder(absent=absent)
    empty.turn()
    assert empty.finish().coverage == absent
    full = builder(absent=absent)
    full.turn(usage=Usage(input_tokens=1), model="m")
    full.call("a", call_id="x", ts="2026-01-01T00:00:00.000000Z")
    full.result("x", status="error")
    assert full.finish().coverage == {}


def test_a_turn_with_a_time_is_no_call_with_one() -> None:
    trace = builder(absent={"times": "no clock"})
    trace.turn(ts="2026-01-01T00:00:00.000000Z")
    built = trace.finish()
    assert built.coverage == {"times": "no clock"}
    assert ("times", "no: no clock") in coverage_table(built).rows()


def test_the_end_counts_the_events_before_it() -> None:
    trace = builder()
    trace.result("late", value=1)
    trace.call("a", call_id="late")
    built = trace.finish("failed", "call_limit")
    end = built.events[-1]
    assert isinstance(end, TraceEnd)
    assert (end.events, end.outcome, end.stop_reason) == (len(built.events) - 1, "failed", "call_limit")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "call", "result", "say"]),
        st.sampled_from(["a", "b", "c", None]),
        st.sampled_from(["search", "write"]),
    ),
    max_size=40,
)


def build(steps: list[tuple[str, str | None, str]]) -> Trace:
    trace = builder()
    for kind, call_id, tool in steps:
        if kind == "turn":
            trace.turn()
        elif kind == "call":
            trace.call(tool, call_id=call_id)
        elif kind == "result":
            trace.result(call_id, value=1, tool_name=tool)
        else:
            trace.message("user", "go on")
    return trace.finish()


@given(STEPS)
def test_whatever_the_order_every_call_is_answered_once_and_after_it(steps: list[tuple[str, str | None, str]]) -> None:
    trace = build(steps)
    asked = [kind for kind, *_ in steps].count("call")
    told = [kind for kind, *_ in steps].count("result")
    assert len(trace.calls()) == asked
    assert sum(event.status != "unfinished" for event in trace.results()) == told
    waiting: dict[str, int] = {}
    strays = 0
    for event in trace.events:
        if isinstance(event, ToolCall):
            waiting[event.call_id] = waiting.get(event.call_id, 0) + 1
        elif isinstance(event, ToolResult):
            if waiting.get(event.call_id):
                waiting[event.call_id] -= 1
            else:
                strays += 1
    assert not any(waiting.values())
    assert strays == len(trace.results()) - asked
    data = b"".join(encode_event(event) for event in trace.events)
    assert read_trace(data, "again").events == trace.events


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [253, 254, 255, 256, 257])
def test_what_nests_too_deeply_to_be_read_again_is_left_out_and_noted(levels: int) -> None:
    """A line takes 256 levels: one is the event's, one that of `extra`."""
    made = builder(attributes={"tools": nested(levels), "kept": 1})
    text = "[" * levels + "]" * levels
    for number, asked in enumerate([{"args": nested(levels)}, {"args": Raw(text.encode())}, {"args_text": text}]):
        made.call("find", call_id=str(number), extra={"deep": nested(levels), "kept": 1}, **asked)  # type: ignore[arg-type]
        made.result(str(number), value=nested(levels))
    trace = made.finish()
    read = read_trace(b"".join(map(encode_event, trace.events)), "again")
    assert read.events == trace.events
    assert ("tools" in (trace.start.attributes or {})) == (levels <= 254)
    for call, result in zip(trace.calls(), trace.results(), strict=True):
        assert call.extra is not None
        assert (call.args != ABSENT, "deep" in call.extra, result.result != ABSENT) == (levels <= 255, levels <= 254, levels <= 255)
        assert call.extra["kept"] == 1
    assert trace.calls()[2].args_raw == (None if levels <= 255 else text)
    assert [note.text for note in trace.notes] == (["a value was left out: nested deeper than 256 levels"] if levels > 254 else [])
