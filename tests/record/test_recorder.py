"""What a recorded run holds of what its agent said, how it ends, and that recording never gets into the agent's way."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import goldentrace
from goldentrace import LimitReached, Recorder
from goldentrace.codec.trace import read_trace
from goldentrace.errors import ConfigError
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from goldentrace.store.claim import shard_paths
from tests.record.conftest import Run


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["call_id"] for event in events]


# --- start -----------------------------------------------------------------------------------------------------------


def test_the_start_says_where_and_by_what_it_was_recorded(run: Run) -> None:
    with run.recorder(scenario_id="s", seed=7, states=["retry"], attributes={"model": "m", "api_key": "x"}):
        pass
    start = run.trace.start
    assert (start.format, start.scenario_id, start.seed, start.states) == ("goldentrace/1", "s", 7, ["retry"])
    assert start.source == f"goldentrace-recorder/{goldentrace.__version__}"
    assert (start.cwd, start.tmp) == (str(Path.cwd()), tempfile.gettempdir())
    assert start.attributes == {"model": "m", "api_key": "<secret:1>"}
    assert start.trace_id is not None


def test_the_runner_names_file_scenario_and_seed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDENTRACE_TRACE", str(run.path))
    monkeypatch.setenv("GOLDENTRACE_SCENARIO", "from-runner")
    monkeypatch.setenv("GOLDENTRACE_SEED", "-3")
    with Recorder() as recorder:
        assert recorder.is_recording
    assert (run.trace.start.scenario_id, run.trace.start.seed) == ("from-runner", -3)


def test_without_a_file_nothing_is_recorded_and_tools_are_left_alone(tmp_path: Path) -> None:
    def search(q: str) -> str:
        return q

    with Recorder() as recorder:
        assert not recorder.is_recording
        assert recorder.wrap_tools({"search": search})["search"] is search
        with recorder.turn(), recorder.agent("a"), recorder.batch(), recorder.call_id("c"):
            recorder.message("user", "x")
            recorder.decision("retry")
            recorder.result(recorder.call("search", {"q": "x"}), "y")
        recorder.end("success", "final_answer")
    assert list(tmp_path.iterdir()) == []


def test_the_trace_of_an_earlier_run_is_replaced(run: Run) -> None:
    for text in ("first", "second"):
        with run.recorder() as recorder:
            recorder.message("user", text)
    assert [event["text"] for event in run.events("message")] == ["second"]


def test_a_process_that_joins_a_run_adds_to_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDENTRACE_TRACE", str(run.path))
    for text in ("first", "second"):
        with Recorder(run.path) as recorder:
            recorder.message("user", text)
    assert [event["text"] for event in run.events("message")] == ["first", "second"]
    assert len(shard_paths(run.path)) == 2


def test_processes_that_the_agent_starts_are_part_of_the_run(run: Run) -> None:
    child = "from goldentrace import Recorder\nwith Recorder() as r: r.message('user', 'from the child')"
    with run.recorder() as recorder:
        recorder.message("user", "before")
        assert os.environ["GOLDENTRACE_TRACE"] == str(run.path)
        subprocess.run([sys.executable, "-c", child], check=True)
        recorder.end("success", "final_answer")
    assert "GOLDENTRACE_TRACE" not in os.environ
    assert [event["text"] for event in run.events("message")] == ["before", "from the child"]
    assert run.trace.incomplete is None
    assert run.outline() == ["end success final_answer"]


@pytest.mark.parametrize(
    "options",
    [{"states": ["rety"]}, {"limits": {"max_tool_cals": 3}}, {"limits": {"max_attempts": -1}}],
    ids=["decision", "limit", "number"],
)
def test_what_is_wrong_before_the_run_is_an_error(options: dict[str, Any], run: Run) -> None:
    with pytest.raises(ConfigError):
        run.recorder(**options)
    assert not run.path.exists()


# --- end -------------------------------------------------------------------------------------------------------------


def failing_tool() -> None:
    raise ValueError("broken")


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (None, "end unknown unknown"),
        (ValueError(), "end failed unknown"),
        (KeyboardInterrupt(), "end aborted user_cancelled"),
        (asyncio.CancelledError(), "end aborted user_cancelled"),
        (SystemExit(0), "end unknown unknown"),
        (SystemExit(), "end unknown unknown"),
        (SystemExit(3), "end failed unknown"),
        (LimitReached("max_tokens", 11, 10), "end aborted token_limit"),
        (BaseExceptionGroup("tasks", [ValueError(), LimitReached("max_writes", 2, 1)]), "end aborted write_limit"),
        (ExceptionGroup("tasks", [ExceptionGroup("more", [ValueError()])]), "end failed unknown"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_leaving_without_an_end(error: BaseException | None, end: str, run: Run) -> None:
    if error is None:
        with run.recorder():
            pass
    else:
        with pytest.raises(type(error)) as caught, run.recorder():
            raise error
        assert caught.value is error
    assert run.outline() == [end]


def test_leaving_by_the_exception_of_a_tool(run: Run) -> None:
    with pytest.raises(ValueError, match="broken"), run.recorder() as recorder:
        recorder.wrap_tools({"t": failing_tool})["t"]()
    assert run.outline()[-1] == "end failed tool_error"


def test_leaving_by_an_exception_that_wraps_a_tools(run: Run) -> None:
    def agent() -> None:
        with run.recorder() as recorder:
            try:
                recorder.wrap_tools({"t": failing_tool})["t"]()
            except ValueError as error:
                raise RuntimeError("gave up") from error

    with pytest.raises(RuntimeError):
        agent()
    assert run.outline()[-1] == "end failed tool_error"


def test_leaving_by_another_exception_after_a_tool_failed(run: Run) -> None:
    def agent() -> None:
        with run.recorder() as recorder:
            tool = recorder.wrap_tools({"t": failing_tool})["t"]
            with pytest.raises(ValueError, match="broken"):
                tool()
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        agent()
    assert run.outline()[-1] == "end failed unknown"


def test_the_first_end_counts(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with run.recorder() as recorder:
        recorder.end("success", "final_answer")
        recorder.end("failed", "tool_error")
    assert run.outline() == ["end success final_answer"]
    assert capsys.readouterr().err == "goldentrace: the run was ended twice; the first end counts\n"


def test_the_end_is_in_the_file_at_once(run: Run) -> None:
    recorder = run.recorder()
    recorder.end("success", "final_answer")
    assert run.trace.incomplete is None
    recorder.close()


def test_what_happens_after_the_end_is_not_hidden(run: Run) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"t": lambda: 1})
        recorder.end("success", "final_answer")
        tools["t"]()
    assert run.outline() == ["call t 1 model", "result 1 ok", "end success final_answer"]


def test_what_happens_after_closing_is_refused_aloud_and_the_tool_still_works(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"t": lambda: 1})
    assert tools["t"]() == 1
    assert run.outline() == ["end unknown unknown"]
    assert capsys.readouterr().err.count("closed") == 1


AT_EXIT = """
import sys
from goldentrace import Recorder
recorder = Recorder(sys.argv[1])
recorder.message("user", "x")
if sys.argv[2] == "raise":
    raise ValueError("unhandled")
"""


@pytest.mark.parametrize(("how", "end"), [("return", "end unknown unknown"), ("raise", "end failed unknown")])
def test_the_interpreter_closes_a_recorder_that_nobody_did(how: str, end: str, run: Run) -> None:
    subprocess.run([sys.executable, "-c", AT_EXIT, run.path, how], check=False, capture_output=True)
    assert run.outline() == [end]
    assert run.trace.incomplete is None


def test_an_agent_in_an_event_loop(run: Run) -> None:
    async def main() -> None:
        async with run.recorder() as recorder:
            recorder.message("user", "x")
            recorder.end("success", "final_answer")

    asyncio.run(main())
    assert run.trace.incomplete is None
    assert run.outline() == ["end success final_answer"]


# --- turns and where code stands -------------------------------------------------------------------------------------


def test_a_turn_is_written_with_what_its_answer_brought(run: Run) -> None:
    with run.recorder() as recorder:
        with recorder.turn(model="asked") as turn:
            turn.response(model="m-1", finish_reason="tool_calls", usage={"prompt_tokens": 9, "completion_tokens": 4})
            recorder.call("t", {})
        with recorder.turn(input_call_ids=["c1", "c2"]):
            pass
    assert run.events("model_turn") == [
        {
            "type": "model_turn",
            "turn": 1,
            "model": "m-1",
            "finish_reason": "tool_calls",
            "usage": {"input_tokens": 9, "output_tokens": 4},
        },
        {"type": "model_turn", "turn": 2, "input_call_ids": ["c1", "c2"]},
    ]
    assert [event.get("turn") for event in run.events("tool_call")] == [1]


class Details:
    cached_tokens = 2


class ResponsesUsage:
    input_tokens = 5
    output_tokens = 6
    input_tokens_details = Details()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5}, {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5}),
        ({"input_tokens": 1, "cache_read_input_tokens": 9}, {"input_tokens": 1, "cached_tokens": 9}),
        ({"prompt_token_count": 3, "candidates_token_count": 4}, {"input_tokens": 3, "output_tokens": 4}),
        (ResponsesUsage(), {"input_tokens": 5, "output_tokens": 6, "cached_tokens": 2}),
        ({"prompt_tokens": None, "total": "7"}, None),
        ("junk", None),
    ],
)  # fmt: skip
def test_usage_as_providers_state_it(usage: Any, expected: dict[str, Any] | None, run: Run) -> None:
    with run.recorder() as recorder, recorder.turn(usage=usage):
        pass
    assert run.events("model_turn")[0].get("usage") == expected


def test_a_request_that_failed_before_any_answer_is_no_turn(run: Run) -> None:
    with run.recorder() as recorder:
        with pytest.raises(ConnectionError), recorder.turn():
            raise ConnectionError
        with recorder.turn():
            recorder.call("t", {})
    assert [event["turn"] for event in run.events("model_turn")] == [1]


def test_threads_that_begin_a_turn_together_stand_behind_its_line(run: Run) -> None:
    with run.recorder() as recorder:
        tool = recorder.tool(name="t")(lambda: None)
        for _ in range(30):
            barrier = threading.Barrier(4)

            def work(barrier: threading.Barrier = barrier) -> None:
                barrier.wait()
                tool()

            with recorder.turn():
                threads = [threading.Thread(target=work) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
    opened: set[int] = set()
    for event in run.events():
        if event["type"] == "model_turn":
            opened.add(event["turn"])
        elif event["type"] == "tool_call":
            assert event["turn"] in opened
    assert opened == set(range(1, 31))


def test_agents_have_their_own_name_and_share_the_numbers_of_turns(run: Run) -> None:
    with run.recorder(agent="planner") as recorder, recorder.turn():
        recorder.call("delegate", {})
        with recorder.agent("researcher"), recorder.turn():
            recorder.call("search", {})
        recorder.call("report", {})
    shown = [(event["tool_name"], event["agent"], event["turn"]) for event in run.events("tool_call")]
    assert shown == [("delegate", "planner", 1), ("search", "researcher", 2), ("report", "planner", 1)]


def test_turn_and_agent_are_carried_across_tasks_and_threads(run: Run) -> None:
    with run.recorder() as recorder:
        tool = recorder.tool(name="t")(lambda where: where)

        async def task(where: str) -> None:
            tool(where)
            await asyncio.to_thread(tool, f"thread of {where}")

        async def agent(name: str) -> None:
            with recorder.agent(name), recorder.turn():
                await asyncio.gather(task(f"{name} 1"), task(f"{name} 2"))
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(recorder.carry(tool), f"{name} pool").result()

        async def main() -> None:
            await asyncio.gather(agent("a"), agent("b"))

        asyncio.run(main())
    turn_of = {event["agent"]: event["turn"] for event in run.events("model_turn")}
    assert sorted(turn_of.values()) == [1, 2]
    calls = run.events("tool_call")
    assert len(calls) == 10
    for event in calls:
        name = event["args"]["where"].removeprefix("thread of ")[0]
        assert (event["agent"], event["turn"]) == (name, turn_of[name])


def test_a_thread_without_context_stands_in_the_only_open_turn(run: Run) -> None:
    with run.recorder(agent="planner") as recorder:
        tool = recorder.tool(name="t")(lambda: None)

        def in_thread() -> None:
            thread = threading.Thread(target=tool)
            thread.start()
            thread.join()

        with recorder.turn():
            in_thread()
            with recorder.agent("other"), recorder.turn():
                in_thread()
        in_thread()
    assert [event.get("turn") for event in run.events("tool_call")] == [1, None, None]
    assert {event["agent"] for event in run.events("tool_call")} == {"planner"}


def test_a_batch_is_stated(run: Run) -> None:
    with run.recorder() as recorder:
        with recorder.batch():
            recorder.call("a", {})
            recorder.call("b", {})
        with recorder.batch():
            recorder.call("c", {})
        recorder.call("d", {})
        recorder.call("e", {}, batch=3)
    batches = [event.get("batch") for event in run.events("tool_call")]
    assert batches[0] == batches[1]
    assert len({*batches}) == 4
    assert batches[3:] == [None, 3]


def test_the_calls_of_a_parallel_turn_are_one_batch_whenever_they_run(run: Run) -> None:
    with run.recorder() as recorder:
        inner = recorder.tool(name="inner")(lambda: None)
        tools = recorder.wrap_tools({name: lambda: inner() for name in "abcd"})  # noqa: PLW0108 - found when called
        with recorder.turn(parallel=True):
            tools["a"]()
        with ThreadPoolExecutor(1) as pool:  # outside of the block, in a thread that knows nothing of it
            pool.submit(tools["b"]).result()
        with recorder.origin("harness"):
            tools["c"]()
        with recorder.turn():
            tools["d"]()
        with recorder.turn(parallel=True), recorder.batch():
            tools["a"]()
    by_tool = [(event["tool_name"], event.get("batch")) for event in run.events("tool_call")]
    (_, first), *others = [batch for batch in by_tool if batch[0] != "inner"]
    assert first is not None
    assert [batch == first for _, batch in others] == [True, False, False, False], (
        "until the next turn, and by the model"
    )
    assert others[1:3] == [("c", None), ("d", None)]
    assert {batch for name, batch in by_tool if name == "inner"} == {None}, "a tool asks for it, not the model"


def test_quick_calls_of_a_parallel_turn_are_read_as_one_batch(run: Run) -> None:
    with run.recorder() as recorder:
        with recorder.turn(parallel=True):
            recorder.message("assistant", "both")
        for name in ("a", "b"):
            recorder.tool(name=name)(lambda: None)()
    normal = normalize(run.trace, Profile(name="p@1"), "sha256:0")
    assert [operation.batch for operation in normal.operations] == [1, 1]


def test_who_asks_is_stated(run: Run) -> None:
    with run.recorder() as recorder:
        recorder.call("a", {})
        with recorder.origin("harness"):
            recorder.call("b", {})
        recorder.call("c", {}, origin="sdk")
    assert [event.get("origin", "model") for event in run.events("tool_call")] == ["model", "harness", "sdk"]


# --- what the agent says ---------------------------------------------------------------------------------------------


def test_everything_an_agent_can_say(run: Run) -> None:
    with run.recorder() as recorder:
        recorder.message("system", "be kind")
        recorder.message("reasoning", "never seen")
        call_id = recorder.call(
            "pay", {"cents": 5}, call_id="c1", access="write", resource="order:1", idempotency_key="k",
            parent="p", args_raw='{"cents":5}',
        )  # fmt: skip
        recorder.approval("c1", "approved", by="ops")
        recorder.result(call_id, {"ok": True}, http_status=201, sent=True)
        recorder.effect("charge", "c1", {"cents": 5})
        recorder.decision("finish", reason="done")
        recorder.limit("max_tool_calls", 21, 20)
        recorder.end("partial")
    assert run.events()[1:] == [
        {"type": "message", "role": "system", "text": "be kind"},
        {
            "type": "tool_call", "call_id": "c1", "tool_name": "pay", "args": {"cents": 5}, "args_raw": '{"cents":5}',
            "access": "write", "resource": "order:1", "idempotency_key": "k", "parent": "p",
        },
        {"type": "approval", "call_id": "c1", "verdict": "approved", "by": "ops"},
        {"type": "tool_result", "call_id": "c1", "status": "ok", "http_status": 201, "sent": True, "result": {"ok": True}},
        {"type": "effect", "name": "charge", "key": "c1", "value": {"cents": 5}},
        {"type": "decision", "decision": "finish", "by": "harness", "reason": "done"},
        {"type": "limit", "limit": "max_tool_calls", "value": 21, "max": 20},
        {"type": "trace_end", "outcome": "partial", "stop_reason": "call_limit", "events": 8},
    ]  # fmt: skip


def test_results_as_they_are_stated(run: Run) -> None:
    with run.recorder() as recorder:
        recorder.result("a", error=TimeoutError("slow"))
        recorder.result("b", status="denied", error_class="denied")
        recorder.result("c", status="error", error_class="rate_limited", http_status=429, owed_ms=2000, attempt=2)
        recorder.result("d", None)
        recorder.result("e")
        recorder.result("f", {"partial": 1}, status="timeout", error=ValueError("x"))
    shown = [{k: v for k, v in event.items() if k not in ("type", "call_id")} for event in run.events("tool_result")]
    assert shown == [
        {"status": "timeout", "error_class": "timeout", "extra": {"error": "TimeoutError: slow"}},
        {"status": "denied", "error_class": "denied"},
        {"status": "error", "error_class": "rate_limited", "http_status": 429, "owed_ms": 2000.0, "attempt": 2},
        {"status": "ok", "result": None},
        {"status": "ok"},
        {"status": "timeout", "error_class": "tool_error", "result": {"partial": 1}, "extra": {"error": "ValueError: x"}},
    ]  # fmt: skip


def test_secrets_are_out_of_every_text(run: Run) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwx"
    with run.recorder() as recorder:
        recorder.message("user", key)
        call = recorder.call("t", {"k": key}, args_raw=key, resource=key, idempotency_key=key)
        recorder.result(call, key, error=ValueError(key))
        recorder.decision("abort", reason=key)
        recorder.effect("e", key, key)
    assert key not in run.path.read_text()
    assert run.path.read_text().count("<secret:1>") == 10


def test_the_agent_may_keep_less(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(**options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        with run.recorder(**options) as recorder:
            recorder.message("user", "secret plans")
            recorder.wrap_tools({"t": lambda: "secret plans"})["t"]()
        return run.events("message")[0], run.events("tool_result")[0]

    kept = record()
    assert (kept[0]["text"], kept[1]["result"]) == ("secret plans", "secret plans")
    bare = record(keep_results=False, keep_messages=False)
    assert "secret plans" not in run.path.read_text()
    assert bare[0] == {"type": "message", "role": "user"}
    assert bare[1]["result_hash"].startswith("h:")
    assert bare[1]["result_bytes"] == 14
    monkeypatch.setenv("GOLDENTRACE_RECORD", '{"results": "hash", "messages": "drop"}')
    assert record()[0] == bare[0]
    assert record()[1]["result_hash"] == bare[1]["result_hash"]


# --- mistakes in the recorder ----------------------------------------------------------------------------------------


def test_a_mistake_is_said_once_and_the_trace_is_not_taken_for_whole(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(value: Any) -> Any:
        if value == {"q": "x"}:
            raise RuntimeError("redaction failed")
        return value

    with run.recorder(redact=broken) as recorder:
        tool = recorder.tool(name="t")(lambda q: q)
        assert [tool(q="x"), tool(q="x"), tool(q="y")] == ["x", "x", "y"]
        recorder.end("success", "final_answer")
    assert run.outline() == ["call t 1 model", "result 1 ok"]
    assert run.trace.incomplete == "an event could not be recorded: redaction failed"
    err = capsys.readouterr().err
    assert err == (
        "goldentrace: an event could not be recorded: redaction failed; the trace stays incomplete, the agent goes on\n"
    )


@pytest.mark.parametrize(
    "say",
    [
        lambda recorder: recorder.decision("rety"),
        lambda recorder: recorder.decision("retry", by="nobody"),
        lambda recorder: recorder.decision("abort", of="turn"),
        lambda recorder: recorder.end("sucess"),
        lambda recorder: recorder.end("success", "because"),
        lambda recorder: recorder.result("c", status="fine"),
        lambda recorder: recorder.approval("c", "maybe"),
        lambda recorder: recorder.call("t", {}, access="both"),
    ],
)
def test_a_word_that_the_format_does_not_have_stops_nobody_and_is_not_hidden(
    say: Any, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with run.recorder() as recorder:
        say(recorder)
    said = capsys.readouterr().err
    assert said.count("goldentrace: ") == 1
    assert run.trace.incomplete is not None
    assert run.trace.incomplete in said, "who reads the trace is told what its recorder said"


def test_the_reason_in_the_trace_holds_no_secret(run: Run) -> None:
    def broken(value: Any) -> Any:
        raise RuntimeError(f"cannot redact {value}")

    secret = "sk-proj-abcdefghijklmnopqrstuvwx"
    with run.recorder() as recorder:
        recorder.end(secret)  # type: ignore[arg-type]
    assert secret not in run.path.read_text()
    assert "<secret:1>" in str(run.trace.incomplete)
    with run.recorder(redact=broken) as recorder:
        recorder.message("user", secret)
    assert secret not in run.path.read_text()
    assert run.trace.incomplete == "an event could not be recorded: RuntimeError"


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recorder(tmp_path / "missing" / "run.jsonl") as recorder:
        assert recorder.wrap_tools({"t": lambda: 1})["t"]() == 1
        recorder.end("success", "final_answer")
    assert capsys.readouterr().err.count("goldentrace: ") == 1


def test_a_mistake_while_opening_makes_no_heap_of_files(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("goldentrace.store.journal.Journal._write_header", fail)
    with run.recorder() as recorder:
        for _ in range(3):
            recorder.message("user", "x")
    assert len(list(run.path.parent.iterdir())) == 1
    assert capsys.readouterr().err.count("goldentrace: ") == 1


def test_a_forked_worker_records_its_own_shard(run: Run) -> None:
    with run.recorder() as recorder:
        tool = recorder.wrap_tools({"t": lambda where: where})["t"]
        with recorder.turn():
            tool(where="parent")
            child = os.fork()
            if child == 0:
                tool(where="child")
                recorder.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            tool(where="parent again")
        recorder.end("success", "final_answer")
    calls = run.events("tool_call")
    assert [event["args"]["where"] for event in calls] == ["parent", "child", "parent again"]
    assert [event["turn"] for event in calls] == [1, 1, 1]
    assert len(set(ids(calls))) == 3
    assert run.trace.incomplete is None


def test_the_package_gives_the_recorder_lazily() -> None:
    code = "import sys, goldentrace; assert 'msgspec' not in sys.modules; goldentrace.Recorder; print('msgspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    with pytest.raises(AttributeError, match="no attribute 'Recorde'"):
        goldentrace.Recorde  # type: ignore[attr-defined] # noqa: B018


def test_recording_does_not_load_an_event_loop() -> None:
    code = "import sys, goldentrace; goldentrace.Recorder; print(sorted({'asyncio', 'httpx', 'yaml', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_each_line_of_a_recording_is_one_object(run: Run) -> None:
    with run.recorder() as recorder:
        recorder.message("user", "a\nb\u2028c")
    lines = run.path.read_bytes().split(b"\n")
    assert [json.loads(line)["type"] for line in lines[:-1]] == ["trace_start", "message", "trace_end"]
    assert read_trace(run.path.read_bytes(), "x").incomplete is None
