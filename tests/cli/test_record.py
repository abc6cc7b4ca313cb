"""`goldentrace record`: from a file, from a run; what is kept, what is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.traces import call, dump, end, files_in, searches, start, write
from tests.conftest import Cli


def test_a_golden_from_a_file_needs_no_configuration(tmp_path: Path, here: Cli) -> None:
    done = here("record", "orders", "--from", write(tmp_path / "a.jsonl", searches(3)))
    assert done.code == 0, done.stderr
    golden = (tmp_path / "goldens/orders.jsonl").read_text().splitlines()
    header = json.loads(golden[0])
    assert (header["kind"], header["scenario_id"], header["profile"]) == ("golden", "orders", "default@1")
    assert here("diff", "goldens/orders.jsonl", "a.jsonl").code == 0


def test_a_golden_of_a_suite_stands_in_its_folder(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl", "--suite", "shop", "--description", "why").code == 0
    assert json.loads((tmp_path / "goldens/shop/orders.jsonl").read_text().splitlines()[0])["description"] == "why"


def test_recording_again_changes_nothing_where_nothing_changed(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    before = (tmp_path / "goldens/orders.jsonl").read_bytes()
    done = here("record", "orders", "--from", "a.jsonl")
    assert (done.code, (tmp_path / "goldens/orders.jsonl").read_bytes()) == (0, before)
    assert "UNCHANGED" in done.stdout


def test_recording_again_keeps_the_lines_of_what_stayed(tmp_path: Path, here: Cli) -> None:
    """One call inserted in front: labels are names, so the old lines stay as they are."""
    write(tmp_path / "a.jsonl", [start(), *call(1, "b", x=1), *call(2, "a", x=2), end()])
    write(tmp_path / "b.jsonl", [start(), *call(1, "a", x=0), *call(2, "b", x=1), *call(3, "a", x=2), end()])
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    before = (tmp_path / "goldens/orders.jsonl").read_text().splitlines()
    assert here("record", "orders", "--from", "b.jsonl").code == 0
    after = (tmp_path / "goldens/orders.jsonl").read_text().splitlines()
    assert [line for line in before if line not in after] == []
    assert len(after) == len(before) + 3


def test_a_golden_that_cannot_be_read_is_replaced(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    (tmp_path / "goldens").mkdir()
    (tmp_path / "goldens/orders.jsonl").write_text("<<<<<<< ours\n")
    done = here("record", "orders", "--from", "a.jsonl")
    assert done.code == 0
    assert "conflict marker" in done.stderr
    assert here("fmt", "--check").code == 0


def test_a_golden_of_another_profile_is_replaced(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    done = here("record", "orders", "--from", "a.jsonl", "--profile", "strict")
    assert done.code == 0
    assert "another profile (default@1)" in done.stderr
    assert json.loads((tmp_path / "goldens/orders.jsonl").read_text().splitlines()[0])["profile"] == "strict@1"


def test_what_was_masked_and_what_was_made_up_is_said(tmp_path: Path, here: Cli) -> None:
    key = "0b9f6c1e-3f0a-4f7e-9d0a-6f3b1c2d4e5f"
    write(tmp_path / "a.jsonl", [start(), *call(1, "charge", key=key), end()])
    done = here("record", "orders", "--from", "a.jsonl")
    assert "1 value masked" in done.stdout
    assert "charge#1 /key  <new:uuid>" in done.stdout
    document = json.loads(here("record", "orders", "--from", "a.jsonl", "--output-format", "json").stdout)
    assert document["goldens"][0]["new_ids"] == [{"call": "charge#1", "pointer": "/key", "written": "<new:uuid>"}]


def test_a_golden_holds_no_value_and_no_secret(tmp_path: Path, here: Cli) -> None:
    secret = "sk-" + "a1B2" * 10
    write(tmp_path / "a.jsonl", [start(), *call(1, "login", token=secret, city="Lisbon"), end()])
    done = here("record", "orders", "--from", "a.jsonl")
    assert done.code in (0, 2)
    everything = b"".join(files_in(tmp_path).values()).replace((tmp_path / "a.jsonl").read_bytes(), b"").decode()
    assert secret not in everything + done.stdout + done.stderr


def test_a_run_with_a_structural_defect_is_refused(tmp_path: Path, here: Cli) -> None:
    events = [*searches(2)[:-1], {"type": "tool_result", "call_id": "nobody", "status": "ok"}, end()]
    write(tmp_path / "a.jsonl", events)
    done = here("record", "orders", "--from", "a.jsonl")
    assert done.code == 2
    assert "GT1401" in done.stdout
    assert not (tmp_path / "goldens").exists()


def twice(folder: Path) -> None:
    """An agent whose model asks for the same call twice in one turn."""
    agent = """
from goldentrace import Recorder
with Recorder() as rec:
    charge = rec.tool(name="charge", access="write")(lambda order_id: {"paid": True})
    with rec.turn():
        charge("o1")
        charge("o1")
    rec.end("success", "final_answer")
"""
    (folder / "agent.py").write_text(agent)
    (folder / "goldentrace.yaml").write_text("scenarios:\n  orders:\n    command: python agent.py\n")


def test_a_defect_that_is_meant_is_accepted_by_the_golden(tmp_path: Path, cli: Cli) -> None:
    twice(tmp_path)
    refused = cli("record", "orders")
    assert refused.code == 2
    assert "it has defects (--allow-defects accepts them in the golden's header)" in refused.stderr
    done = cli("record", "orders", "--allow-defects")
    assert done.code == 0
    assert "orders: GT1001 exact-duplicate of charge is accepted in the golden's header" in done.stderr
    golden = tmp_path / "goldens/orders.jsonl"
    before = golden.read_bytes()
    header = json.loads(before.splitlines()[0])
    assert header["accepts"] == [{"code": "GT1001", "reason": "recorded with --allow-defects", "tool": "charge"}]
    checked = cli("check")
    assert (checked.code, "1 accepted finding (-v shows them)" in checked.stdout) == (0, True)
    assert "accepted: the golden accepts GT1001 of charge: recorded with" in cli("check", "-v").stdout
    assert "UNCHANGED" in cli("record", "orders").stdout, "it need not be allowed again"
    assert golden.read_bytes() == before


def test_the_line_that_accepts_a_defect_can_be_pasted(tmp_path: Path, cli: Cli) -> None:
    twice(tmp_path)
    told = cli("record", "orders").stdout
    line = next(line.strip() for line in told.splitlines() if "suppressions:" in line)
    assert line == 'rules: {suppressions: [{code: GT1001, tool: "charge", reason: WHY}]}'
    (tmp_path / "normalizers").mkdir()
    profile = f"name: own@1\nextends: default@1\n{line}\n"
    (tmp_path / "normalizers/own@1.yaml").write_text(profile)
    with (tmp_path / "goldentrace.yaml").open("a") as file:
        file.write("profile: own@1\n")
    assert cli("record", "orders").code == 0
    assert cli("check").code == 0
    assert "rules: {suppressions: [{code: GT1001, tool: TOOL, reason: WHY}]}" in cli("explain", "GT1001").stdout


def test_an_aborted_run_is_a_good_golden(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [*searches(1)[:-1], end("needs_human", "tool_error")])
    assert here("record", "orders", "--from", "a.jsonl").code == 0


def test_a_golden_is_no_trace_to_record_from(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    done = here("record", "other", "--from", "goldens/orders.jsonl")
    assert done.code == 3
    assert "golden already" in done.stderr


@pytest.mark.parametrize("variable", ["CI", "TF_BUILD", "GITHUB_ACTIONS", "JENKINS_URL"])
def test_in_ci_nothing_is_recorded(tmp_path: Path, here: Cli, variable: str) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    done = here("record", "orders", "--from", "a.jsonl", env={variable: "true"})
    assert done.code == 3
    assert f"{variable} is set" in done.stderr
    assert "--write-in-ci" in done.stderr
    assert list(files_in(tmp_path)) == ["a.jsonl"]
    assert here("record", "orders", "--from", "a.jsonl", "--write-in-ci").code == 0


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_a_variable_that_says_no_is_no_ci(tmp_path: Path, here: Cli, value: str) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl", env={"CI": value}).code == 0


def test_ci_can_be_played(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    done = here("record", "orders", "--from", "a.jsonl", "--ci")
    assert (done.code, "--ci" in done.stderr) == (3, True)


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path, here: Cli) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    inside = tmp_path / "project"
    inside.mkdir()
    (inside / "goldens").symlink_to(outside)
    write(tmp_path / "a.jsonl", searches(1))
    done = here("record", "orders", "--from", "../a.jsonl", cwd=inside)
    assert done.code == 3
    assert "out of the project folder" in done.stderr
    assert list(outside.iterdir()) == []


def test_a_command_is_recorded(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "events.jsonl", searches(2)[1:])
    done = cli("record", "orders", "--", "sh", "-c", "echo hello; cat events.jsonl >> $GOLDENTRACE_TRACE")
    assert done.code == 0, done.stderr
    assert "hello" in done.stderr
    assert (tmp_path / "goldens/orders.jsonl").exists()
    assert (tmp_path / ".goldentrace/runs/orders.log").read_text() == "hello\n"


def test_an_unstable_run_is_refused_with_the_setting_that_would_cover_it(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "agent.sh").write_text(
        'n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count\n'
        f"printf '%s' '{dump(call(1, 'ask', n='N'))}' | sed \"s/\\\"N\\\"/$n/\" >> $GOLDENTRACE_TRACE\n"
        f"printf '%s' '{dump([end()])}' >> $GOLDENTRACE_TRACE\n"
    )  # fmt: skip
    (tmp_path / "goldentrace.yaml").write_text("scenarios: {counts: {command: sh agent.sh}}\n")
    done = cli("record", "counts", "--verify", "2")
    assert done.code == 2, done.stderr
    assert "GT101" in done.stdout
    assert "arguments: {ignore: [/n]}" in done.stdout
    assert not (tmp_path / "goldens").exists()


def test_a_stable_run_is_verified_and_constants_are_named(tmp_path: Path, cli: Cli) -> None:
    key = "0b9f6c1e-3f0a-4f7e-9d0a-6f3b1c2d4e5f"
    write(tmp_path / "events.jsonl", [*call(1, "ask", key=key), end()])
    (tmp_path / "goldentrace.yaml").write_text(
        "scenarios: {asks: {command: sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'}}\n"
    )
    done = cli("record", "asks", "--verify", "2")
    assert done.code == 0, done.stderr
    assert "ask#1 /key was the same in all 3 runs" in done.stderr
    golden = (tmp_path / "goldens/asks.jsonl").read_text()
    assert '"/key":"str[36] h:' in golden
    assert cli("check", "asks").code == 0
    write(tmp_path / "events.jsonl", [*call(1, "ask", key=key.replace("0b9f", "1b9f")), end()])
    assert cli("check", "asks").code == 2


def test_one_failure_does_not_stop_the_others(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "events.jsonl", searches(2)[1:])
    (tmp_path / "goldentrace.yaml").write_text(
        "scenarios:\n"
        "  bad: {command: no-such-program-here}\n"
        "  good: {command: sh -c 'cat events.jsonl >> $GOLDENTRACE_TRACE'}\n"
    )
    done = cli("record", "bad", "good")
    assert done.code == 3
    assert "cannot start 'no-such-program-here'" in done.stderr
    assert (tmp_path / "goldens/good.jsonl").exists()
