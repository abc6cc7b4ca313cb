"""`goldentrace diff` of two files and of scenarios: codes, messages, what is left behind."""

import json
from pathlib import Path

import pytest

from tests.cli.traces import call, end, files_in, searches, start, write
from tests.conftest import Cli

CONFIG = """
scenarios:
  orders: {command: "true"}
  refunds: {suite: money, command: "true"}
"""


@pytest.fixture
def project(tmp_path: Path, cli: Cli) -> Path:
    """A project with two recorded scenarios and a candidate of each that behaves the same."""
    (tmp_path / "goldentrace.yaml").write_text(CONFIG)
    for name, place in (("orders", "orders"), ("refunds", "money/refunds")):
        trace = write(tmp_path / ".goldentrace/runs" / f"{place}.jsonl", searches(3))
        assert cli("record", name, "--from", trace).code == 0
    return tmp_path


def test_equal_runs_are_the_same(tmp_path: Path, cli: Cli) -> None:
    done = cli("diff", write(tmp_path / "a.jsonl", searches(3)), write(tmp_path / "b.jsonl", searches(3)))
    assert (done.code, done.stderr) == (0, "")
    assert "CLEAN" in done.stdout


def test_a_missing_call_is_a_change(tmp_path: Path, cli: Cli) -> None:
    done = cli("diff", write(tmp_path / "a.jsonl", searches(3)), write(tmp_path / "b.jsonl", searches(2)))
    assert done.code == 2
    assert "GT103" in done.stdout
    assert "search#3" in done.stdout


def test_two_files_leave_nothing_behind(tmp_path: Path, cli: Cli) -> None:
    a, b = write(tmp_path / "a.jsonl", searches(3)), write(tmp_path / "b.jsonl", searches(2))
    before = files_in(tmp_path)
    assert cli("diff", a, b).code == 2
    assert files_in(tmp_path) == before


def test_json_goes_to_stdout_and_says_the_code(tmp_path: Path, cli: Cli) -> None:
    a, b = write(tmp_path / "a.jsonl", searches(3)), write(tmp_path / "b.jsonl", searches(3, "xyz"))
    done = cli("diff", a, b, "--output-format", "json")
    report = json.loads(done.stdout)
    assert (done.code, report["exit_code"], report["verdict"]) == (2, 2, "changed")
    assert {finding["rule"] for finding in report["traces"][0]["findings"]} == {"GT101"}


def test_an_error_is_in_the_json_report_too(tmp_path: Path, cli: Cli) -> None:
    done = cli("diff", "a.jsonl", "b.jsonl", "--output-format=json")
    report = json.loads(done.stdout)
    assert (done.code, report["exit_code"], report["verdict"]) == (3, 3, "no-verdict")
    assert "no such file" in done.stderr


def test_standard_input_is_a_side(tmp_path: Path, cli: Cli) -> None:
    a = write(tmp_path / "a.jsonl", searches(3))
    assert cli("diff", a, "-", stdin=a.read_bytes()).code == 0
    assert cli("diff", "-", a, stdin=a.read_bytes()).code == 0


def test_standard_input_cannot_be_both_sides(cli: Cli) -> None:
    done = cli("diff", "-", "-")
    assert done.code == 3
    assert "both sides" in done.stderr


def test_scenarios_without_a_change(project: Path, cli: Cli) -> None:
    done = cli("diff")
    assert done.code == 0, done.stderr
    assert not (project / ".goldentrace/pending").exists()


def test_a_changed_scenario_leaves_a_pending_golden(project: Path, cli: Cli) -> None:
    write(project / ".goldentrace/runs/orders.jsonl", searches(2))
    golden = (project / "goldens/orders.jsonl").read_bytes()
    done = cli("diff")
    assert done.code == 2
    assert (project / "goldens/orders.jsonl").read_bytes() == golden
    assert (project / ".goldentrace/pending/orders.jsonl").is_file()
    assert not (project / ".goldentrace/pending/money").exists()
    assert (project / ".goldentrace/.gitignore").read_text().splitlines()[-1] == "*"


def test_a_run_that_behaves_again_takes_the_pending_golden_away(project: Path, cli: Cli) -> None:
    write(project / ".goldentrace/runs/orders.jsonl", searches(2))
    assert cli("diff", "orders").code == 2
    write(project / ".goldentrace/runs/orders.jsonl", searches(3))
    assert cli("diff", "orders").code == 0
    assert list((project / ".goldentrace/pending").glob("**/*.json*")) == []


@pytest.mark.parametrize("name", ["refunds", "money", "money/", "money/refunds", "ref*", "money/*"])
def test_scenarios_are_chosen_by_name_suite_and_pattern(project: Path, cli: Cli, name: str) -> None:
    write(project / ".goldentrace/runs/orders.jsonl", searches(2))
    done = cli("diff", name)
    assert done.code == 0, done.stderr


def test_a_scenario_and_a_file(project: Path, cli: Cli) -> None:
    assert cli("diff", "refunds", write(project / "made/elsewhere.jsonl", searches(3))).code == 0
    assert cli("diff", "refunds", write(project / "made/elsewhere.jsonl", searches(4))).code == 2


def test_a_missing_golden_and_a_missing_run_have_no_verdict(project: Path, cli: Cli) -> None:
    (project / "goldens/orders.jsonl").unlink()
    (project / ".goldentrace/runs/money/refunds.jsonl").unlink()
    done = cli("diff", "--output-format", "json")
    assert done.code == 3
    assert {t["name"]: t["status"] for t in json.loads(done.stdout)["traces"]} == {
        "orders": "missing-golden",
        "refunds": "missing-candidate",
    }


def test_no_verdict_on_one_wins_over_a_change_of_another(project: Path, cli: Cli) -> None:
    write(project / ".goldentrace/runs/orders.jsonl", searches(2))
    (project / "goldens/money/refunds.jsonl").write_text("<<<<<<< ours\n")
    done = cli("diff")
    assert done.code == 3
    assert "GT103" in done.stdout
    assert "conflict marker" in done.stdout


def test_an_unknown_scenario_names_the_nearest(project: Path, cli: Cli) -> None:
    done = cli("diff", "refund")
    assert done.code == 3
    assert "did you mean refunds?" in done.stderr


def test_an_incomplete_run_has_no_verdict_unless_allowed(tmp_path: Path, cli: Cli) -> None:
    golden = write(tmp_path / "a.jsonl", searches(3))
    torn = write(tmp_path / "b.jsonl", searches(3)[:-1])
    done = cli("diff", golden, torn)
    assert done.code == 3
    assert "--allow-incomplete" in done.stdout
    assert cli("diff", golden, torn, "--allow-incomplete").code == 2  # what is there lacks the outcome


def test_fail_on_moves_the_gate(tmp_path: Path, cli: Cli) -> None:
    """A read that moved past another read is a warning."""
    profile = "name: reads@1\nextends: default@1\ntools: {a: {access: read}, b: {access: read}}\n"
    (tmp_path / "normalizers").mkdir()
    (tmp_path / "normalizers/reads@1.yaml").write_text(profile)
    one = write(tmp_path / "a.jsonl", [start(), *call(1, "a", x=1), *call(2, "b", x=2), end()])
    other = write(tmp_path / "b.jsonl", [start(), *call(1, "b", x=2), *call(2, "a", x=1), end()])
    assert cli("diff", one, other, "--profile", "reads@1").code == 0
    assert cli("diff", one, other, "--profile", "reads@1", "--fail-on", "warning").code == 2
    (tmp_path / "goldentrace.yaml").write_text("fail_on: warning\nprofile: reads@1\n")
    assert cli("diff", one, other).code == 2


def test_further_reports_are_written(tmp_path: Path, cli: Cli) -> None:
    a, b = write(tmp_path / "a.jsonl", searches(3)), write(tmp_path / "b.jsonl", searches(2))
    done = cli("diff", a, b, "--report", "json=out/report.json", "--report", "junit=junit.xml", "-q")
    assert done.code == 2
    assert json.loads((tmp_path / "out/report.json").read_text())["verdict"] == "changed"
    assert (tmp_path / "junit.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize("target", ["json", "json=", "html5=x", "=x"])
def test_a_report_that_is_no_target_is_an_error(tmp_path: Path, cli: Cli, target: str) -> None:
    done = cli("diff", "a", "b", "--report", target)
    assert done.code == 3
    assert "FORMAT=PATH" in done.stderr


def test_a_value_of_this_machine_is_shown_beside_the_new_one(project: Path, cli: Cli) -> None:
    write(project / ".goldentrace/runs/orders.jsonl", searches(3, "xyz"))
    done = cli("diff", "orders", "--width", "120")
    assert '"abc"' in done.stdout
    assert '"xyz"' in done.stdout


def test_a_value_of_another_machine_is_a_digest(project: Path, cli: Cli) -> None:
    for file in (project / ".goldentrace/values").iterdir():
        file.unlink()
    write(project / ".goldentrace/runs/orders.jsonl", searches(3, "xyz"))
    done = cli("diff", "orders", "--width", "120")
    assert '"abc"' not in done.stdout
    assert "str[3] h:" in done.stdout


def test_the_named_format_is_that_of_the_foreign_side(project: Path, cli: Cli) -> None:
    """A golden is known for what it is, whatever format is named for the other file."""
    chat = [
        {"role": "user", "content": "find"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    (project / "many.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for _ in range(2)))
    listed = json.loads(cli("import", "many.jsonl", "--list", "--output-format", "json").stdout)["traces"]
    named = ("--format", "openai-chat", "--trace", listed[1]["trace"], "--allow-narrower")
    assert cli("record", "chat", "--from", "many.jsonl", *named[:4]).code == 0
    assert cli("diff", "goldens/chat.jsonl", "many.jsonl", *named).code == 0
    assert cli("diff", "many.jsonl", "many.jsonl", *named).code == 0
    done = cli("diff", "goldens/chat.jsonl", "many.jsonl")
    assert (done.code, "several traces" in done.stderr) == (3, True)


def test_the_policy_of_the_scenario_holds_for_its_files_too(project: Path, cli: Cli) -> None:
    """`diff orders` and `diff` of the same two files give one verdict."""

    def run(wait_s: float) -> list[dict[str, object]]:
        at = [0.0, 1.0, 2.0, 2.0 + wait_s, 3.0 + wait_s, 4.0 + wait_s]
        ids = {"call_id": "c", "op_id": "c"}
        events: list[dict[str, object]] = [
            start(),
            {"type": "tool_call", **ids, "tool_name": "pay"},
            {
                "type": "tool_result",
                **ids,
                "attempt": 1,
                "status": "error",
                "error_class": "server_error",
                "http_status": 503,
            },
            {"type": "tool_call", **ids, "tool_name": "pay", "attempt": 2, "origin": "harness"},
            {"type": "tool_result", **ids, "attempt": 2, "status": "ok"},
            end(),
        ]
        return [{**event, "mono_ns": int(s * 1e9)} for event, s in zip(events, at, strict=True)]

    candidate = write(project / ".goldentrace/runs/orders.jsonl", run(3.0))
    assert cli("record", "orders", "--from", write(project / "a.jsonl", run(0.45)), "--allow-defects").code == 0
    assert cli("diff", "orders").code == 2
    (project / "goldentrace.yaml").write_text(
        CONFIG.replace(
            '{command: "true"}',
            '{command: "true", backoff: {policy: custom, base_ms: 100, jitter: {kind: additive, amount: 5000}}}',
            1,
        )
    )
    assert cli("diff", "orders").code == 0
    assert cli("diff", "goldens/orders.jsonl", candidate).code == 0
