"""The shipped JSON Schemas: made from the types, right about what we write, and able to refuse."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.errors import ConfigError
from goldentrace.model.event import (
    Approval,
    Decision,
    Effect,
    Event,
    Limit,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
    Usage,
)
from goldentrace.model.profile import Profile
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.report.schema import SCHEMAS, schema_text

ROOT = Path(__file__).parents[2]
GENERATED = ("trace", "golden", "config", "profile")


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(name)))


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_schemas", ROOT / "ci" / "write_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", GENERATED)
def test_the_file_is_what_the_types_say(name: str) -> None:
    """If this fails: `python ci/write_schemas.py`, and read the difference."""
    module = generator()
    assert schema_text(name) == module.text_of(module.generate()[name])


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_one(name: str) -> None:
    schema = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]


def fields(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    parts = [("", schema), *schema["$defs"].items()]
    return [(f"{part}.{name}", field) for part, inner in parts for name, field in inner.get("properties", {}).items()]


@pytest.mark.parametrize("name", GENERATED)
def test_every_field_has_a_sentence(name: str) -> None:
    found = fields(json.loads(schema_text(name)))
    assert len(found) > 30
    assert [place for place, field in found if not field.get("description")] == []


def test_a_name_that_is_no_schema_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no schema 'traces'") as error:
        schema_text("traces")
    assert "trace, golden, config" in error.value.next_step


# -- traces --------------------------------------------------------------------------------------------------------

EVENTS: list[Event] = [
    TraceStart(
        format="goldentrace/1", trace_id="run-1", scenario_id="refund", seed=7, source="recorder 0.1", states=["retry"],
        cwd="/srv/agent", home="/home/a", tmp="/tmp", attributes={"inputs": {"order": "A-100"}}, seq=0,
        ts="2026-03-01T09:00:00.000000Z",
    ),
    Message(role="user", text="refund A-100", seq=1),
    ModelTurn(turn=1, model="demo", finish_reason="tool_calls", usage=Usage(input_tokens=12, cost_usd=0.1), input_call_ids=["c0"]),
    ToolCall(
        call_id="c1", tool_name="refund", args={"amount": 49.99}, turn=1, attempt=1, origin="harness", batch="b1", access="write",
        resource="order/A-100", idempotency_key="k", op_id="c1", parent="c0", extra={"vendor": 1}, mono_ns=5, agent="billing",
    ),
    ToolResult(call_id="c1", status="error", attempt=1, error_class="rate_limited", http_status=429, owed_ms=2000, sent=True, result=None, result_bytes=4),
    Decision(decision="retry", call_id="c1", by="harness", reason="rate_limited", delay_ms=2000.5),
    Approval(call_id="c1", verdict="approved", by="cashier"),
    Effect(name="charge", key="k", value={"cents": 4999}),
    Limit(limit="max_tool_calls", value=20, max=20),
    TraceEnd(outcome="needs_human", stop_reason="call_limit", events=9, sha256="0" * 64),
]  # fmt: skip


def lines_of(events: list[Event]) -> list[dict[str, Any]]:
    """Return events as lines; args and results that are plain values here are raw in an event."""
    import msgspec

    from goldentrace.codec.canonical import encode_raw

    raw = [
        msgspec.structs.replace(event, **{name: encode_raw(getattr(event, name)) for name in ("args", "result", "value") if name in event.__struct_fields__ and not isinstance(event, Limit)})
        for event in events
    ]  # fmt: skip
    return [json.loads(encode_event(event)) for event in raw]


def test_every_event_that_is_written_is_right() -> None:
    check = validator("trace")
    lines = lines_of(EVENTS)
    assert {line["type"] for line in lines} == {definition.rpartition("/")[2] for definition in _types()}
    for line in lines:
        check.validate(line)


def _types() -> list[str]:
    schema = json.loads(schema_text("trace"))
    return [
        inner["properties"]["type"]["const"] for name, inner in schema["$defs"].items() if "type" in inner["properties"]
    ]


def test_the_smallest_trace_is_right() -> None:
    check = validator("trace")
    for line in (
        {"type": "trace_start", "format": "goldentrace/1"},
        {"type": "tool_call", "call_id": "c1", "tool_name": "get_order"},
        {"type": "tool_result", "call_id": "c1", "status": "ok"},
        {"type": "trace_end", "outcome": "success", "stop_reason": "final_answer"},
    ):
        check.validate(line)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "trace_start", "format": "goldentrace/2"},
        {"type": "tool_call", "call_id": "c1"},
        {"type": "tool_call", "call_id": "c1", "tool_name": "t", "attempt": 0},
        {"type": "tool_call", "call_id": "c1", "tool_name": "t", "atempt": 1},
        {"type": "tool_result", "call_id": "c1", "status": "success"},
        {"type": "decision", "decision": "give_up"},
        {"type": "trace_end", "outcome": "success", "stop_reason": "done"},
        {"type": "something"},
        {"call_id": "c1"},
        [],
    ],
)
def test_a_wrong_event_is_refused(line: Any) -> None:
    assert not validator("trace").is_valid(line)


def test_the_schema_and_the_reader_agree_on_what_is_required() -> None:
    schema = json.loads(schema_text("trace"))
    for inner in schema["$defs"].values():
        if "type" not in inner["properties"]:
            continue
        kind = inner["properties"]["type"]["const"]
        whole = {
            "type": kind,
            **{name: _example(inner["properties"][name]) for name in inner["required"] if name != "type"},
        }
        for missing in inner["required"]:
            line = {name: value for name, value in whole.items() if name != missing}
            assert not validator("trace").is_valid(line)
        validator("trace").validate(whole)


def _example(schema: dict[str, Any]) -> Any:
    return schema["enum"][0] if "enum" in schema else schema.get("const", "x")


# -- goldens -------------------------------------------------------------------------------------------------------

GOLDEN = """\
{"type":"trace_start","format":"goldentrace/1","kind":"golden","scenario_id":"429","profile":"default@1","profile_hash":"h:51c0f2ab9d3e"}
{"type":"model_turn"}
{"type":"tool_call","call":"get_order#1","tool_name":"get_order","args_hash":"h:0b7d61c2e4a9f3d8","args":{"/ref":"str[5] h:77ab03de51c2"}}
{"type":"tool_result","call":"get_order#1","status":"ok"}
{"type":"tool_call","call":"charge#1","tool_name":"charge","access":"write","args":{"/id":"<get_order#1/id>","/n":{"value":3}},"uses":["get_order#1"]}
{"type":"tool_result","call":"charge#1","status":"error","error_class":"rate_limited","http_status":429,"owed_ms":2000}
{"type":"decision","call":"charge#1","decision":"retry","by":"harness","reason":"rate_limited","delay_ms":2000}
{"type":"tool_call","call":"charge#1","attempt":2,"origin":"harness","gap_ms":2004}
{"type":"tool_result","call":"charge#1","attempt":2,"status":"ok"}
{"type":"approval","call":"charge#1","verdict":"approved"}
{"type":"effect","name":"charge","value":{"/cents":"int h:9f2c41aa07be"}}
{"type":"limit","limit":"max_tool_calls","max":20}
{"type":"trace_end","outcome":"success","stop_reason":"final_answer"}
"""


def test_a_golden_is_right_and_readable() -> None:
    check = validator("golden")
    for line in GOLDEN.splitlines():
        check.validate(json.loads(line))
    assert len(read_golden(GOLDEN.encode(), "golden.jsonl").operations) == 2


@pytest.mark.parametrize("kind", ["golden", "normalized"])
def test_what_is_written_of_a_trace_is_right(kind: str) -> None:
    data = b"".join(encode_event(event) for event in _raw_events())
    trace = read_trace(data, "run.jsonl")
    normal = normalize(trace, Profile(name="default@1"), "h:0")
    place_in_time(normal, trace)
    check = validator("golden")
    for line in encode_golden(normal, kind=kind).splitlines():
        check.validate(json.loads(line))


def _raw_events() -> list[Event]:
    text = "\n".join(
        json.dumps(line) for line in lines_of([event for event in EVENTS if not isinstance(event, TraceEnd)])
    )
    end = '{"type":"trace_end","outcome":"needs_human","stop_reason":"call_limit"}'
    return list(read_trace(f"{text}\n{end}\n".encode(), "run.jsonl").events)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "trace_start", "format": "goldentrace/1", "kind": "golden"},
        {"type": "tool_call", "call_id": "c1", "tool_name": "t"},
        {"type": "tool_call", "call": "t#1", "args": {"/a": 5}},
        {"type": "message", "role": "user"},
        {"type": "model_turn", "turn": 1},
    ],
)
def test_a_wrong_golden_line_is_refused(line: Any) -> None:
    assert not validator("golden").is_valid(line)


# -- configuration and profiles ------------------------------------------------------------------------------------

CONFIG = """
goldens: goldens
profile: default
limits:
  max_tool_calls: 20
  max_tokens: null
  max_cost_usd: 0
  per_tool: {default: {max_elapsed_ms: 10000}}
environments: {staging: {limits: {max_wall_ms: 300000}, runs: 100}}
scenarios:
  429-then-success:
    suite: retries
    description: waits out Retry-After, charges once
    command: python agent.py --task charge
    faults: faults/429.yaml
    model: scripts/charge.yaml
    seed: 7
    env: {PAYMENTS_REGION: eu}
    backoff: {policy: openai, late_ms: 500, jitter: {kind: down, amount: 0.25}, retry_after: {mode: honour, abort_above_ms: null}}
    budgets: {tool_calls: 5, tools: {search: 1}}
record: {results: hash, messages: drop}
fail_on: warning
"""


def test_a_configuration_is_right() -> None:
    validator("config").validate(yaml.safe_load(CONFIG))
    validator("config").validate({})


@pytest.mark.parametrize(
    "wrong",
    [
        {"scenario": {}},
        {"scenarios": {"a": {"comand": "x"}}},
        {"limits": {"max_tool_calls": -1}},
        {"limits": {"max_tool_calls": "many"}},
        {"scenarios": {"a": {"backoff": {"policy": "openaj"}}}},
        {"scenarios": {"a": {"backoff": {"jitter": {"kind": "some"}}}}},
        {"fail_on": "all"},
        {"jobs": 0},
    ],
)
def test_a_wrong_configuration_is_refused(wrong: Any) -> None:
    assert not validator("config").is_valid(wrong)


@pytest.mark.parametrize("path", sorted((ROOT / "normalizers").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_shipped_profiles_are_right(path: Path) -> None:
    validator("profile").validate(yaml.safe_load(path.read_text()))


PROFILE = """
name: shop@1
extends: default@1
ids: {keys: [session, /meta/trace]}
arguments: {equivalence: semantic, keep: [/currency], key_env: GOLDENTRACE_KEY}
redact: {rules: [{name: card, pattern: '[0-9]{16}'}]}
tools:
  get_order: {access: read, resource: 'order/{order_id}', results: shape}
  charge_card: {access: write, destructive: true, backoff: {policy: openai}, reconciles: [get_order]}
compare: {parallel_order: strict, severities: {GT104: warning, GT1003: note}}
backoff: {policy: none, relative: 0.2}
"""


def test_a_profile_is_right() -> None:
    validator("profile").validate(yaml.safe_load(PROFILE))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"name": "shop@1", "idz": {}},
        {"name": "shop@1", "ids": {"kinds": "all"}},
        {"name": "shop@1", "tools": {"t": {"access": "both"}}},
        {"name": "shop@1", "compare": {"severities": {"GT104": "fatal"}}},
        {"name": "shop@1", "compare": {"severities": {"104": "error"}}},
        {"name": "shop@1", "backoff": {"base": 5}},
    ],
)
def test_a_wrong_profile_is_refused(wrong: Any) -> None:
    assert not validator("profile").is_valid(wrong)


def test_real_traces_that_were_imported_are_right(corpus: Path) -> None:
    from goldentrace.sources.registry import read_traces

    check = validator("trace")
    count = 0
    for path in sorted((corpus / "tau_bench").rglob("*.json"))[:2]:
        for trace in read_traces(path):
            for event in trace.events[:200]:
                check.validate(json.loads(encode_event(event)))
                count += 1
            if count > 1500:
                return
    assert count > 100
