"""Retry loops as people write them: one operation, numbered attempts, whose decision each was, and the wait it asked for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from goldentrace import LimitReached
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from goldentrace.replay.clock import VirtualClock
from tests.record.conftest import Run

MakeTool = Callable[..., Callable[..., Any]]


def operations(run: Run) -> list[list[tuple[str, int]]]:
    """Each operation's attempts as (tool, number), by what the events state."""
    found: dict[str, list[tuple[str, int]]] = {}
    for event in run.events("tool_call"):
        found.setdefault(event.get("op_id", event["call_id"]), []).append((event["tool_name"], event.get("attempt", 1)))
    return list(found.values())


# --- a loop around a tool --------------------------------------------------------------------------------------------


def test_a_loop_around_a_tool(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError("slow"), ConnectionResetError())})["charge"]
        with recorder.turn():
            for attempt in range(1, 4):
                try:
                    charge(order_id="o1")
                    break
                except (TimeoutError, ConnectionError) as error:
                    recorder.decision("retry", reason=type(error).__name__, delay_ms=2.0**attempt)
        recorder.end("success", "final_answer")
    assert run.outline() == [
        "turn 1",
        "call charge 1 model", "result 1 timeout", "decision retry",
        "call charge 2 harness", "result 2 error", "decision retry",
        "call charge 3 harness", "result 3 ok",
        "end success final_answer",
    ]  # fmt: skip
    assert operations(run) == [[("charge", 1), ("charge", 2), ("charge", 3)]]
    call_id = run.events("tool_call")[0]["call_id"]
    assert [(event["call_id"], event["reason"], event["delay_ms"]) for event in run.events("decision")] == [
        (call_id, "TimeoutError", 2.0), (call_id, "ConnectionResetError", 4.0),
    ]  # fmt: skip


def test_the_reader_sees_one_operation(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        with recorder.turn():
            try:
                charge(order_id="o1", key="k1")
            except TimeoutError:
                recorder.decision("retry", delay_ms=5)
            charge(order_id="o1", key="k2")
    (operation,) = normalize(run.trace, Profile(name="test@1"), "h:0").operations
    assert operation.tool_name == "charge"
    assert [step.status for step in operation.steps if hasattr(step, "status")] == ["timeout", "ok"]


def test_the_decision_may_come_after_the_handler(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        with contextlib.suppress(TimeoutError):
            charge(order_id="o1")
        recorder.decision("retry")
        charge(order_id="o1")
    assert operations(run) == [[("charge", 1), ("charge", 2)]]


def test_a_retry_may_follow_from_a_result(run: Run) -> None:
    answers = [httpx.Response(429, headers={"retry-after": "2"}), {"status": "pending"}, {"status": "done"}]
    with run.recorder() as recorder:
        poll = recorder.wrap_tools({"poll": lambda: answers.pop(0)})["poll"]
        for _ in range(2):
            poll()
            recorder.decision("retry", delay_ms=2000)
        poll()
    assert run.outline()[:-1] == [
        "call poll 1 model", "result 1 error", "decision retry",
        "call poll 2 harness", "result 2 ok", "decision retry",
        "call poll 3 harness", "result 3 ok",
    ]  # fmt: skip
    assert run.events("tool_result")[0]["owed_ms"] == 2000


def test_waits_are_exact_by_a_virtual_clock(run: Run, fails_then: MakeTool) -> None:
    clock = VirtualClock()

    def agent() -> None:
        with run.recorder(clock=clock) as recorder:
            charge = recorder.wrap_tools({"charge": fails_then(TimeoutError(), TimeoutError())})["charge"]
            for delay_ms in (60_000, 120_000, 0):
                try:
                    charge(order_id="o1")
                except TimeoutError:
                    recorder.decision("retry", delay_ms=delay_ms)
                    clock.sleep(delay_ms / 1000)

    agent()
    calls, results = run.trace.calls(), run.trace.results()
    gaps_ns = [(after.mono_ns or 0) - (before.mono_ns or 0) for before, after in zip(results, calls[1:], strict=False)]
    assert gaps_ns == [60_000_000_000, 120_000_000_000]


def test_without_a_decision_the_next_call_is_another_one(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        with pytest.raises(TimeoutError):
            charge(order_id="o1")
        charge(order_id="o1")
    assert operations(run) == [[("charge", 1)], [("charge", 1)]]


def test_a_retry_of_one_tool_is_no_attempt_of_another(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"charge": fails_then(TimeoutError()), "refresh": lambda: "token"})
        try:
            tools["charge"](order_id="o1")
        except TimeoutError:
            recorder.decision("retry", reason="auth")
            tools["refresh"]()
            tools["charge"](order_id="o1", key="k2")
    assert operations(run) == [[("charge", 1), ("charge", 2)], [("refresh", 1)]]


def test_a_decision_that_nothing_followed_does_not_reach_into_the_next_turn(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        with recorder.turn():
            try:
                charge(order_id="o1")
            except TimeoutError:
                recorder.decision("retry")
        with recorder.turn():
            charge(order_id="o1")
    assert operations(run) == [[("charge", 1)], [("charge", 1)]]


def test_the_model_may_try_again_in_a_later_turn(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        with recorder.turn():
            try:
                charge(order_id="o1")
            except TimeoutError:
                recorder.decision("retry", by="model")
        with recorder.turn():
            charge(order_id="o2")
    assert run.outline()[:-1] == [
        "turn 1", "call charge 1 model", "result 1 timeout", "decision retry", "turn 2", "call charge 2 model", "result 2 ok",
    ]  # fmt: skip


@pytest.mark.parametrize("origin", ["harness", "sdk", "transport", "model"])
def test_who_decides_asks(origin: str, run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        try:
            charge(order_id="o1")
        except TimeoutError:
            recorder.decision("retry", by=origin)
        charge(order_id="o1")
    assert run.events("decision")[0]["by"] == origin
    assert run.events("tool_call")[1].get("origin", "model") == origin


def test_siblings_that_are_retried_at_the_same_time_keep_apart(run: Run) -> None:
    failed: set[str] = set()

    async def fetch(name: str) -> str:
        await asyncio.sleep(0.001 * len(name))
        if name not in failed:
            failed.add(name)
            raise TimeoutError(name)
        return name

    async def main() -> None:
        async with run.recorder() as recorder:
            tool = recorder.wrap_tools({"fetch": fetch})["fetch"]

            async def persistent(name: str) -> str:
                for _ in range(3):
                    try:
                        # in a task of its own, as asyncio.wait_for made one before Python 3.12
                        return await asyncio.wait_for(tool(name), 5)
                    except TimeoutError:
                        recorder.decision("retry", delay_ms=1)
                        await asyncio.sleep(0.001)
                raise AssertionError

            with recorder.turn():
                await asyncio.gather(*(persistent("x" * length) for length in range(1, 9)))

    asyncio.run(main())
    assert operations(run) == [[("fetch", 1), ("fetch", 2)]] * 8
    for operation in {event["call_id"] for event in run.events("tool_call")}:
        names = {event["args"]["name"] for event in run.events("tool_call") if event["call_id"] == operation}
        assert len(names) == 1


def test_attempts_in_threads_of_a_pool(run: Run, fails_then: MakeTool) -> None:
    """The pool's threads know nothing of the context: equal arguments join."""
    with run.recorder() as recorder, ThreadPoolExecutor(1) as pool:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError())})["charge"]
        with recorder.turn():
            call = pool.submit(charge, order_id="o1")
            with pytest.raises(TimeoutError):
                call.result()
            recorder.decision("retry")
            pool.submit(charge, order_id="other").result()
            pool.submit(charge, order_id="o1").result()
    assert operations(run) == [[("charge", 1), ("charge", 2)], [("charge", 1)]]


def test_a_given_call_id_ties_the_attempts_together(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"charge": fails_then(TimeoutError(), TimeoutError()), "other": lambda: 1})
        with recorder.turn(), recorder.call_id("toolu_1"):
            for _ in range(3):
                try:
                    tools["charge"](order_id="o1")
                except TimeoutError:
                    tools["other"]()
            tools["charge"](order_id="o1")
    assert operations(run) == [
        [("charge", 1), ("charge", 2), ("charge", 3)], [("other", 1)], [("other", 1)], [("charge", 1)],
    ]  # fmt: skip
    assert [event["call_id"] for event in run.events("tool_call")].count("toolu_1") == 3


# --- a harness that runs a whole turn again --------------------------------------------------------------------------


def test_a_harness_that_runs_a_whole_turn_again_asks_for_all_of_it(run: Run, fails_then: MakeTool) -> None:
    """As a framework does whose policy retries the node of the tools: what had succeeded runs again too."""
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"look": lambda ref: ref, "charge": fails_then(TimeoutError("slow"))})
        with recorder.turn(parallel=True):
            pass

        def node(is_first: bool) -> None:
            tools["look"](ref="A")
            tools["look"](ref="B")
            if is_first:
                with contextlib.suppress(TimeoutError):
                    tools["charge"]("o1")
            else:
                tools["charge"]("o1")
                tools["look"](ref="C")

        node(True)
        recorder.decision("retry", of="turn", reason="timeout")
        node(False)
        with recorder.turn(parallel=True):
            tools["look"](ref="A")
    assert run.outline() == [
        "turn 1",
        "call look 1 model", "result 1 ok", "call look 1 model", "result 1 ok", "call charge 1 model", "result 1 timeout",
        "decision retry",
        "call look 2 harness", "result 2 ok", "call look 2 harness", "result 2 ok", "call charge 2 harness", "result 2 ok",
        "call look 1 model", "result 1 ok",
        "turn 2", "call look 1 model", "result 1 ok",
        "end unknown unknown",
    ]  # fmt: skip
    assert operations(run) == [
        [("look", 1), ("look", 2)], [("look", 1), ("look", 2)], [("charge", 1), ("charge", 2)], [("look", 1)], [("look", 1)],
    ]  # fmt: skip
    (decision,) = run.events("decision")
    assert decision["call_id"] == run.events("tool_call")[2]["call_id"], "it is about the call that failed"
    labels = {(event["args"].get("ref"), event["call_id"]) for event in run.events("tool_call")[:6]}
    assert len(labels) == 3, "each by its own arguments"


def test_equal_calls_that_are_retried_with_their_turn_stay_two(run: Run) -> None:
    with run.recorder() as recorder:
        look = recorder.tool(name="look")(lambda ref: ref)
        with recorder.turn():
            for _ in range(2):
                look("A")
                look("A")
                if not run.events("decision"):
                    recorder.decision("retry", of="turn")
    assert operations(run) == [[("look", 1), ("look", 2)]] * 2


def test_what_runs_within_a_call_is_not_retried_with_the_turn_around_it(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"look": lambda ref: ref, "charge": fails_then(TimeoutError("slow"))})

        @recorder.tool()
        def pay() -> None:
            try:
                tools["charge"]("o1")
            except TimeoutError:
                recorder.decision("retry", of="turn")
                tools["charge"]("o1")

        with recorder.turn():
            tools["look"]("A")
            pay()
            tools["look"]("A")
    assert operations(run) == [
        [("look", 1)], [("pay", 1)], [("charge", 1), ("charge", 2)], [("look", 1)]
    ]  # fmt: skip


# --- a loop inside a tool --------------------------------------------------------------------------------------------


def test_a_loop_inside_a_tool(run: Run) -> None:
    with run.recorder() as recorder:
        answers = [TimeoutError("slow"), httpx.Response(429, headers={"retry-after": "1"}), httpx.Response(200)]

        @recorder.tool(access="write", idempotency_key="{key}")
        def charge(key: str) -> str:
            for _ in range(5):
                with recorder.attempt() as attempt:
                    try:
                        answer = answers.pop(0)
                        if isinstance(answer, Exception):
                            raise answer
                    except TimeoutError as error:
                        attempt.fail("timeout", error_class="timeout")
                        recorder.decision("retry", reason=str(error), delay_ms=1)
                        continue
                    attempt.response(answer)
                    if answer.status_code == 200:
                        return "paid"
                    recorder.decision("retry", reason="rate_limited", delay_ms=1000)
            raise AssertionError

        assert charge("k1") == "paid"
    assert run.outline()[:-1] == [
        "call charge 1 model", "result 1 timeout", "decision retry",
        "call charge 2 harness", "result 2 error", "decision retry",
        "call charge 3 harness", "result 3 ok",
    ]  # fmt: skip
    assert operations(run) == [[("charge", 1), ("charge", 2), ("charge", 3)]]
    calls = run.events("tool_call")
    assert [(event["access"], event["idempotency_key"], event["args"]) for event in calls] == [
        ("write", "k1", {"key": "k1"})
    ] * 3
    assert run.events("tool_result")[1] == {
        "type": "tool_result", "call_id": calls[0]["call_id"], "attempt": 2, "status": "error",
        "error_class": "rate_limited", "http_status": 429, "owed_ms": 1000.0, "sent": True,
    }  # fmt: skip


def test_an_exception_ends_a_try_and_goes_on(run: Run) -> None:
    with run.recorder() as recorder:

        @recorder.tool()
        def fetch() -> str:
            for number in range(3):
                try:
                    with recorder.attempt():
                        if number < 2:
                            raise ConnectionResetError(number)
                        return "done"
                except ConnectionResetError:
                    recorder.decision("retry")
            raise AssertionError

        assert fetch() == "done"
    assert [event["status"] for event in run.events("tool_result")] == ["error", "error", "ok"]
    assert run.events("tool_result")[0]["error_class"] == "reset"


def test_the_last_try_that_fails_is_the_calls_only_end(run: Run) -> None:
    with run.recorder() as recorder:

        @recorder.tool()
        def fetch() -> None:
            for _ in range(2):
                with recorder.attempt():
                    raise TimeoutError

        with pytest.raises(TimeoutError):
            fetch()

        @recorder.tool()
        def fallback() -> str:
            try:
                with recorder.attempt():
                    raise TimeoutError
            except TimeoutError:
                return "from the cache"

        assert fallback() == "from the cache"
    assert run.outline()[:-1] == ["call fetch 1 model", "result 1 timeout", "call fallback 1 model", "result 1 timeout"]


def test_a_try_of_which_nothing_was_said_failed_if_another_follows(run: Run) -> None:
    with run.recorder() as recorder:

        @recorder.tool()
        def fetch() -> int:
            for _ in range(2):
                with recorder.attempt():
                    pass
            return 1

        fetch()
    shown = [(event["status"], event.get("error_class")) for event in run.events("tool_result")]
    assert shown == [("error", "unknown"), ("ok", None)]


def test_an_async_loop_inside_a_tool(run: Run) -> None:
    async def main() -> None:
        async with run.recorder() as recorder:

            @recorder.tool()
            async def fetch(name: str) -> str:
                for number in range(3):
                    try:
                        with recorder.attempt():
                            await asyncio.sleep(0.001)
                            if number < 2:
                                raise TimeoutError
                            return name
                    except TimeoutError:
                        recorder.decision("retry", delay_ms=1)
                raise AssertionError

            await asyncio.gather(fetch("a"), fetch("b"))

    asyncio.run(main())
    assert operations(run) == [[("fetch", 1), ("fetch", 2), ("fetch", 3)]] * 2


def test_outside_of_a_tool_a_try_is_nothing(run: Run) -> None:
    with run.recorder() as recorder, recorder.attempt() as attempt:
        attempt.fail()
        attempt.response(httpx.Response(500))
    assert run.outline() == ["end unknown unknown"]


# --- what a decision is about ----------------------------------------------------------------------------------------


def test_a_decision_is_about_the_call_whose_exception_is_handled(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"first": fails_then(TimeoutError()), "second": fails_then(ValueError())})
        try:
            tools["first"](order_id="o1")
        except TimeoutError:
            with pytest.raises(ValueError):  # noqa: PT011 - the tool's
                tools["second"](order_id="o1")
            recorder.decision("fallback")
    first, _ = run.events("tool_call")
    assert run.events("decision")[0]["call_id"] == first["call_id"]


def test_a_decision_in_a_tool_is_not_about_what_its_caller_handles(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        first = recorder.wrap_tools({"first": fails_then(TimeoutError())})["first"]

        @recorder.tool()
        def second() -> None:
            recorder.decision("retry")

        try:
            first(order_id="o1")
        except TimeoutError:
            second()
    _, second_call = run.events("tool_call")
    assert run.events("decision")[0]["call_id"] == second_call["call_id"]


@pytest.mark.parametrize(
    ("kind", "about_failed", "about_ok"),
    [("retry", True, True), ("fallback", True, True), ("abort", True, False), ("escalate", True, False),
     ("reconcile", True, False), ("finish", False, False)],
)  # fmt: skip
def test_which_decisions_are_about_the_last_call(
    kind: Any, *, about_failed: bool, about_ok: bool, run: Run, fails_then: MakeTool
) -> None:
    with run.recorder() as recorder:
        with recorder.turn():
            recorder.wrap_tools({"t": lambda: 1})["t"]()
            recorder.decision(kind)
        with recorder.turn():
            with pytest.raises(TimeoutError):
                recorder.wrap_tools({"t": fails_then(TimeoutError())})["t"](order_id="o1")
            recorder.decision(kind)
    after_ok, after_failed = run.events("decision")
    calls = run.events("tool_call")
    assert after_ok.get("call_id") == (calls[0]["call_id"] if about_ok else None)
    assert after_failed.get("call_id") == (calls[1]["call_id"] if about_failed else None)


def test_a_decision_may_name_its_call(run: Run, fails_then: MakeTool) -> None:
    with run.recorder() as recorder:
        charge = recorder.wrap_tools({"charge": fails_then(TimeoutError(), TimeoutError())})["charge"]
        for order_id in ("o1", "o2"):
            with pytest.raises(TimeoutError):
                charge(order_id=order_id)
        first, second = run.events("tool_call")
        recorder.decision("abort", second["call_id"])
        recorder.decision("retry", first["call_id"])
        recorder.decision("retry", "unknown-id")
        charge(order_id="o1")
    assert [event["call_id"] for event in run.events("decision")] == [second["call_id"], first["call_id"], "unknown-id"]
    assert operations(run) == [[("charge", 1), ("charge", 2)], [("charge", 1)]]


def test_what_was_long_ago_is_forgotten_and_nothing_else(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldentrace.record.calls.MAX_REMEMBERED_BYTES", 5_000)
    with run.recorder() as recorder:
        for number in range(10):
            call_id = recorder.call("t", {"text": "x" * 1000}, call_id=f"c{number}")
            recorder.result(call_id, error=TimeoutError())
        calls = recorder._session.calls
        assert [calls.find(f"c{number}") is not None for number in range(10)] == [False] * 6 + [True] * 4
        recorder.call("t", {"text": "x" * 9000}, call_id="huge")
        assert calls.find("huge") is not None
        assert calls.find("c9") is None
        recorder.decision("retry", "c0")
    assert run.events("decision")[0]["call_id"] == "c0"


# --- calls that are not wrapped --------------------------------------------------------------------------------------


def test_attempts_as_a_recorder_states_them(run: Run) -> None:
    with run.recorder() as recorder:
        first = recorder.call("t", {"n": 1}, call_id="c1")
        recorder.result(first, error=TimeoutError())
        recorder.decision("retry", "c1", by="sdk")
        second = recorder.call("t", {"n": 1})
        recorder.result(second, 1)
        recorder.call("t", {"n": 2}, call_id="c2", op_id="c1", origin="transport")
        recorder.call("t", {"n": 3}, call_id="c3", op_id="elsewhere")
        recorder.call("t", {"n": 4}, call_id="c4", op_id="elsewhere")
        recorder.call("t", {"n": 5}, call_id="c5", op_id="elsewhere", attempt=7)
        recorder.call("t", {"n": 6}, call_id="c1")
    shown = [
        (event["call_id"], event.get("op_id"), event.get("attempt", 1), event.get("origin", "model"))
        for event in run.events("tool_call")
    ]
    assert shown == [
        ("c1", None, 1, "model"), ("c1", "c1", 2, "sdk"), ("c2", "c1", 3, "transport"),
        ("c3", "elsewhere", 1, "model"), ("c4", "elsewhere", 2, "model"), ("c5", "elsewhere", 7, "model"),
        ("c1", None, 1, "model"),
    ]  # fmt: skip
    assert [event.get("attempt", 1) for event in run.events("tool_result")] == [1, 2]


def test_a_call_may_begin_and_end_in_different_threads(run: Run) -> None:
    with run.recorder() as recorder, recorder.turn():
        call_id = recorder.call("t", {})
        thread = threading.Thread(target=recorder.result, args=(call_id, 1))
        thread.start()
        thread.join()
    assert run.events("tool_result")[0]["turn"] == 1


def test_a_limit_ends_a_loop_inside_a_tool(run: Run) -> None:
    with run.recorder(limits={"max_attempts": 2}) as recorder:

        @recorder.tool()
        def fetch() -> None:
            while True:
                try:
                    with recorder.attempt():
                        raise TimeoutError
                except Exception:  # noqa: BLE001 - as agents do it
                    recorder.decision("retry")

        with pytest.raises(LimitReached):
            fetch()
        recorder.end("aborted")
    assert run.outline() == [
        "call fetch 1 model", "result 1 timeout", "decision retry",
        "call fetch 2 harness", "result 2 timeout", "decision retry",
        "limit max_attempts 3/2", "end aborted attempt_limit",
    ]  # fmt: skip
