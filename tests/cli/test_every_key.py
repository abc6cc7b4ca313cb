"""Every key of the configuration and of a profile: a value that cannot be meant is refused where it stands.

The tables name each key, and a test holds them to the types: a new key needs a wrong value here, or a reason why none is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest

from goldentrace.model.config import Config
from goldentrace.model.profile import Profile
from goldentrace.store.profile_check import RULE_OPTIONS
from tests.cli.test_bad_input import check_message
from tests.cli.traces import searches, write
from tests.conftest import Cli

COUNTS = ["-1", "1.5", "x", "1e400", "9999999999999", "true"]
AMOUNTS = ["-1", "x", ".nan", ".inf", "9999999999999"]
GLOBS = ['[""]', '["["]', '["$.a[0]"]', '["/a~b"]', "a", "[1]"]
PATTERNS = ['[""]', '["("]', '["(?<=a*)b"]', "a"]
TEXTS = ['""', "[]", "1"]

LIMITS = {
    **dict.fromkeys(
        ["max_model_turns", "max_tool_calls", "max_executions", "max_attempts", "max_writes", "max_destructive", "max_tokens"],
        COUNTS,
    ),
    **dict.fromkeys(["max_wall_ms", "max_cost_usd"], AMOUNTS),
    "per_tool": ['{"": {max_calls: 1}}', "[]", "{a: 1}"],
    "per_tool.t.max_calls": COUNTS,
    "per_tool.t.max_elapsed_ms": AMOUNTS,
}  # fmt: skip
BUDGETS = {
    **dict.fromkeys(["tool_calls", "attempts", "tokens", "writes", "destructive", "tools.t"], COUNTS),
    **dict.fromkeys(["wall_ms", "cost_usd"], AMOUNTS),
    "tools": ['{"": 1}', "[]"],
}
POLICY = ["{policy: opnai}", "{base_ms: -1}", "[]", "{basems: 1}"]
ENV = ['{"": a}', '{"A=B": c}', "[]", "{A: [1]}"]
CONFIG: dict[str, list[str]] = {
    "goldens": ['""', "/abs", "..", "a/../..", "1"],
    "profile": ['""', '" "', "1"],
    **{f"limits.{key}": values for key, values in LIMITS.items()},
    "environments": ['{"": {}}', "[]", "{a: 1}"],
    **{f"environments.e.limits.{key}": values for key, values in LIMITS.items()},
    "environments.e.runs": ["0", *COUNTS],
    "environments.e.env": ENV,
    "scenarios": ['{"": {}}', '{"a/b": {}}', "[]", "{a: 1}"],
    "scenarios.s.suite": ['""', "a/b", "con", "1"],
    "scenarios.s.description": ["1", "[]"],
    "scenarios.s.command": ['""', "[]", '"a \'b"', "1", "[1]"],
    **dict.fromkeys(["scenarios.s.faults", "scenarios.s.model", "scenarios.s.profile"], TEXTS),
    "scenarios.s.seed": ["x", "1.5", "true"],
    "scenarios.s.env": ENV,
    "scenarios.s.backoff": POLICY,
    **{f"scenarios.s.budgets.{key}": values for key, values in BUDGETS.items()},
    **{f"scenarios.s.limits.{key}": values for key, values in LIMITS.items()},
    "record.results": ["kep", "1"],
    "record.messages": ["dropp", "[]"],
    "fail_on": ["errors", "1"],
    "jobs": ["0", "-1", "x", "100000"],
    "max_bytes": ["0", *COUNTS],
    "runs": ["0", *COUNTS],
}
PROFILE: dict[str, list[str]] = {
    "name": ['""', "p@2", "1"],
    "extends": ['""', "nope", "p@1", "../x", "1"],
    "ids.kinds": ["ids/2"],
    "ids.keys": GLOBS,
    "ids.ignore_keys": GLOBS,
    "paths.cwd": ["1"],
    "paths.home": ["x"],
    "paths.tmp": ["[]"],
    "paths.also": ['{x: ""}', "{x: /}", "{x: relative}", '{"": /srv}', "{home: /srv}", '{"a b": /srv}', "{x: 1}", "[]"],
    "time.keep": ["some"],
    "time.relative": GLOBS,
    "arguments.equivalence": ["stric"],
    **dict.fromkeys(["arguments.ignore", "arguments.keep", "arguments.order_free"], GLOBS),
    "arguments.max_leaves": ["0", "-1", "x", "1.5"],
    "arguments.key_env": ['""', '"A=B"', "NOT_SET_ANYWHERE", "1"],
    "results.compare": ["all"],
    "redact.builtin": ["1"],
    "redact.rules": ["[{name: a}]", "[{pattern: a}]", "a", "[a]"],
    "redact.rules.0.name": ['""'],
    "redact.rules.0.pattern": ['""', '"("', "1"],
    "redact.rules.0.allow": ['""', '"["', "1"],
    "tools": ['{"": {}}', "[]", "{a: 1}"],
    "tools.t.access": ["reads"],
    "tools.t.destructive": ["1"],
    "tools.t.resource": ['""', '"order:{}"', '"order:{id"', "1"],
    "tools.t.idempotent": ["1"],
    "tools.t.polling": ["x"],
    **{key: ["{type: strin}", '{pattern: "("}', "[]", "{$ref: [1]}"] for key in ["tools.t.schema", "tools.t.output_schema"]},
    "tools.t.requires": ["[1]", "[{tol: a}]", "[{tool: a, same: b}]", "a"],
    **{key: ['""', "t", '[""]', "[1]", "1"] for key in ["tools.t.reconciles", "tools.t.fallback_for"]},
    "tools.t.escalates": ["1"],
    **dict.fromkeys(["tools.t.error_patterns", "tools.t.terminal_errors"], PATTERNS),
    "tools.t.cursor": ['""', '"$.next"', "1"],
    **dict.fromkeys(["tools.t.ignore", "tools.t.keep", "tools.t.order_free"], GLOBS),
    "tools.t.results": ["all"],
    "tools.t.backoff": POLICY,
    "rules": [
        "{GT9999: {}}", "{GT1101: 3}", "{GT1101: {tims: 3}}", "{GT1101: {times: x}}", "{GT1101: {times: 0}}", "{GT1001: {a: 1}}",
        "{GT1502: {also: x}}", "{suppressions: {}}", "{suppressions: [{code: GT9999, reason: x}]}", "{suppressions: [{code: GT1001}]}",
        "{suppressions: [{code: GT1001, reason: x, until: soon}]}", "[]",
    ],
    "compare.parallel_order": ["none"],
    "compare.severities": ["{GT9999: error}", "{GT101: eror}", "[]"],
    "backoff": POLICY,
}  # fmt: skip


def keys_of(kind: Any, place: str = "") -> Iterator[str]:
    """Every key of a type of settings, names that a user chooses as one letter."""
    for field in msgspec.structs.fields(kind):
        here = f"{place}{field.name}"
        inner = [field.type, *get_args(field.type)]
        mapped = [
            args[1] for part in inner if get_origin(part) is dict and isinstance((args := get_args(part))[1], type)
        ]
        listed = [
            args[0] for part in inner if get_origin(part) is list and isinstance((args := get_args(part))[0], type)
        ]
        structs = [
            part for part in [*inner, *mapped, *listed] if isinstance(part, type) and issubclass(part, msgspec.Struct)
        ]
        if structs:
            name = (
                ""
                if not mapped and not listed
                else "0."
                if listed
                else f"{field.name[0] if not place or 'per' not in here else 't'}."
            )
            yield from keys_of(structs[0], f"{here}.{name}")
        if not structs or mapped or listed:
            yield here


@pytest.mark.parametrize(("kind", "table"), [(Config, CONFIG), (Profile, PROFILE)])
def test_the_tables_name_every_key(kind: Any, table: dict[str, list[str]]) -> None:
    assert sorted(set(keys_of(kind)) - table.keys()) == []
    assert all(table.values())


def yaml_of(key: str, value: str) -> str:
    """A document with one value, each key of its path on a line of its own."""
    lines: list[str] = []
    indent = 0
    *outer, last = key.split(".")
    for part in outer:
        if part == "0":
            lines.append(" " * indent + "-")
        else:
            lines.append(" " * indent + f"{part}:")
        indent += 2
    return "\n".join([*lines, " " * indent + f"{last}: {value}"]) + "\n"


def check_place(stderr: str, file: str, key: str) -> None:
    """The message points into the file, at the key or into what it holds, and says what to write."""
    check_message(stderr)
    found = re.search(rf"^  {re.escape(file)}:(\d+) \$\.?(\S.*)$", stderr, re.MULTILINE)
    assert found, stderr
    assert found[2].startswith(key.replace(".0.", "[0].")), stderr
    assert len(stderr.strip().split("\n")) >= 3, stderr


@pytest.mark.parametrize("key", CONFIG)
def test_a_wrong_value_in_the_configuration(tmp_path: Path, here: Cli, key: str) -> None:
    for value in CONFIG[key]:
        (tmp_path / "goldentrace.yaml").write_text("# a comment\n" + yaml_of(key, value))
        done = here("config")
        assert done.code == 3, (value, done.stdout)
        check_place(done.stderr, "goldentrace.yaml", key)


@pytest.mark.parametrize("key", PROFILE)
def test_a_wrong_value_in_a_profile(tmp_path: Path, here: Cli, key: str) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    file = tmp_path / "normalizers" / "p@1.yaml"
    file.parent.mkdir()
    for value in PROFILE[key]:
        head = "" if key == "name" else "name: p@1\n"
        text = yaml_of(key, value)
        if key in ("redact.rules.0.pattern", "redact.rules.0.allow"):
            text = text.replace("-\n", "- name: a\n")
        file.write_text(head + text)
        done = here("lint", "a.jsonl", "--profile", "p@1")
        assert done.code == 3, (value, done.stdout)
        check_place(done.stderr, "normalizers/p@1.yaml", key)


@pytest.mark.parametrize(
    ("text", "next_step"),
    [
        ("rules: {GT11O1: {}}", "did you mean GT1101?"),
        ("rules: {GT1101: {tims: 3}}", "did you mean times?"),
        ("compare: {severities: {GT11: error}}", "did you mean GT101?"),
        ("arguments: {keep: ['$.items[0].id']}", "write /items/0/id"),
        ("arguments: {max_leaves: 0}", "write a number from 1 on"),
    ],
)
def test_what_was_probably_meant_is_said(tmp_path: Path, here: Cli, text: str, next_step: str) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    (tmp_path / "normalizers").mkdir()
    (tmp_path / "normalizers" / "p@1.yaml").write_text(f"name: p@1\n{text}\n")
    done = here("lint", "a.jsonl", "--profile", "p@1")
    assert done.code == 3
    check_message(done.stderr, next_step, "normalizers/p@1.yaml:2")


def test_the_options_of_rules_are_those_that_the_rules_ask_for() -> None:
    asked: dict[str, set[str]] = {}
    folder = Path(__file__).parents[2] / "goldentrace" / "rules"
    for file in folder.glob("gt*.py"):
        for name in re.findall(r'option\(CODE, "(\w+)"', file.read_text()):
            asked.setdefault(file.name[:6].upper(), set()).add(name)
    assert asked == {code: set(options) for code, options in RULE_OPTIONS.items()}
