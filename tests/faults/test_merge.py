"""What the agent recorded and what the server saw become one trace: nothing lost, nothing counted twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.canonical import decode, encode_raw
from goldentrace.faults import merge_journal
from goldentrace.model.event import (
    ABSENT,
    FORMAT,
    AnyEvent,
    Effect,
    Limit,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.trace import Trace
from goldentrace.normalize.operations import group
from tests.traces import AlikeByBytes

ARGS = {"amount_cents": 500, "idempotency_key": "k1"}


def at(seconds: float) -> str:
    return f"2026-01-01T00:00:{seconds:09.6f}Z"


def trace(*events: AnyEvent) -> Trace:
    head = TraceStart(format=FORMAT, ts=at(0))
    end = TraceEnd(outcome="success", stop_reason="final_answer", events=len(events) + 1, ts=at(50))
    return Trace([head, *events, end], "t.jsonl")


def asked(second: float, call_id: str = "a1", args: Any = ARGS, **more: Any) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name=more.pop("tool", "charge"), args=encode_raw(args), ts=at(second), **more)


def got(second: float, call_id: str = "a1", status: Any = "ok", **more: Any) -> ToolResult:
    return ToolResult(call_id=call_id, status=status, ts=at(second), **more)


def seen(second: float, number: int, status: Any = "ok", args: Any = ARGS, **more: Any) -> list[AnyEvent]:
    """One attempt as the server wrote it: call and result 10 ms later."""
    about = {"n": number, **{name: more.pop(name) for name in ("retry_count", "given_call_id") if name in more}}
    key = more.pop("key", "k1")
    result = {name: more.pop(name) for name in ("http_status", "owed_ms", "error_class") if name in more}
    call_id = more.pop("call_id", f"call_{number}")
    call = ToolCall(
        call_id=call_id, tool_name="charge", args=encode_raw(args), ts=at(second), mono_ns=1, access="write",
        idempotency_key=key, extra={"server": about}, **more,
    )  # fmt: skip
    done = ToolResult(
        call_id=call_id, status=status, attempt=more.get("attempt", 1), ts=at(second + 0.01), mono_ns=2, sent=True,
        extra={"server": {"bytes_sent": 9}}, **result,
    )  # fmt: skip
    return [call, done]


def shown(merged: Trace) -> list[str]:
    """The merged trace in words, without its first and last event."""
    words = []
    for event in merged.events[1:-1]:
        if isinstance(event, ToolCall):
            words.append(f"call {event.call_id}#{event.attempt} {event.origin}")
        elif isinstance(event, ToolResult):
            words.append(f"result {event.call_id}#{event.attempt or 1} {event.status}")
        else:
            words.append(str(event.__struct_config__.tag))
    return words


def test_one_call_that_both_saw_stays_one_and_gains_what_the_server_knows() -> None:
    mine = trace(asked(1), got(1.2, status="error", error_class="rate_limited"))
    merged = merge_journal(mine, seen(1.1, 1, "error", http_status=429, owed_ms=1750.0, error_class="rate_limited"))
    assert shown(merged) == ["call a1#1 model", "result a1#1 error"]
    call, result = merged.calls()[0], merged.results()[0]
    assert (call.access, call.idempotency_key, call.ts) == ("write", "k1", at(1))
    assert (result.http_status, result.owed_ms, result.sent, result.ts) == (429, 1750.0, True, at(1.2))
    assert result.extra is not None
    assert result.extra["server"]["bytes_sent"] == 9


def test_the_agents_word_on_its_status_holds() -> None:
    mine = trace(asked(1), got(1.2, status="timeout", error_class="timeout", result=encode_raw("late")))
    result = merge_journal(mine, seen(1.1, 1, "ok", http_status=200)).results()[0]
    assert (result.status, result.error_class, decode(result.result)) == ("timeout", "timeout", "late")


def test_retries_inside_an_sdk_appear_as_attempts_of_the_agents_call() -> None:
    mine = trace(asked(1), got(4))
    server = [
        *seen(1.1, 1, "error", http_status=500),
        *seen(2, 2, "error", http_status=503, retry_count=1, origin="sdk"),
        *seen(3, 3, "ok", http_status=200, retry_count=2, origin="sdk"),
    ]
    merged = merge_journal(mine, server)
    assert shown(merged) == [
        "call a1#1 model", "result a1#1 error", "call a1#2 sdk", "result a1#2 error", "call a1#3 sdk", "result a1#3 ok",
    ]  # fmt: skip
    assert [result.http_status for result in merged.results()] == [500, 503, 200]
    operations = group(merged, AlikeByBytes()).groups
    assert [len(found.tries()) for found in operations] == [3]


def test_below_an_agent_that_counts_its_own_attempts_the_numbers_go_on() -> None:
    mine = trace(
        asked(1), got(2.5, status="error"), asked(5, attempt=2, op_id="a1", origin="harness"), got(6, attempt=2)
    )
    server = [
        *seen(1.1, 1, "error"),
        *seen(2, 2, "error", retry_count=1, origin="sdk"),
        *seen(5.1, 3, "ok", retry_count=0),
    ]
    assert shown(merge_journal(mine, server)) == [
        "call a1#1 model", "result a1#1 error", "call a1#2 sdk", "result a1#2 error",
        "call a1#3 harness", "result a1#3 ok",
    ]  # fmt: skip


def test_a_later_equal_call_is_not_taken_for_a_retry_below_the_first() -> None:
    mine = trace(asked(1), got(4), asked(10, "a2"), got(11, "a2"))
    server = [*seen(1.1, 1, "error", key=None), *seen(3, 2, "ok", key=None), *seen(10.1, 3, "ok", key=None)]
    assert shown(merge_journal(mine, server)) == [
        "call a1#1 model", "result a1#1 error", "call a1#2 transport", "result a1#2 ok",
        "call a2#1 model", "result a2#1 ok",
    ]  # fmt: skip


def test_a_call_id_in_the_request_decides_against_the_order() -> None:
    mine = trace(asked(1, "a1", batch="b"), asked(1, "a2", batch="b"), got(2, "a1"), got(2, "a2"))
    server = [
        *seen(1.1, 1, call_id="a2", given_call_id=True, http_status=201),
        *seen(1.1, 2, call_id="a1", given_call_id=True, http_status=200),
    ]
    merged = merge_journal(mine, server)
    assert {result.call_id: result.http_status for result in merged.results()} == {"a1": 200, "a2": 201}


def test_the_idempotency_key_decides_between_calls_of_one_tool() -> None:
    other = {**ARGS, "idempotency_key": "k2"}
    mine = trace(asked(1, "a1"), asked(1, "a2", other), got(2, "a1"), got(2, "a2"))
    server = [*seen(1.1, 1, args=other, key="k2", http_status=201), *seen(1.1, 2, key="k1", http_status=200)]
    merged = merge_journal(mine, server)
    assert {result.call_id: result.http_status for result in merged.results()} == {"a1": 200, "a2": 201}


def test_an_agent_that_recorded_no_calls_gets_the_servers() -> None:
    mine = trace(ModelTurn(turn=1, ts=at(0.5)), ModelTurn(turn=2, ts=at(3)))
    merged = merge_journal(mine, [*seen(1, 1), *seen(4, 2)])
    assert shown(merged) == [
        "model_turn", "call call_1#1 model", "result call_1#1 ok",
        "model_turn", "call call_2#1 model", "result call_2#1 ok",
    ]  # fmt: skip
    assert all(event.mono_ns is None for event in merged.calls()), "another process's clock is no clock of this trace"


def test_the_servers_ids_do_not_collide_with_the_agents() -> None:
    mine = trace(asked(1, "call_1", tool="other"), got(2, "call_1"))
    merged = merge_journal(mine, seen(1.5, 1))
    assert sorted(call.call_id for call in merged.calls()) == ["call_1", "server:call_1"]


def test_calls_that_never_reached_the_server_stay() -> None:
    mine = trace(asked(1), got(1.1, status="error", error_class="connect", sent=False), asked(3, "a2"), got(4, "a2"))
    merged = merge_journal(mine, seen(3.1, 1))
    assert [(result.call_id, result.sent) for result in merged.results()] == [("a1", False), ("a2", True)]


def test_effects_and_limits_come_in_once() -> None:
    effect = Effect(name="charge", key="k1", value=encode_raw(500), ts=at(1.15), extra={"server": {}})
    limit = Limit(limit="max_tool_calls", value=3, max=2, ts=at(5), extra={"server": {}})
    mine = trace(asked(1), got(2))
    merged = merge_journal(mine, [*seen(1.1, 1), effect, limit])
    assert shown(merged) == ["call a1#1 model", "effect", "result a1#1 ok", "limit"]
    again = merge_journal(merged, [effect, limit])
    assert shown(again) == shown(merged)


def test_two_equal_effects_stay_two() -> None:
    effect = Effect(name="charge", key="k1", value=encode_raw(500), ts=at(1.15))
    merged = merge_journal(trace(asked(1), got(2)), [effect, effect])
    assert shown(merged).count("effect") == 2


def test_a_tool_may_have_another_name_in_the_plan() -> None:
    mine = trace(asked(1, tool="pay"), got(2))
    merged = merge_journal(mine, seen(1.1, 1, http_status=200), names={"charge": "pay"})
    assert shown(merged) == ["call a1#1 model", "result a1#1 ok"]
    assert merged.results()[0].http_status == 200


def test_arguments_with_secrets_still_match() -> None:
    mine = trace(asked(1, args={"token": "plain"}), got(2))
    merged = merge_journal(mine, seen(1.1, 1, args={"token": "<secret:1>"}, key=None))
    assert len(merged.calls()) == 1


def test_without_times_the_order_decides() -> None:
    mine = trace(*(event for n in (1, 2) for event in (
        ToolCall(call_id=f"a{n}", tool_name="charge", args=encode_raw(ARGS)), ToolResult(call_id=f"a{n}", status="ok"))
    ))  # fmt: skip
    server = [*seen(1, 1, http_status=201), *seen(2, 2, http_status=202)]
    assert [result.http_status for result in merge_journal(mine, server).results()] == [201, 202]


def test_the_end_no_longer_claims_a_count_or_checksum_of_other_lines() -> None:
    end = merge_journal(trace(asked(1), got(2)), seen(1.1, 1)).end
    assert end is not None
    assert (end.events, end.sha256, end.outcome) == (None, None, "success")


def test_nothing_from_the_server_changes_nothing() -> None:
    mine = trace(asked(1), got(2))
    assert merge_journal(mine, []) is mine


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.booleans()), max_size=6),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(0, 2)), max_size=6),
)
def test_whatever_is_merged_every_attempt_stands_once_with_at_most_one_result(
    agent: list[tuple[int, int, bool]], server: list[tuple[int, int, int]]
) -> None:
    mine: list[AnyEvent] = []
    for number, (second, amount, is_answered) in enumerate(sorted(agent)):
        mine.append(asked(second, f"a{number}", {"amount": amount}))
        if is_answered:
            mine.append(got(second + 1, f"a{number}"))
    theirs: list[AnyEvent] = []
    for number, (second, amount, retries) in enumerate(sorted(server)):
        theirs += seen(second + 0.5, number, args={"amount": amount}, key=None, retry_count=retries or None)
    merged = merge_journal(trace(*mine), theirs)
    assert isinstance(merged.events[0], TraceStart)
    assert isinstance(merged.events[-1], TraceEnd)
    calls = [(call.call_id, call.attempt) for call in merged.calls()]
    assert len(calls) == len(set(calls))
    assert max(len(agent), len(server)) <= len(calls) <= len(agent) + len(server)
    results = [(result.call_id, result.attempt or 1) for result in merged.results()]
    assert len(results) == len(set(results))
    assert set(results) <= set(calls)


@pytest.mark.parametrize("raw", [ABSENT, encode_raw({"amount": 1})])
def test_arguments_that_one_side_did_not_record_are_the_others(raw: Any) -> None:
    mine = trace(ToolCall(call_id="a1", tool_name="charge", args=raw, ts=at(1)), got(2))
    call = merge_journal(mine, seen(1.1, 1, args={"amount": 1}, key=None)).calls()[0]
    assert decode(call.args) == {"amount": 1}
