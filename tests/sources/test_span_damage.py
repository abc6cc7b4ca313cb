"""Damaged files of spans that are no JSON document, and spans that nobody would write: traces or an InputError."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from tests.sources.reading import calls, read_one
from tests.sources.reading import said as said_in
from tests.sources.spanning import FIXTURES, asks, chat, otlp, said, span, tool
from tests.sources.test_fixtures import FILES
from tests.sources.test_mutations import JUNK, check, mutate, places, values_of

SPANS = ("otel-genai", "openinference", "trail", "openai-agents", "openai-agents-state", "langsmith", "langfuse")
MODULES = ("otel_genai", "openinference", "trail", "openai_agents", "langsmith", "langfuse")
OURS = [path for path in FILES if path.parent.name in MODULES]
KEYS = [
    "resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "kvlistValue", "arrayValue", "values", "traceId", "spanId", "name", "status",
    "code", "events", "context", "span_id", "parent_id", "child_spans", "span_attributes", "object", "span_data", "type", "data", "id", "run_type", "inputs", "outputs",
    "post", "patch", "child_runs", "dotted_order", "observations", "trace", "traceId", "startTime", "input", "output", "$schemaVersion", "generated_items", "raw_item",
    "gen_ai.tool.name", "gen_ai.input.messages", "openinference.span.kind", "llm.output_messages", "parts", "role", "content", "messages",
]  # fmt: skip


@given(st.sampled_from(OURS), st.integers(min_value=0), st.integers(1, 8))
@settings(max_examples=400, deadline=None)
def test_values_of_the_wrong_kind_in_files_of_spans(path: Any, seed: int, count: int) -> None:
    values = values_of(path.read_bytes())
    if values is None:
        return
    draw = random.Random(seed)
    for _ in range(count):
        if places(values):
            mutate(values, draw, JUNK)
    for trace in check("".join(json.dumps(each) + "\n" for each in values).encode(), None):
        normalize(trace, Profile(name="default@1"), "h:000000000000")


@given(st.sampled_from(SPANS), st.recursive(st.sampled_from(JUNK), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), max_leaves=16))
@settings(max_examples=600, deadline=None)
def test_values_of_no_format_at_all(format_name: str, value: Any) -> None:
    check(json.dumps(value).encode(), format_name)


@given(st.integers(min_value=1))
@settings(max_examples=60, deadline=None)
def test_a_console_dump_that_was_cut_off(cut: int) -> None:
    data = (FIXTURES / "otel_genai" / "console.txt").read_bytes()
    check(data[: cut % len(data)] or b" ", "otel-genai")


@pytest.mark.parametrize("levels", [100, 1000, 20_000])
def test_deep_nesting_inside_texts(levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    messages = '[{"role":"user","parts":' * levels + "[]" + "}]" * levels
    check(json.dumps(otlp(tool("01", 1, 2, args=deep, result=deep), chat("02", 3, 4, attributes={"gen_ai.input.messages": messages}))).encode(), None)
    check(json.dumps(otlp(span("x", "01", 1, 2, {"openinference.span.kind": "LLM", "a." * levels + "b": "c", "llm.output_messages." + "0." * levels: "x"}))).encode(), None)


@pytest.mark.parametrize("number", [10**400, -(10**30), 2**63, 1e308, -1, 0])
def test_times_and_counts_beyond_any_clock(number: Any) -> None:
    made = chat("01", 1, 2, [said("user", "x")], said("assistant", asks("c", "find", {})))
    made |= {"startTimeUnixNano": number, "endTimeUnixNano": str(number)}
    made["attributes"].append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": str(number)}})
    check(json.dumps(otlp(made, tool("02", 3, 4))).encode(), None)


def test_a_result_that_ends_before_its_call_began_stands_behind_it() -> None:
    trace = read_one(otlp(tool("01", 9, 3, call_id="c")))
    assert [type(event).__name__ for event in trace.events[1:-1]] == ["ToolCall", "ToolResult"]


@pytest.mark.parametrize("turns", [500, pytest.param(20_000, marks=pytest.mark.full)])
def test_a_long_run_whose_requests_send_their_history_again(turns: int) -> None:
    spans = []
    for n in range(turns):
        spans += [chat(f"a{n:06x}", n * 10, n * 10 + 4, [said("user", f"m{m}") for m in range(max(0, n - 20), n)], said("assistant", asks(None, "find", {"n": n}))), tool(f"b{n:06x}", n * 10 + 5, n * 10 + 9, args={"n": n})]
    trace = read_one(otlp(*spans))
    assert len(calls(trace)) == turns
    assert len(said_in(trace)) == turns - 1


def test_a_chain_of_many_spans_within_each_other() -> None:
    spans = [span("step", f"{n:06x}", n, 99_999, {}, parent=f"{n - 1:06x}") for n in range(1, 20_000)]
    assert len(calls(read_one(otlp(*spans, tool("ffffff", 20_000, 20_001, parent="004e1f"))))) == 1
