"""Goldens on disk: sticky, whole, locked, in one form."""

import threading
from pathlib import Path

import pytest

from goldentrace.codec.golden import read_golden
from goldentrace.errors import InfrastructureError, InputError
from goldentrace.model.config import Scenario
from goldentrace.store.goldens import NewGolden, format_golden, goldens_lock, make_golden, write_golden
from goldentrace.store.layout import Layout
from goldentrace.store.profiles import Profiles
from goldentrace.store.sides import read_side
from tests.cli.traces import call, end, files_in, searches, start, write


def made(folder: Path, events: list[dict[str, object]], scenario: Scenario | None = None) -> NewGolden:
    trace = read_side(write(folder / "trace.jsonl", events)).trace
    assert trace is not None
    return make_golden(
        trace,
        Profiles().load("default"),
        name="orders",
        scenario=scenario or Scenario(),
        path=folder / "g.jsonl",
        shown="g.jsonl",
    )


def test_the_header_is_the_scenario_s(tmp_path: Path) -> None:
    new = made(tmp_path, [start(scenario_id="other", seed=1), end()], Scenario(seed=7, description="why"))
    header = read_golden(new.data, "g").header
    assert (header.scenario_id, header.seed, header.description) == ("orders", 7, "why")


def test_what_a_person_wrote_into_the_header_stays(tmp_path: Path) -> None:
    first = made(tmp_path, searches(2))
    edited = first.data.replace(
        b'"profile"', b'"description":"by hand","accepts":[{"code":"GT1003","reason":"known"}],"profile"', 1
    )
    (tmp_path / "g.jsonl").write_bytes(edited)
    again = made(tmp_path, searches(3))
    header = read_golden(again.data, "g").header
    assert (header.description, header.accepts) == ("by hand", ({"code": "GT1003", "reason": "known"},))
    assert again.changed_lines == 3


def test_the_file_differs_if_and_only_if_something_changed(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_bytes(made(tmp_path, searches(3)).data)
    same = made(tmp_path, [{**event, "ts": "2026-03-01T00:00:00Z"} for event in searches(3)])
    assert (same.data, same.comparison is not None) == (same.old, True)
    other = made(tmp_path, [start(), *call(1, "search", page=1, q="abc"), end()])
    assert other.data != other.old
    assert other.comparison is not None
    assert other.comparison.changes


def test_the_lock_is_one_recorder_s(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    problems: list[str] = []

    def second() -> None:
        try:
            with goldens_lock(layout, "goldens are being recorded"):
                pass
        except InfrastructureError as error:
            problems.append(error.what)

    with goldens_lock(layout, "goldens are being recorded"):
        other = threading.Thread(target=second)
        other.start()
        other.join()
    assert len(problems) == 1
    assert "goldens are being recorded" in problems[0]
    with goldens_lock(layout, "again"):
        pass


def test_writing_leaves_nothing_beside_the_golden(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    write_golden(layout, layout.golden("a", "s"), b"x\n")
    assert files_in(tmp_path) == {"goldens/s/a.jsonl": b"x\n"}


def test_formatting_is_idempotent_and_refuses_damage(tmp_path: Path) -> None:
    data = made(tmp_path, searches(2)).data
    loose = b"\n" + data.replace(b'":', b'": ').replace(b"\n", b"\r\n")
    found = format_golden(loose, "g.jsonl")
    assert (found.canonical, found.is_canonical, found.problems) == (data, False, ())
    assert format_golden(data, "g.jsonl").is_canonical
    with pytest.raises(InputError, match="conflict marker"):
        format_golden(data.replace(b"\n", b"\n=======\n", 1), "g.jsonl")


def test_a_secret_is_named_by_its_line_and_kind() -> None:
    secret = b"ghp_" + b"a1B2" * 9
    head = b'{"type":"trace_start","format":"goldentrace/1","kind":"golden","description":"%b","profile":"p","profile_hash":"h"}\n'
    data = head % secret + b'{"type":"trace_end","outcome":"success","stop_reason":"final_answer"}\n'
    assert format_golden(data, "g").problems == ((1, "a secret in clear (provider-key)"),)
    assert format_golden(head % b"<secret:1>" + data.splitlines()[1] + b"\n", "g").problems == ()
