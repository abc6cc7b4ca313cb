"""Events that went to a temporary file are the same events, in the same order, for everybody who reads a trace."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from goldentrace.codec.trace import encode_event
from goldentrace.model.event import ABSENT, AnyEvent, Message, ModelTurn, ToolCall, ToolResult, TraceEnd, TraceStart
from goldentrace.sources.eventlog import EventLog, SpooledEvents

EVENTS: st.SearchStrategy[AnyEvent] = st.one_of(
    st.builds(Message, role=st.just("user"), text=st.text(max_size=5) | st.just("\ud800")),
    st.builds(ModelTurn, turn=st.integers(1, 9), model=st.just("é \\u0041")),
    st.builds(ToolCall, call_id=st.text(max_size=3), tool_name=st.just("t"), args=st.sampled_from([Raw(b'{"a": 1}'), Raw(b'"\\ud800"'), ABSENT])),
    st.builds(ToolResult, call_id=st.text(max_size=3), status=st.just("ok"), result=st.sampled_from([Raw(b"null"), Raw(b'"\\ud83d\\ude00"')])),
)


@given(st.lists(EVENTS, max_size=30), st.sets(st.integers(0, 29), max_size=5), st.sampled_from([0, 10, 10**9]))
@settings(deadline=None)
def test_a_log_gives_back_what_it_was_given_wherever_it_lies(events: list[AnyEvent], taken: set[int], memory_bytes: int) -> None:
    log = EventLog(memory_bytes)
    for event in events:
        log.append(event)
    assert len(log) == len(events)
    for position in taken & set(range(len(events))):
        assert log.take(position) == events[position]
    kept, lines = log.close(list(range(1, len(events) + 1)))
    expected = [(event, number) for number, event in enumerate(events, start=1) if number - 1 not in taken]
    assert list(kept) == [event for event, _ in expected]
    assert lines == [number for _, number in expected]
    assert [kept[index] for index in range(-len(kept), len(kept))] == [event for event, _ in expected] * 2
    assert kept[1:3] == [event for event, _ in expected][1:3]
    assert kept == [event for event, _ in expected]


def test_many_large_events_are_read_while_others_are_looked_up() -> None:
    log = EventLog(1 << 20)
    events: list[AnyEvent] = [TraceStart(format="goldentrace/1")]
    events += [ToolResult(call_id=str(n), status="ok", result=Raw(b'"' + b"x" * (n * 700 % 50_000) + b'"')) for n in range(400)]
    events.append(TraceEnd(outcome="unknown", stop_reason="unknown"))
    for event in events:
        log.append(event)
    kept, _ = log.close([0] * len(events))
    assert isinstance(kept, SpooledEvents)
    for index, event in enumerate(kept):
        assert event == events[index]
        assert kept[-1 - index] == events[-1 - index]
    assert b"".join(encode_event(event) for event in kept) == b"".join(encode_event(event) for event in events)
