"""Claude Code sessions: every trap of their rows, and sessions that are larger than memory should be."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from goldentrace.errors import InputError
from goldentrace.model.event import Approval, Decision, Message
from goldentrace.model.trace import Trace
from goldentrace.sources.registry import read_traces
from tests.sources.reading import calls, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "claude_code"


def row(kind: str, uuid: str, parent: str | None, message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    frame = {"parentUuid": parent, "isSidechain": False, "cwd": "/repo", "sessionId": "s", "version": "2.1.0", "type": kind, "uuid": uuid, "timestamp": "2026-01-01T10:00:00.000Z"}
    return frame | ({"message": message} if message else {}) | more


def prompt(uuid: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    return row("user", uuid, parent, {"role": "user", "content": text}, **more)


def speaks(uuid: str, parent: str | None, *blocks: Any, message_id: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"id": message_id or f"msg_{uuid}", "role": "assistant", "model": "m", "content": list(blocks), "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 7}}
    return row("assistant", uuid, parent, message | more.pop("message", {}), **more)


def use(call_id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def answers(uuid: str, parent: str | None, call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    flags = {"is_error": True} if more.pop("is_error", False) else {}
    return row("user", uuid, parent, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content, **flags}]}, **more)


def notes(trace: Trace) -> list[str]:
    return [note.text for note in trace.notes]


def test_rows_of_one_response_are_one_turn_whose_usage_counts_once() -> None:
    trace = read_one((FIXTURES / "session.jsonl").read_bytes())
    assert [turn.usage and turn.usage.output_tokens for turn in turns(trace)] == [25, 1, 4]
    assert [turn.finish_reason for turn in turns(trace)] == ["tool_use", "tool_use", "end_turn"]
    assert [(call.turn, call.batch) for call in trace.calls()] == [(1, "m1"), (1, "m1"), (2, "m2")]
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"


@pytest.mark.parametrize("kib", [90, 5000])
def test_rows_longer_than_what_detection_looks_at_first_are_read(kib: int) -> None:
    said, told = "x" * (kib << 10), "y" * (kib << 10)
    trace = read_one((prompt("u1", None, said), speaks("a1", "u1", use("c1", cmd="ls")), answers("u2", "a1", "c1", told)))
    assert trace.format == "claude-code"
    assert results(trace) == [("c1", "ok", told)]


def test_without_a_stop_reason_on_any_row_the_answer_at_the_end_is_the_last_word() -> None:
    rows = (prompt("u1", None, "Go"), speaks("a1", "u1", use("c1")), answers("u2", "a1", "c1"), speaks("a2", "u2", text("Done.")))
    assert all(each["message"].get("stop_reason") is None for each in rows)
    trace, cut = read_one(rows), read_one(rows[:3])
    assert [turn.finish_reason for turn in turns(trace)] == [None, None]
    assert trace.end is not None
    assert cut.end is not None
    assert (trace.end.stop_reason, cut.end.stop_reason) == ("final_answer", "unknown")


def test_hidden_reasoning_is_dropped() -> None:
    trace = read_one((FIXTURES / "session.jsonl").read_bytes())
    assert "hidden" not in repr(trace.events)


def test_a_wait_before_the_next_request_is_a_stated_retry() -> None:
    trace = read_one((FIXTURES / "session.jsonl").read_bytes())
    (decision,) = [event for event in trace.events if isinstance(event, Decision)]
    assert (decision.decision, decision.by, decision.reason, decision.delay_ms, decision.inferred) == ("retry", "harness", "server_error", 512.5, False)
    assert decision.extra == {"attempt": 1, "max_attempts": 10, "http_status": 529}
    assert trace.start.states == ["retry"]


def test_a_call_that_was_refused_is_denied_and_says_by_whom() -> None:
    trace = read_one((FIXTURES / "session.jsonl").read_bytes())
    assert [status for _, status, _ in results(trace)] == ["ok", "error", "denied"]
    (approval,) = [event for event in trace.events if isinstance(event, Approval)]
    assert (approval.call_id, approval.verdict, approval.by) == ("t3", "denied", "user")


def test_a_refusal_without_its_kind_is_told_by_what_claude_code_writes() -> None:
    refused = "Error: The user doesn't want to proceed with this tool use. The tool use was rejected"
    rows = (prompt("u", None, "x"), speaks("a", "u", use("t")), answers("r", "a", "t", "no", is_error=True, toolUseResult=refused))
    assert results(read_one(rows))[0][1] == "denied"
    rows = (prompt("u", None, "x"), speaks("a", "u", use("t")), answers("r", "a", "t", "no", toolUseResult=refused))
    assert results(read_one(rows))[0][1] == "ok", "nothing failed"


def test_rows_that_compaction_appends_again_count_once() -> None:
    first = [prompt("u", None, "x"), speaks("a", "u", use("t")), answers("r", "a", "t")]
    boundary = row("system", "c", None, subtype="compact_boundary", logicalParentUuid="r", content="Conversation compacted", compactMetadata={"trigger": "auto"})
    trace = read_one((*first, boundary, prompt("s", "c", "A summary", isCompactSummary=True), *first, *first, speaks("b", "s", text("done"))))
    assert len(trace.calls()) == 1
    assert notes(trace) == ["6 rows that repeat an earlier one were left out"]
    assert said(trace) == [("user", "x"), ("system", "Conversation compacted"), ("system", "A summary"), ("assistant", "done")]


def test_a_parent_that_was_never_written_falls_back_to_the_order_of_the_file() -> None:
    trace = read_one((prompt("u", "lost", "one"), speaks("a", "gone", use("t")), answers("r", "nowhere", "t"), prompt("v", "vanished", "two"), speaks("b", "away", text("end"))))
    assert said(trace) == [("user", "one"), ("user", "two"), ("assistant", "end")]
    assert results(trace) == [("t", "ok", "ok")]


def test_parents_in_a_circle_end() -> None:
    trace = read_one((prompt("u", "b", "one"), speaks("a", "u", use("t")), speaks("b", "a", text("end"))))
    assert len(trace.calls()) == 1


def test_a_rewind_keeps_the_branch_of_the_last_row() -> None:
    rows = (
        prompt("u", None, "start"), speaks("a", "u", text("ready")),
        prompt("x", "a", "first"), speaks("xa", "x", use("lost")), answers("xr", "xa", "lost"),
        prompt("y", "a", "second"), speaks("ya", "y", use("kept")), answers("yr", "ya", "kept"),
    )  # fmt: skip
    trace = read_one(rows)
    assert [call.call_id for call in trace.calls()] == ["kept"]
    assert notes(trace) == ["3 rows of branches that a rewind left behind were left out"]
    back_to_first = read_one((*rows, speaks("xb", "xr", use("late"))))
    assert [call.call_id for call in back_to_first.calls()] == ["lost", "late"]


def test_a_rewind_is_seen_through_what_hangs_between_messages() -> None:
    rows = (
        prompt("u", None, "start"), speaks("a", "u", text("ready")), row("attachment", "h", "a"),
        prompt("x", "h", "first"), prompt("y", "a", "second"), speaks("ya", "y", text("yes")),
    )  # fmt: skip
    assert said(read_one(rows)) == [("user", "start"), ("assistant", "ready"), ("user", "second"), ("assistant", "yes")]


def test_results_that_fork_the_tree_are_no_rewind() -> None:
    rows = (
        prompt("u", None, "x"), speaks("a", "u", use("t1"), message_id="m"), speaks("b", "a", use("t2"), message_id="m"),
        answers("r1", "a", "t1"), answers("r2", "b", "t2"), answers("r3", "a", "t1"), speaks("c", "r2", text("end")),
    )  # fmt: skip
    trace = read_one(rows)
    assert len(trace.results()) == 3
    assert [note for note in notes(trace) if "rewind" in note] == []


def test_after_compaction_cut_the_chain_the_latest_prompt_is_the_one_that_stays() -> None:
    rows = (
        prompt("u", None, "start"), speaks("a", "u", text("ready")), prompt("x", "a", "first"), prompt("y", "a", "second"),
        row("system", "c", None, subtype="compact_boundary", logicalParentUuid="never"), prompt("s", "c", "Summary", isCompactSummary=True), speaks("z", "s", text("end")),
    )  # fmt: skip
    assert ("user", "second") in said(read_one(rows))
    assert ("user", "first") not in said(read_one(rows))


def test_a_reused_id_belongs_to_the_nearest_earlier_open_call() -> None:
    trace = read_one((prompt("u", None, "x"), speaks("a", "u", use("t", command="ls")), answers("r", "a", "t", "one"), speaks("b", "r", use("t", command="pwd")), answers("q", "b", "t", "two")))
    assert calls(trace) == [("Bash", {"command": "ls"}), ("Bash", {"command": "pwd"})]
    assert results(trace) == [("t", "ok", "one"), ("t", "ok", "two")]


def test_calls_at_a_cut_off_tail_are_unfinished() -> None:
    trace = read_one((prompt("u", None, "x"), speaks("a", "u", use("t1"), use("t2"))))
    assert [status for _, status, _ in results(trace)] == ["unfinished", "unfinished"]
    assert trace.end is not None
    assert (trace.end.outcome, trace.end.stop_reason) == ("unknown", "unknown")


def test_calls_of_one_response_are_a_batch_wherever_their_results_were_written() -> None:
    trace = read_one((prompt("u", None, "x"), speaks("a", "u", use("t1"), message_id="m"), answers("r", "a", "t1"), speaks("b", "r", use("t2"), message_id="m"), answers("q", "b", "t2")))
    assert len(turns(trace)) == 1
    assert {(call.turn, call.batch) for call in trace.calls()} == {(1, "m")}


def test_a_subagent_inline_runs_within_the_call_with_its_prompt() -> None:
    trace = read_one((FIXTURES / "subagent.jsonl").read_bytes())
    assert [(call.call_id, call.agent, call.parent) for call in trace.calls()] == [("task1", "main", None), ("ls1", "Explore", "task1"), ("t9", "main", None)]
    (task,) = [result for result in trace.results() if result.call_id == "task1"]
    assert task.extra == {"duration_ms": 4000.0, "total_tokens": 50, "status": "completed"}


@pytest.mark.parametrize("place", ["{stem}/subagents/agent-{id}.jsonl", "agent-{id}.jsonl"])
def test_subagents_in_files_beside_the_session_are_read_once(tmp_path: Path, place: str) -> None:
    def write(name: str, *rows: dict[str, Any]) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in rows))

    side = {"isSidechain": True, "agentId": "one"}
    write(
        "session.jsonl", prompt("u", None, "x"), speaks("a", "u", use("task", "Agent", prompt="go", subagent_type="Plan")),
        answers("r", "a", "task", "done", toolUseResult={"agentId": "one"}), speaks("b", "r", use("again", "Agent", prompt="go on", subagent_type="Plan")),
        answers("q", "b", "again", "gone", toolUseResult={"agentId": "not-there"}),
    )  # fmt: skip
    write(place.format(stem="session", id="one"), prompt("p", None, "go", **side), speaks("c", "p", use("inner", "Agent", prompt="deeper"), **side), answers("d", "c", "inner", "deep", toolUseResult={"agentId": "two"}, **side))
    write(place.format(stem="session", id="two"), prompt("e", None, "deeper", **side), speaks("f", "e", use("leaf"), **side), answers("g", "f", "leaf", toolUseResult={"agentId": "one"}, **side))
    (trace,) = read_traces(tmp_path / "session.jsonl")
    assert [(call.call_id, call.agent, call.parent) for call in trace.calls()] == [("task", "main", None), ("inner", "Plan", "task"), ("leaf", "subagent", "inner"), ("again", "main", None)]
    assert trace.lines is not None
    assert all(line <= 5 for line in trace.lines), "lines are those of the session's own file"


def test_an_agents_id_is_no_path(tmp_path: Path) -> None:
    secret = tmp_path / "agent-secret.jsonl"
    secret.write_text(json.dumps(prompt("p", None, "secret")) + "\n")
    folder = tmp_path / "project"
    folder.mkdir()
    rows = [prompt("u", None, "x"), speaks("a", "u", use("t", "Task", prompt="p")), answers("r", "a", "t", toolUseResult={"agentId": "x/../../agent-secret"})]
    (folder / "session.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (trace,) = read_traces(folder / "session.jsonl")
    assert "secret" not in [content for _, content in said(trace)]


def test_a_file_of_a_subagent_alone_is_a_trace_of_its_own() -> None:
    rows = tuple(each | {"isSidechain": True} for each in (prompt("u", None, "x"), speaks("a", "u", use("t")), answers("r", "a", "t")))
    assert [call.agent for call in read_one(rows).calls()] == ["main"]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (prompt("z", "r", "[Request interrupted by user for tool use]"), "user_cancelled"),
        (speaks("z", "r", text("API Error: 529"), isApiErrorMessage=True), "provider_error"),
        (speaks("z", "r", text("cut"), message={"stop_reason": "max_tokens"}), "token_limit"),
        (speaks("z", "r", text("done")), "final_answer"),
        (prompt("z", "r", "and now?"), "unknown"),
    ],
)
def test_the_last_row_says_how_a_session_ended(last: dict[str, Any], expected: str) -> None:
    trace = read_one((prompt("u", None, "x"), speaks("a", "u", use("t")), answers("r", "a", "t"), last))
    assert trace.end is not None
    assert trace.end.stop_reason == expected


def test_an_interrupted_command_was_cancelled() -> None:
    trace = read_one((prompt("u", None, "x"), speaks("a", "u", use("t")), answers("r", "a", "t", "part", toolUseResult={"stdout": "part", "interrupted": True})))
    assert results(trace)[0][1] == "cancelled"


def test_records_of_other_types_are_counted_and_no_events() -> None:
    trace = read_one((row("progress", "p", None, data={}), {"type": "ai-title", "sessionId": "s", "aiTitle": "T"}, prompt("u", "p", "x"), row("system", "d", "u", subtype="turn_duration", durationMs=1200)))
    assert trace.start.attributes is not None
    assert trace.start.attributes["other_records"] == {"ai-title": 1, "progress": 1, "system/turn_duration": 1}
    assert trace.end is not None
    assert trace.end.extra == {"turn_durations_ms": [1200.0]}
    assert [event.role for event in trace.events if isinstance(event, Message)] == ["user"]


def test_what_the_harness_puts_in_is_not_said_by_a_person() -> None:
    assert said(read_one((prompt("u", None, "x"), prompt("m", "u", "<caveat>", isMeta=True)))) == [("user", "x"), ("system", "<caveat>")]


def test_damage_names_its_line_and_a_torn_tail_is_dropped() -> None:
    whole = "".join(json.dumps(each) + "\n" for each in (prompt("u", None, "x"), speaks("a", "u", use("t"))))
    with pytest.raises(InputError) as caught:
        read_one(whole + "{broken\n" + whole)
    assert str(caught.value.where) == "file:3"
    torn = read_one(whole + '{"type": "user", "uu')
    assert torn.incomplete is not None
    assert len(torn.calls()) == 1
    with pytest.raises(InputError, match="UTF-8") as caught:
        read_one(whole.encode().replace(b"/repo", b"/re\xffpo", 1), "claude-code")
    assert str(caught.value.where) == "file:1"
    with pytest.raises(InputError, match="UTF-8") as caught:
        read_one(whole.encode() + json.dumps(prompt("v", "u", "PLACE")).encode().replace(b"PLACE", b"\xff") + b"\n")
    assert str(caught.value.where) == "file:3"


def write_session(path: Path, size_bytes: int) -> int:
    """Write a session of that size and return how many calls it has."""
    body = ("line of a file with some \"quotes\" and é\n" * 150)[:6000]
    count, written, parent = 0, 0, None
    with path.open("w") as file:
        while written < size_bytes:
            count += 1
            asked = speaks(f"a{count}", parent, use(f"t{count}", "Read", path=f"/repo/{count}.py"), message_id=f"m{count // 3}")
            told = answers(f"r{count}", f"a{count}", f"t{count}", body[: count * 997 % 6000], toolUseResult={"file": {"content": body[: count * 997 % 6000]}})
            parent = f"r{count}"
            written += file.write(json.dumps(asked) + "\n") + file.write(json.dumps(told) + "\n")
    return count


def test_a_long_session_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    count = write_session(path, 24_000_000)
    seen: list[int] = []
    tracemalloc.start()
    try:
        (trace,) = read_traces(path, on_progress=seen.append)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(trace.calls()) == len(trace.results()) == count
    assert peak_bytes < 2 * path.stat().st_size, "payloads are held once, not row by row"
    assert max(seen) == path.stat().st_size


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_session_of_600_mb_is_imported_in_300_mb_at_50_mb_a_second(tmp_path: Path) -> None:
    import subprocess
    import sys

    path, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl"
    count = write_session(path, 600_000_000)
    code = (
        "import contextlib, resource, sys\nfrom goldentrace.cli.main import run\nsys.argv[1:] = ['import', *sys.argv[1:]]\n"
        "with contextlib.suppress(SystemExit):\n    run()\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_maxrss // 1024, used.ru_utime + used.ru_stime)"
    )
    done = subprocess.run([sys.executable, "-c", code, path, "-o", out], capture_output=True, text=True, check=True, timeout=300)
    memory_mb, seconds = done.stdout.split()  # seconds of the processor: what else the machine does counts for nothing
    with out.open("rb") as lines:
        assert sum(1 for _ in lines) > 2 * count
    assert int(memory_mb) < 300
    assert path.stat().st_size / float(seconds) > 50e6, f"{path.stat().st_size / float(seconds) / 1e6:.0f} MB/s"
