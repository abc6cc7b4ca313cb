"""A recorded run becomes a script: the model asks again for what it asked for then."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.model.event import ToolCall
from goldentrace.model.trace import Trace
from goldentrace.replay.clock import VirtualClock
from goldentrace.replay.conversation import Message, Result
from goldentrace.replay.from_trace import ENDS_HERE, NOT_RECORDED, Conversion, script_from_trace
from goldentrace.replay.script import Cut, ProviderError, Script, ScriptedCall, ScriptTurn
from goldentrace.replay.script_file import parse_script, write_script
from goldentrace.replay.scripted_model import ProviderFailure, ScriptedModel
from tests.replay.conftest import Serve
from tests.replay.strategies import json_objects, json_values, texts, tool_names

START = {"type": "trace_start", "format": "goldentrace/1", "scenario_id": "incident", "seed": 9, "source": "recorder/1"}
END = {"type": "trace_end", "outcome": "success", "stop_reason": "final_answer"}


def trace_of(*events: dict[str, Any], start: dict[str, Any] = START, end: dict[str, Any] | None = END) -> Trace:
    rows = [start, *events, *([end] if end else [])]
    return read_trace("".join(json.dumps(row) + "\n" for row in rows).encode(), "incident.jsonl")


def turn(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "model_turn", "turn": number, **fields}


def call(call_id: str, tool: str, args: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "call_id": call_id,
        "tool_name": tool,
        **({} if args is None else {"args": args}),
        **fields,
    }


def result(call_id: str, value: Any = None, status: str = "ok", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "call_id": call_id, "status": status, "result": value, **fields}


def said(text: str | None, role: str = "assistant", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, **({} if text is None else {"text": text}), **fields}


def turns(conversion: Conversion, agent: int = 0) -> list[ScriptTurn]:
    return list(conversion.script.agents[agent].turns)


def play(script: Script, results: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return the calls that a sound agent makes of a script, with the results given per tool."""
    model = ScriptedModel(script, clock=VirtualClock(start_time_ns=0))
    left = {tool: list(texts) for tool, texts in results.items()}
    messages = [Message("user", "go")]
    made: list[tuple[str, str]] = []
    while True:
        try:
            reply = model.respond(messages)
        except ProviderFailure:
            continue
        messages.append(Message("assistant", reply.text, reply.calls))
        if not reply.calls:
            return made
        made += [(call.tool_name, call.arguments) for call in reply.calls]
        answers = tuple(
            Result(call.call_id or "", left[call.tool_name].pop(0) if left.get(call.tool_name) else "{}")
            for call in reply.calls
        )
        messages.append(Message("tool", results=answers))


def test_turns_calls_texts_and_tokens_are_carried_over() -> None:
    conversion = script_from_trace(
        trace_of(
            said("be brief", "system"),
            said("charge order A-17", "user"),
            turn(
                1,
                model="m",
                finish_reason="tool_use",
                usage={"input_tokens": 12, "output_tokens": 3, "cached_tokens": 4},
            ),
            said("looking", turn=1),
            call("c1", "find", {"q": "A-17"}, turn=1, batch=1),
            call("c2", "log", {}, turn=1, batch=1),
            result("c1", {"found": True}),
            result("c2"),
            turn(2, finish_reason="max_tokens"),
            said("done", turn=2),
        )
    )
    assert (conversion.script.name, conversion.script.seed) == ("incident", 9)
    assert turns(conversion) == [
        ScriptTurn(
            text="looking",
            calls=(ScriptedCall("find", {"q": "A-17"}), ScriptedCall("log", {})),
            usage=conversion.script.agents[0].turns[0].usage,
        ),
        ScriptTurn(text="done", finish="length"),
    ]
    usage = turns(conversion)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (12, 3, 4)
    assert conversion.notes == ()


def test_without_turns_calls_between_results_are_one_turn() -> None:
    conversion = script_from_trace(
        trace_of(
            said("go", "user"),
            call("c1", "a", {}), call("c2", "b", {}), result("c1"), result("c2"),
            call("c3", "c", {}), result("c3"),
            said("done"),
        )
    )  # fmt: skip
    assert [[call.tool_name for call in one.calls] for one in turns(conversion)] == [["a", "b"], ["c"], []]


def test_turn_numbers_alone_are_enough() -> None:
    conversion = script_from_trace(
        trace_of(call("c1", "a", {}, turn=1), call("c2", "b", {}, turn=2), result("c1"), result("c2"))
    )
    assert [[call.tool_name for call in one.calls] for one in turns(conversion)] == [["a"], ["b"], []]


def test_what_the_harness_did_is_left_to_the_agent_and_said() -> None:
    conversion = script_from_trace(
        trace_of(
            turn(1), call("c1", "charge", {"n": 1}),
            result("c1", None, "error", error_class="rate_limited", http_status=429, owed_ms=2000),
            {"type": "decision", "decision": "retry", "call_id": "c1", "by": "harness", "delay_ms": 2000},
            call("c1", "charge", {"n": 1}, attempt=2, origin="harness"), result("c1", {"id": "x"}),
            turn(2), said("done"),
        )
    )  # fmt: skip
    assert [len(one.calls) for one in turns(conversion)] == [1, 0]
    assert conversion.notes == ("left to the agent: 1 attempt by the harness", "left to the agent: 1 decision")


def test_an_id_that_came_from_a_result_becomes_a_reference() -> None:
    order, charge = "4f1c2a7b9d3e5f60718293a4", "9e107d9d372bb6826bd81d3542a419d6"
    trace = trace_of(
        said("charge order A-17 for me", "user"),
        turn(1), call("c1", "find", {"order_ref": "A-17"}), result("c1", {"orders": [{"id": order, "no": 4711}], "order_ref": "A-17"}),
        turn(2), call("c2", "charge", {"order": order, "currency": "EUR", "note": f"for {order}", "ref": "A-17", "no": 4711}),
        result("c2", json.dumps({"charge_id": charge})),
        turn(3), said(f"charged: {charge}"),
    )  # fmt: skip
    second, last = turns(script_from_trace(trace))[1:]
    assert second.calls[0].args == {
        "order": "<find#1/orders/0/id>", "currency": "EUR", "note": "for <find#1/orders/0/id>", "ref": "A-17", "no": 4711,
    }  # fmt: skip
    assert last.text == "charged: <charge#1/charge_id>"
    plain = turns(script_from_trace(trace, has_references=False))
    assert plain[1].calls[0].args is not None
    assert plain[1].calls[0].args["order"] == order


def test_a_replay_follows_the_new_ids() -> None:
    trace = trace_of(
        turn(1), call("c1", "find", {}), result("c1", {"order_id": 5, "token": "abc"}),
        turn(2), call("c2", "charge", {"order_id": 5, "token": "abc", "amount": 5}), result("c2"),
        turn(3), said("done"),
    )  # fmt: skip
    made = play(script_from_trace(trace).script, {"find": ['{"order_id": 77, "token": "new"}']})
    assert [json.loads(arguments) for _, arguments in made] == [{}, {"order_id": 77, "token": "new", "amount": 5}]


def test_what_looks_like_a_reference_by_chance_is_kept_as_it_is() -> None:
    conversion = script_from_trace(
        trace_of(turn(1), call("c1", "write", {"html": "<a#1/b>"}), result("c1"), turn(2), said("ok"))
    )
    assert turns(conversion)[0].is_literal
    assert play(conversion.script, {})[0] == ("write", '{"html":"<a#1/b>"}')


def test_arguments_that_are_no_object_are_carried_as_text() -> None:
    torn, listed, absent = call("c1", "a", args_raw='{"n": 1'), call("c2", "b", [1, 2]), call("c3", "c")
    answers = [result(call_id) for call_id in ("c1", "c2", "c3")]
    conversion = script_from_trace(trace_of(turn(1), torn, listed, absent, *answers, turn(2), said("ok")))
    a, b, c = turns(conversion)[0].calls
    assert (a.args_raw, b.args_raw, c.args) == ('{"n": 1', "[1,2]", {})
    assert "the arguments of c were not recorded: its calls have none" in conversion.notes
    assert parse_script(write_script(conversion.script)).agents[0].turns[0].calls == (a, b, c)


def test_a_lone_surrogate_is_carried_as_json_text() -> None:
    trace = trace_of(turn(1), call("c1", "a", {}), result("c1"), turn(2), said("ok"))
    torn = Raw(b'{"s":"\\ud800"}')
    events = [replace(event, args=torn) if isinstance(event, ToolCall) else event for event in trace.events]
    conversion = script_from_trace(Trace(events, "x"))
    assert turns(conversion)[0].calls[0].args_raw == '{"s":"\\ud800"}'
    assert parse_script(write_script(conversion.script)).agents[0].turns[0].calls == turns(conversion)[0].calls


def test_ids_that_were_used_twice_are_kept() -> None:
    conversion = script_from_trace(
        trace_of(turn(1), call("same", "a", {}), call("same", "b", {}), call("other", "c", {}), result("same"), result("same"), result("other"),
                 turn(2), said("ok"))
    )  # fmt: skip
    assert [call.call_id for call in turns(conversion)[0].calls] == ["same", "same", None]


def test_a_text_that_was_not_recorded_is_said() -> None:
    conversion = script_from_trace(trace_of(turn(1), said(None, text_hash="h:123456")))
    assert turns(conversion)[0].text == NOT_RECORDED
    assert any("not recorded" in note for note in conversion.notes)


@pytest.mark.parametrize(
    ("end", "last_text", "note"),
    [
        (END, ENDS_HERE, "a last turn was added"),
        ({**END, "outcome": "unknown", "stop_reason": "unknown"}, ENDS_HERE, "a last turn was added"),
        (None, ENDS_HERE, "the trace is incomplete"),
        ({**END, "outcome": "aborted", "stop_reason": "tool_loop"}, "", "the agent stopped by itself (tool_loop)"),
    ],
)
def test_a_run_that_ends_with_a_call(end: dict[str, Any] | None, last_text: str, note: str) -> None:
    conversion = script_from_trace(trace_of(turn(1), call("c1", "a", {}), result("c1"), end=end))
    assert turns(conversion)[-1].text == last_text
    assert any(note in said for said in conversion.notes)


def test_a_trace_without_a_model_makes_a_script_that_says_so() -> None:
    conversion = script_from_trace(trace_of({"type": "effect", "name": "charge"}))
    assert turns(conversion) == [ScriptTurn(text=ENDS_HERE)]
    assert conversion.notes == ("the trace holds nothing that a model said",)


def test_unknown_finish_reasons_and_costs_are_said() -> None:
    conversion = script_from_trace(
        trace_of(
            turn(1, finish_reason="weird", usage={"input_tokens": 1, "cached_tokens": 5, "cost_usd": 0.1}), said("x")
        )
    )
    assert [note.split(" ")[0] for note in conversion.notes] == ["costs", "cached", "finish"] or len(
        conversion.notes
    ) == 3


def test_refusals_and_cuts_that_this_package_recorded_are_turns() -> None:
    conversion = script_from_trace(
        trace_of(
            said("429", "provider", extra={"http_status": 429, "retry-after": "2", "sdk_retry": 0}),
            said("cut", "provider", extra={"cut": "before_reply", "cut_how": "reset"}),
            said("cut", "provider", extra={"cut": "arguments", "cut_how": "close"}),
            turn(1), said("ok"),
        )
    )  # fmt: skip
    assert turns(conversion) == [
        ScriptTurn(error=ProviderError(429, headers=(("retry-after", "2"),))),
        ScriptTurn(cut=Cut("before_reply", "reset")),
        ScriptTurn(text="ok"),
    ]
    assert any("cut off is left out" in note for note in conversion.notes)


def test_agents_are_told_apart_by_prompt_or_tools() -> None:
    conversion = script_from_trace(
        trace_of(
            turn(1), call("c1", "delegate", {}),
            said("You write code.\nWell.", "system", agent="coder"), turn(1, agent="coder"), call("c2", "edit", {}, agent="coder"),
            result("c2", agent="coder"), turn(2, agent="coder"), said("written", agent="coder"),
            turn(1, agent="tester"), call("c3", "run", {}, agent="tester"), result("c3", agent="tester"), turn(2, agent="tester"), said("ok", agent="tester"),
            result("c1"), turn(2), said("done"),
        )
    )  # fmt: skip
    by_name = {agent.name: agent for agent in conversion.script.agents}
    assert by_name["coder"].system_contains == "You write code."
    assert by_name["tester"].tools == ("run",)
    assert by_name["main"].tools == ("delegate",)


def test_an_agent_that_nothing_tells_apart_is_said() -> None:
    conversion = script_from_trace(
        trace_of(turn(1, agent="a"), said("x", agent="a"), turn(1, agent="b"), said("y", agent="b"))
    )
    assert any("agent a apart" in note for note in conversion.notes)
    assert any("agent b apart" in note for note in conversion.notes)


# --- the whole way round --------------------------------------------------------------------------------------------

recorded_calls = st.tuples(tool_names, json_objects)
recorded_turns = st.lists(st.lists(recorded_calls, min_size=1, max_size=3), min_size=1, max_size=4)


@given(recorded_turns, st.lists(json_values, min_size=1, max_size=4), texts)
@settings(max_examples=60)
def test_a_recorded_run_replays_to_equal_calls(
    steps: list[list[tuple[str, Any]]], values: list[Any], last: str
) -> None:
    """Whatever a run called and got: its script, written, read and played with the same results, makes the same calls."""
    events: list[dict[str, Any]] = []
    results: dict[str, list[str]] = {}
    number = 0
    for index, step in enumerate(steps, start=1):
        events.append(turn(index))
        ids = []
        for tool, args in step:
            number += 1
            ids.append((f"call_{number}", tool))
            events.append(call(f"call_{number}", tool, args))
        for call_id, tool in ids:
            value = values[len(events) % len(values)]
            events.append(result(call_id, value))
            results.setdefault(tool, []).append(json.dumps(value))
    events += [turn(len(steps) + 1), said(last or "done")]
    script = parse_script(write_script(script_from_trace(trace_of(*events)).script))
    made = play(script, results)
    assert [(tool, json.loads(arguments)) for tool, arguments in made] == [pair for step in steps for pair in step]


def test_a_run_over_the_wire_replays_to_the_same_calls(serve: Serve) -> None:
    """Today's incident is tomorrow's fixture: served, recorded, converted, served again."""
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")

    def agent(handle: Any) -> list[tuple[str, Any]]:
        messages: list[Any] = [{"role": "user", "content": "go"}]
        made: list[tuple[str, Any]] = []
        with httpx.Client(
            base_url=handle.base_urls["ANTHROPIC_BASE_URL"], headers={"anthropic-version": "2023-06-01"}
        ) as client:
            while True:
                answer = client.post("/v1/messages", json={"model": "m", "max_tokens": 9, "messages": messages})
                if answer.status_code == 529:
                    continue
                body = answer.raise_for_status().json()
                messages.append({"role": "assistant", "content": body["content"]})
                uses = [block for block in body["content"] if block["type"] == "tool_use"]
                if not uses:
                    return made
                made += [(use["name"], use["input"]) for use in uses]
                content = json.dumps({"id": "4f1c2a7b9d3e5f60718293a4"})
                messages.append({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": use["id"], "content": content} for use in uses
                ]})  # fmt: skip

    first = serve(
        'turns: [{error: {status: 529}}, {calls: [{tool: find, args: {q: ü}}, {tool: log}]}, {calls: [{tool: charge, args: {id: "<find#1/id>"}}]}, {text: done}]'
    )
    made = agent(first)
    first.stop()
    trace = read_trace(first.journal_path.read_bytes(), "recorded")
    conversion = script_from_trace(trace)
    text = write_script(conversion.script)
    assert "<find#1/id>" in text
    second = serve(text)
    assert agent(second) == made
    report = second.stop()
    assert (report.failure, report.unused_turns) == (None, ())
    calls = [
        [(e.tool_name, bytes(e.args)) for e in handle.events() if isinstance(e, ToolCall)] for handle in (first, second)
    ]
    assert calls[0] == calls[1]
    assert encode_event(trace.start)
