"""The journal: a trace like any other, whole up to a kill, without a secret."""

import json
from pathlib import Path

import pytest

from goldentrace.codec.canonical import encode_raw
from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError, InputError
from goldentrace.faults.journal import Failure, JournalWriter, read_journal
from goldentrace.model.event import Effect, Limit, ToolCall, ToolResult


def written(path: Path, *, is_closed: bool = True) -> bytes:
    journal = JournalWriter(path, run_id="r1", seed=7, scenario_id="s")
    journal.write(ToolCall(call_id="c1", tool_name="t", args=encode_raw({"a": 1})))
    journal.write_failure(Failure("POST /x matches no tool", "did you mean 't'?"))
    journal.write(Effect(name="charge", value=encode_raw(500)))
    journal.write(ToolResult(call_id="c1", status="ok"))
    if is_closed:
        journal.close()
    return path.read_bytes()


def test_a_journal_is_a_trace(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path / "j.jsonl"), "j.jsonl")
    assert (trace.start.scenario_id, trace.start.seed, trace.incomplete) == ("s", 7, None)
    assert [type(event).__name__ for event in trace.events] == [
        "TraceStart", "ToolCall", "Effect", "ToolResult", "TraceEnd",
    ]  # fmt: skip


def test_events_and_failures_come_back(tmp_path: Path) -> None:
    written(tmp_path / "j.jsonl")
    journal = read_journal(tmp_path / "j.jsonl")
    assert [type(event) for event in journal.events] == [ToolCall, Effect, ToolResult]
    assert journal.failures == [Failure("POST /x matches no tool", "did you mean 't'?")]
    assert journal.is_complete


def test_cut_at_every_byte_it_yields_exactly_the_whole_lines(tmp_path: Path) -> None:
    data = written(tmp_path / "j.jsonl")
    ends = [n + 1 for n, byte in enumerate(data) if byte == 0x0A]
    for cut in range(len(data)):
        (tmp_path / "cut.jsonl").write_bytes(data[:cut])
        journal = read_journal(tmp_path / "cut.jsonl")
        whole = sum(end <= cut for end in ends) + (cut + 1 in ends)  # a line whose LF alone is missing is whole
        assert len(journal.events) + len(journal.failures) == min(max(whole - 1, 0), 4)
        assert journal.is_complete == (whole == len(ends))


def test_damage_before_the_end_is_an_error_with_its_line(tmp_path: Path) -> None:
    data = written(tmp_path / "j.jsonl").replace(b'"tool_result"', b'"tool_resul"')
    (tmp_path / "j.jsonl").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_journal(tmp_path / "j.jsonl")
    assert caught.value.where is not None
    assert caught.value.where.line == 5


def test_secrets_do_not_reach_it_and_stay_told_apart(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "j.jsonl", run_id="r", seed=0)
    one, other = ("sk-" + letter * 32 for letter in "ab")
    values = [json.loads(bytes(journal.raw({"key": value}))) for value in (one, other, one)]
    assert values == [{"key": "<secret:1>"}, {"key": "<secret:2>"}, {"key": "<secret:1>"}]


def test_a_limit_is_the_reason_of_the_end(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "j.jsonl", run_id="r", seed=0)
    journal.write(Limit(limit="max_tool_calls", value=3, max=2))
    journal.close("max_tool_calls")
    end = read_trace((tmp_path / "j.jsonl").read_bytes(), "j").end
    assert end is not None
    assert (end.outcome, end.stop_reason) == ("aborted", "call_limit")


def test_a_place_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError) as caught:
        JournalWriter(tmp_path / "file" / "j.jsonl", run_id="r", seed=0)
    assert "cannot be written" in caught.value.what


def test_a_full_disk_is_said_once_and_the_server_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    journal = JournalWriter(Path("/dev/full"), run_id="r", seed=0)
    for _ in range(3):
        journal.write(Limit(limit="x"))
    journal.close()
    assert capsys.readouterr().err.count("incomplete") == 1


def test_no_journal_asked_for_is_none_kept() -> None:
    journal = JournalWriter(None, run_id="r", seed=0)
    journal.write(Limit(limit="x"))
    journal.close()
