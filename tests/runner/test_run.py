"""Runs of real commands: what is recorded, which limits stop them, and that nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError, InputError
from goldentrace.model.config import Limits, RecordPolicy, ToolLimits
from goldentrace.model.event import Limit, ToolCall, ToolResult
from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace
from goldentrace.runner.job import Job, RunResult
from goldentrace.runner.run import run_job, run_jobs
from goldentrace.store.claim import shard_paths

AGENT = """
import json, os, sys, time
trace = os.environ["GOLDENTRACE_TRACE"]
def write(**event):
    with open(trace, "a") as file:
        file.write(json.dumps(event) + "\\n")
def call(number, tool="search", **fields):
    write(type="tool_call", call_id=f"c{number}", tool_name=tool, turn=number, args={"n": number}, **fields)
    write(type="tool_result", call_id=f"c{number}", turn=number, status="ok", result={})
def end(outcome="success", stop_reason="final_answer"):
    write(type="trace_end", outcome=outcome, stop_reason=stop_reason)
"""


def job(folder: Path, body: str, **fields: Any) -> Job:
    """A job that runs a Python agent with the writers above."""
    agent = folder / "agent.py"
    agent.write_text(AGENT + body)
    runs = folder / "runs"
    return Job(
        name="orders", command=(sys.executable, str(agent)), folder=folder, trace=runs / "orders.jsonl",
        log=runs / "orders.log", **fields,
    )  # fmt: skip


def run(one: Job) -> tuple[RunResult, Trace]:
    one.trace.parent.mkdir(exist_ok=True)
    result = run_job(one)
    return result, read_trace(one.trace.read_bytes(), str(one.trace))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


# -- what is recorded ------------------------------------------------------------------------------------------------


def test_an_agent_that_ends_its_trace_keeps_its_word(tmp_path: Path) -> None:
    result, trace = run(job(tmp_path, "call(1); end('needs_human', 'tool_error')", seed=7))
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason, trace.incomplete) == ("needs_human", "tool_error", None)
    assert (trace.start.scenario_id, trace.start.seed, trace.start.cwd) == ("orders", 7, str(tmp_path))
    assert (result.exit_code, result.ending, result.events) == (0, "finished", 4)


def test_an_agent_that_writes_no_end_gets_one_of_unknown_outcome(tmp_path: Path) -> None:
    _, trace = run(job(tmp_path, "call(1)"))
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("unknown", "unknown")
    assert trace.incomplete is None


def test_the_variables_of_a_run(tmp_path: Path) -> None:
    body = """
names = ("GOLDENTRACE_SCENARIO", "GOLDENTRACE_SEED", "GOLDENTRACE_LIMITS", "REGION", "PATH")
print(json.dumps({name: os.environ.get(name) for name in names}))
call(1)
"""
    one = job(tmp_path, body, seed=3, env={"REGION": "eu"}, limits=Limits(max_wall_ms=20_000, max_tool_calls=None))
    run(one)
    seen = json.loads(one.log.read_text())
    assert (seen["GOLDENTRACE_SCENARIO"], seen["GOLDENTRACE_SEED"], seen["REGION"]) == ("orders", "3", "eu")
    assert json.loads(seen["GOLDENTRACE_LIMITS"]) == {"max_wall_ms": 20_000, "max_tool_calls": None}
    assert seen["PATH"] == os.environ["PATH"]


def test_both_streams_of_the_agent_are_kept_in_order(tmp_path: Path) -> None:
    one = job(tmp_path, "print('one', flush=True); print('two', file=sys.stderr, flush=True); print('three'); call(1)")
    run(one)
    assert one.log.read_text() == "one\ntwo\nthree\n"


def test_an_exit_code_of_the_agent_is_noted_and_no_failure(tmp_path: Path) -> None:
    result, trace = run(job(tmp_path, "call(1); end('failed', 'tool_error'); sys.exit(7)"))
    assert (result.exit_code, result.ending) == (7, "failed")
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.extra) == ("failed", {"exit_code": 7})


def test_a_signal_leaves_the_trace_incomplete(tmp_path: Path) -> None:
    result, trace = run(job(tmp_path, "call(1); os.kill(os.getpid(), 9)"))
    assert (result.exit_code, result.signal) == (None, "SIGKILL")
    assert trace.incomplete == "signal 9 ended the command"
    assert len(trace.calls()) == 1


def test_a_torn_line_leaves_the_trace_incomplete(tmp_path: Path) -> None:
    result, trace = run(job(tmp_path, 'call(1); open(trace, "a").write(\'{"type":"tool_ca\')'))
    assert trace.incomplete is not None
    assert any("torn" in note for note in result.notes)


def test_processes_of_the_agent_become_one_trace(tmp_path: Path) -> None:
    body = """
from goldentrace import Recorder
with Recorder() as rec:
    tools = rec.wrap_tools({"outer": lambda n: n, "inner": lambda n: n})
    with rec.turn():
        tools["outer"](1)
        if os.fork() == 0:
            tools["inner"](2)
            rec.close()
            os._exit(0)
        os.wait()
        tools["outer"](3)
    rec.end("success", "final_answer")
"""
    one = job(tmp_path, body)
    result, trace = run(one)
    assert [event.tool_name for event in trace.calls()] == ["outer", "inner", "outer"]
    assert trace.incomplete is None, result.notes
    assert shard_paths(one.trace) == [one.trace]
    assert sorted(path.name for path in one.trace.parent.iterdir()) == ["orders.jsonl", "orders.log"]


def test_a_recorder_that_was_killed_leaves_the_trace_incomplete(tmp_path: Path) -> None:
    """It writes its end always, so a trace of its without one lacks something, whatever the exit code."""
    body = """
from goldentrace import Recorder
rec = Recorder()
with rec.turn():
    rec.wrap_tools({"t": lambda: 1})["t"]()
os._exit(0)
"""
    result, trace = run(job(tmp_path, body))
    assert trace.incomplete is not None
    assert any("incomplete" in note for note in result.notes)


def test_secrets_of_an_agent_that_writes_by_itself_do_not_stay(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 10
    body = f"""
write(type="tool_call", call_id="c", tool_name="login", args={{"token": "{secret}"}}, idempotency_key="{secret}")
write(type="tool_result", call_id="c", status="ok", result={{"echo": "key {secret}"}})
write(type="message", role="user", text="use {secret}")
"""
    one = job(tmp_path, body)
    run(one)
    text = one.trace.read_text()
    assert secret not in text
    assert text.count("<secret:1>") == 4


def test_what_may_not_be_stored_is_not(tmp_path: Path) -> None:
    body = 'call(1); write(type="message", role="user", text="hello")'
    one = job(tmp_path, body, storage=RecordPolicy(results="hash", messages="drop"))
    _, trace = run(one)
    result = next(event for event in trace.events if isinstance(event, ToolResult))
    assert bytes(result.result) == b""
    assert result.result_hash is not None
    assert "hello" not in one.trace.read_text()


def test_the_traces_of_an_earlier_run_do_not_stay(tmp_path: Path) -> None:
    one = job(tmp_path, "call(1); end()")
    run(one)
    with pytest.raises(InfrastructureError):
        run(job(tmp_path, "sys.exit(1)"))
    assert not one.trace.exists()


# -- what has no verdict ---------------------------------------------------------------------------------------------


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    one = job(tmp_path, "")
    with pytest.raises(InfrastructureError, match="cannot start 'no-such-program'"):
        run(Job("a", ("no-such-program",), tmp_path, one.trace, one.log))
    with pytest.raises(InfrastructureError) as caught:
        run(Job("a", ("cd x && run",), tmp_path, one.trace, one.log))
    assert "without a shell" in caught.value.next_step


@pytest.mark.parametrize(
    ("body", "words"), [("", "recorded nothing"), ("sys.exit(3)", "exit code 3 and recorded nothing")]
)
def test_a_command_that_records_nothing(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(InfrastructureError, match=words) as caught:
        run(job(tmp_path, body))
    assert str(caught.value.where).endswith("orders.log")


def test_a_trace_that_the_agent_removed(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="removed the trace"):
        run(job(tmp_path, "os.remove(trace)"))


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run(job(tmp_path, 'call(1); open(trace, "a").write("oops\\n"); call(2)'))
    assert caught.value.where is not None
    assert caught.value.where.line == 4


# -- limits ----------------------------------------------------------------------------------------------------------

LOOP = """
n = 0
while True:
    n += 1
    call(n)
    time.sleep(0.002)
"""


@pytest.mark.parametrize(
    ("limits", "limit", "value", "reason", "calls"),
    [
        (Limits(max_tool_calls=5), "max_tool_calls", 6, "call_limit", 6),
        (Limits(max_executions=5), "max_executions", 6, "execution_limit", 6),
        (Limits(max_writes=2), "max_writes", 3, "write_limit", 3),
        (Limits(max_destructive=0), "max_destructive", 1, "destructive_limit", 1),
        (Limits(per_tool={"search": ToolLimits(max_calls=3)}), "max_calls", 4, "call_limit", 4),
        (Limits(per_tool={"default": ToolLimits(max_calls=3)}), "max_calls", 4, "call_limit", 4),
        (Limits(max_tool_calls=0), "max_tool_calls", 1, "call_limit", 1),
    ],
)
def test_a_counted_limit_stops_a_loop(
    tmp_path: Path, limits: Limits, limit: str, value: int, reason: str, calls: int
) -> None:
    profile = Profile(name="x@1", tools={"search": Tool(access="write", destructive=True)})
    result, trace = run(job(tmp_path, LOOP, limits=limits, profile=profile))
    assert result.breach is not None
    assert (result.ending, result.breach.limit, result.breach.value) == ("stopped", limit, value)
    event = trace.events[-2]
    assert isinstance(event, Limit)
    assert (event.limit, event.value) == (limit, value)
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("aborted", reason)
    assert len(trace.calls()) == calls
    assert trace.incomplete is None


def test_what_a_limit_leaves_does_not_depend_on_when_the_command_was_stopped(tmp_path: Path) -> None:
    """An agent that is through before anybody looks, and one that goes on for ever, leave the same trace."""
    short = run(job(tmp_path, "for n in range(1, 40): call(n)\nend()", limits=Limits(max_tool_calls=5)))[1]
    long = run(job(tmp_path, LOOP, limits=Limits(max_tool_calls=5)))[1]
    assert [type(event) for event in short.events] == [type(event) for event in long.events]


def test_attempts_of_one_operation_are_counted(tmp_path: Path) -> None:
    body = """
for n in range(1, 9):
    write(type="tool_call", call_id="c", op_id="c", tool_name="t", attempt=n, origin="harness")
    write(type="tool_result", call_id="c", attempt=n, status="error")
"""
    result, trace = run(job(tmp_path, body, limits=Limits(max_attempts=3, max_tool_calls=1)))
    assert result.breach is not None
    assert result.breach.limit == "max_attempts"
    assert len(trace.calls()) == 4


def test_turns_tokens_and_cost_are_counted(tmp_path: Path) -> None:
    body = """
for n in range(1, 9):
    write(type="model_turn", turn=n, usage={"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.25})
"""
    for limits, name in (
        (Limits(max_model_turns=3), "max_model_turns"),
        (Limits(max_tokens=250), "max_tokens"),
        (Limits(max_cost_usd=0), "max_cost_usd"),
        (Limits(max_cost_usd=0.5), "max_cost_usd"),
    ):
        result, _ = run(job(tmp_path, body, limits=limits))
        assert result.breach is not None
        assert result.breach.limit == name


def test_an_agent_that_stops_itself_is_not_stopped_again(tmp_path: Path) -> None:
    body = """
from goldentrace import Recorder, LimitReached
rec = Recorder()
tool = rec.wrap_tools({"t": lambda n: n})["t"]
with rec:
    try:
        for n in range(99):
            with rec.turn():
                tool(n)
    except LimitReached as reached:
        rec.end("aborted", reached.stop_reason)
"""
    result, trace = run(job(tmp_path, body, limits=Limits(max_tool_calls=4)))
    assert (result.breach, result.exit_code) == (None, 0)
    assert len(trace.calls()) == 4
    assert [e.limit for e in trace.events if isinstance(e, Limit)] == ["max_tool_calls"]
    assert trace.end is not None
    assert trace.end.stop_reason == "call_limit"


def test_the_wall_limit_ends_the_whole_group(tmp_path: Path) -> None:
    body = """
import subprocess, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
print(os.getpid(), child.pid, flush=True)
call(1)
time.sleep(60)
"""
    one = job(tmp_path, body, limits=Limits(max_wall_ms=700))
    result, trace = run(one)
    assert result.breach is not None
    assert result.breach.limit == "max_wall_ms"
    assert trace.end is not None
    assert trace.end.stop_reason == "wall_clock_limit"
    assert not any(is_alive(int(pid)) for pid in one.log.read_text().split())


def test_an_agent_that_ends_when_asked_is_not_killed(tmp_path: Path) -> None:
    body = """
import signal
def stop(*_):
    print("closing", flush=True)
    end("aborted", "user_cancelled")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
call(1)
time.sleep(60)
"""
    one = job(tmp_path, body, limits=Limits(max_wall_ms=700))
    result, trace = run(one)
    assert one.log.read_text() == "closing\n"
    assert result.exit_code == 0
    assert trace.end is not None
    assert trace.end.stop_reason == "wall_clock_limit"  # what the agent made of the stop is not how it behaves


def test_what_the_agent_leaves_running_is_ended(tmp_path: Path) -> None:
    body = """
import subprocess
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
call(1)
"""
    one = job(tmp_path, body)
    result, _ = run(one)
    assert result.exit_code == 0
    assert not is_alive(int(one.log.read_text()))


# -- several at once, and being stopped ------------------------------------------------------------------------------


def jobs(folder: Path, bodies: dict[str, str]) -> list[Job]:
    (folder / "runs").mkdir(exist_ok=True)
    made = []
    for name, body in bodies.items():
        agent = folder / f"{name}.py"
        agent.write_text(AGENT + body)
        runs = folder / "runs"
        made.append(Job(name, (sys.executable, str(agent)), folder, runs / f"{name}.jsonl", runs / f"{name}.log"))
    return made


def test_several_run_at_a_time_and_come_in_order(tmp_path: Path) -> None:
    meet = """
mine, other = sys.argv[0], None
open(os.environ["GOLDENTRACE_SCENARIO"] + ".here", "w").close()
for _ in range(1000):
    if os.path.exists("a.here") and os.path.exists("b.here"):
        call(1); end(); sys.exit(0)
    time.sleep(0.01)
"""
    found = list(run_jobs(jobs(tmp_path, {"a": meet, "b": meet}), count=2))
    assert [one.name for one, _ in found] == ["a", "b"]
    assert all(isinstance(result, RunResult) for _, result in found), found


def test_a_failure_is_given_back_and_the_others_run(tmp_path: Path) -> None:
    found = list(run_jobs(jobs(tmp_path, {"a": "sys.exit(1)", "b": "call(1)"})))
    assert isinstance(found[0][1], InfrastructureError)
    assert isinstance(found[1][1], RunResult)


def test_a_second_run_of_the_same_scenario_waits_for_nobody(tmp_path: Path) -> None:
    one = job(tmp_path, "call(1); time.sleep(1.5)")
    one.trace.parent.mkdir()
    first = threading.Thread(target=run_job, args=(one,))
    first.start()
    while not one.trace.with_name("orders.lock").exists():
        time.sleep(0.01)
    with pytest.raises(InfrastructureError, match="is being run"):
        run_job(one)
    first.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_goldentrace_stops_the_agent(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "agent.py").write_text(AGENT + "call(1); print(os.getpid(), flush=True); time.sleep(60)")
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios: {{slow: {{command: {sys.executable} agent.py}}}}\n")
    program = Path(sys.executable).with_name("goldentrace")
    started = subprocess.Popen([program, "run"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    log = tmp_path / ".goldentrace/runs/slow.log"
    for _ in range(1000):
        if log.exists() and log.read_text().strip():
            break
        time.sleep(0.02)
    pid = int(log.read_text())
    started.send_signal(number)
    _, stderr = started.communicate(timeout=30)
    assert started.returncode == 3
    assert b"Traceback" not in stderr
    assert not is_alive(pid)
    assert not (tmp_path / ".goldentrace/runs/slow.jsonl").exists()


def test_a_call_that_takes_too_long_breaks_the_limit_of_its_tool(tmp_path: Path) -> None:
    body = """
write(type="tool_call", call_id="c", tool_name="slow", mono_ns=time.monotonic_ns())
time.sleep(0.05)
write(type="tool_result", call_id="c", status="ok", mono_ns=time.monotonic_ns())
call(2)
"""
    result, trace = run(job(tmp_path, body, limits=Limits(per_tool={"slow": ToolLimits(max_elapsed_ms=20)})))
    assert result.breach is not None
    assert (result.breach.limit, result.breach.tool_name) == ("max_elapsed_ms", "slow")
    assert sum(isinstance(event, ToolCall) for event in trace.events) == 1


def test_a_call_that_never_returns_breaks_the_limit_of_its_tool(tmp_path: Path) -> None:
    body = """
write(type="tool_call", call_id="c", tool_name="slow", mono_ns=time.monotonic_ns())
time.sleep(60)
"""
    limits = Limits(max_wall_ms=20_000, per_tool={"slow": ToolLimits(max_elapsed_ms=100)})
    result, trace = run(job(tmp_path, body, limits=limits))
    assert result.breach is not None
    assert (result.breach.limit, result.breach.tool_name) == ("max_elapsed_ms", "slow")
    assert trace.end is not None
    assert trace.end.stop_reason == "wall_clock_limit"
