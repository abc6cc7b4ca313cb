"""Codex rollouts: which rows are activity, when calls began, what failed, and whose history a file holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from goldentrace.model.event import Decision
from goldentrace.sources.registry import read_traces
from tests.sources.reading import calls, read_one, results, said, turns

FIXTURES = Path(__file__).with_name("fixtures") / "codex"
ROLLOUT = tuple(json.loads(line) for line in (FIXTURES / "rollout.jsonl").read_text().splitlines())
META = {"id": "own", "timestamp": "2026-01-01T10:00:10.000Z", "cwd": "/repo"}


def row(kind: str, payload: dict[str, Any], second: int = 20, **more: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T10:00:{second:02d}.000Z", "type": kind, "payload": payload, **more}


def item(kind: str, second: int = 20, **fields: Any) -> dict[str, Any]:
    return row("response_item", {"type": kind, **fields}, second)


def say(role: str, text: str, second: int = 20) -> dict[str, Any]:
    return item("message", second, role=role, content=[{"type": "input_text", "text": text}])


def call(call_id: str, second: int = 20) -> dict[str, Any]:
    return item("function_call", second, call_id=call_id, name="shell", arguments='{"command": ["ls"]}')


def output(call_id: str, given: Any, second: int = 20) -> dict[str, Any]:
    return item("function_call_output", second, call_id=call_id, output=given)


def event(kind: str, second: int = 20, **fields: Any) -> dict[str, Any]:
    return row("event_msg", {"type": kind, **fields}, second)


def test_events_that_tell_items_again_are_no_activity() -> None:
    trace = read_one(ROLLOUT)
    assert said(trace)[1:] == [("user", "Count the lines"), ("system", "compaction"), ("assistant", "Three.")]
    assert [call.call_id for call in trace.calls()] == ["c1", "c2", "c3", "c4"]


def test_an_mcp_call_that_no_item_tells_is_a_call() -> None:
    trace = read_one(ROLLOUT)
    assert calls(trace)[3] == ("find", {"q": "x"})
    assert results(trace)[3][1] == "error"
    assert (trace.calls()[3].ts, trace.results()[3].ts) == ("2026-01-01T10:00:14.500000Z", "2026-01-01T10:00:16.000000Z")


def test_the_end_of_an_mcp_call_says_whether_its_item_failed() -> None:
    end = event("mcp_tool_call_end", call_id="c", duration={"secs": 2, "nanos": 0}, invocation={"server": "s", "tool": "t"}, result={"Ok": {"content": [], "isError": True}})
    trace = read_one((row("session_meta", META), call("c"), end, output("c", "not found")))
    assert [(call_id, status) for call_id, status, _ in results(trace)] == [("c", "error")]
    assert trace.calls()[0].ts == "2026-01-01T10:00:18.000000Z"
    refused = event("mcp_tool_call_end", call_id="c", invocation={"server": "s", "tool": "t", "arguments": {}}, result={"Err": "no server"})
    assert read_one((row("session_meta", META), refused)).results()[0].error_class == "protocol"


def test_a_call_began_its_duration_before_the_millisecond_that_it_shares_with_its_output() -> None:
    trace = read_one(ROLLOUT)
    assert (trace.calls()[0].ts, trace.results()[0].ts) == ("2026-01-01T10:00:06.500000Z", "2026-01-01T10:00:09.000000Z")
    assert trace.results()[0].extra == {"exit_code": 0, "duration_ms": 2500.0}
    assert trace.calls()[2].ts is None, "no duration is known"
    apart = read_one((row("session_meta", META), call("c", 11), output("c", '{"output":"","metadata":{"exit_code":0,"duration_seconds":1.0}}', 15)))
    assert apart.calls()[0].ts == "2026-01-01T10:00:11.000000Z"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}', ("ok", "x")),
        ('{"output":"x","metadata":{"exit_code":124,"duration_seconds":0.1}}', ("error", "x")),
        ({"output": "x", "metadata": {"exit_code": 1}}, ("error", "x")),
        ({"content": "x", "success": False}, ("error", "x")),
        ({"type": "input_text", "text": "x"}, ("ok", "x")),
        ([{"type": "input_text", "text": "x"}], ("ok", "x")),
        ("Chunk ID: 1\nWall time: 0.2500 seconds\nProcess exited with code 3\nOutput:\nx", ("error", None)),
        ("Wall time: 0.2500 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 1", ("ok", None)),
        ("Process exited with code 1", ("ok", None)),
        ("failed in sandbox MacosSeatbelt with execution error: sandbox denied exec error, exit code: 1, stdout: , stderr: ", ("error", None)),
        ("exec command rejected by user", ("denied", None)),
        ("Error: it says so itself", ("ok", None)),
        ('{"broken', ("ok", None)),
        (None, ("ok", None)),
    ],
)
def test_what_an_output_says_of_failure(given: Any, expected: tuple[str, str | None]) -> None:
    (_, status, value) = results(read_one((row("session_meta", META), call("c"), output("c", given))))[0]
    assert status == expected[0]
    assert expected[1] is None or value == expected[1]


def test_the_wall_time_of_a_text_output_is_its_duration() -> None:
    trace = read_one((row("session_meta", META), call("c"), output("c", "Wall time: 4.0000 seconds\nProcess exited with code 0\nOutput:\n")))
    assert trace.calls()[0].ts == "2026-01-01T10:00:16.000000Z"


def test_usage_belongs_to_the_response_whether_it_comes_before_or_after_its_items() -> None:
    assert [turn.usage and turn.usage.output_tokens for turn in turns(read_one(ROLLOUT))] == [3, 5, 6, 2]
    tokens = [event("token_count", info={"total_token_usage": {"t": n}, "last_token_usage": {"input_tokens": 9, "cached_input_tokens": 2, "output_tokens": n}}) for n in (1, 2)]
    after = (row("session_meta", META), call("a"), output("a", "x"), tokens[0], tokens[0], call("b"), output("b", "y"), tokens[1])
    assert [turn.usage and (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cached_tokens) for turn in turns(read_one(after))] == [(9, 1, 2), (9, 2, 2)]


def test_history_that_compaction_replaces_is_no_new_activity() -> None:
    history = [{"type": "function_call", "call_id": "x", "name": "shell", "arguments": "{}"}, {"type": "message", "role": "user", "content": []}]
    trace = read_one((row("session_meta", META), call("c"), output("c", "x"), row("compacted", {"message": "short", "replacement_history": history})))
    assert len(trace.calls()) == 1
    assert said(trace) == [("system", "short")]


def test_a_subagents_file_begins_with_a_copy_of_its_parent() -> None:
    meta = row("session_meta", META | {"subagent_history_start_ordinal": 4, "source": {"subagent": {"thread_spawn": {"parent_thread_id": "up"}}}}, ordinal=0)
    copied = [row("session_meta", {"id": "up"}, ordinal=1), call("old") | {"ordinal": 2}, output("old", "x") | {"ordinal": 3}]
    trace = read_one((meta, *copied, call("own") | {"ordinal": 4}, output("own", "y") | {"ordinal": 5}))
    assert [each.call_id for each in trace.calls()] == ["own"]
    assert trace.start.trace_id == "own"
    assert "copied" in trace.notes[0].text


def test_a_forks_copy_is_told_by_its_times_or_by_what_follows_it() -> None:
    meta = row("session_meta", META | {"forked_from_id": "up"}, 10)
    by_time = read_one((meta, row("session_meta", {"id": "up"}, 1), call("old", 2), output("old", "x", 3), call("own", 11), output("own", "y", 12)))
    assert [each.call_id for each in by_time.calls()] == ["own"]
    copied = (meta, row("session_meta", {"id": "up"}, 10), call("old", 10), output("old", "x", 10))
    by_mark = read_one((*copied, event("thread_settings_applied", 10), call("own", 11), output("own", "y", 12)))
    assert [each.call_id for each in by_mark.calls()] == ["own"]
    unmarked = read_one((*copied, call("own", 11), output("own", "y", 12)))
    assert len(unmarked.calls()) == 2, "nothing real is dropped where the end of the copy is not known"
    assert "not recorded" in unmarked.notes[0].text


def test_turns_that_were_rolled_back_are_left_out() -> None:
    def turn(name: str) -> tuple[dict[str, Any], ...]:
        return say("user", name), event("user_message", message=name), call(name), output(name, "x")

    trace = read_one((row("session_meta", META), *turn("one"), *turn("two"), *turn("three"), event("thread_rolled_back", num_turns=2), *turn("four")))
    assert [each.call_id for each in trace.calls()] == ["one", "four"]
    assert [text for _, text in said(trace)] == ["one", "four"]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (say("assistant", "done"), "final_answer"),
        (event("turn_aborted", reason="interrupted"), "user_cancelled"),
        (event("error", message="usage limit"), "provider_error"),
        (event("task_complete", error={"message": "x"}), "provider_error"),
        (event("task_complete", last_agent_message=None), "unknown"),
    ],
)
def test_the_last_rows_say_how_a_session_ended(last: dict[str, Any], expected: str) -> None:
    trace = read_one((row("session_meta", META), say("user", "x"), call("c"), output("c", "y"), last))
    assert trace.end is not None
    assert trace.end.stop_reason == expected


def test_reused_ids_orphans_and_arguments_that_do_not_parse_are_kept() -> None:
    trace = read_one((row("session_meta", META), call("d"), item("function_call", call_id="d", name="shell", arguments="not-json"), output("d", "1"), output("d", "2"), output("d", "3"), output("missing", "4")))
    assert calls(trace) == [("shell", {"command": ["ls"]}), ("shell", None)]
    assert trace.calls()[1].args_raw == "not-json"
    assert [value for _, _, value in results(trace)] == ["1", "2", "3", "4"]


def test_tools_that_the_provider_runs_and_searches_for_tools_have_results() -> None:
    trace = read_one((
        row("session_meta", META), item("web_search_call", id="ws", status="completed", action={"type": "search", "query": "q"}),
        item("tool_search_call", call_id="ts", status="completed", arguments={"query": "q"}), item("tool_search_output", call_id="ts", tools=[{"name": "t"}]),
    ))  # fmt: skip
    assert calls(trace) == [("web_search", {"type": "search", "query": "q"}), ("tool_search", {"query": "q"})]
    assert [status for _, status, _ in results(trace)] == ["ok", "ok"]


def test_the_first_versions_had_no_envelope() -> None:
    trace = read_one((FIXTURES / "first_version.jsonl").read_bytes())
    assert trace.start.trace_id == "old-1"
    assert [(call_id, status) for call_id, status, _ in results(trace)] == [("c1", "ok"), ("c2", "unfinished")]


def test_retries_in_old_files_are_stated() -> None:
    retried = event("stream_error", message="stream error: stream disconnected; retrying 2/5 in 412ms…")
    (decision,) = [each for each in read_one((row("session_meta", META), retried)).events if isinstance(each, Decision)]
    assert (decision.decision, decision.delay_ms, decision.extra) == ("retry", 412.0, {"attempt": 2, "max_attempts": 5})


def test_reasoning_is_dropped() -> None:
    assert "hidden" not in repr(read_one(ROLLOUT).events)


def test_a_rollout_compressed_with_zstd_is_the_same(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress((FIXTURES / "rollout.jsonl").read_bytes()))
    (trace,) = read_traces(path)
    assert trace.events == read_one(ROLLOUT).events
