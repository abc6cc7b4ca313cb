"""Traces that no recorder would write: any events in any order, with colliding ids and hostile words."""

from typing import Any, get_args

import msgspec
from hypothesis import strategies as st

from goldentrace.codec.canonical import encode_raw
from goldentrace.model.event import (
    ABSENT,
    DECISION_KINDS,
    AnyEvent,
    Approval,
    Decision,
    Effect,
    ErrorClass,
    Limit,
    Message,
    ModelTurn,
    Origin,
    Outcome,
    Status,
    StopReason,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.trace import Trace

UUID = "3b241101-e2bb-4255-8caf-4136c566a962"
OTHER_UUID = "9f1c2a77-0d3e-4b60-9d3a-5f0e6a7b8c9d"
IDS = ["c1", "c2", "c3", "", "c#1", UUID]
TOOLS = ["get", "put", "", "a/b", "x#1", "<t>", "a b", "50%", "\x1b[31mred", "\u202eevil", "café", "get#1", "\n"]
AGENTS = ["main", "main", "sub", "", "a/b", "m#1", "<a>"]
WORDS = [
    "", "a", "abc", UUID, OTHER_UUID, UUID.upper(), f"see {UUID}, {OTHER_UUID}", "<get#1/id>", "<new:uuid>", "<secret:1>",
    "<now>", "<cwd>", "<get#1.args/id>", "str[5] h:0123456789ab", "int h:0123456789ab", "/home/me/x", "/tmp/abc/d",
    '{"id":"' + UUID + '"}', "[1,2]", "{}", "[]", "null", "\ud800", "x\udfff", "\0", "a\nb", "::error::x", "a~b", "a/b",
    "#json", "2026-03-01T09:00:00Z", "call_abc12345", "sk-ant-api03-" + "a1B2" * 24, "0" * 40, "e3b0c44298fc1c14" * 4,
]  # fmt: skip
KEYS = [
    "id",
    "",
    "a/b",
    "~",
    "~0",
    "#json",
    "x#json",
    "~1",
    "%",
    "<",
    ">",
    " ",
    "0",
    UUID,
    "\ud800",
    "key\n",
    "{0:abcdef}",
]
NUMBERS = [0, 1, -1, 9, 10, 1.0, 1.5, -0.0, 1e21, 1e300, 5e-324, 2**63, 2**64, 10**30, 1740819600, 1740819600000]

scalars = st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(WORDS))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)
raws = st.one_of(st.just(ABSENT), values.map(encode_raw))
ids = st.sampled_from(IDS)
names = st.sampled_from(["get", "put", "get", *TOOLS])
texts = st.none() | st.sampled_from(WORDS)
clocks = st.sampled_from(
    [None, "2026-03-01T09:00:00.000000Z", "2026-03-01T09:00:02.500000Z", "2026-03-01T08:00:00+02:00", "2026-03-01", "junk",
     "", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-03-01T09:00:00"]
)  # fmt: skip
monos = st.sampled_from([None, 0, -1, 10**9, 3 * 10**9, 2**63 - 1, -(2**63)])
waits = st.sampled_from([None, 0, 0.0, 1, -5, 0.4, 2000, 2000.4999, 1e9, 1e300, 5e-324])
turns = st.sampled_from([None, None, 1, 2, 0, -3, 10**30])
attempts = st.sampled_from([1, 1, 2, 3, 0, -1, 10**30])
common: dict[str, Any] = {"ts": clocks, "mono_ns": monos, "turn": turns, "agent": st.sampled_from(AGENTS)}


def _one_of(alias: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(alias))


calls = st.builds(
    ToolCall, call_id=ids, tool_name=names, args=raws, args_raw=texts, attempt=attempts, op_id=st.none() | ids,
    origin=st.just("model") | _one_of(Origin), batch=st.sampled_from([None, None, "1", 1, "", 0, -1]), parent=st.none() | ids,
    access=st.sampled_from([None, "read", "write"]), resource=texts, idempotency_key=texts, **common,
)  # fmt: skip
results = st.builds(
    ToolResult, call_id=ids, status=st.just("ok") | st.just("error") | _one_of(Status), attempt=st.none() | attempts,
    error_class=st.none() | _one_of(ErrorClass), http_status=st.sampled_from([None, 429, 503, 0, -1, 10**30]), owed_ms=waits,
    sent=st.none() | st.booleans(), result=raws, result_hash=texts, result_bytes=st.none() | attempts, **common,
)  # fmt: skip
others = st.one_of(
    st.builds(ModelTurn, input_call_ids=st.none() | st.lists(ids, max_size=2), model=texts, finish_reason=texts, **common),
    st.builds(
        Decision, decision=st.sampled_from(DECISION_KINDS), call_id=st.none() | ids, by=st.none() | _one_of(Origin),
        reason=texts, delay_ms=waits, inferred=st.booleans(), **common,
    ),
    st.builds(Approval, call_id=ids, verdict=st.sampled_from(["approved", "denied"]), by=texts, **common),
    st.builds(Message, role=st.sampled_from(["user", "system", "assistant", ""]), text=texts, **common),
    st.builds(Effect, name=names, key=texts, value=raws, **common),
    st.builds(Limit, limit=names, value=st.none() | st.sampled_from(NUMBERS), max=st.none() | st.sampled_from(NUMBERS), **common),
)  # fmt: skip
states = st.none() | st.lists(st.sampled_from(DECISION_KINDS), max_size=6) | st.just(["unheard of"])
starts = st.builds(
    TraceStart, format=st.just("goldentrace/1"), trace_id=texts, scenario_id=texts, seed=st.none() | attempts, states=states,
    cwd=st.sampled_from([None, "/", "", "/home/me/x", "relative"]), home=st.sampled_from([None, "/home/me", "/"]),
    tmp=st.sampled_from([None, "/tmp", ""]), **common,
)  # fmt: skip
ends = st.builds(TraceEnd, outcome=_one_of(Outcome), stop_reason=_one_of(StopReason), **common)
any_event = st.one_of(calls, calls, results, results, others)


@st.composite
def soups(draw: st.DrawFn) -> Trace:
    """A whole trace: a start, up to a dozen of any events, an end."""
    events: list[AnyEvent] = [draw(starts), *draw(st.lists(any_event, max_size=12)), draw(ends)]
    return Trace(events, "soup.jsonl")


def calmed(trace: Trace) -> Trace:
    """The soup without lone surrogates."""
    events: list[AnyEvent] = []
    for event in trace.events:
        fields: dict[str, Any] = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if isinstance(value, str):
                fields[name] = value.encode("utf-8", "replace").decode()
        events.append(msgspec.structs.replace(event, **fields))
    return msgspec.structs.replace(trace, events=events)


@st.composite
def stirred(draw: st.DrawFn) -> tuple[Trace, Trace]:
    """Two soups, the second mostly the first with events dropped, doubled, swapped or replaced."""
    one = draw(soups())
    inner = list(one.events[1:-1])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(inner)))
        kind = draw(st.sampled_from(["drop", "double", "swap", "insert", "replace"]))
        if kind == "insert" or not inner or place == len(inner):
            inner.insert(place, draw(any_event))
        elif kind == "drop":
            del inner[place]
        elif kind == "double":
            inner.insert(draw(st.integers(0, len(inner))), inner[place])
        elif kind == "swap":
            other = draw(st.integers(0, len(inner) - 1))
            inner[place], inner[other] = inner[other], inner[place]
        else:
            inner[place] = draw(any_event)
    start = draw(st.just(one.events[0]) | starts)
    return one, msgspec.structs.replace(one, events=[start, *inner, draw(st.just(one.events[-1]) | ends)])
