"""One call inserted anywhere: one added call in the diff, no removed line in the re-recorded golden."""

import subprocess
from pathlib import Path

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from tests.diff.runs import PROFILE, Plan, Step, Turn, render

TWENTY = Plan(
    tuple(
        Turn(
            tuple(
                Step(
                    ("get", "write", "search")[n % 3], {"n": n}, uses=(n - 2,) if n % 5 == 4 else (), has_key=n % 7 == 1
                )
                for n in range(start, start + 4)
            )
        )
        for start in range(0, 20, 4)
    )
)


def insert(plan: Plan, position: int, tool: str) -> Plan:
    """Insert a step before the one at `position`; references behind it follow."""
    turns: list[Turn] = []
    n = 0
    for turn in plan.turns:
        steps: list[Step] = []
        for step in turn.steps:
            if n == position:
                steps.append(Step(tool, {"n": 99}))
            uses = tuple(use + (use >= position) for use in step.uses)
            steps.append(Step(step.tool, step.args, uses, step.has_key))
            n += 1
        turns.append(Turn(tuple(steps)))
    return Plan(tuple(turns))


@pytest.mark.parametrize("tool", ["new_tool", "search"])
@pytest.mark.parametrize("position", range(20))
def test_an_inserted_call_adds_lines_and_removes_none(position: int, tool: str, tmp_path: Path) -> None:
    golden = encode_golden(as_golden(normal(render(TWENTY, 3)), PROFILE))
    candidate = normal(render(insert(TWENTY, position, tool), 500))
    found = compare(read_golden(golden, "golden"), candidate, PROFILE)
    assert [change.code for change in found.changes] == ["GT102"]
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_bytes(golden)
    after.write_bytes(encode_golden(rerecord(found, PROFILE)))
    told = subprocess.run(
        ["git", "diff", "--no-index", "--numstat", str(before), str(after)], capture_output=True, text=True, check=False
    )
    added, removed = told.stdout.split()[:2]
    assert (int(added) > 0, removed) == (True, "0")


def normal(trace: Trace):  # type: ignore[no-untyped-def]
    return normalize(trace, PROFILE, "h:test")
