"""Inspect logs, read by inspect_ai: times, errors, limits and subagents of each sample, and what cannot be read."""

import builtins
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goldentrace.errors import InputError
from goldentrace.model.event import Approval
from goldentrace.sources.document import Document
from goldentrace.sources.registry import read_traces
from goldentrace.sources.zipsize import ZIP_ZSTANDARD
from tests.sources.reading import document_of, read_all, results, turns

pytest.importorskip("inspect_ai")
zstandard = pytest.importorskip("zstandard")

LOG = json.loads((Path(__file__).with_name("fixtures") / "inspect_log" / "log.json").read_text())


def write_eval(path: Path) -> None:
    """The same log in the other form, written by inspect_ai."""
    from inspect_ai.log import EvalLog, write_eval_log

    write_eval_log(EvalLog.model_validate(LOG), str(path))


def test_each_sample_and_epoch_is_a_trace() -> None:
    traces = read_all(LOG)
    assert [(trace.start.scenario_id, (trace.start.attributes or {})["name"]) for trace in traces] == [("s1", "demo_s1_epoch-1"), ("s2", "demo_s2_epoch-1")]


def test_calls_began_and_ended_when_their_events_say() -> None:
    first = read_all(LOG)[0]
    assert (first.calls()[0].ts, first.results()[1].ts) == ("2026-01-01T10:00:03.000000Z", "2026-01-01T10:00:07.000000Z")
    assert [result.call_id for result in first.results()] == ["c2", "c1", "d1", "c3", "c4", "c5"], "in the order in which they ended"


def test_kinds_of_errors_have_their_own_status() -> None:
    found = {result.call_id: (result.status, result.error_class) for result in read_all(LOG)[0].results()}
    assert found["c2"] == ("error", "not_found")
    assert found["c4"] == ("denied", "denied")
    assert found["c5"] == ("timeout", "timeout")


def test_what_runs_in_the_span_of_a_tool_is_a_subagent() -> None:
    calls = {call.call_id: (call.agent, call.parent) for call in read_all(LOG)[0].calls()}
    assert calls["d1"] == ("helper", "c3")
    assert calls["c5"] == ("main", None)


def test_approvals_scores_limits_and_endings() -> None:
    first, second = read_all(LOG)
    assert [(event.call_id, event.verdict, event.by) for event in first.events if isinstance(event, Approval)] == [("c4", "denied", "human")]
    assert first.end is not None
    assert second.end is not None
    assert (first.end.outcome, first.end.stop_reason) == ("success", "final_answer")
    assert (second.end.outcome, second.end.stop_reason) == ("unknown", "turn_limit"), "0.5 is no verdict"


def test_tokens_from_the_cache_are_input() -> None:
    usage = turns(read_all(LOG)[0])[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (8, 2, 3)


def test_without_events_messages_are_read_and_reasoning_is_dropped() -> None:
    second = read_all(LOG)[1]
    assert [(call_id, status) for call_id, status, _ in results(second)] == [("m1", "error"), ("m2", "unfinished")]
    assert "hidden" not in repr(second.events)
    assert [note.text for note in second.notes] == ["the log keeps no events: messages were read"]


def test_an_eval_file_holds_the_same_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    write_eval(path)
    told = [trace.events for trace in read_traces(path)]
    renamed = path.rename(tmp_path / "log.bin")
    assert [trace.events for trace in read_traces(renamed)] == told
    assert [[type(event) for event in events] for events in told] == [[type(event) for event in trace.events] for trace in read_all(LOG)]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, ZIP_ZSTANDARD])
@pytest.mark.parametrize("claimed_bytes", [3_000_001, 10])
def test_a_zip_that_unpacks_to_too_much_is_refused_whatever_it_claims(tmp_path: Path, method: int, claimed_bytes: int) -> None:
    path = tmp_path / "log.eval"
    write_eval(path)
    bomb = b"0" * 3_000_001
    packed = zstandard.compress(bomb) if method == ZIP_ZSTANDARD else zlib.compress(bomb, wbits=-15)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/bomb.json", packed)
        entry = archive.getinfo("samples/bomb.json")
        entry.compress_type, entry.file_size = method, claimed_bytes  # in the table, which is written last
    with pytest.raises(InputError, match="unpacks to more than the limit of 1,000,000 bytes"):
        list(read_traces(path, max_bytes=1_000_000))


def test_a_log_that_is_cut_off_or_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    write_eval(path)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:200], json.dumps({"version": 2, "eval": {"task": 1, "model": None}}).encode()):
        with pytest.raises(InputError, match="inspect_ai cannot read it"):
            read_all(data, "inspect")


def test_keys_of_a_log_may_stand_in_any_order() -> None:
    backwards = {key: LOG[key] for key in sorted(LOG, reverse=True)}
    assert [trace.start.trace_id for trace in read_all(backwards)] == [trace.start.trace_id for trace in read_all(LOG)]


def test_a_zip_whose_table_points_behind_its_end_is_refused(tmp_path: Path) -> None:
    write_eval(tmp_path / "log.eval")
    data = bytearray((tmp_path / "log.eval").read_bytes())
    with zipfile.ZipFile(tmp_path / "log.eval") as archive:
        entry = next(each for each in archive.infolist() if each.filename.startswith("samples/"))
    name = data.rindex(entry.filename.encode(), 0, data.rindex(b"PK\5\6"))  # in the table at the end
    data[name - 4 : name] = (len(data) * 2).to_bytes(4, "little")
    with pytest.raises(InputError, match="inspect_ai cannot read it"):
        read_all(bytes(data))


def test_what_is_read_from_a_copy_is_named_as_it_was_given(tmp_path: Path) -> None:
    write_eval(tmp_path / "log.eval")
    with zipfile.ZipFile(tmp_path / "log.eval") as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if not name.startswith("samples/")}
    with zipfile.ZipFile(tmp_path / "without", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(InputError) as refused:
        list(read_traces(tmp_path / "without"))
    assert str(tmp_path / "without") in refused.value.what
    assert "log.eval" not in refused.value.what


def test_without_inspect_ai_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, globals_: Mapping[str, Any] | None = None, locals_: Mapping[str, Any] | None = None, *more: Any) -> Any:
        if name.startswith("inspect_ai"):
            raise ImportError(name)
        return real(name, globals_, locals_, *more)

    from goldentrace.sources import inspect_log

    document: Document = document_of(LOG)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError) as caught:
        next(inspect_log.read(document))
    assert caught.value.next_step == "pip install goldentrace[inspect]"
