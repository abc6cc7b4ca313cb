"""The journal: a trace like any other, whole up to a kill, without a secret."""

import json
import time
from pathlib import Path

import pytest

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError, InputError
from goldentrace.faults.journal import Failure, RunJournal, read_journal
from goldentrace.model.event import Effect, Limit, ToolCall, ToolResult

FAILURE = Failure("POST /x matches no tool", "did you mean 't'?")


def written(path: Path) -> bytes:
    journal = RunJournal(path, run_id="r1", seed=7, scenario_id="s")
    journal.write(ToolCall(call_id="c1", tool_name="t", args=encode_raw({"a": 1})))
    journal.write(Effect(name="charge", value=encode_raw(500)))
    journal.write(ToolResult(call_id="c1", status="ok"))
    journal.close(None, [FAILURE])
    return path.read_bytes()


def test_a_journal_is_a_trace(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path / "j.jsonl"), "j.jsonl")
    assert (trace.start.scenario_id, trace.start.seed, trace.incomplete) == ("s", 7, None)
    assert [type(event).__name__ for event in trace.events] == [
        "TraceStart", "ToolCall", "Effect", "ToolResult", "TraceEnd",
    ]  # fmt: skip


def test_events_and_failures_come_back(tmp_path: Path) -> None:
    written(tmp_path / "j.jsonl")
    recorded = read_journal(tmp_path / "j.jsonl")
    assert [type(event) for event in recorded.events] == [ToolCall, Effect, ToolResult]
    assert recorded.failures == [FAILURE]
    assert recorded.is_complete


def test_cut_anywhere_after_its_first_line_it_yields_the_whole_lines(tmp_path: Path) -> None:
    data = written(tmp_path / "j.jsonl")
    ends = [n + 1 for n, byte in enumerate(data) if byte == 0x0A]
    for cut in range(ends[0], len(data)):
        (tmp_path / "cut.jsonl").write_bytes(data[:cut])
        recorded = read_journal(tmp_path / "cut.jsonl")
        whole = sum(end <= cut for end in ends) + (cut + 1 in ends)  # a line whose LF alone is missing is whole
        assert len(recorded.events) == min(whole - 1, 3)
        assert recorded.is_complete == (whole == len(ends))


@pytest.mark.parametrize("text", ["", '{"type":"trace_st'])
def test_a_file_without_a_whole_line_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "j.jsonl").write_text(text)
    with pytest.raises(InputError):
        read_journal(tmp_path / "j.jsonl")
    with pytest.raises(InputError):
        read_journal(tmp_path / "gone.jsonl")


def test_damage_before_the_end_is_an_error_with_its_line(tmp_path: Path) -> None:
    data = written(tmp_path / "j.jsonl").replace(b'"tool_result"', b'"tool_result')
    (tmp_path / "j.jsonl").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_journal(tmp_path / "j.jsonl")
    assert caught.value.where is not None
    assert caught.value.where.line == 4


def test_secrets_do_not_reach_it_and_stay_told_apart(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "j.jsonl", run_id="r", seed=0)
    one, other = ("sk-" + letter * 32 for letter in "ab")
    values = [json.loads(bytes(journal.raw({"key": value}))) for value in (one, other, one)]
    assert values == [{"key": "<secret:1>"}, {"key": "<secret:2>"}, {"key": "<secret:1>"}]


def test_a_limit_is_the_reason_of_the_end(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "j.jsonl", run_id="r", seed=0)
    journal.write(Limit(limit="max_tool_calls", value=3, max=2))
    journal.close("max_tool_calls", [])
    end = read_trace((tmp_path / "j.jsonl").read_bytes(), "j").end
    assert end is not None
    assert (end.outcome, end.stop_reason) == ("aborted", "call_limit")


def test_an_event_has_the_time_at_which_it_happened(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "j.jsonl", run_id="r", seed=0)
    arrived_ns = time.monotonic_ns()
    time.sleep(0.05)
    journal.write(ToolCall(call_id="c", tool_name="t"), arrived_ns)
    journal.write(ToolResult(call_id="c", status="ok"))
    journal.close(None, [])
    call, result = read_journal(tmp_path / "j.jsonl").events
    assert call.mono_ns == arrived_ns
    assert result.mono_ns is not None
    assert result.mono_ns - arrived_ns >= 50_000_000


def test_a_place_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError) as caught:
        RunJournal(tmp_path / "file" / "j.jsonl", run_id="r", seed=0)
    assert "cannot be written" in caught.value.what


def test_a_file_that_is_no_trace_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    with pytest.raises(InfrastructureError) as caught:
        RunJournal(tmp_path / "notes.txt", run_id="r", seed=0)
    assert "is no trace" in caught.value.what
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


def test_two_servers_do_not_share_a_journal(tmp_path: Path) -> None:
    first = RunJournal(tmp_path / "j.jsonl", run_id="r", seed=0)
    with pytest.raises(InfrastructureError) as caught:
        RunJournal(tmp_path / "j.jsonl", run_id="r", seed=0)
    assert "another run writes to it" in caught.value.what
    first.close(None, [])
    assert [path.name for path in tmp_path.iterdir()] == ["j.jsonl"]


def test_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    written(tmp_path / "j.jsonl")
    RunJournal(tmp_path / "j.jsonl", run_id="r", seed=0).close(None, [])
    assert read_journal(tmp_path / "j.jsonl").events == []


def test_no_journal_asked_for_is_none_kept() -> None:
    journal = RunJournal(None, run_id="r", seed=0)
    journal.write(Limit(limit="x"))
    journal.close(None, [])
