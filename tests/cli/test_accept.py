"""`pending` and `accept`: what a diff proposes, bound to what it saw; all of it, or a part."""

import json
from pathlib import Path

import pytest

import goldentrace
from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli

CONFIG = "scenarios: {orders: {command: 'true'}, refunds: {suite: money, command: 'true'}}\n"


@pytest.fixture
def project(tmp_path: Path, here: Cli) -> Path:
    """Two scenarios, of which `orders` has a pending golden."""
    (tmp_path / "goldentrace.yaml").write_text(CONFIG)
    for name, place in (("orders", "orders"), ("refunds", "money/refunds")):
        trace = write(tmp_path / ".goldentrace/runs" / f"{place}.jsonl", searches(3))
        assert here("record", name, "--from", trace).code == 0
    write(tmp_path / ".goldentrace/runs/orders.jsonl", searches(2))
    assert here("diff").code == 2
    return tmp_path


def test_what_is_pending_is_listed(project: Path, here: Cli) -> None:
    done = here("pending")
    assert done.code == 0
    assert done.stdout == "orders  GT103 call-removed x1\n"
    listed = json.loads(here("pending", "--output-format", "json").stdout)["pending"]
    assert [(row["scenario"], row["stale"], row["golden"]) for row in listed] == [
        ("orders", None, "goldens/orders.jsonl")
    ]


def test_accepting_makes_the_run_the_golden(project: Path, here: Cli) -> None:
    done = here("accept", "orders")
    assert done.code == 0, done.stderr
    assert here("diff").code == 0
    assert here("pending").stdout == "nothing is pending\n"
    assert here("fmt", "--check").code == 0


def test_accepting_everything_needs_to_be_said(project: Path, here: Cli) -> None:
    done = here("accept")
    assert done.code == 3
    assert "--all" in done.stderr
    assert "orders" in done.stderr
    assert here("accept", "--all").code == 0
    assert here("diff").code == 0


def test_a_scenario_without_a_proposal_is_an_error(project: Path, here: Cli) -> None:
    done = here("accept", "order")
    assert (done.code, "did you mean orders?" in done.stderr) == (3, True)
    assert here("accept", "refunds").code == 3


def test_a_changed_golden_makes_it_stale(project: Path, here: Cli) -> None:
    golden = project / "goldens/orders.jsonl"
    golden.write_text(golden.read_text().replace('"status":"ok"', '"status":"timeout"', 1))
    before = golden.read_bytes()
    done = here("accept", "orders")
    assert done.code == 3
    assert "stale" in done.stderr
    assert "goldentrace diff orders" in done.stderr
    assert golden.read_bytes() == before
    assert "stale" in here("pending").stdout


def test_a_missing_golden_makes_it_stale(project: Path, here: Cli) -> None:
    (project / "goldens/orders.jsonl").unlink()
    assert here("accept", "orders").code == 3
    assert not (project / "goldens/orders.jsonl").exists()


def test_another_profile_makes_it_stale(project: Path, here: Cli) -> None:
    (project / "normalizers").mkdir()
    (project / "normalizers/default@1.yaml").write_text("name: default@1\narguments: {ignore: [x]}\n")
    done = here("accept", "orders")
    assert done.code == 3
    assert "profile default@1" in done.stderr


def test_another_version_makes_it_stale(project: Path, here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goldentrace, "__version__", "9.9.9")
    done = here("accept", "orders")
    assert done.code == 3
    assert "9.9.9" in done.stderr


def test_a_proposal_that_was_edited_is_refused(project: Path, here: Cli) -> None:
    proposed = project / ".goldentrace/pending/orders.jsonl"
    proposed.write_text(proposed.read_text().replace("search", "SEARCH"))
    done = here("accept", "orders")
    assert done.code == 3
    assert "changed after the diff" in done.stderr


def test_a_damaged_record_is_an_error(project: Path, here: Cli) -> None:
    (project / ".goldentrace/pending/orders.json").write_text("{")
    for command in ("pending", "accept"):
        done = here(command, *(["--all"] if command == "accept" else []))
        assert done.code == 3
        assert "orders.json" in done.stderr


def test_in_ci_nothing_is_accepted(project: Path, here: Cli) -> None:
    before = (project / "goldens/orders.jsonl").read_bytes()
    done = here("accept", "--all", env={"GITHUB_ACTIONS": "true"})
    assert (done.code, "GITHUB_ACTIONS" in done.stderr) == (3, True)
    assert (project / "goldens/orders.jsonl").read_bytes() == before


def test_pending_goldens_of_ci_lie_with_the_artifacts(project: Path, here: Cli) -> None:
    write(project / "out/runs/orders.jsonl", searches(4))
    write(project / "out/runs/money/refunds.jsonl", searches(3))
    assert here("diff", "--artifacts", "out", env={"CI": "1"}).code == 2
    assert (project / "out/pending/orders.jsonl").exists()
    assert here("accept", "orders", "--artifacts", "out", env={"CI": ""}).code == 0
    assert here("diff", "--artifacts", "out").code == 0


# -- a part ----------------------------------------------------------------------------------------------------------


def changed(project: Path, here: Cli, before: list[dict[str, object]], after: list[dict[str, object]]) -> None:
    trace = write(project / "before.jsonl", before)
    assert here("record", "orders", "--from", trace).code == 0
    write(project / ".goldentrace/runs/orders.jsonl", after)
    assert here("diff", "orders").code == 2


def codes(here: Cli) -> list[str]:
    report = json.loads(here("diff", "orders", "--output-format", "json").stdout)
    return sorted(f["rule"] for f in report["traces"][0]["findings"] if not f.get("caused_by"))


BASE = [start(), *call(1, "a", x=1), *call(2, "b", x=2), *call(3, "c", x=3), end()]


@pytest.mark.parametrize(
    ("after", "take", "left"),
    [
        # an argument of one call and a call that is gone
        ([start(), *call(1, "a", x=9), *call(2, "b", x=2), end()], ["--code", "GT101"], ["GT103"]),
        ([start(), *call(1, "a", x=9), *call(2, "b", x=2), end()], ["--code", "call-removed"], ["GT101"]),
        # an order of writes and an added call
        ([start(), *call(1, "a", x=1), *call(2, "z", x=0), *call(3, "c", x=3), *call(4, "b", x=2), end()],
         ["--code", "GT102"], ["GT104"]),
        ([start(), *call(1, "a", x=1), *call(2, "z", x=0), *call(3, "c", x=3), *call(4, "b", x=2), end()],
         ["--code", "GT104"], ["GT102"]),
        # another outcome alone
        ([*BASE[:-1], end("failed", "tool_error")], ["--kind", "end"], []),
        # a status and an added call in front
        ([start(), *call(1, "z", x=0), *call(2, "a", x=1), *call(3, "b", status="error", x=2), *call(4, "c", x=3), end()],
         ["--kind", "calls"], ["GT301"]),
        ([start(), *call(1, "z", x=0), *call(2, "a", x=1), *call(3, "b", status="error", x=2), *call(4, "c", x=3), end()],
         ["--kind", "results"], ["GT102"]),
        # another tool, and another call that is gone
        ([start(), *call(1, "a", x=1), *call(2, "q", x=2), end()], ["--code", "GT105"], ["GT103"]),
        ([start(), *call(1, "a", x=1), *call(2, "q", x=2), end()], ["--code", "GT103"], ["GT105"]),
    ],
)  # fmt: skip
def test_a_part_is_accepted_and_exactly_the_rest_is_left(
    project: Path, here: Cli, after: list[dict[str, object]], take: list[str], left: list[str]
) -> None:
    changed(project, here, BASE, after)
    done = here("accept", "orders", *take)
    assert done.code == 0, done.stderr
    assert codes(here) == left
    assert here("fmt", "--check").code == 0
    assert not left or here("accept", "orders").code == 0
    assert here("diff", "orders").code == 0


def test_a_part_that_is_not_there_is_an_error(project: Path, here: Cli) -> None:
    done = here("accept", "orders", "--code", "GT501")
    assert (done.code, "no such change" in done.stderr) == (3, True)
    done = here("accept", "orders", "--code", "GT999")
    assert (done.code, "GT999" in done.stderr) == (3, True)


def test_a_part_of_a_run_that_is_gone_is_refused(project: Path, here: Cli) -> None:
    write(project / ".goldentrace/runs/orders.jsonl", searches(1))
    done = here("accept", "orders", "--code", "GT103")
    assert done.code == 3
    assert "gone or another one" in done.stderr
