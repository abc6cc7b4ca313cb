"""A golden of another profile than the one configured, and where the settings of hints go."""

import json
from pathlib import Path

import pytest

from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli

CAT = "sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'"
SHOP = "name: shop@1\nextends: default@1\nids: {keys: [basket]}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  orders:\n    command: {CAT}\n")
    (tmp_path / "normalizers").mkdir()
    (tmp_path / "normalizers/shop@1.yaml").write_text(SHOP)
    write(tmp_path / "events.jsonl", searches(1)[1:])
    return tmp_path


def test_a_golden_of_another_profile_is_told_with_the_command(project: Path, cli: Cli) -> None:
    assert cli("record", "orders").code == 0
    assert "made with" not in cli("check").stdout
    with (project / "goldentrace.yaml").open("a") as file:
        file.write("profile: shop\n")
    words = "golden was made with default@1, configured is shop@1: goldentrace record orders"
    for command in ("check", "diff"):
        done = cli(command)
        assert done.code == 0, done.stderr
        assert " ".join(done.stdout.split()).count(words) == 1
    assert json.loads(cli("diff", "--output-format", "json").stdout)["notes"] == [words]
    assert "another profile (default@1)" in cli("record", "orders").stderr
    assert "made with" not in cli("check").stdout


def test_an_asked_profile_that_is_not_the_goldens_is_told(project: Path, here: Cli) -> None:
    write(project / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    done = here("diff", "goldens/orders.jsonl", "a.jsonl", "--profile", "shop@1")
    assert "made with default@1, --profile asks for shop@1" in " ".join(done.stdout.split())
    assert "--profile" not in here("diff", "goldens/orders.jsonl", "a.jsonl", "--profile", "default").stdout


def test_a_hint_names_the_file_and_what_follows(project: Path, here: Cli) -> None:
    write(project / "a.jsonl", [start(), *call(1, "pay", basket="k3n5x8q2w7zz"), end()])
    write(project / "b.jsonl", [start(), *call(1, "pay", basket="p9m2c4v6b1aa"), end()])
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    told = " ".join(here("diff", "goldens/orders.jsonl", "b.jsonl").stdout.split())
    assert "normalizers/NAME@1.yaml, with `name: NAME@1` and `extends: default@1`" in told
    assert "`profile: NAME@1` to goldentrace.yaml" in told
    assert "then: goldentrace record orders" in told


def test_a_key_of_a_profile_in_the_configuration_is_told_to_be_one(project: Path, here: Cli) -> None:
    (project / "goldentrace.yaml").write_text("ids: {keys: [a]}\n")
    done = here("check")
    assert done.code == 3
    assert "'ids' is a key of a profile" in done.stderr
    assert "goldentrace.yaml:1" in done.stderr
    (project / "goldentrace.yaml").write_text("idz: {keys: [a]}\n")
    assert "key of a profile" not in here("check").stderr


def test_unstable_runs_name_no_golden_and_nothing_to_accept(project: Path, cli: Cli) -> None:
    (project / "goldentrace.yaml").write_text(
        "scenarios: {orders: {command: sh -c 'sed s/NNN/$$/ events.jsonl >> $GOLDENTRACE_TRACE'}}\n"
    )
    write(project / "events.jsonl", [*call(1, n="NNN"), end()])
    done = cli("record", "orders", "--verify", "1")
    assert done.code == 2
    assert "run 1" in done.stdout
    assert "run 2" in done.stdout
    assert "goldens/" not in done.stdout
    assert "goldentrace accept" not in done.stdout
    assert "--from" not in done.stdout
    assert "then: goldentrace record --verify 1 orders" in " ".join(done.stdout.split())
