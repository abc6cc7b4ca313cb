"""Fault plans: what is accepted means what it says; what is not names file, line, key and the nearest word."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from goldentrace.errors import ConfigError
from goldentrace.faults.kinds import KINDS, PHASES, commits
from goldentrace.faults.plan import load_plan, read_plan, schema_text
from goldentrace.faults.server import check_transport

PLAN = """\
plan: charge-lost-response
seed: 7
tools:
  charge_card:
    access: write
    schema: {type: object, required: [amount_cents]}
    idempotency: {key: /idempotency_key, header: Idempotency-Key}
    result: {charge_id: "{new_id}", status: succeeded}
    effect_record: {charge: "{/amount_cents}"}
    steps:
      - {fault: hang, phase: after_commit}
      - {fault: none}
    after_steps: error
  get_charge_status: {lookup: charge_card, by: [charge_id, idempotency_key]}
limits: {max_tool_calls: 20, max_wall_ms: 30000, max_connections: 64}
expect: {effects: {charge: 1}}
"""


def error_after(old: str, new: str) -> ConfigError:
    assert old in PLAN
    with pytest.raises(ConfigError) as caught:
        read_plan(PLAN.replace(old, new, 1).encode(), "plan.yaml")
    return caught.value


def test_a_plan_is_read_with_its_defaults() -> None:
    plan = read_plan(PLAN.encode(), "plan.yaml")
    charge, status = plan.tools["charge_card"], plan.tools["get_charge_status"]
    assert (plan.name, plan.seed, plan.limits.max_tool_calls, plan.effects) == (
        "charge-lost-response",
        7,
        20,
        {"charge": 1},
    )
    assert [(step.fault, step.phase, step.times) for step in charge.steps] == [
        ("hang", "after_commit", 1),
        ("none", "after_commit", 1),
    ]
    assert charge.idempotency is not None
    assert (charge.idempotency.missing, charge.idempotency.in_flight, charge.idempotency.mismatch) == (400, 409, 422)
    assert (status.lookup, status.by, status.access) == ("charge_card", ("charge_id", "idempotency_key"), "read")


def test_a_seed_takes_the_place_of_the_plans() -> None:
    assert read_plan(PLAN.encode(), "plan.yaml", seed=11).seed == 11


@pytest.mark.parametrize(
    ("old", "new", "line", "pointer", "what", "next_step"),
    [
        ("plan:", "pln:", 1, "$.pln", "unknown key 'pln'", "did you mean plan?"),
        ("tools:", "tols:", 3, "$.tols", "unknown key 'tols'", "did you mean tools?"),
        ("seed: 7", "seed: x", 2, "$.seed", "not a whole number", "schema faults"),
        ("fault: hang", "fautl: hang", 11, "$.tools.charge_card.steps[0].fautl", "unknown key 'fautl'", "fault"),
        ("fault: hang", "fault: hnag", 11, "$.tools.charge_card.steps[0].fault", "none of the known words", "hang"),
        ("after_commit}", "mid_hedaers}", 11, "$.tools.charge_card.steps[0].phase", "none of", "mid_headers"),
        ("fault: none", "fault: none, status: 3", 12, "$.tools.charge_card.steps[1].status", "takes no 'status'", "result"),
        ("fault: none", "fault: none, times: 0", 12, "$.tools.charge_card.steps[1].times", "less than 1", "schema"),
        ("fault: none", "fault: status", 12, "$.tools.charge_card.steps[1]", "'status' is missing", "schema"),
        ("fault: none", "fault: dns", 12, "$.tools.charge_card.steps[1].fault", "never sees it", "`connect:`"),
        ("fault: none", "fault: slow", 12, "$.tools.charge_card.steps[1]", "one of delay_ms", "schema"),
        ("fault: none", "fault: none, weight: 2", 12, "$.tools.charge_card.steps[1].weight", "no meaning here", "schema"),
        ("fault: none", "fault: truncated_page", 12, "$.tools.charge_card.steps[1].fault", "`pages`", "pages:"),
        ("fault: none", "fault: schema_drift, drop: [a]", 12, "$.tools.charge_card.steps[1].drop[0]", "not allowed", "Pointer"),
        ("fault: none", "fault: status, status: 429, retry_after: [1.5]", 12, "$.tools.charge_card.steps[1].retry_after[0]", "not allowed", "whole seconds"),
        ("{fault: none}", "none", 12, "$.tools.charge_card.steps[1]", "not a mapping", "schema"),
        ("after_steps: error", "after_steps: eror", 13, "$.tools.charge_card.after_steps", "none of", "error"),
        ("lookup: charge_card", "lookup: charge_car", 14, "$.tools.get_charge_status.lookup", "no tool", "charge_card"),
        ("lookup: charge_card, by", "by", 14, "$.tools.get_charge_status", "'by' needs 'lookup'", "schema"),
        ('"{/amount_cents}"', '"{amount}"', 9, "$.tools.charge_card.effect_record.charge", "{amount} is not known", "{/pointer}"),
        ('"{new_id}"', '"{new_id"', 8, "$.tools.charge_card.result.charge_id", "a brace by itself", "{{ is a brace"),
        ("fault: none}", "fault: none, result: {a: '{b}'}}", 12, "$.tools.charge_card.steps[1].result.a", "{b} is not known", "{/pointer}"),
        ("fault: none", "fault: wrong_id, result: 1", 12, "$.tools.charge_card.steps[1].result", "takes no 'result'", "it takes fault, phase, times"),
        ("fault: none", "fault: denied, phase: before_read, saved: true", 12, "$.tools.charge_card.steps[1].saved", "takes no 'saved'", "it takes fault, phase, times, mcp"),
        ("fault: none", "fault: status, status: 500, phase: before_read, saved: true", 12, "$.tools.charge_card.steps[1].saved", "cannot be saved", "before_commit"),
        ("by: [charge_id, idempotency_key]", "by: [x], result: 1", 14, "$.tools.get_charge_status.result", "no result of its own", "stored result"),
        ("by: [charge_id, idempotency_key]", "by: [x], steps: [{fault: none, result: 1}]", 14, "$.tools.get_charge_status.steps[0].result", "no result of its own", "drop"),
        ("by: [charge_id, idempotency_key]", "by: [x], after_steps: ok", 14, "$.tools.get_charge_status.after_steps", "without steps", "always answers"),
        ("access: write", "access: read", 5, "$.tools.charge_card.access", "effects is no read", "access: write"),
        ("type: object, req", "type: objekt, req", 6, "$.tools.charge_card.schema.type", "no JSON Schema", "2020-12"),
        ("{type: object, required: [amount_cents]}", "{$ref: 'http://127.0.0.1/x'}", 6, "$.tools.charge_card.schema['$ref']", "leads nowhere", "other documents"),
        ("key: /idempotency_key, header: Idempotency-Key", "missing: 400", 7, "$.tools.charge_card.idempotency", "not allowed", "key: /pointer"),
        ("header: Idempotency-Key", "missing: 500", 7, "$.tools.charge_card.idempotency.missing", "500 is not allowed", "400 to 499"),
        ("max_tool_calls", "max_tool_cals", 15, "$.limits.max_tool_cals", "unknown key", "max_tool_calls"),
        ("charge: 1}", "charge: -1}", 16, "$.expect.effects.charge", "not allowed", "a count"),
        ("charge_card:", "'charge card':", 4, "$.tools['charge card']", "is not allowed", "letters, digits"),
        ("seed: 7", "chaos: {rate: 2, faults: [{fault: hang}]}", 2, "$.chaos.rate", "more than 1", "schema"),
        ("seed: 7", "chaos: {rate: 1, faults: [{fault: hang, times: 2}]}", 2, "$.chaos.faults[0].times", "no meaning", "schema"),
    ],
)  # fmt: skip
def test_a_wrong_plan_names_line_and_key(
    old: str, new: str, line: int, pointer: str, what: str, next_step: str
) -> None:
    error = error_after(old, new)
    assert error.where is not None
    assert (error.where.path, error.where.line, error.where.pointer) == ("plan.yaml", line, pointer)
    assert what in error.what
    assert next_step in error.next_step


def test_an_empty_file_is_no_plan() -> None:
    with pytest.raises(ConfigError) as caught:
        read_plan(b"# nothing yet\n", "p")
    assert caught.value.what == "the file is empty"


def test_what_aliases_expand_to_is_bounded() -> None:
    rows = ["plan: p", "x0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError) as caught:
        read_plan("\n".join(rows).encode(), "p")
    assert "aliases" in caught.value.what


def test_two_tools_cannot_share_a_route() -> None:
    text = "plan: p\ntools:\n  a: {route: POST /x}\n  b: {route: POST /x}\n"
    with pytest.raises(ConfigError) as caught:
        read_plan(text.encode(), "p")
    assert "'a' has the same route" in caught.value.what


def test_a_file_that_is_not_there_is_an_error_of_one_shape(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_plan(tmp_path / "gone.yaml")
    assert "cannot be read" in caught.value.what


def test_the_schema_is_a_schema_and_knows_every_fault_as_the_table_does() -> None:
    schema = json.loads(schema_text())
    Draft202012Validator.check_schema(schema)
    step = schema["$defs"]["step"]
    assert step["properties"]["fault"]["enum"] == list(KINDS)
    assert step["properties"]["phase"]["enum"] == list(PHASES)
    rules = {rule["if"]["properties"]["fault"]["const"]: rule["then"] for rule in step["allOf"]}
    for name, kind in KINDS.items():
        assert rules[name]["propertyNames"]["enum"] == ["fault", "phase", "times", "weight", *kind.params]
        assert rules[name]["properties"]["phase"]["enum"] == list(kind.phases)
        assert rules[name].get("required", []) == list(kind.needs)


@pytest.mark.parametrize("fault", KINDS)
def test_every_fault_can_be_planned_in_each_of_its_phases(fault: str) -> None:
    needed = {"drip": "bytes_per_second: 10, ", "status": "status: 500, ", "slow": "delay_ms: 1, "}.get(fault, "")
    pages = "pages: {items: /items, cursor: /next, argument: /cursor}, " if fault == "truncated_page" else ""
    for phase in KINDS[fault].phases:
        text = f"plan: p\ntools:\n  a: {{{pages}steps: [{{{needed}fault: {fault}, phase: {phase}}}]}}\n"
        assert read_plan(text.encode(), "p").tools["a"].steps[0].phase == phase


def test_what_strikes_before_the_commit_does_not_commit_except_when_it_is_only_slow() -> None:
    assert not commits("hang", "before_commit")
    assert commits("hang", "after_commit")
    assert commits("reset", "mid_body")
    assert commits("slow", "before_commit")


@pytest.mark.parametrize(("fault", "transport"), [("reset", "stdio"), ("bad_chunk", "stdio"), ("server_exit", "http")])
def test_a_fault_that_a_transport_cannot_show_is_refused_at_the_start(fault: str, transport: str) -> None:
    plan = read_plan(f"plan: p\ntools:\n  a: {{steps: [{{fault: {fault}}}]}}\n".encode(), "p")
    with pytest.raises(ConfigError) as caught:
        check_transport(plan, transport)  # type: ignore[arg-type]
    assert fault in caught.value.what


def test_a_fault_of_mcp_is_fine_over_http() -> None:
    check_transport(read_plan(b"plan: p\ntools:\n  a: {steps: [{fault: wrong_id}]}\n", "p"), "http")


@given(st.lists(st.sampled_from([*PLAN.splitlines(), "  x:", "    steps: [1]", "- a", "}", "tools: {}"]), max_size=20))
def test_any_lines_are_a_plan_or_an_error_of_one_shape(lines: list[str]) -> None:
    problem: ConfigError | None = None
    try:
        read_plan("\n".join(lines).encode(), "p")
    except ConfigError as error:
        problem = error
    assert problem is None or (problem.what and problem.where is not None and problem.next_step)
