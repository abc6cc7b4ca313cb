"""Real files that nobody of this project wrote: what the importers make of them beyond the counts of tests/corpus/files.yaml."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from goldentrace.model.event import ToolCall, ToolResult
from goldentrace.model.trace import Trace
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.registry import document_traces, read_traces
from tests.corpus.counting import messages, spans
from tests.corpus.counting.files import read_list

SPANS = ("otel-genai", "openinference", "trail", "openai-agents", "openai-agents-state", "langsmith", "langfuse")


def traces_of_spans(corpus: Path) -> Iterator[Trace]:
    for name, line in read_list().items():
        if line.get("format") in SPANS:
            yield from read_traces(corpus / name)


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
    for name, value in messages.snapshot_blocks(corpus / "formats" / "vercel_ai_sdk" / "stream-text.test.ts.snap"):
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


def test_spans_in_the_ai_sdks_own_snapshots(corpus: Path) -> None:
    seen = 0
    path = corpus / "formats" / "vercel_ai_sdk" / "legacy-open-telemetry.test.ts.snap"
    for name, found in spans.vercel_blocks(path):
        tools = [span for span in found if span["name"] == "ai.toolCall"]
        models = [span for span in found if span["name"].endswith((".doGenerate", ".doStream"))]
        if not models:
            continue
        (trace,) = document_traces(Document.of(json.dumps(found).encode(), name))
        table = coverage_table(trace)
        assert (trace.format, table.calls, table.turns) == ("otel-genai", len(tools), len(models)), name
        seen += len(tools)
    assert seen >= 4


def test_events_of_a_real_trace_stand_in_the_order_of_time(corpus: Path) -> None:
    """A call and its result never go back; a response may stand where its request began (see stepcalls)."""
    for trace in traces_of_spans(corpus):
        times = [event.ts for event in trace.events if isinstance(event, (ToolCall, ToolResult)) and event.ts is not None]
        assert times == sorted(times), trace.path
        started = {event.call_id: event.ts for event in trace.calls()}
        assert all((event.ts or "~") >= (started[event.call_id] or "") for event in trace.results()), trace.path


def test_hidden_reasoning_is_in_no_real_trace_of_spans(corpus: Path) -> None:
    for trace in traces_of_spans(corpus):
        for event in trace.events:
            extra = json.dumps(event.extra or {})
            assert '"reasoning_content"' not in extra
            assert '"thinking"' not in extra


def test_usage_of_real_sessions_counts_once(corpus: Path) -> None:
    """27 rows of 10 responses: 1120 output tokens where each row is counted, 833 where each response is."""
    (trace,) = read_traces(corpus / "formats" / "claude_code" / "full-session.jsonl")
    usage = [event.usage for event in trace.events if hasattr(event, "usage") and event.usage is not None]
    assert len(usage) == 10
    assert sum(each.output_tokens or 0 for each in usage) == 833


def test_calls_of_real_rollouts_take_the_time_that_is_recorded(corpus: Path) -> None:
    recorded, lasting = 0, []
    for path in corpus.glob("formats/codex/rollout-*.jsonl"):
        recorded += path.read_text().count('\\"duration_seconds\\":')
        for trace in read_traces(path):
            lasting += [event.extra["duration_ms"] for event in trace.results() if event.extra and "duration_ms" in event.extra]
    assert len(lasting) == recorded > 150
    assert max(lasting) > 1000
