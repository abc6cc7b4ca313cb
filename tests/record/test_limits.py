"""A limit stops the run before it is passed, says so in the trace, and is not swallowed by the agent's own handlers."""

import asyncio
import contextlib
import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from goldentrace import LimitReached, Recorder
from goldentrace.errors import ConfigError
from goldentrace.record.limits import Limits, ToolLimits, read_limits
from tests.record.conftest import Run


def ok(n: int = 0) -> int:
    return n


def calls(count: int, **metadata: Any) -> Callable[[Recorder], None]:
    """An agent that calls one tool that often."""

    def agent(recorder: Recorder) -> None:
        tool = recorder.wrap_tools({"t": {"callable": ok, **metadata}})["t"]["callable"]
        for number in range(count):
            tool(number)

    return agent


def turns(count: int, **fields: Any) -> Callable[[Recorder], None]:
    def agent(recorder: Recorder) -> None:
        for _ in range(count):
            with recorder.turn(**fields):
                pass

    return agent


def retries(count: int) -> Callable[[Recorder], None]:
    def agent(recorder: Recorder) -> None:
        call = recorder.call("t", {})
        for _ in range(count - 1):
            recorder.result(call, error=TimeoutError())
            recorder.decision("retry")
            call = recorder.call("t", {})

    return agent


@pytest.mark.parametrize(
    ("limits", "agent", "limit", "end"),
    [
        ({"max_tool_calls": 2}, calls(3), "max_tool_calls 3/2", "call_limit"),
        ({"max_executions": 2}, retries(3), "max_executions 3/2", "execution_limit"),
        ({"max_attempts": 2}, retries(3), "max_attempts 3/2", "attempt_limit"),
        ({"max_model_turns": 2}, turns(3), "max_model_turns 3/2", "turn_limit"),
        ({"max_writes": 1}, calls(2, access="write"), "max_writes 2/1", "write_limit"),
        ({"max_destructive": 0}, calls(1, destructive=True), "max_destructive 1/0", "destructive_limit"),
        (
            {"max_tokens": 20},
            turns(3, usage={"input_tokens": 6, "output_tokens": 4}),
            "max_tokens 30/20",
            "token_limit",
        ),
        ({"max_cost_usd": 0.25}, turns(3, usage={"cost_usd": 0.1}), "max_cost_usd 0.3/0.25", "cost_limit"),
        ({"per_tool": {"t": {"max_calls": 1}}}, calls(2), "max_calls 2/1", "call_limit"),
        ({"per_tool": {"default": {"max_calls": 1}, "x": {}}}, calls(2), "max_calls 2/1", "call_limit"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_limit_stops_the_run(limits: Any, agent: Callable[[Recorder], None], limit: str, end: str, run: Run) -> None:
    with pytest.raises(LimitReached), run.recorder(limits=limits) as recorder:
        agent(recorder)
    assert run.outline()[-2:] == [f"limit {limit}", f"end aborted {end}"]


@pytest.mark.parametrize(
    ("limits", "agent"),
    [
        ({"max_tool_calls": 2, "max_executions": 2, "max_writes": 2}, calls(2, access="write")),
        ({"max_tool_calls": 1, "max_writes": 0, "max_executions": 3, "max_attempts": 3}, retries(3)),
        ({"max_model_turns": 2, "max_tokens": 20, "max_cost_usd": 0.2},
         turns(2, usage={"input_tokens": 10, "cost_usd": 0.1})),
        ({"per_tool": {"t": {}, "default": {"max_calls": 0}}}, calls(5)),
        ({"max_wall_ms": None, "max_tool_calls": None, "per_tool": {"default": {"max_elapsed_ms": None}}}, calls(5)),
        ({"max_destructive": 0}, calls(2, access="write")),
    ],
)  # fmt: skip
def test_a_limit_may_be_reached_but_not_passed(limits: Any, agent: Callable[[Recorder], None], run: Run) -> None:
    with run.recorder(limits=limits) as recorder:
        agent(recorder)
    assert run.events("limit") == []


def test_what_is_not_the_models_call_does_not_count_as_one(run: Run) -> None:
    with run.recorder(limits={"max_tool_calls": 1}) as recorder:
        inner = recorder.tool(name="inner")(ok)
        recorder.tool(name="outer")(lambda: [inner(), inner()])()
        with recorder.origin("harness"):
            inner()
    assert run.events("limit") == []


@pytest.mark.parametrize("limit", ["max_tool_calls", "max_executions", "max_model_turns", "max_writes", "max_wall_ms"])
def test_zero_allows_none(limit: str, run: Run) -> None:
    with pytest.raises(LimitReached), run.recorder(limits={limit: 0}) as recorder, recorder.turn():
        recorder.call("t", {}, access="write")
    assert run.events("tool_call") == []


def test_a_call_that_was_stopped_did_not_happen(run: Run) -> None:
    done: list[int] = []
    with run.recorder(limits={"max_tool_calls": 2}) as recorder:
        tool = recorder.wrap_tools({"t": done.append})["t"]
        for number in range(5):
            with pytest.raises(LimitReached) if number >= 2 else contextlib.nullcontext():
                tool(number)
    assert done == [0, 1]
    assert len(run.events("tool_call")) == 2


def test_a_handler_for_exceptions_does_not_swallow_the_stop(run: Run) -> None:
    """What agents do: the text of any error goes back to the model, which calls again."""

    def agent(recorder: Recorder) -> None:
        tool = recorder.wrap_tools({"t": ok})["t"]
        for number in itertools.count():
            try:
                tool(number)
            except Exception as error:  # noqa: BLE001 - as agents do it
                recorder.message("tool", str(error))

    with pytest.raises(LimitReached), run.recorder(limits={"max_tool_calls": 3}) as recorder:
        agent(recorder)
    assert run.outline()[-1] == "end aborted call_limit"


def test_an_agent_may_handle_the_limit_and_say_how_it_ended(run: Run) -> None:
    with run.recorder(limits={"max_tool_calls": 1}) as recorder:
        with pytest.raises(LimitReached) as caught:
            calls(2)(recorder)
        assert str(caught.value) == "limit reached: max_tool_calls is 1, this would make it 2"
        recorder.end("partial")
    assert run.outline()[-1] == "end partial call_limit"


def test_an_agents_own_reason_stands(run: Run) -> None:
    with run.recorder(limits={"max_tool_calls": 1}) as recorder:
        with pytest.raises(LimitReached):
            calls(2)(recorder)
        recorder.end("success", "final_answer")
    assert run.outline()[-2:] == ["limit max_tool_calls 2/1", "end success final_answer"]


def test_a_limit_is_written_once_however_often_it_stops(run: Run) -> None:
    with run.recorder(limits={"per_tool": {"default": {"max_calls": 0}}}) as recorder:
        tools = recorder.wrap_tools({"a": ok, "b": ok})
        for name in ("a", "a", "b", "a"):
            with pytest.raises(LimitReached):
                tools[name]()
    assert [event["extra"] for event in run.events("limit")] == [{"tool_name": "a"}, {"tool_name": "b"}]


class SetClock:
    """Shows what the test sets it to."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def monotonic_ns(self) -> int:
        return int(self.now_ms * 1e6)

    def time_ns(self) -> int:
        return 1_700_000_000_000_000_000 + int(self.now_ms * 1e6)


def test_wall_time_counts_from_the_start_by_the_injected_clock(run: Run) -> None:
    clock = SetClock()
    clock.now_ms = 5000
    with run.recorder(clock=clock, limits={"max_wall_ms": 1000}) as recorder:
        clock.now_ms = 6000
        recorder.call("t", {})
        clock.now_ms = 6001
        with pytest.raises(LimitReached):
            recorder.call("t", {})
        recorder.end("aborted")
    assert run.outline() == ["call t 1 model", "limit max_wall_ms 1001/1000", "end aborted wall_clock_limit"]


def test_elapsed_time_counts_from_the_first_attempt_of_an_operation(run: Run) -> None:
    clock = SetClock()
    limits = {"per_tool": {"default": {"max_elapsed_ms": 1000}}}
    with run.recorder(clock=clock, limits=limits) as recorder:
        for number in range(3):
            clock.now_ms += 900
            recorder.result(recorder.call("t", {"n": number}), number)
        call = recorder.call("t", {"n": 3})
        recorder.result(call, error=TimeoutError())
        recorder.decision("retry")
        clock.now_ms += 1001
        with pytest.raises(LimitReached):
            recorder.call("t", {"n": 3})
    assert run.events("limit") == [
        {"type": "limit", "limit": "max_elapsed_ms", "value": 1001.0, "max": 1000.0, "extra": {"tool_name": "t"}}
    ]


@pytest.mark.parametrize(
    ("limits", "name"),
    [({"per_tool": {"t": {"max_elapsed_ms": 50}}}, "max_elapsed_ms"), ({"max_wall_ms": 50}, "max_wall_ms")],
)
def test_a_coroutine_that_hangs_is_stopped_in_time(limits: Any, name: str, run: Run) -> None:
    was_cancelled: list[bool] = []

    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            was_cancelled.append(True)
            raise

    async def main() -> None:
        async with run.recorder(limits=limits) as recorder:
            await recorder.wrap_tools({"t": hang})["t"]()

    with pytest.raises(LimitReached) as caught:
        asyncio.run(main())
    assert was_cancelled == [True]
    assert caught.value.limit == name
    assert [line.partition(" ")[0] for line in run.outline()] == ["call", "result", "limit", "end"]
    assert run.outline()[1] == "result 1 timeout"
    assert run.outline()[-1] == "end aborted wall_clock_limit"


def test_a_time_out_of_the_tools_own_is_not_the_limits(run: Run) -> None:
    async def impatient() -> None:
        await asyncio.wait_for(asyncio.sleep(60), 0.001)

    async def main() -> None:
        async with run.recorder(limits={"max_wall_ms": 60_000}) as recorder:
            with pytest.raises(TimeoutError):
                await recorder.wrap_tools({"t": impatient})["t"]()

    asyncio.run(main())
    assert run.events("limit") == []


def test_threads_share_one_count(run: Run) -> None:
    stopped: list[int] = []
    with run.recorder(limits={"max_tool_calls": 50}) as recorder:
        tool = recorder.wrap_tools({"t": ok})["t"]

        def work() -> None:
            for number in range(20):
                try:
                    tool(number)
                except LimitReached:
                    stopped.append(number)

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(run.events("tool_call")) == 50
    assert len(stopped) == 50


def test_limits_hold_without_a_file() -> None:
    with pytest.raises(LimitReached), Recorder(limits={"max_tool_calls": 1}) as recorder:
        calls(2)(recorder)


def test_a_limit_survives_the_way_out_of_a_worker_process() -> None:
    error = LimitReached("max_calls", 2, 1, tool_name="t")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.limit, copy.value, copy.maximum, copy.tool_name) == ("max_calls", 2, 1, "t")
    assert str(copy) == str(error) == "limit reached for t: max_calls is 1, this would make it 2"


# --- where limits come from ------------------------------------------------------------------------------------------


def test_of_two_limits_the_lower_one_holds() -> None:
    own = {"max_tool_calls": 5, "max_writes": 1, "per_tool": {"a": {"max_calls": 3}, "default": {"max_calls": 9}}}
    told = '{"max_tool_calls": 7, "max_wall_ms": 10, "max_writes": 0, "per_tool": {"b": {"max_calls": 2}, "default": {"max_elapsed_ms": 4}}}'
    assert read_limits(own, told) == Limits(
        max_tool_calls=5,
        max_writes=0,
        max_wall_ms=10,
        per_tool={
            "a": ToolLimits(max_calls=3, max_elapsed_ms=4),
            "b": ToolLimits(max_calls=2),
            "default": ToolLimits(max_calls=9, max_elapsed_ms=4),
        },
    )


def test_the_runner_gives_limits_by_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDENTRACE_LIMITS", '{"max_tool_calls": 1}')
    with pytest.raises(LimitReached), run.recorder(limits={"max_tool_calls": 5}) as recorder:
        calls(3)(recorder)
    assert run.outline()[-2] == "limit max_tool_calls 2/1"


@pytest.mark.parametrize(
    ("given", "told", "what", "where"),
    [
        ({"max_tool_cals": 1}, None, "unknown field `max_tool_cals`", "limits"),
        ({"max_tool_calls": -1}, None, ">= 0", "limits"),
        ({"max_tool_calls": "3"}, None, "expected `int | null`", "limits"),
        ({"per_tool": {"t": {"calls": 1}}}, None, "unknown field `calls`", "limits"),
        (None, "{", "not valid limits", "GOLDENTRACE_LIMITS"),
        (None, "[]", "expected `object`", "GOLDENTRACE_LIMITS"),
    ],
)
def test_a_wrong_limit_is_an_error_not_a_guess(given: Any, told: str | None, what: str, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_limits(given, told)
    assert what in caught.value.what
    assert str(caught.value.where) == where
    assert "max_tool_calls" in caught.value.next_step
