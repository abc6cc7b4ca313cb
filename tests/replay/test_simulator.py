"""Each simulated bug shows what it says it shows, sound and broken."""

import json
from collections import Counter
from typing import Any

import pytest

from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.errors import ConfigError
from goldentrace.model.event import (
    Approval,
    Decision,
    Effect,
    Limit,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
)
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.replay.script_file import parse_script, write_script
from goldentrace.replay.simulator import LOOP_BUGS, simulate
from goldentrace.rules.registry import rules, run_rules
from tests.replay.conftest import Serve

bugs = pytest.mark.parametrize("name", LOOP_BUGS)


def both(name: str) -> tuple[Trace, Trace]:
    return simulate(name, is_sound=True), simulate(name, is_sound=False)


def of(trace: Trace, kind: type[Any]) -> list[Any]:
    return [event for event in trace.events if type(event) is kind]


@bugs
def test_a_simulated_trace_is_one_that_can_be_read(name: str) -> None:
    for trace in both(name):
        written = b"".join(encode_event(event) for event in trace.events)
        read = read_trace(written, "simulated")
        assert read.events == trace.events
        assert (read.incomplete is None) == (trace.incomplete is None)


@bugs
def test_a_simulation_is_the_same_each_time(name: str) -> None:
    first, second = (b"".join(map(encode_event, simulate(name, is_sound=False).events)) for _ in range(2))
    assert first == second


@bugs
def test_sound_and_broken_differ(name: str) -> None:
    sound, broken = both(name)
    assert [encode_event(event) for event in sound.events[1:]] != [encode_event(event) for event in broken.events[1:]]


@bugs
def test_the_script_of_a_bug_is_one_that_a_file_can_hold(name: str) -> None:
    script = LOOP_BUGS[name].script
    assert parse_script(write_script(script)).agents[0].turns[0].calls == script.agents[0].turns[0].calls


def test_an_unknown_bug_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        simulate("missing_resalt", is_sound=True)
    assert "missing_result" in caught.value.next_step


def test_malformed_arguments() -> None:
    sound, broken = both("malformed_arguments")
    assert [call.args_raw for call in of(sound, ToolCall)] == ['{"order_ref": "A-', None]
    assert [(result.status, result.error_class) for result in of(sound, ToolResult)] == [
        ("error", "malformed_json"),
        ("ok", None),
    ]
    assert [(call.args_raw, result.status) for call, result in zip(of(broken, ToolCall), of(broken, ToolResult), strict=True)] == [
        ('{"order_ref": "A-', "ok")
    ]  # fmt: skip


def test_duplicate_call_id() -> None:
    sound, broken = both("duplicate_call_id")
    for trace, results in ((sound, 2), (broken, 1)):
        assert len({call.call_id for call in of(trace, ToolCall)}) == 1
        assert (len(of(trace, ToolCall)), len(of(trace, ToolResult))) == (2, results)


def test_missing_call_id() -> None:
    sound, broken = both("missing_call_id")
    assert len(of(sound, ToolCall)) == 1
    assert of(sound, ModelTurn)[1].input_call_ids == [of(sound, ToolCall)[0].call_id]
    assert [turn.input_call_ids for turn in of(broken, ModelTurn)] == [[], [], []]
    assert len({bytes(call.args) for call in of(broken, ToolCall)}) == 1
    assert len(of(broken, ToolCall)) == 2


def test_missing_result() -> None:
    sound, broken = both("missing_result")
    assert len(of(sound, ToolResult)) == 2
    assert {call.call_id for call in of(broken, ToolCall)} - {result.call_id for result in of(broken, ToolResult)}


def test_partial_stream() -> None:
    sound, broken = both("partial_stream")
    writes = [[call for call in of(trace, ToolCall) if call.access == "write"] for trace in (sound, broken)]
    assert [[call.args_raw is not None for call in calls] for calls in writes] == [[False], [True, False]]
    assert [decision.delay_ms for decision in of(sound, Decision)] == [500.0]
    oks = Counter(result.call_id for result in of(broken, ToolResult) if result.status == "ok")
    assert all(oks[call.call_id] == 1 for call in writes[1]), "charged twice"


def test_provider_disconnect() -> None:
    sound, broken = both("provider_disconnect")
    assert [(decision.decision, decision.delay_ms) for decision in of(sound, Decision)] == [
        ("retry", 500.0), ("retry", 1000.0), ("abort", None),
    ]  # fmt: skip
    assert (sound.end and sound.end.stop_reason) == "provider_error"
    waits = [
        after.mono_ns - before.mono_ns
        for before, after in zip(of(sound, Decision), of(sound, Decision)[1:], strict=False)
    ]
    assert waits == [500_000_000, 1_000_000_000], "to the nanosecond"
    assert broken.end is None
    assert broken.incomplete == "no trace_end"


def test_user_denial() -> None:
    sound, broken = both("user_denial")
    assert (len(of(sound, Approval)), len(of(broken, Approval))) == (1, 3)
    assert (sound.end and sound.end.outcome) == "partial"
    charges = [call for call in of(broken, ToolCall) if call.tool_name == "charge_card"]
    assert len({bytes(call.args) for call in charges}) == 1


def test_cancellation() -> None:
    sound, broken = both("cancellation")
    assert (sound.end and sound.end.stop_reason) == "user_cancelled"
    assert [result.status for result in of(sound, ToolResult)] == ["ok", "cancelled"]
    assert [result.status for result in of(broken, ToolResult)] == ["ok", "cancelled", "ok"]
    late = of(broken, ToolResult)[-1].call_id
    assert late in of(broken, ModelTurn)[-1].input_call_ids


def test_repeated_call() -> None:
    sound, broken = both("repeated_call")
    assert (len(of(sound, ToolCall)), sound.end and sound.end.stop_reason) == (3, "tool_loop")
    assert (len(of(broken, ToolCall)), broken.end and broken.end.stop_reason) == (8, "call_limit")
    assert [limit.limit for limit in of(broken, Limit)] == ["max_tool_calls"]


def test_every_trace_ends_at_most_once_and_last() -> None:
    for name in LOOP_BUGS:
        for trace in both(name):
            assert len(of(trace, TraceEnd)) <= 1
            assert not of(trace, Effect), "effects are a ledger's to tell"


def codes_of(trace: Trace) -> set[str]:
    """Return the codes of the rules that speak on a trace."""
    profile = Profile(name="simulated")
    normal = normalize(trace, profile, "h:simulated")
    place_in_time(normal, trace)
    return {finding.code for finding in run_rules(trace, normal, profile).findings}


@pytest.mark.parametrize(
    ("name", "code"),
    [(name, code) for name, bug in LOOP_BUGS.items() for code in (*bug.codes, *bug.codes_of_both)],
)
def test_rules_speak_where_the_simulator_says_they_do(name: str, code: str) -> None:
    if code not in rules():
        pytest.skip(f"there is no rule {code} yet")
    sound, broken = both(name)
    assert code in codes_of(broken)
    assert (code in codes_of(sound)) == (code in LOOP_BUGS[name].codes_of_both)


@pytest.mark.parametrize("name", [name for name, bug in LOOP_BUGS.items() if bug.is_on_wire])
def test_the_script_provokes_the_bug_over_the_wire(name: str, serve: Serve) -> None:
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    handle = serve(write_script(LOOP_BUGS[name].script))
    messages: list[Any] = [{"role": "user", "content": "go"}]
    calls: list[Any] = []
    lost = 0
    with httpx.Client(base_url=handle.base_urls["OPENAI_BASE_URL"], timeout=20) as client:
        for _ in range(6):
            try:
                body = (
                    client.post("/chat/completions", json={"model": "m", "messages": messages})
                    .raise_for_status()
                    .json()
                )
            except httpx.TransportError:
                lost += 1
                continue
            message = body["choices"][0]["message"]
            made = message.get("tool_calls") or []
            calls += made
            if not made:
                break
            for number, call in enumerate(made):
                call.setdefault("id", f"own-{len(messages)}-{number}")
            results = [
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": '{"id":"ord_7Qm2xW4bT9"}' if is_json(call) else '{"isError":true}',
                }
                for call in made
            ]
            messages += [message, *results]
    expected: dict[str, Any] = {
        "malformed_arguments": lambda: calls[0]["function"]["arguments"] == '{"order_ref": "A-' and is_json(calls[1]),
        "duplicate_call_id": lambda: calls[0]["id"] == calls[1]["id"],
        "missing_call_id": lambda: calls[0]["id"].startswith("own-") and len(calls) == 1,
        "missing_result": lambda: len(calls) == 2,
        "partial_stream": lambda: lost == 1 and len(calls) == 2,
        "provider_disconnect": lambda: lost == 5,
        "repeated_call": lambda: len(calls) == 6 and len({call["id"] for call in calls}) == 6,
    }
    assert expected[name](), (calls, lost)


def is_json(call: Any) -> bool:
    try:
        json.loads(call["function"]["arguments"])
    except ValueError:
        return False
    return True
