"""Remembered values: found again, bounded, shared by several writers, and of no weight for a verdict."""

import json
import multiprocessing
from pathlib import Path

import pytest

from goldentrace.codec.trace import read_trace
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from goldentrace.store import values
from goldentrace.store.layout import Layout
from goldentrace.store.values import MAX_FILE_BYTES, MAX_VALUE_BYTES, ValueStore
from tests.cli.traces import call, dump, end, start


def run_with(**args: object) -> NormalTrace:
    trace = read_trace(dump([start(), *call(1, "t", **args), end()]).encode(), "t.jsonl")
    return normalize(trace, Profile(name="x@1"), "h:0")


def leaf_of(normal: NormalTrace, pointer: str) -> str:
    leaf = normal.operations[0].args[pointer]
    assert isinstance(leaf, str)
    return leaf


def test_a_value_is_found_by_its_leaf(tmp_path: Path) -> None:
    normal = run_with(amount=49.99, city="Lisbon", nested={"a": [1, "x"]})
    ValueStore(Layout(tmp_path)).remember(normal)
    again = ValueStore(Layout(tmp_path))
    assert again.find(leaf_of(normal, "/amount")) == (True, 49.99)
    assert again.find(leaf_of(normal, "/city")) == (True, "Lisbon")
    assert again.find(leaf_of(normal, "/nested/a/1")) == (True, "x")
    assert again.find("int h:000000000000") == (False, None)
    assert again.find("<new:uuid>") == (False, None)


def test_it_is_ignored_by_git_and_only_the_user_s(tmp_path: Path) -> None:
    ValueStore(Layout(tmp_path)).remember(run_with(city="Lisbon"))
    assert (tmp_path / ".goldentrace/.gitignore").read_text().endswith("*\n")
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / ".goldentrace/values").iterdir())


def test_remembering_twice_adds_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        ValueStore(Layout(tmp_path)).remember(run_with(city="Lisbon"))
    lines = [line for file in (tmp_path / ".goldentrace/values").iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == 1


def test_secrets_and_ids_are_not_kept(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 10
    ValueStore(Layout(tmp_path)).remember(
        run_with(key=secret, password="hunter2", id="0b9f6c1e-3f0a-4f7e-9d0a-6f3b1c2d4e5f", text=f"use {secret} now")
    )
    kept = "".join(file.read_text() for file in (tmp_path / ".goldentrace").rglob("*.jsonl"))
    assert secret not in kept
    assert "hunter2" not in kept


def test_long_values_and_long_runs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MAX_PER_RUN", 10)
    ValueStore(Layout(tmp_path)).remember(run_with(blob="x" * MAX_VALUE_BYTES, many=list(range(100, 160))))
    lines = [line for file in (tmp_path / ".goldentrace/values").iterdir() for line in file.read_text().splitlines()]
    assert 0 < len(lines) <= 10
    assert all(len(line) <= MAX_VALUE_BYTES for line in lines)


def test_a_full_file_keeps_its_newer_half(tmp_path: Path) -> None:
    normal = run_with(city="Lisbon")
    leaf = leaf_of(normal, "/city")
    place = leaf.rpartition("h:")[2][0]
    folder = tmp_path / ".goldentrace/values"
    folder.mkdir(parents=True)
    old = b"".join(b'{"leaf":"int h:%012d","value":%d}\n' % (n, n) for n in range(MAX_FILE_BYTES // 38 + 10))
    (folder / f"{place}.jsonl").write_bytes(old[:MAX_FILE_BYTES])
    ValueStore(Layout(tmp_path)).remember(normal)
    data = (folder / f"{place}.jsonl").read_bytes()
    assert len(data) < MAX_FILE_BYTES * 0.6
    assert all(json.loads(line) for line in data.splitlines())
    assert ValueStore(Layout(tmp_path)).find(leaf) == (True, "Lisbon")


def _write(folder: str, number: int) -> None:
    store = ValueStore(Layout(Path(folder)))
    for n in range(20):
        store.remember(run_with(text=f"value {number} {n}"))


def test_several_writers_lose_and_tear_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path), n)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    store = ValueStore(Layout(tmp_path))
    for number in range(3):
        for n in range(20):
            leaf = leaf_of(run_with(text=f"value {number} {n}"), "/text")
            assert store.find(leaf) == (True, f"value {number} {n}")


def test_damage_costs_a_display_and_nothing_else(tmp_path: Path) -> None:
    normal = run_with(city="Lisbon", town="Porto")
    ValueStore(Layout(tmp_path)).remember(normal)
    for file in (tmp_path / ".goldentrace/values").iterdir():
        file.write_bytes(b"\xff\0garbage\n{\n" + file.read_bytes()[:-5])
    store = ValueStore(Layout(tmp_path))
    assert {store.find(leaf_of(normal, "/city"))[0], store.find(leaf_of(normal, "/town"))[0]} <= {True, False}


def test_a_place_that_cannot_be_written_is_nobody_s_concern(tmp_path: Path) -> None:
    (tmp_path / ".goldentrace").write_text("a file")
    ValueStore(Layout(tmp_path)).remember(run_with(city="Lisbon"))
