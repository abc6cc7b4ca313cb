"""One run in two formats gives equal operations, but for what a format does not say: see pairs/lacks.yaml.

The files are what the libraries wrote when ci/pairs/make_pairs.py led them through ci/pairs/scene.py.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from goldentrace.codec.canonical import decode
from goldentrace.model.event import Message, ModelTurn, ToolCall, ToolResult
from goldentrace.model.operation import Attempt, Operation
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.registry import read_traces

FOLDER = Path(__file__).parent / "pairs"
PAIRS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "lacks.yaml").read_text())
FORMATS = {
    "openai_agents_chat/input_list.json": "openai-responses", "openai_agents_chat/trace.jsonl": "openai-agents",
    "langgraph/messages.json": "langchain", "langgraph/runs.jsonl": "langsmith", "openai_agents/input_list.json": "openai-responses",
    "openai_agents/trace.jsonl": "openai-agents", "pydantic_ai/console.txt": "otel-genai", "pydantic_ai/messages.json": "pydantic-ai",
    "pydantic_ai/otlp.jsonl": "otel-genai",
}  # fmt: skip


def read(name: str) -> Trace:
    (trace,) = read_traces(FOLDER / name)
    return trace


def fields_of(trace: Trace) -> dict[str, Any]:
    """Field -> its value: of calls and results a list, one entry for each attempt in the order of the operations."""
    normal = normalize(trace, Profile(name="default@1"), "h:0")
    rows = [
        _call(operation, attempt, trace, normal.uses_of(index)) | _result(attempt, trace)
        for index, operation in enumerate(normal.operations)
        for attempt in operation.attempts
    ]
    turns = [event for event in trace.events if isinstance(event, ModelTurn)]
    return {field: [row[field] for row in rows] for field in rows[0]} | {
        "turns": len(turns), "model": [turn.model for turn in turns], "finish_reason": [turn.finish_reason for turn in turns],
        "usage": [turn.usage for turn in turns], "said": [(event.role, event.text) for event in trace.events if isinstance(event, Message)],
        "stop_reason": normal.stop_reason, "outcome": normal.outcome,
        "decisions": [(each.label, step.decision, step.by, step.inferred) for each in normal.operations for step in each.decisions],
    }  # fmt: skip


def _call(operation: Operation, attempt: Attempt, trace: Trace, uses: tuple[str, ...]) -> dict[str, Any]:
    call = trace.events[attempt.call_index]
    assert isinstance(call, ToolCall)
    return {
        "tool": operation.tool_name, "agent": operation.agent, "parent": operation.parent, "turn": call.turn, "batch": operation.batch,
        "args": operation.args if attempt.args is None else attempt.args, "uses": uses, "call_id": call.call_id, "label": operation.label,
        "attempt": attempt.number, "origin": attempt.origin, "started": call.ts is not None,
    }  # fmt: skip


def _result(attempt: Attempt, trace: Trace) -> dict[str, Any]:
    assert attempt.result_index is not None
    result = trace.events[attempt.result_index]
    assert isinstance(result, ToolResult)
    return {
        "status": attempt.status, "error_class": attempt.error_class, "http_status": attempt.http_status, "result": decode(result.result),
        "ended": result.ts is not None,
    }  # fmt: skip


def pair_id(pair: dict[str, Any]) -> str:
    return f"{pair['library']}: {' and '.join(pair['files'])}"


@pytest.mark.parametrize("pair", PAIRS, ids=pair_id)
def test_a_pair_differs_in_what_a_format_lacks_and_in_nothing_else(pair: dict[str, Any]) -> None:
    one, other = (fields_of(read(f"{pair['library']}/{name}")) for name in pair["files"])
    assert one.keys() == other.keys()
    different = {field: (one[field], other[field]) for field in one if one[field] != other[field]}
    listed = {lack["field"] for lack in pair["lacks"]}
    assert {field: both for field, both in different.items() if field not in listed} == {}, "not in the list"
    assert listed - different.keys() == set(), "listed, and yet equal"


@pytest.mark.parametrize(("name", "format_name"), FORMATS.items())
def test_a_file_of_a_pair_holds_the_whole_scene(name: str, format_name: str) -> None:
    trace = read(name)
    assert trace.format == format_name
    found = fields_of(trace)
    assert found["tool"] == ["find_order", "read_address", "read_stock", "refund", "refund"]
    assert found["turn"] == [1, 2, 2, 3, 4]
    assert found["batch"] == [None, 1, 1, None, None]
    assert found["uses"] == [(), *[("find_order#1",)] * 4]
    assert found["turns"] == 5


def test_every_file_that_the_script_wrote_is_compared() -> None:
    written = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*")}
    assert written == FORMATS.keys() == {f"{pair['library']}/{name}" for pair in PAIRS for name in pair["files"]}


def test_what_a_list_says_can_be_read() -> None:
    fields = fields_of(read("langgraph/messages.json")).keys()
    for pair in PAIRS:
        listed = [lack["field"] for lack in pair["lacks"]]
        assert len(set(listed)) == len(listed)
        for lack in pair["lacks"]:
            assert lack.keys() - {"after"} == {"field", "in", "why"}
            assert lack["field"] in fields
            assert lack["in"] in pair["files"]
            assert lack.get("after", listed[0]) in listed
