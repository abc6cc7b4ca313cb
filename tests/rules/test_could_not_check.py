"""What a trace lacks is said: with all metadata every rule checks, and each thing taken away silences those that need it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from goldentrace.model.finding import LintResult
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.registry import rules, run_rules
from tests.rules.dsl import profile_of, trace_of
from tests.rules.test_cases import FILES

OBJECT: dict[str, Any] = {"type": "object"}
FULL: dict[str, Any] = {
    "trace": [
        "user refund 1041", "turn carries", 'order id=1041 -> {"paid": 5}', "also read a -> {}",
        "turn carries c1 c2", "order id=77 -> ! rate_limited 429 owed=100", "+100ms", 'harness order id=77 -> {"paid": 9}',
        "turn carries c3 c4", "deny", "refund id=77 -> ! denied", "user do refund 1041",
        "turn carries c5", "approve", 'refund id=1041 key:k1 -> ! timeout', "+100ms",
        'harness refund id=1041 key:k1 -> {"done": true}', "turn carries c6 c7", "says it is refunded",
    ],
    "tools": {
        "order": {"access": "read", "schema": OBJECT, "output_schema": OBJECT},
        "read": {"access": "read", "schema": OBJECT, "output_schema": OBJECT},
        "refund": {
            "access": "write", "destructive": True, "schema": OBJECT, "output_schema": OBJECT,
            "requires": [{"tool": "order", "same": ["id"]}],
        },
    },
    "start": {"attributes": {"tools": [{"name": "order"}, {"name": "read"}, {"name": "refund"}]}},
    "budgets": {"tool_calls": 9, "wall_ms": 5000, "writes": 4},
}  # fmt: skip
"""A short run about which nothing is missing."""


def judged(case: dict[str, Any]) -> LintResult:
    profile, trace = profile_of(case), trace_of(case)
    normal = normalize(trace, profile, "h:case")
    place_in_time(normal, trace)
    return run_rules(trace, normal, profile, budgets=case.get("budgets"))


def test_with_all_metadata_every_rule_checks() -> None:
    said = judged(FULL)
    assert said.could_not_check == {}
    assert list(said.checked) == list(rules())
    assert said.findings == []


def items(change: Callable[[str], str]) -> dict[str, Any]:
    return FULL | {"trace": [changed for item in FULL["trace"] if (changed := change(item))]}


def tools(name: str) -> dict[str, Any]:
    """The run with one thing not declared of any tool."""
    return FULL | {"tools": {tool: {k: v for k, v in d.items() if k != name} for tool, d in FULL["tools"].items()}}


TAKEN_AWAY: dict[str, tuple[dict[str, Any], str]] = {
    "times": (FULL | {"trace": ["no clock", *(i for i in FULL["trace"] if not i.startswith("+"))]}, "GT1006 GT1201"),
    "what results held": (
        items(lambda item: re.sub(r" -> [^!].*", " -> -", item)),
        "GT1004 GT1101 GT1102 GT1504 GT1506 GT1507 GT1601 GT1602",
    ),
    "results": (
        items(lambda item: re.sub(r" -> .*", " -> ...", item)),
        "GT1001 GT1002 GT1003 GT1004 GT1005 GT1101 GT1102 GT1103 GT1302 GT1405 GT1504 GT1505 GT1506 GT1507 GT1601 GT1803",
    ),
    "turns": (items(lambda item: "" if item.startswith("turn") else item), "GT1001 GT1002 GT1003 GT1406"),
    "arguments": (
        FULL | {"coverage": {"arguments": "hidden"}},
        "GT1001 GT1002 GT1003 GT1004 GT1005 GT1101 GT1102 GT1103 GT1205 GT1301 GT1302 GT1405 GT1501 GT1503 GT1505 GT1507 GT1601 GT1701",
    ),
    "ids of calls": (FULL | {"coverage": {"call_ids": "calls without an id were numbered"}}, "GT1401 GT1403"),
    "a flag for failures": (
        items(lambda item: re.sub(r" -> !.*", " -> oops", item)) | {"coverage": {"status": "no flag"}},
        "GT1005 GT1103 GT1205 GT1303 GT1304 GT1405 GT1506 GT1701 GT1803",
    ),
    "access of tools": (tools("access"), "GT1006 GT1205 GT1303 GT1304"),
    "schemas": (tools("schema"), "GT1501"),
    "output schemas": (tools("output_schema"), "GT1504"),
    "required calls": (tools("requires"), "GT1505"),
    "the list of tools": (FULL | {"start": {}}, "GT1502"),
    "which results a request held": (items(lambda item: re.sub(r" carries.*", "", item)), "GT1406"),
    "the end": (FULL | {"trace": [*FULL["trace"], "also read b -> ...", "cut"]}, "GT1303 GT1304 GT1402"),
    "what only a recorder writes": (
        items(lambda item: "" if item in ("approve", "deny") or item.startswith("harness") else item)
        | {"format": "openai-chat"},
        "GT1203 GT1204 GT1303 GT1304 GT1702 GT1802",
    ),
}
"""What is taken away: the run without it, and the rules that say so."""


@pytest.mark.parametrize("name", TAKEN_AWAY)
def test_what_is_taken_away_is_said_by_the_rules_that_need_it(name: str) -> None:
    case, codes = TAKEN_AWAY[name]
    said = judged(case)
    assert sorted(said.could_not_check) == codes.split()
    assert {*said.checked, *said.could_not_check} == rules().keys()
    assert all(why.strip() for why in said.could_not_check.values())


NEEDS_NOTHING = {"GT1901"}
"""What was left out holds no secret."""


def test_every_rule_has_a_case_of_what_it_could_not_check() -> None:
    without = {file.stem for file in FILES if not yaml.safe_load(file.read_text("utf-8")).get("could_not_check")}
    assert without == NEEDS_NOTHING
