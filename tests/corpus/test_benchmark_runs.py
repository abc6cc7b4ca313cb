"""Real runs of two public benchmarks: what the differ says of them agrees with a few lines of plain code."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.change import Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.registry import read_traces

PROFILE = Profile(name="default@1")


def normals(path: Path) -> list[NormalTrace]:
    return [normalize(trace, PROFILE, "h:test") for trace in read_traces(str(path))]


def exit_code(found: Comparison) -> int:
    return 3 if found.not_comparable else 2 if found.roots("error") else 0


def lcs_length(left: Sequence[Any], right: Sequence[Any]) -> int:
    row = [0] * (len(right) + 1)
    for one in left:
        above, row = row, [0] * (len(right) + 1)
        for n, other in enumerate(right, start=1):
            row[n] = above[n - 1] + 1 if one == other else max(above[n], row[n - 1])
    return row[-1]


def tau_pairs(corpus: Path) -> Iterator[tuple[tuple[Any, NormalTrace], tuple[Any, NormalTrace]]]:
    """All pairs of trials of one task, each with what plain code reads of it: (tool, arguments text) in order."""
    file = corpus / "tau_bench" / "gpt-4o-airline.json"
    raw = json.loads(file.read_text())
    tasks: dict[int, list[tuple[Any, NormalTrace]]] = defaultdict(list)
    for run, normal in zip(raw, normals(file), strict=True):
        calls = [
            (call["function"]["name"], call["function"]["arguments"])
            for message in run["traj"]
            for call in message.get("tool_calls") or []
        ]
        tasks[run["task_id"]].append((calls, normal))
    for runs in tasks.values():
        yield from itertools.combinations(runs, 2)


def test_trials_with_byte_equal_calls_and_statuses_are_clean(corpus: Path) -> None:
    equal = 0
    for (calls, golden), (other_calls, candidate) in tau_pairs(corpus):
        statuses = [[a.status for o in side.operations for a in o.attempts] for side in (golden, candidate)]
        if calls == other_calls and statuses[0] == statuses[1]:
            equal += 1
            found = compare(golden, candidate, PROFILE)
            assert exit_code(found) == 0, [c.message for c in found.changes]
    assert equal >= 10


def test_edits_of_all_trial_pairs_are_minimal(corpus: Path) -> None:
    pairs = 0
    for (_, golden), (_, candidate) in tau_pairs(corpus):
        found = compare(golden, candidate, PROFILE)
        left, right = ([o.key for o in side.operations] for side in (golden, candidate))
        codes = Counter(change.code for change in found.changes)
        common = lcs_length(left, right)
        paired = sum(g is not None and c is not None for g, c in found.pairs)
        repaired = paired - common  # moved, changed arguments, changed tool
        assert codes["GT102"] + codes["GT103"] + 2 * repaired == len(left) + len(right) - 2 * common
        pairs += 1
    assert pairs == 300


def toolathlon(corpus: Path) -> dict[str, list[Path]]:
    tasks: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((corpus / "toolathlon").glob("*_*.json")):
        tasks[path.name.partition("_")[2]].append(path)
    return tasks


def test_tasks_run_by_two_models_always_get_a_verdict(corpus: Path) -> None:
    both = [paths for paths in toolathlon(corpus).values() if len(paths) == 2]
    assert len(both) == 13
    for paths in both:
        golden, candidate = (normals(path)[0] for path in paths)
        assert exit_code(compare(golden, candidate, PROFILE)) in (0, 2), paths


@pytest.mark.parametrize("folder", ["toolathlon", "tau_bench"])
def test_goldens_of_real_runs_re_record_byte_identical(corpus: Path, folder: str) -> None:
    count = 0
    for path in sorted((corpus / folder).glob("*_*.json" if folder == "toolathlon" else "*.json")):
        for normal in normals(path):
            data = encode_golden(as_golden(normal, PROFILE))
            golden = read_golden(data, "golden")
            assert encode_golden(golden) == data
            found = compare(golden, normal, PROFILE)
            assert not found.changes, (path, [c.message for c in found.changes])
            assert not found.not_comparable
            assert encode_golden(rerecord(found, PROFILE)) == data
            count += 1
    assert count >= 34
