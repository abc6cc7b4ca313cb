"""tau-bench, tau2 with what is built on it, Toolathlon: many runs in a file, rewards, and their own layouts."""

import json
from typing import Any

import pytest

from goldentrace.errors import InputError
from goldentrace.sources.registry import trace_name
from tests.sources.reading import calls, read_all, read_one, results, turns

ASKS = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "lookup", "arguments": '{"id": 1}'}}]}
CHAT = [{"role": "system", "content": "policy"}, {"role": "user", "content": "hi"}, ASKS, {"role": "tool", "tool_call_id": "c", "name": "lookup", "content": "Error: not found"}, {"role": "assistant", "content": "bye"}]
STOP = {"role": "user", "content": "thanks ###STOP###"}


def tau(reward: Any, *more: dict[str, Any], trial: int = 0) -> dict[str, Any]:
    return {"task_id": 3, "reward": reward, "trial": trial, "info": {"reward_info": {"r": reward}, "user_cost": 0.1}, "traj": [*CHAT, *more]}


def test_each_run_of_tau_bench_is_a_trace_named_by_task_and_trial() -> None:
    traces = read_all([tau(1.0, STOP), tau(0.0, trial=1), tau(0.5, trial=2), tau(None, trial=3)])
    assert [trace_name(trace) for trace in traces] == [f"task-3_trial-{n}" for n in range(4)]
    assert [trace.end.outcome for trace in traces if trace.end] == ["success", "failed", "partial", "unknown"]
    assert {trace.start.scenario_id for trace in traces} == {"task-3"}
    assert results(traces[0]) == [("c", "ok", "Error: not found")]
    assert traces[0].start.attributes is not None
    assert traces[0].start.attributes["user_cost_usd"] == 0.1


@pytest.mark.parametrize(("tail", "expected"), [([STOP], "final_answer"), ([], "final_answer"), ([{"role": "user", "content": "more"}], "unknown"), ([ASKS | {"tool_calls": [{"id": "d", "function": {"name": "x", "arguments": "{}"}}]}, STOP], "unknown")])
def test_the_users_stop_mark_ends_a_run(tail: list[dict[str, Any]], expected: str) -> None:
    trace = read_one([tau(1, *tail)])
    assert trace.end is not None
    assert trace.end.stop_reason == expected


def test_a_toolathlon_file_is_one_run() -> None:
    trace = read_one({"pass": False, "failure": "wrong cell", "messages": CHAT})
    assert trace.format == "toolathlon"
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("failed", "final_answer")
    assert trace.start.attributes == {"pass": False, "failure": "wrong cell"}
    assert read_one({"pass": None, "messages": CHAT}).events[-1].outcome == "unknown"  # type: ignore[union-attr]


def line(**more: Any) -> dict[str, Any]:
    return {
        "modelname_run": "model-x_1", "task_name": "fill-form", "request_id": "r-1", "initial_run_time": "2025-10-21 13:07:48", "completion_time": "2025-10-21 13:09:00",
        "task_status": json.dumps({"running": "done", "evaluation": True}), "config": "{}", "messages": json.dumps(CHAT),
        "tool_calls": json.dumps({"tools": [{"type": "function", "function": {"name": "never_called"}}]}), "key_stats": json.dumps({"total_turns": 2}), "agent_cost": "0.5",
    } | more  # fmt: skip


def test_a_toolathlon_line_holds_json_in_strings_and_a_catalogue_of_tools() -> None:
    trace = read_one((line(),))
    assert calls(trace) == [("lookup", {"id": 1})]
    assert (trace.start.trace_id, trace.start.scenario_id, trace_name(trace)) == ("r-1", "fill-form", "fill-form_model-x_1")
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason, trace.end.ts) == ("success", "final_answer", "2025-10-21T13:09:00.000000Z")
    assert "zone" in trace.notes[0].text
    assert trace.start.attributes is not None
    assert trace.start.attributes["key_stats"] == {"total_turns": 2}


def test_a_lost_toolathlon_run_is_a_trace_without_calls() -> None:
    trace = read_one((line(messages="None", task_status=json.dumps({"running": "timeout", "evaluation": False})),))
    assert trace.calls() == []
    assert "the run has no messages" in [note.text for note in trace.notes]
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("failed", "wall_clock_limit")


def test_damaged_inner_json_names_line_and_field() -> None:
    with pytest.raises(InputError, match="messages holds no JSON") as caught:
        read_all((line(), line(messages='[{"role": "us')))
    assert str(caught.value.where) == "file:2 $.messages"


def flat(call_id: str, requestor: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "name": "lookup", "arguments": {"id": call_id}, "requestor": requestor} | more


def simulation(**more: Any) -> dict[str, Any]:
    return {
        "id": "sim-1", "task_id": "7", "trial": 0, "start_time": "2026-04-26T17:35:41.870537", "termination_reason": "user_stop", "reward": 1.0,
        "messages": [
            {"role": "assistant", "content": "Hi!", "turn_idx": 0, "timestamp": "2026-04-26T17:35:41.870537"},
            {"role": "user", "content": "fix it", "tool_calls": None},
            {"role": "assistant", "content": "", "tool_calls": [flat("a"), flat("b")], "timestamp": "2026-04-26T17:35:56.238911", "usage": {"prompt_tokens": 5, "completion_tokens": 2}, "cost": 0.25},
            {"role": "tool", "tool_messages": [{"role": "tool", "id": "a", "content": "A", "requestor": "assistant", "error": False}, {"id": "b", "content": "B", "error": True}]},
            {"role": "user", "content": None, "tool_calls": [flat("u", "user")]},
            {"role": "tool", "id": "u", "content": "on", "requestor": "user", "error": False},
        ],
    } | more  # fmt: skip


def test_a_tau2_simulation_has_flat_calls_and_a_flag_for_failure() -> None:
    trace = read_one({"timestamp": "t", "info": {}, "tasks": [], "simulations": [simulation()]})
    assert trace.format == "tau2-bench"
    assert results(trace) == [("a", "ok", "A"), ("b", "error", "B"), ("u", "ok", "on")]
    assert [(call.agent, call.turn) for call in trace.calls()] == [("main", 2), ("main", 2), ("user", None)]
    usage = turns(trace)[1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (5, 2, 0.25)
    assert trace.calls()[0].ts == "2026-04-26T17:35:56.238911Z"
    assert [note.text for note in trace.notes] == ["clock times without a zone were read as UTC"]
    assert [call.extra for call in trace.calls()] == [{"message_index": 2}, {"message_index": 2}, {"message_index": 4}]
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("success", "final_answer")


@pytest.mark.parametrize(
    "file",
    [{"simulations": [simulation()]}, [simulation()], {"7": {k: v for k, v in simulation().items() if k != "task_id"}}, (simulation(),)],
    ids=["results", "list", "table by task", "lines"],
)
def test_every_layout_of_simulations_is_read(file: Any) -> None:
    trace = read_one(file, "tau2-bench")
    assert len(trace.calls()) == 3
    assert trace.start.scenario_id == "task-7"


@pytest.mark.parametrize(("reason", "expected"), [("max_steps", "turn_limit"), ("too_many_errors", "tool_error"), ("agent_stop", "final_answer"), ("something_new", "unknown")])
def test_a_termination_reason_becomes_a_stop_reason(reason: str, expected: str) -> None:
    trace = read_one({"simulations": [simulation(termination_reason=reason, reward=None, reward_info={"reward": 0.0})]})
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("failed", expected)


def test_a_row_of_agentsuite_pairs_results_without_ids_in_order() -> None:
    messages = [{"role": "assistant", "content": "", "tool_calls": [flat("a"), flat("b")]}, {"role": "tool", "content": "A"}, {"role": "tool", "content": "B"}, {"role": "tool", "content": "stray"}]
    row = {"model_path": "x/y", "benchmark_name": "tau2-bench", "task_name": "retail", "messages": messages, "eval_result": {"score": 0.5}, "meta": {"id": "3", "finish_reason": "max_steps"}}
    trace = read_one((row,))
    assert trace_name(trace) == "retail_task-3"
    assert [value for _, _, value in results(trace)] == ["A", "B", "stray"]
    assert [note.text for note in trace.notes] == ["a result without an earlier call result:6"]
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("partial", "turn_limit")


def test_simulations_beyond_the_head_are_recognised_by_the_tasks() -> None:
    tasks = [{"id": str(n), "user_scenario": "x" * 3000} for n in range(60)]
    file = {"timestamp": "t", "info": {"domain": "retail"}, "tasks": tasks, "simulations": [simulation()]}
    assert read_one(file).format == "tau2-bench"
