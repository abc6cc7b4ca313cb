"""Real traces of spans that nobody of this project wrote: counted as plain code counts them, and usable as goldens."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.model.event import ToolCall, ToolResult
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.registry import document_traces, read_traces
from tests.sources import span_counting as counting

PROFILE = Profile(name="default@1")
GROUPS: list[tuple[str, str, Callable[[Path], list[Counter[str]]], int]] = [
    # (format, files, counter, how many files at least)
    ("otel-genai", "formats/otlp_genai/*.json", counting.otlp_genai, 3),
    ("otel-genai", "formats/otel_console/*.txt", counting.console, 1),
    ("openinference", "formats/openinference_otlp/*.jsonl", counting.openinference_otlp, 1),
    ("openinference", "tracelint_samples/*_spans.json", counting.flat_openinference, 6),
    ("openinference", "tracelint_samples/*_trace.json", counting.flat_openinference, 6),
    ("trail", "formats/trail/*.parquet", counting.trail, 1),
    ("openai-agents", "formats/openai_agents_trace/*.jsonl", counting.agents_sdk, 1),
    ("openai-agents-state", "formats/openai_agents_run_state/*.json", counting.run_state, 2),
    ("langsmith", "formats/langsmith/*.jsonl", counting.langsmith, 1),
    ("langsmith", "tracelint_samples/langsmith_*.json", counting.langsmith, 1),
    ("langsmith", "formats/langsmith/*.json", counting.langsmith_log, 3),
    ("langfuse", "formats/langfuse/*.json", counting.langfuse, 5),
]


def real_traces(corpus: Path) -> Iterator[Trace]:
    for _, pattern, _, _ in GROUPS:
        for path in sorted(corpus.glob(pattern)):
            yield from read_traces(path)


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
        assert [+each for each in found] == [+each for each in count(path)], path.name


def test_spans_in_the_ai_sdks_own_snapshots(corpus: Path) -> None:
    seen = 0
    path = corpus / "formats" / "vercel_ai_sdk" / "legacy-open-telemetry.test.ts.snap"
    for name, spans in counting.vercel_blocks(path):
        tools = [span for span in spans if span["name"] == "ai.toolCall"]
        models = [span for span in spans if span["name"].endswith((".doGenerate", ".doStream"))]
        if not models:
            continue
        (trace,) = document_traces(Document.of(json.dumps(spans).encode(), name))
        table = coverage_table(trace)
        assert (trace.format, table.calls, table.turns) == ("otel-genai", len(tools), len(models)), name
        seen += len(tools)
    assert seen >= 4


def test_every_real_trace_becomes_a_golden_that_its_own_run_meets(corpus: Path) -> None:
    count = 0
    for trace in real_traces(corpus):
        normal = normalize(trace, PROFILE, "h:000000000000")
        data = encode_golden(as_golden(normal, PROFILE))
        golden = read_golden(data, "golden")
        assert encode_golden(golden) == data
        found = compare(golden, normal, PROFILE)
        assert not found.changes, (trace.path, [change.message for change in found.changes])
        assert not found.not_comparable, (trace.path, found.not_comparable)
        count += 1
    assert count >= 34


def test_every_result_of_a_real_trace_has_its_call_before_it(corpus: Path) -> None:
    for trace in real_traces(corpus):
        open_ids: list[str] = []
        for event in trace.events:
            if isinstance(event, ToolCall):
                open_ids.append(event.call_id)
            elif isinstance(event, ToolResult):
                open_ids.remove(event.call_id)
        assert open_ids == [], trace.path


def test_events_of_a_real_trace_stand_in_the_order_of_time(corpus: Path) -> None:
    """A call and its result never go back; a response may stand where its request began (see stepcalls)."""
    for trace in real_traces(corpus):
        times = [event.ts for event in trace.events if isinstance(event, (ToolCall, ToolResult)) and event.ts is not None]
        assert times == sorted(times), trace.path
        started = {event.call_id: event.ts for event in trace.calls()}
        assert all((event.ts or "~") >= (started[event.call_id] or "") for event in trace.results()), trace.path


def test_hidden_reasoning_is_in_no_real_trace(corpus: Path) -> None:
    for trace in real_traces(corpus):
        for event in trace.events:
            extra = json.dumps(event.extra or {})
            assert '"reasoning_content"' not in extra
            assert '"thinking"' not in extra
