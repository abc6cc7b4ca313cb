"""The scenario suite: twelve failures, an agent that copes with each, and broken ones that are caught for the right reason."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.conftest import (
    BROKEN,
    SCENARIOS,
    SUITE,
    VARIANTS,
    Checked,
    agent_of,
    changed_lines,
    check,
    full_name,
    goldentrace,
    make_project,
    source_of,
)

for library in ("openai", "anthropic", "mcp"):
    pytest.importorskip(library, reason=f"{library} is not installed")

FIRST = {full_name(scenario, name): BROKEN[scenario][name]["first"] for scenario, name in VARIANTS}
KINDS = {"openai": "from openai import", "anthropic": "from anthropic import", "mcp": "from mcp"}


def expect(checked: Checked, expected: dict[str, str | None]) -> None:
    """Compare what each report begins with to what was written down: no change, or a code. A run without a verdict is
    neither."""
    errors = {name: one.report["error"] for name, one in checked.scenarios.items() if one.report["error"] is not None}
    assert errors == {}
    found = {name: (judged.status, judged.first) for name, judged in checked.scenarios.items()}
    assert found == {name: ("clean" if code is None else "changed", code) for name, code in expected.items()}
    assert checked.code == (2 if any(expected.values()) else 0)


# -- the suite itself --------------------------------------------------------------------------------------------------


def test_there_are_twelve_scenarios_each_with_a_golden_and_broken_agents() -> None:
    assert len(SCENARIOS) == 12
    assert {path.stem for path in (SUITE / "goldens").glob("*.jsonl")} == set(SCENARIOS)
    assert set(BROKEN) == set(SCENARIOS)
    assert all(BROKEN.values())


def test_each_kind_of_client_is_there_at_least_twice() -> None:
    sources = [source_of(scenario) for scenario in SCENARIOS]
    found = Counter({kind: sum(mark in source for source in sources) for kind, mark in KINDS.items()})
    found["httpx"] = sum(not any(mark in source for mark in KINDS.values()) for source in sources)
    assert min(found.values()) >= 2, found
    assert len({agent_of(scenario) for scenario in SCENARIOS}) == 12


@pytest.mark.parametrize(("scenario", "variant"), VARIANTS)
def test_a_broken_agent_differs_from_the_correct_one_in_at_most_ten_lines(scenario: str, variant: str) -> None:
    changed = changed_lines(scenario, variant)
    assert 0 < len(changed) <= 10, "\n".join(changed)


def test_the_page_about_the_suite_lists_every_scenario_and_every_broken_agent_with_its_code() -> None:
    page = (SUITE.parents[1] / "docs" / "scenarios.md").read_text("utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `") and "GT" in line}
    assert list(rows) == list(SCENARIOS)
    for scenario, variants in BROKEN.items():
        said = [f"{name.replace('-', ' ')}: {variant['first']}" for name, variant in variants.items()]
        assert rows[scenario].endswith(f"| {SCENARIOS[scenario]['description']} | {'; '.join(said)} |")


# -- on real sockets and the real clock --------------------------------------------------------------------------------


def test_every_correct_agent_passes(correct: Checked) -> None:
    expect(correct, dict.fromkeys(SCENARIOS))


def test_every_broken_agent_is_caught_for_the_reason_that_was_expected(broken: Checked) -> None:
    expect(broken, dict(FIRST))


def test_each_broken_agent_by_itself_is_a_failure(project: Path, broken: Checked) -> None:
    codes = {name: goldentrace(project, "diff", name)[0] for name in broken.scenarios}
    assert codes == dict.fromkeys(FIRST, 2)


def effects_of(folder: Path, name: str) -> list[Any]:
    lines = (folder / ".goldentrace" / "runs" / f"{name}.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    return [(event["name"], event["value"]) for event in events if event["type"] == "effect"]


def test_after_a_lost_response_the_correct_agent_has_charged_once(project: Path, correct: Checked) -> None:
    assert effects_of(project, "lost-response") == [("charge", 4999)]
    assert correct.scenarios["lost-response"].codes == ()


def test_a_new_key_on_retry_charges_twice_and_the_diff_says_so(project: Path, broken: Checked) -> None:
    name = "lost-response--new-key-on-retry"
    assert effects_of(project, name) == [("charge", 4999)] * 2
    found = [one for one in broken.scenarios[name].report["findings"] if one["rule"] == "GT504"]
    assert [(one["expected"], one["actual"], one["severity"]) for one in found] == [
        ({"charge": 1}, {"charge": 2}, "error")
    ]


def test_recording_again_leaves_the_goldens_as_they_are(project: Path, correct: Checked, tmp_path: Path) -> None:
    """From the runs that were just judged: nothing in a golden depends on the run that it came from."""
    before = {path.name: path.read_bytes() for path in (SUITE / "goldens").glob("*.jsonl")}
    for name in SCENARIOS:
        run = f".goldentrace/runs/{name}.jsonl"
        done = goldentrace(project, "record", name, "--from", run, "--write-in-ci")
        assert done[0] == 0, done
    after = {name: (project / "goldens" / name).read_bytes() for name in before}
    assert after == before


# -- on the virtual clock ----------------------------------------------------------------------------------------------


def gaps_of(folder: Path, name: str) -> list[float]:
    """The waits of a run with one operation, in ms: from the end of each attempt to the start of the next."""
    lines = (folder / ".goldentrace" / "runs" / f"{name}.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    starts = [event["mono_ns"] for event in events if event["type"] == "tool_call"]
    ends = [event["mono_ns"] for event in events if event["type"] == "tool_result"]
    return [(start - end) / 1e6 for start, end in zip(starts[1:], ends, strict=False)]


def test_on_the_virtual_clock_verdicts_are_the_same_and_waits_are_exact(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "suite", is_virtual=True)
    expect(check(folder), dict.fromkeys(SCENARIOS) | FIRST)
    assert gaps_of(folder, "503-growing-waits") == [100.0, 200.0, 400.0]
    assert gaps_of(folder, "429-seconds") == [1000.0]


# -- again and again ---------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_twenty_times_on_the_virtual_clock_the_verdicts_are_the_same(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "suite", is_virtual=True)
    for _ in range(20):
        expect(check(folder), dict.fromkeys(SCENARIOS) | FIRST)


@contextmanager
def busy_cores(count: int = 2) -> Iterator[None]:
    """Keep cores busy meanwhile."""
    spin = [sys.executable, "-c", "while True: pass"]
    spinners = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for one in spinners:
            one.kill()
            one.wait()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_three_times_on_real_sockets_with_both_cores_busy_the_verdicts_are_the_same(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "suite")
    with busy_cores():
        for _ in range(3):
            expect(check(folder), dict.fromkeys(SCENARIOS) | FIRST)
