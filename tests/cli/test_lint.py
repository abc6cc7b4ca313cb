"""`goldentrace lint` from the outside: exit codes, known findings, suppressions, the checklist."""

import json
from pathlib import Path

import pytest

from goldentrace.codec.trace import encode_event
from tests.cli.traces import end, searches
from tests.cli.traces import write as write_events
from tests.conftest import Cli
from tests.rules.dsl import trace_of

PROFILE = """name: shop@1
extends: default@1
tools:
  read: {access: read, resource: "{path}"}
  send_email: {access: write}
"""


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    (tmp_path / "normalizers").mkdir()
    (tmp_path / "normalizers" / "shop@1.yaml").write_text(PROFILE)

    def write_run(*items: str, name: str = "run.jsonl") -> str:
        events = trace_of({"trace": list(items)}).events
        (tmp_path / name).write_bytes(b"".join(encode_event(event).rstrip(b"\n") + b"\n" for event in events))
        return name

    return write_run


def test_an_error_gives_2_and_names_the_lines(cli: Cli, write) -> None:  # type: ignore[no-untyped-def]
    done = cli("lint", write("turn", "read a -> A", "read a -> A"), "--profile", "shop@1")
    assert done.code == 2, done.stderr
    assert "GT1001" in done.stdout
    assert "run.jsonl:5" in done.stdout


def test_a_warning_does_not_gate_unless_asked(cli: Cli, write) -> None:  # type: ignore[no-untyped-def]
    run = write("turn", "read a -> A", "turn", "read a -> A")
    assert cli("lint", run, "--profile", "shop@1").code == 0
    assert cli("lint", run, "--profile", "shop@1", "--fail-on", "warning").code == 2


def test_select_and_ignore_take_beginnings_of_codes(cli: Cli, write) -> None:  # type: ignore[no-untyped-def]
    run = write("turn", "read a -> A", "read a -> A")
    assert cli("lint", run, "--profile", "shop@1", "--ignore", "GT10").code == 0
    assert cli("lint", run, "--profile", "shop@1", "--select", "GT13").code == 0
    refused = cli("lint", run, "--select", "GT99")
    assert refused.code == 3
    assert "no rule 'GT99'" in refused.stderr


def test_known_findings_pass_and_new_ones_do_not(cli: Cli, write) -> None:  # type: ignore[no-untyped-def]
    old = write("turn", "read a -> A", "read a -> A")
    assert cli("lint", old, "--profile", "shop@1", "--write-known", "known.yaml").code == 2
    assert cli("lint", old, "--profile", "shop@1", "--known", "known.yaml").code == 0
    moved = write("turn", "read z -> Z", "turn", "read b -> B", "read b -> B", name="moved.jsonl")
    assert cli("lint", moved, "--profile", "shop@1", "--known", "known.yaml").code == 0, (
        "neither place nor value counts"
    )
    new = write("turn", "send_email to=ann -> sent", "turn", "send_email to=ann -> sent", name="new.jsonl")
    done = cli("lint", new, "--profile", "shop@1", "--known", "known.yaml")
    assert done.code == 2
    assert "GT1302" in done.stdout
    assert "accepts nothing" in done.stdout, "the entry that is not needed here is named"


def test_a_file_of_known_findings_that_is_none_gives_3(cli: Cli, write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run = write("turn", "read a -> A")
    (tmp_path / "known.yaml").write_text("known: [{code: GT1004, line: 7}]\n")
    done = cli("lint", run, "--known", "known.yaml")
    assert done.code == 3
    assert "known.yaml" in done.stderr
    assert "line" in done.stderr
    assert cli("lint", run, "--known", "missing.yaml").code == 3


def test_a_suppression_needs_its_reason_and_is_named_when_idle(cli: Cli, write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run = write("turn", "read a -> A", "read a -> A")
    profile = tmp_path / "normalizers" / "shop@1.yaml"
    entries = "[{code: GT1001, tool: read, reason: by design}, {code: GT1302, reason: was once}]"
    profile.write_text(f"{PROFILE}rules:\n  suppressions: {entries}\n")
    done = cli("lint", run, "--profile", "shop@1")
    assert done.code == 0, done.stdout + done.stderr
    assert "GT1302: accepts nothing" in done.stdout
    profile.write_text(f"{PROFILE}rules:\n  suppressions: [{{code: GT1001}}]\n")
    assert cli("lint", run, "--profile", "shop@1").code == 3


def test_the_checklist_shows_the_first_broken_boundary(cli: Cli, write) -> None:  # type: ignore[no-untyped-def]
    run = write("turn carries", "read a -> A", "turn carries", "read a -> A", "turn carries c2")
    done = cli("lint", run, "--profile", "shop@1", "--checklist")
    assert done.code == 2
    lines = done.stdout.splitlines()
    places = [place for place, line in enumerate(lines) if "look here first" in line]
    assert len(places) == 1
    assert "reach the next request" in lines[places[0] - 1]
    assert max(map(len, lines)) <= 80
    shown = json.loads(cli("lint", run, "--checklist", "--output-format", "json").stdout)
    assert shown["checklists"][0]["questions"][shown["checklists"][0]["first_broken"] - 1]["codes"] == ["GT1406"]


def test_every_run_of_a_file_is_checked(cli: Cli, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    again = {**call, "id": "c2"}
    answer = [{"role": "tool", "tool_call_id": each, "content": "same"} for each in ("c1", "c2")]
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call, again]},
        *answer,
    ]
    runs = [{"id": name, "messages": messages} for name in ("one", "two")]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    done = cli("lint", "runs.json", "--output-format", "json")
    assert done.code == 0, done.stderr
    traces = json.loads(done.stdout)["traces"]
    assert [[f["rule"] for f in trace["findings"]] for trace in traces] == [["GT1001"], ["GT1001"]]


def test_check_fails_on_new_findings_only(cli: Cli, tmp_path: Path) -> None:
    stray = {"type": "tool_result", "call_id": "nobody", "status": "ok"}
    command = json.dumps("sh -c 'cat a.events >> $GOLDENTRACE_TRACE'")
    (tmp_path / "goldentrace.yaml").write_text(f"scenarios:\n  a: {{command: {command}}}\n")
    write_events(tmp_path / "a.events", searches(2)[1:])
    assert cli("record", "a").code == 0
    write_events(tmp_path / "a.events", [*searches(2)[1:-1], stray, end()])
    (tmp_path / "known.yaml").write_text("known: []\n")
    assert cli("check", "--known", "known.yaml").code == 2
    (tmp_path / "known.yaml").write_text("known: [{code: GT1401, tool: null, field: null}]\n")
    done = cli("check", "--known", "known.yaml")
    assert done.code == 0, done.stdout + done.stderr


def test_the_list_of_rules_fits_the_terminal(cli: Cli) -> None:
    lines = cli("rules").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(
        line.startswith("GT1001  exact-duplicate") and line.endswith("the same call twice in one turn")
        for line in lines
    )
