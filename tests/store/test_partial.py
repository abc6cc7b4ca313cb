"""Any part of any difference: exactly the rest is left, or nothing is taken at all."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.errors import NotComparableError
from goldentrace.model.change import Change
from goldentrace.store import partial
from goldentrace.store.layout import Layout
from goldentrace.store.partial import accept_part
from goldentrace.store.pending import PendingRecord, sha256_of
from goldentrace.store.profiles import Profiles
from goldentrace.store.sides import Terms, compare_sides, read_side
from tests.cli.refusal import error_of
from tests.cli.traces import call, end, start, write

TERMS = Terms(Profiles())
Steps = list[tuple[str, int, str]]

steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.sampled_from(["ok", "ok", "ok", "error"])),
    min_size=1,
    max_size=6,
)


def run_of(found: Steps, outcome: str = "success") -> list[dict[str, object]]:
    calls = [event for n, (tool, x, status) in enumerate(found, start=1) for event in call(n, tool, status=status, x=x)]
    return [start(), *calls, end(outcome)]


def record_of(folder: Path) -> PendingRecord:
    return PendingRecord(
        scenario="orders", golden="a", golden_sha256="", proposed_sha256="", profile="default@1", profile_hash="",
        tool_version="", candidate="b", candidate_sha256=sha256_of(folder / "b.jsonl") or "",
    )  # fmt: skip


def roots(folder: Path, golden: Path) -> list[tuple[str, str]]:
    comparison, _ = compare_sides(read_side(golden), read_side(folder / "b.jsonl"), TERMS)
    return sorted((change.code, change.label or "") for change in comparison.changes if change.is_root)


@settings(max_examples=60)
@given(before=steps, after=steps, outcome=st.sampled_from(["success", "failed"]), data=st.data())
def test_exactly_what_was_not_taken_is_left(
    tmp_path_factory: pytest.TempPathFactory, before: Steps, after: Steps, outcome: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("part")
    write(folder / "a.jsonl", run_of(before))
    write(folder / "b.jsonl", run_of(after, outcome))
    found = roots(folder, folder / "a.jsonl")
    codes = sorted({code for code, _ in found})
    if not codes:
        return
    taken = data.draw(st.sets(st.sampled_from(codes), min_size=1))

    def is_taken(change: Change) -> bool:
        return change.code in taken

    found_out: list[tuple[bytes, int]] = []
    sides = (folder / "a.jsonl", folder / "b.jsonl")
    error = error_of(lambda: found_out.append(accept_part(record_of(folder), *sides, TERMS, is_taken, Layout(folder))))
    if error is not None:
        assert "without others" in error.what
        assert taken != set(codes), "everything can always be taken"
        return
    ((new, left),) = found_out
    (folder / "new.jsonl").write_bytes(new)
    rest = [(code, label) for code, label in found if code not in taken]
    assert roots(folder, folder / "new.jsonl") == rest
    assert left == len(rest)


def test_what_does_not_come_out_right_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.jsonl", run_of([("a", 1, "ok"), ("b", 1, "ok")]))
    write(tmp_path / "b.jsonl", run_of([("a", 2, "ok")]))
    monkeypatch.setattr(partial._Merge, "run", lambda self: self.new)
    with pytest.raises(NotComparableError, match="without others"):
        accept_part(
            record_of(tmp_path),
            tmp_path / "a.jsonl",
            tmp_path / "b.jsonl",
            TERMS,
            lambda c: c.code == "GT101",
            Layout(tmp_path),
        )


def test_a_run_that_was_replaced_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", run_of([("a", 1, "ok")]))
    write(tmp_path / "b.jsonl", run_of([("a", 2, "ok")]))
    record = record_of(tmp_path)
    write(tmp_path / "b.jsonl", run_of([("a", 3, "ok")]))
    with pytest.raises(NotComparableError, match="another one"):
        accept_part(record, tmp_path / "a.jsonl", tmp_path / "b.jsonl", TERMS, lambda _: True, Layout(tmp_path))
