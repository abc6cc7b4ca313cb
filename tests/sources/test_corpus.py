"""Real files that nobody of this project wrote: the importers find as many calls, results and errors as plain counting."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from goldentrace.model.event import ToolCall, ToolResult
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.registry import detect, document_traces, read_traces
from tests.sources import counting

GROUPS: list[tuple[str, str, Callable[[Path], list[Counter[str]]], int]] = [
    # (format, files, counter, how many files at least)
    ("tau-bench", "tau_bench/*.json", counting.tau_bench, 1),
    ("toolathlon", "toolathlon/*_*.json", counting.toolathlon, 30),
    ("openai-chat", "rb_style_injected/traces.json", counting.conversations, 1),
    ("tau2-bench", "redundancybench/airline_5sims_unlabelled.json", counting.simulations, 1),
    ("tau2-bench", "formats/tau2_bench/*.jsonl", counting.rows, 2),
    ("openai-responses", "formats/openai_agents_trace/to_input_list.json", counting.input_list, 1),
    ("anthropic-messages", "formats/anthropic_messages/*.json", counting.sdk_snapshot, 1),
    ("langchain", "formats/langchain_messages/*.json", counting.langchain, 3),
    ("pydantic-ai", "formats/pydantic_ai/*.json", counting.pydantic_ai, 1),
    ("vcr", "formats/openai_chat/*.yaml", counting.cassette, 3),
    ("vcr", "formats/openai_responses/*.yaml", counting.cassette, 2),
    ("vcr", "formats/anthropic_messages/*.yaml", counting.cassette, 3),
]


@pytest.mark.parametrize(("name", "pattern", "count", "at_least"), GROUPS, ids=lambda value: value if isinstance(value, str) else "")
def test_counts_agree_with_plain_counting(corpus: Path, name: str, pattern: str, count: Callable[[Path], list[Counter[str]]], at_least: int) -> None:
    paths = sorted(corpus.glob(pattern))
    assert len(paths) >= at_least
    for path in paths:
        found = []
        for trace in read_traces(path):
            table = coverage_table(trace)
            found.append(Counter(calls=table.calls, results=table.results, errors=table.errors))
            assert trace.format == name
        expected = count(path)
        assert [+each for each in found] == [+each for each in expected], path.name


def test_every_result_of_a_real_run_has_its_call_before_it(corpus: Path) -> None:
    paths = [corpus / "tau_bench" / "gpt-4o-airline.json", *sorted(corpus.glob("toolathlon/*_*.json"))]
    traces = [trace for path in paths for trace in read_traces(path)]
    assert len(traces) > 200
    for trace in traces:
        open_ids: list[str] = []
        for event in trace.events:
            if isinstance(event, ToolCall):
                open_ids.append(event.call_id)
            elif isinstance(event, ToolResult):
                open_ids.remove(event.call_id)
        assert open_ids == []
        assert trace.notes == ()


def test_rewards_of_tau_bench_become_outcomes(corpus: Path) -> None:
    path = corpus / "tau_bench" / "gpt-4o-airline.json"
    rewards = [run["reward"] for run in json.loads(path.read_text())]
    outcomes = [trace.end.outcome for trace in read_traces(path) if trace.end]
    assert outcomes == ["success" if reward == 1 else "failed" for reward in rewards]
    assert len({trace.start.trace_id for trace in read_traces(path)}) == len(rewards)


def test_labels_of_redundancybench_point_at_calls_and_results(corpus: Path) -> None:
    folder = corpus / "rb_style_injected"
    labels = {each["task_id"]: each["redundant_step_idx"] for each in json.loads((folder / "annotation.json").read_text())}
    seen = 0
    for trace in read_traces(folder / "traces.json"):
        marked = {(event.extra or {})["message_index"] for event in (*trace.calls(), *trace.results())}
        assert set(labels[trace.start.scenario_id or ""]) <= marked
        seen += len(labels[trace.start.scenario_id or ""])
    assert seen == 362  # as its NOTE says


def test_values_of_the_ai_sdks_own_snapshots(corpus: Path) -> None:
    counted = Counter[str]()
    for name, value in counting.snapshot_blocks(corpus / "formats" / "vercel_ai_sdk" / "stream-text.test.ts.snap"):
        text = json.dumps(value)
        calls, results = text.count('"type": "tool-call"'), text.count('"type": "tool-result"')
        if not isinstance(value, list) or not calls:
            continue
        (trace,) = document_traces(Document.of(text.encode(), name))
        table = coverage_table(trace)
        assert (trace.format, table.calls, table.results) == ("ai-sdk", calls, results), name
        counted += Counter(calls=calls, results=results)
    assert counted["calls"] >= 8


def test_a_cassette_without_call_ids_pairs_its_result(corpus: Path) -> None:
    (trace,) = read_traces(corpus / "formats" / "openai_chat" / "test_compatible_api_with_tool_calls_without_id.yaml")
    assert [call.call_id for call in trace.calls()] == [result.call_id for result in trace.results()] == ["call:1"]
    assert "call_ids" in trace.coverage


def test_what_is_no_trace_is_no_trace(corpus: Path) -> None:
    for path in (corpus / "rb_style_injected" / "annotation.json", corpus / "toolathlon" / "MANIFEST.json", corpus / "README.md"):
        if path.exists():
            with pytest.raises(Exception, match="no known format"):
                detect(Document.of(path.read_bytes(), path.name))
