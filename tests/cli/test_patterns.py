"""Patterns of a profile that would run for ever: code 3 with their line, and no secret unredacted."""

from pathlib import Path

import pytest

from tests.cli.test_bad_input import check_message
from tests.cli.traces import end, start, write
from tests.conftest import Cli

LONG = "a" * 5000 + "!"
RUN = [
    start(),
    {"type": "tool_call", "turn": 1, "call_id": "c", "tool_name": "t", "args": {"q": LONG}},
    {"type": "tool_result", "turn": 1, "call_id": "c", "status": "ok", "result": LONG},
    {"type": "tool_call", "turn": 2, "call_id": "d", "tool_name": "t", "args": {"q": "x"}},
    {"type": "tool_result", "turn": 2, "call_id": "d", "status": "error", "error_class": "tool_error", "result": LONG},
    end(),
]
PROFILES = {
    "redaction": "redact: {rules: [{name: own, pattern: '(a+)+$'}]}",
    "an exception to redaction": "redact: {rules: [{name: own, pattern: 'a+!'}, {name: ok, allow: '(a|aa)+$'}]}",
    "error patterns": "tools: {t: {error_patterns: ['(a+)+$']}}",
    "terminal errors": "tools: {t: {terminal_errors: ['(a+)+$']}}",
    "a schema of arguments": "tools: {t: {schema: {properties: {q: {pattern: '(a+)+$'}}}}}",
    "a schema of keys": "tools: {t: {output_schema: {patternProperties: {'(a+)+$': {}}, additionalProperties: false}}}",
}


@pytest.fixture(autouse=True)
def _short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldentrace.codec.patterns.MAX_SECONDS", 0.05)


@pytest.mark.parametrize("case", PROFILES)
def test_a_pattern_that_takes_too_long_is_named_with_its_line(tmp_path: Path, here: Cli, case: str) -> None:
    keyed = [
        {**event, "result": {LONG: 1}} if event.get("call_id") == "c" and "result" in event else event for event in RUN
    ]
    write(tmp_path / "a.jsonl", keyed if case == "a schema of keys" else RUN)
    (tmp_path / "normalizers").mkdir()
    (tmp_path / "normalizers" / "p@1.yaml").write_text(f"name: p@1\n{PROFILES[case]}\n")
    for command in (["lint"], ["record", "x", "--from"], ["normalize"], ["show"]):
        done = here(*command, "a.jsonl", "--profile", "p@1")
        if done.code == 3:
            check_message(done.stderr, "takes over", "normalizers/p@1.yaml:2 $.")
            assert "internal" not in done.stderr
        elif case.startswith("redaction"):
            assert command == ["show"]  # shows no values
    assert done.code in (0, 3)
    if "redaction" in case:
        assert not (tmp_path / "goldens").exists()
    else:
        assert here("lint", "a.jsonl", "--profile", "p@1").code == 3


def test_a_schema_of_a_trace_with_such_a_pattern_leaves_the_rule_unchecked(tmp_path: Path, here: Cli) -> None:
    tools = [{"name": "t", "inputSchema": {"properties": {"q": {"pattern": "(a|aa)*$"}}}}]
    write(tmp_path / "a.jsonl", [{**RUN[0], "attributes": {"tools": tools}}, *RUN[1:]])
    done = here("lint", "a.jsonl", "-v")
    assert done.code in (0, 2)
    assert "takes over" in " ".join(done.stdout.split())
