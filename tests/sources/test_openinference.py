"""OpenInference spans, and the nested ones of TRAIL: each trap of the format."""

import io
import json
import sys
from typing import Any

import pytest

from goldentrace.errors import InputError
from goldentrace.sources.document import Document
from goldentrace.sources.registry import detect
from tests.sources.reading import calls, read_all, read_one, results, turns
from tests.sources.reading import said as messages
from tests.sources.spanning import FIXTURES, duration_ms, fixture, one, otlp, span, statuses

KIND = "openinference.span.kind"


def tool(span_id: str, start_ms: float, end_ms: float | None, name: str | None = "find", given: Any = None, made: Any = "ok", **more: Any) -> dict[str, Any]:
    attributes = {KIND: "TOOL", **({"tool.name": name} if name else {}), **more.pop("attributes", {})}
    attributes |= {} if given is None else {"input.value": given}
    attributes |= {} if made is None else {"output.value": made}
    return span(more.pop("label", name or "tool"), span_id, start_ms, end_ms, attributes, **more)


def llm(span_id: str, start_ms: float, end_ms: float, *asked: tuple[str, str, Any], text: str = "", **more: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {KIND: "LLM", "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": text, **more.pop("attributes", {})}
    for number, (call_id, name, args) in enumerate(asked):
        start = f"llm.output_messages.0.message.tool_calls.{number}.tool_call"
        attributes |= {f"{start}.id": call_id, f"{start}.function.name": name, f"{start}.function.arguments": json.dumps(args)}
    return span("llm", span_id, start_ms, end_ms, attributes, **more)


def test_the_schema_of_a_tool_is_not_its_arguments() -> None:
    trace = read_one(otlp(tool("01", 1, 2, attributes={"tool.parameters": json.dumps({"type": "object", "properties": {}})})))
    assert calls(trace) == [("find", None)]
    assert "tool.parameters" in (trace.calls()[0].extra or {})["attributes"]
    assert "arguments" in trace.coverage


def test_a_call_without_an_id_is_matched_to_the_response() -> None:
    trace = one("openinference", "otlp.jsonl")
    assert [(call.call_id, call.tool_name, call.agent) for call in trace.calls()] == [("call_x", "lookup", "main"), ("call_h", "transfer_to_refund_desk", "main")]
    assert turns(trace)[0].usage is not None


def test_a_handoff_is_a_call_and_the_next_agent_has_its_own_name() -> None:
    trace = one("openinference", "otlp.jsonl")
    handoff = trace.calls()[1]
    assert (handoff.extra or {})["handoff"] == {"from": "Triage", "to": "Refund Desk"}
    assert [turn.agent for turn in turns(trace)] == ["main", "main", "Refund Desk"]
    assert (trace.start.attributes or {})["agent_name"] == "Triage"


def test_a_handoff_without_a_response_gets_the_name_that_the_sdk_gives() -> None:
    trace = read_one(otlp(tool("01", 1, 2, None, "Triage", "Refund Desk", label="handoff to Refund Desk")))
    assert [call.tool_name for call in trace.calls()] == ["transfer_to_refund_desk"]


def test_a_tool_without_a_name_is_called_as_its_span() -> None:
    assert calls(read_one(otlp(tool("01", 1, 2, None, label="lookup.run")))) == [("lookup.run", None)]


def test_indices_are_sorted_as_numbers() -> None:
    asked = [(f"c{n}", "find", {"n": n}) for n in range(12)]
    made = llm("01", 1, 2, *asked)
    made["attributes"].sort(key=lambda pair: pair["key"])
    assert calls(read_one(otlp(made))) == [("find", {"n": n}) for n in range(12)]


def test_phoenix_lists_nest_their_attributes() -> None:
    trace = one("openinference", "phoenix.json")
    assert messages(trace) == [("user", "Charge 100."), ("assistant", "Paid.")]
    assert statuses(trace) == [("q1", "error", "connect"), ("q2", "ok", None)]
    assert calls(trace) == [("charge", {"cents": 100})] * 2
    assert duration_ms(trace, "q1") == 3
    assert (trace.results()[0].extra or {})["error"] == "ConnectError: refused"


def test_values_that_were_hidden_are_absent_with_their_reason() -> None:
    trace = one("openinference", "columns.json")
    assert (calls(trace), results(trace)) == ([("lookup", None)], [("call:1", "ok", None)])
    assert trace.coverage["arguments"] == trace.coverage["results"] == "hidden by the instrumentation"


@pytest.mark.parametrize(("given", "expected"), [
    ('{"q": 1}', {"q": 1}), ("{'q': 'it''s'}", {"q": "its"}), ("{'q': None, 'w': [True]}", {"q": None, "w": [True]}), ("C-1", "C-1"),
    ('{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"q": 1}}', {"q": 1}), ('{"q": ', None), ("{'q': open('x')}", None),
])  # fmt: skip
def test_arguments_in_the_forms_of_frameworks(given: str, expected: Any) -> None:
    trace = read_one(otlp(tool("01", 1, 2, given=given)))
    assert calls(trace) == [("find", expected)]
    assert (trace.calls()[0].args_raw == given) is (expected is None)


def test_a_tool_of_one_argument_gets_its_name_from_the_response() -> None:
    trace = read_one(otlp(llm("01", 1, 2, ("c1", "find", {"id": "C-1"})), tool("02", 3, 4, given="C-1")))
    assert calls(trace) == [("find", {"id": "C-1"})]
    assert (trace.calls()[0].extra or {})["tool_input"] == "C-1"


@pytest.mark.parametrize(("made", "expected"), [
    (json.dumps({"type": "tool", "data": {"content": "boom", "type": "tool", "tool_call_id": "c1", "status": "error"}}), ("c1", "error", "boom")),
    (json.dumps({"content": "fine", "type": "tool", "name": "find", "tool_call_id": "c1", "status": "success"}), ("c1", "ok", "fine")),
    (json.dumps({"graph": None, "update": {"messages": [{"content": "moved", "type": "tool", "name": "find", "tool_call_id": "c1"}]}}), ("c1", "ok", "moved")),
    (json.dumps({"a": 1}), ("call:1", "ok", {"a": 1})), ("7", ("call:1", "ok", "7")), ('"text"', ("call:1", "ok", "text")),
])  # fmt: skip
def test_results_in_the_forms_of_frameworks(made: str, expected: tuple[str, str, Any]) -> None:
    assert results(read_one(otlp(tool("01", 1, 2, made=made)))) == [expected]


def test_a_tool_belongs_to_the_agent_whose_response_asked_for_it() -> None:
    """LangGraph: the model's spans stand within an agent's, the tools' beside it."""
    agent = [span(name, i, a, a + 5, {KIND: "AGENT", "agent.name": name}, parent="10") for name, i, a in (("planner", "11", 0), ("worker", "12", 20))]
    spans = [*agent, llm("01", 1, 2, ("c1", "find", {"q": 1}), parent="11"), tool("02", 7, 8, given='{"q": 1}', parent="10"), llm("03", 21, 22, ("c2", "find", {"q": 2}), parent="12"), tool("04", 27, 28, given='{"q": 2}', parent="10")]
    trace = read_one(otlp(*spans, span("graph", "10", 0, 40, {KIND: "CHAIN"})))
    assert [(call.call_id, call.agent) for call in trace.calls()] == [("c1", "main"), ("c2", "worker")]


def test_a_tool_of_another_agent_is_not_taken_for_the_call_of_a_response() -> None:
    agents = [span(name, i, 0, 50, {KIND: "AGENT", "agent.name": name}, parent=parent) for name, i, parent in (("lead", "10", None), ("helper", "11", "10"))]
    spans = [llm("01", 1, 2, text="x = find()", parent="10"), llm("02", 3, 4, ("c1", "find", {"q": 1}), parent="11"), tool("03", 5, 6, given='{"q": 9}', parent="10")]
    trace = read_one(otlp(*agents, *spans))
    assert [(call.call_id, call.agent) for call in trace.calls()] == [("c1", "helper"), ("call:2", "main")]


def test_spans_of_both_conventions_in_one_file_are_one_trace() -> None:
    other = span("execute_tool other", "03", 5, 6, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "other", "gen_ai.tool.call.id": "g1"})
    value = otlp(llm("01", 1, 2, ("c1", "find", {})), tool("02", 3, 4, given="{}"), other)
    assert detect(Document.of(json.dumps(value).encode())).name == "openinference"
    assert [call.call_id for call in read_one(value).calls()] == ["c1", "g1"]


def test_what_a_run_was_given_is_its_prompt_where_no_request_says_it() -> None:
    root = span("agent", "0f", 0, 9, {KIND: "AGENT", "input.value": "Find A-1."})
    assert messages(read_one(otlp(llm("01", 1, 2, text="Found.", parent="0f"), root))) == [("user", "Find A-1."), ("assistant", "Found.")]


def test_trail_ends_a_span_after_its_duration_and_counts_in_text() -> None:
    trace = one("trail", "trace.json")
    assert duration_ms(trace, "call_1") == 60_250
    assert statuses(trace) == [("call_1", "error", "tool_error"), ("call_2", "ok", None)]
    assert calls(trace) == [("find", {"q": "a"})] * 2
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (10, 5)


def test_gold_answers_and_annotations_of_trail_stay_out() -> None:
    for name in ("trace.json", "rows.parquet"):
        assert all("gold" not in str(event).replace("goldentrace", "") for trace in fixture("trail", name) for event in trace.events)


def test_a_row_of_trail_that_is_no_trace_is_said() -> None:
    first, second = fixture("trail", "rows.parquet")
    assert [note.text for trace in (first, second) for note in trace.notes if "row" in note.text] == ["row 2 holds no trace (not JSON (expecting value, character 1)) and was left out"]


def test_rows_of_trail_as_json_lines() -> None:
    text = (FIXTURES / "trail" / "trace.json").read_text()
    assert [trace.format for trace in read_all(({"trace": text, "labels": "x"}, {"trace": text, "labels": "x"}), "trail")] == ["trail"] * 2


def test_parquet_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"goldentrace\[parquet\]"):
        fixture("trail", "rows.parquet")


def test_a_damaged_or_foreign_table_is_an_input_error() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    data = (FIXTURES / "trail" / "rows.parquet").read_bytes()
    for cut in range(4, len(data), 97):
        with pytest.raises(InputError):
            read_all(data[:cut])
    for place in range(4, len(data), 41):
        try:
            read_all(data[:place] + b"\xff\xff" + data[place + 2 :])
        except InputError:
            continue
    other = io.BytesIO()
    parquet.write_table(pyarrow.table({"x": [1]}), other)
    with pytest.raises(InputError, match="no column 'trace'"):
        read_all(other.getvalue())
