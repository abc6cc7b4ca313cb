"""Trace files: what is read as it was written, what is accepted and said, what is refused and where."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from goldentrace.codec.canonical import encode, encode_raw
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.errors import InputError
from goldentrace.model.event import (
    ABSENT,
    DECISION_KINDS,
    EVENT_TYPES,
    AnyEvent,
    Approval,
    Decision,
    Effect,
    Limit,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
    Usage,
)
from goldentrace.model.trace import Trace

START = b'{"type":"trace_start","format":"goldentrace/1"}\n'
END = b'{"type":"trace_end","outcome":"success","stop_reason":"final_answer"}\n'
CALL = b'{"type":"tool_call","call_id":"1","tool_name":"t"}\n'


def refused(data: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_trace(data, "run.jsonl")
    error = caught.value
    assert error.next_step
    assert error.where is not None
    assert error.where.path == "run.jsonl"
    return error


def said(trace: Trace) -> list[tuple[str, int | None]]:
    return [(note.text, note.line) for note in trace.notes]


# -- what is written is read ------------------------------------------------------------------------------------------

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
RAW = st.just(ABSENT) | JSON.map(encode_raw)
SURROGATES = st.text(st.sampled_from("a\ud800"), max_size=4)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "ts": st.none() | TEXT,
    "mono_ns": st.none() | st.integers(0, 2**62),
    "turn": st.none() | st.integers(1, 9),
    "agent": st.sampled_from(["main", "helper", "ä"]),
    "extra": st.none() | st.dictionaries(TEXT, st.none() | st.booleans() | TEXT | st.integers(-9, 9), max_size=2),
}
MIDDLE: st.SearchStrategy[AnyEvent] = st.one_of(
    st.builds(ModelTurn, model=st.none() | TEXT, usage=st.none() | st.just(Usage(input_tokens=0, cost_usd=0.5)), **COMMON),
    st.builds(
        ToolCall, call_id=TEXT, tool_name=TEXT, args=RAW, args_raw=st.none() | TEXT, attempt=st.integers(1, 3),
        op_id=st.none() | TEXT, origin=st.sampled_from(["model", "sdk"]), batch=st.none() | TEXT | st.integers(0, 3),
        access=st.sampled_from([None, "read", "write"]), **COMMON,
    ),
    st.builds(
        ToolResult, call_id=TEXT, status=st.sampled_from(["ok", "error", "unfinished"]), result=RAW,
        http_status=st.none() | st.integers(100, 599), owed_ms=st.none() | st.floats(0, 1e6), sent=st.none() | st.booleans(),
        **COMMON,
    ),
    st.builds(Decision, decision=st.sampled_from(DECISION_KINDS), call_id=st.none() | TEXT, inferred=st.booleans(), **COMMON),
    st.builds(Approval, call_id=TEXT, verdict=st.sampled_from(["approved", "denied"]), by=st.none() | TEXT, **COMMON),
    st.builds(Message, role=TEXT, text=st.none() | TEXT, **COMMON),
    st.builds(Effect, name=TEXT, key=st.none() | TEXT, value=RAW, **COMMON),
    st.builds(Limit, limit=TEXT, value=st.none() | st.integers(0, 9), max=st.none() | st.floats(0, 9), **COMMON),
)  # fmt: skip


def whole(middle: list[AnyEvent]) -> list[AnyEvent]:
    return [TraceStart(format="goldentrace/1"), *middle, TraceEnd(outcome="success", stop_reason="unknown")]


@given(st.lists(MIDDLE, max_size=6))
def test_what_is_written_is_read_as_the_same_events(middle: list[AnyEvent]) -> None:
    events = whole(middle)
    trace = read_trace(b"".join(map(encode_event, events)), "run.jsonl")
    assert trace.events == events
    assert (trace.incomplete, trace.notes, trace.lines) == (None, (), None)


@given(st.lists(MIDDLE, max_size=4), st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\r\n \t\r\n"]), st.booleans())
def test_line_ends_blank_lines_and_a_bom_change_nothing(middle: list[AnyEvent], end: bytes, has_bom: bool) -> None:
    events = whole(middle)
    data = b"".join(encode_event(event)[:-1] + end for event in events)
    trace = read_trace((b"\xef\xbb\xbf" if has_bom else b"") + data, "run.jsonl")
    assert trace.events == events
    rows = data.split(b"\n")
    assert [json.loads(rows[trace.line_of(n) - 1])["type"] for n in range(len(events))] == [
        event.__struct_config__.tag for event in events
    ]


@given(SURROGATES, SURROGATES)
def test_lone_surrogates_of_arguments_are_kept_and_others_replaced(value: str, text: str) -> None:
    call = ToolCall(call_id="1", tool_name="t", args=encode_raw({"a": value, "b": 1}), extra={"k": text})
    trace = read_trace(START + encode_event(call) + END, "run.jsonl")
    (read,) = trace.calls()
    assert bytes(read.args) == encode({"a": value, "b": 1})
    assert read.extra == {"k": text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")}


def test_a_lone_surrogate_in_a_key_of_arguments_and_in_an_effect_is_kept_and_said() -> None:
    line = b'{"type":"effect","name":"n\\ud800","value":{"\\udfff":["x"]},"extra":{"l":["\\ud800"]}}\n'
    trace = read_trace(START + line + END, "run.jsonl")
    effect = trace.events[1]
    assert isinstance(effect, Effect)
    assert (bytes(effect.value), effect.name) == (b'{"\\udfff":["x"]}', "n\ufffd\ufffd\ufffd")
    assert effect.extra == {"l": ["\ufffd\ufffd\ufffd"]}
    assert said(trace) == [("lone surrogates were replaced at $.name, $.extra.l[0]", 2)]


def test_an_unknown_type_with_a_lone_surrogate_is_left_out() -> None:
    trace = read_trace(START + b'{"type":"later","x":"\\ud800"}\n' + END, "run.jsonl")
    assert len(trace.events) == 2
    assert ("event type 'later' is not known and was left out", 2) in said(trace)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"message","mood":"\\ud800","role":"user"}\n',
        b'{"type":"message","role":"user","extra":{"mood":"\\ud800"}}\n',
        b'{"type":"message","role":"\\u0075ser","mood":"\\ud800"}\n',
    ],
)
def test_a_lone_surrogate_in_an_unknown_field_is_replaced_wherever_it_stands(line: bytes) -> None:
    trace = read_trace(START + line + END, "run.jsonl")
    assert trace.events[1] == Message(role="user", extra={"mood": "\ufffd\ufffd\ufffd"})


def test_a_lone_surrogate_in_the_name_of_a_field_is_replaced() -> None:
    trace = read_trace(START + b'{"type":"message","role":"user","\\ud800":1}\n' + END, "run.jsonl")
    assert trace.events[1] == Message(role="user", extra={"\ufffd\ufffd\ufffd": 1})


def test_integers_of_arguments_keep_every_digit() -> None:
    line = b'{"type":"tool_call","call_id":"1","tool_name":"t","args":{"n":%s}}\n' % (b"7" * 400)
    assert bytes(read_trace(START + line + END, "r").calls()[0].args) == b'{"n":%s}' % (b"7" * 400)


# -- what is accepted and said ----------------------------------------------------------------------------------------


def test_unknown_fields_go_to_extra_beside_what_is_there() -> None:
    line = b'{"type":"tool_call","call_id":"1","tool_name":"t","args":{"n":10000000000000000000000},"mood":{"a":[1]},"extra":{"k":2}}\n'
    trace = read_trace(START + line + END, "run.jsonl")
    (call,) = trace.calls()
    assert call.extra == {"k": 2, "mood": {"a": [1]}}
    assert bytes(call.args) == b'{"n":10000000000000000000000}'
    assert said(trace) == [("unknown fields kept in extra: mood", 2)]
    (again,) = read_trace(START + encode_event(call) + END, "again").calls()
    assert again == call


def test_unknown_types_are_left_out_noted_and_counted_by_trace_end() -> None:
    later = b'{"type":"later","x":1}\n'
    end = b'{"type":"trace_end","outcome":"success","stop_reason":"unknown","events":3}\n'
    trace = read_trace(START + later + CALL + end, "run.jsonl")
    assert [event.__struct_config__.tag for event in trace.events] == ["trace_start", "tool_call", "trace_end"]
    assert said(trace) == [("event type 'later' is not known and was left out", 2)]
    assert trace.line_of(1) == 3


@pytest.mark.parametrize(
    "tail", [b'{"type":"tool_', b'{"type":"tool_call","call_id":"1","tool_name":"\xe2\x82', b"\0\0\0"]
)
def test_a_torn_tail_is_dropped_and_makes_the_trace_incomplete(tail: bytes) -> None:
    trace = read_trace(START + CALL + tail, "run.jsonl")
    why = f"the last line is torn ({len(tail)} bytes dropped)"
    assert (len(trace.events), trace.incomplete) == (2, why)
    assert said(trace) == [(why, 3)]


def test_without_trace_end_the_trace_is_incomplete_even_where_the_last_line_has_no_lf() -> None:
    for data in (START + CALL, (START + CALL)[:-1]):
        trace = read_trace(data, "run.jsonl")
        assert (len(trace.events), trace.notes) == (2, ())
        assert trace.incomplete == "there is no trace_end: the run was cut off while it was recorded"


def test_a_trace_end_that_says_why_the_trace_is_not_whole_ends_nothing() -> None:
    end = b'{"type":"trace_end","outcome":"success","stop_reason":"final_answer","events":2,"incomplete":"no space"}\n'
    trace = read_trace(START + b"\n" + CALL + end, "run.jsonl")
    assert (len(trace.events), trace.incomplete, trace.end) == (2, "no space", None)
    assert trace.lines == [1, 3]
    assert "counts 3 events" in refused(START + CALL + end.replace(b":2", b":3")).what


def test_a_last_line_that_is_whole_json_and_wrong_is_no_torn_tail() -> None:
    assert "not a valid tool_call event" in refused(START + CALL[:-2] + b',"attempt":"x"}').what


# -- what is refused, and where ---------------------------------------------------------------------------------------

NEST = b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize(
    ("data", "what", "line", "pointer"),
    [
        (b"", "the trace is empty", None, None),
        (b"\xef\xbb\xbf \n\n", "the trace is empty", None, None),
        (b'{"type":"later"}\n', "the first event is no trace_start", None, None),
        (CALL + START, "the first event is no trace_start", 1, None),
        (b'{"type":"trace_', "not JSON", 1, None),
        (START.replace(b"/1", b"/2") + END, "format 'goldentrace/2' is not 'goldentrace/1'", 1, "$.format"),
        (b"\n" + START.replace(b"/1", b"/2") + END, "format 'goldentrace/2' is not", 2, "$.format"),
        (START + CALL + START + END, "a second trace_start", 3, None),
        (START + END + b"\n" + CALL, "an event after trace_end", 4, None),
        (START + b"[1]\n" + END, "a line that is no JSON object", 2, None),
        (START + b'["\\ud800"]\n' + END, "a line that is no JSON object", 2, None),
        (START + b'"text"\n' + END, "a line that is no JSON object", 2, None),
        (START + b'{"x":1}\n' + END, "an event without a `type`", 2, None),
        (START + b'{"type":7}\n' + END, "an event without a `type`", 2, None),
        (START + b"{'type'}\n" + END, "not JSON", 2, None),
        (START + b'{"type":"message","role":NaN}\n' + END, "NaN is not JSON", 2, None),
        (START + b'{"type":"message","role":"\xff"}\n' + END, "not UTF-8 (byte 26 of the line)", 2, None),
        (START + CALL + b"\0\0\0\0\n" + END, "a run of NUL bytes", 3, None),
        (START + b"<<<<<<< HEAD\n" + CALL + b"=======\n" + CALL + b">>>>>>> x\n" + END, "conflict marker", 2, None),
        (START + CALL + b"=======\n" + END, "conflict marker", 3, None),
        (START + CALL + b">>>>>>> x\n" + END, "conflict marker", 3, None),
        (START + CALL + b"||||||| base\n" + END, "conflict marker", 3, None),
        (START + b'{"type":"tool_call","call_id":1,"tool_name":"t"}\n' + END, "not a valid tool_call event: expected", 2, "$.call_id"),
        (START + b'{"type":"tool_call","call_id":"1"}\n' + END, "required field `tool_name`", 2, "$"),
        (START + b'{"type":"tool_call","call_id":"1","mood":1}\n' + END, "required field `tool_name`", 2, "$"),
        (START + b'{"type":"tool_call","call_id":1,"tool_name":"t","mood":1}\n' + END, "not a valid tool_call event", 2, "$.call_id"),
        (START + b'{"type":"model_turn","usage":{"input_tokens":"3"}}\n' + END, "not a valid model_turn event", 2, "$.usage.input_tokens"),
        (START + b'{"type":"tool_result","call_id":"1","status":"fine"}\n' + END, "not a valid tool_result event", 2, "$.status"),
        (START + b'{"type":"message","role":"user","mood":1,"extra":[1]}\n' + END, "not a mapping", 2, None),
        (START + b'{"type":"message","role":"user","mood":%s}\n' % (b"9" * 5000) + END, "more than 4300 digits", 2, None),
        (START + b'{"type":"message","role":"user","extra":{"a":%s}}\n' % NEST + END, "nested deeper than", 2, None),
        (START + b'{"type":"message","role":"user","mood":%s}\n' % NEST + END, "nested deeper than", 2, None),
        (START + b'{"type":"message","role":"\\ud800","extra":{"a":%s}}\n' % NEST + END, "nested deeper than", 2, None),
        (b'{"type":"trace_start","format":"goldentrace/1","seq":1}\n' + CALL.replace(b"}", b',"seq":1}') + END, "seq 1 follows 1: lines are out of order", 2, None),
        (b'{"type":"trace_start","format":"goldentrace/1","seq":0}\n' + CALL + CALL.replace(b"}", b',"seq":3}') + END, "events are missing between seq 0 and 3", 3, None),
        (START + CALL + b'{"type":"trace_end","outcome":"success","stop_reason":"unknown","events":3}\n', "trace_end counts 3 events before it, 2 are there", 3, None),
        (START + CALL + b'{"type":"trace_end","outcome":"success","stop_reason":"unknown","sha256":"00"}\n', "the checksum in trace_end is not that of the lines before it", 3, None),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_line_and_the_field(
    data: bytes, what: str, line: int | None, pointer: str | None
) -> None:
    error = refused(data)
    assert what in error.what
    assert error.where is not None
    assert (error.where.line, error.where.pointer) == (line, pointer)


def test_lines_without_seq_count_by_position() -> None:
    numbered = [
        b'{"type":"trace_start","format":"goldentrace/1","seq":5}\n',
        CALL,
        CALL.replace(b"}", b',"seq":7}'),
        END,
    ]
    assert len(read_trace(b"".join(numbered), "r").events) == 4
    assert (
        len(read_trace(START + CALL.replace(b"}", b',"seq":3}') + CALL.replace(b"}", b',"seq":4}') + END, "r").events)
        == 4
    )


def test_the_checksum_is_over_all_earlier_bytes() -> None:
    body = START + CALL
    sha256 = hashlib.sha256(body).hexdigest()
    end = (
        b'{"type":"trace_end","outcome":"success","stop_reason":"unknown","events":2,"sha256":"%s"}\n' % sha256.encode()
    )
    assert read_trace(body + end, "r").incomplete is None
    assert read_trace(body + end[:-1], "r").incomplete is None
    assert "checksum" in refused(START + CALL.replace(b'"t"', b'"u"') + end).what


def test_every_event_type_of_the_format_is_read() -> None:
    required = {
        "trace_start": {"format": "goldentrace/1"},
        "model_turn": {},
        "tool_call": {"call_id": "1", "tool_name": "t"},
        "tool_result": {"call_id": "1", "status": "ok"},
        "decision": {"decision": "retry"},
        "approval": {"call_id": "1", "verdict": "denied"},
        "message": {"role": "user"},
        "effect": {"name": "e"},
        "limit": {"limit": "max_tool_calls"},
        "trace_end": {"outcome": "failed", "stop_reason": "tool_loop"},
    }
    assert required.keys() == EVENT_TYPES.keys()
    lines = [json.dumps({"type": kind, **fields}).encode() + b"\n" for kind, fields in required.items()]
    trace = read_trace(b"".join(lines), "r")
    assert [type(event) for event in trace.events] == list(EVENT_TYPES.values())
    assert [event.call_id for event in trace.results()] == ["1"]
    assert b"".join(map(encode_event, trace.events)).replace(b" ", b"") == b"".join(lines).replace(b" ", b"")


def outcome(data: bytes) -> Trace | InputError:
    try:
        return read_trace(data, "run.jsonl")
    except InputError as error:
        return error


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_a_line(tail: bytes) -> None:
    found = outcome(START + CALL + tail)
    if isinstance(found, InputError):
        assert found.where is not None
        assert found.where.line is not None
    else:
        assert found.events[1] == ToolCall(call_id="1", tool_name="t")


def test_raw_values_are_the_bytes_as_they_were_written() -> None:
    line = b'{"type":"tool_result","call_id":"1","status":"ok","result":{ "b" : 1.0, "a":"\\u00e4" }}\n'
    (result,) = read_trace(START + line + END, "r").results()
    assert result.result == Raw(b'{ "b" : 1.0, "a":"\\u00e4" }')
