"""Real sessions that nobody of this project wrote: as many calls, results and errors as plain counting finds, and each one
normalizes, becomes a golden, and equals itself."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import CompareOptions, as_golden, compare
from goldentrace.errors import InputError
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.registry import read_traces
from tests.sources import session_counting as counting

PROFILE = Profile(name="default@1")
GROUPS: list[tuple[str, str, Callable[[Path], list[Counter[str]]], int]] = [
    # (format, files, counter, how many files at least)
    ("claude-code", "formats/claude_code/full-session*.jsonl", counting.claude_session, 4),
    ("claude-code", "formats/claude_code/[ac]*_session.jsonl", counting.claude_session, 2),
    ("claude-code", "formats/claude_code/schema_survey*.jsonl", counting.claude_session, 1),
    ("claude-code", "formats/claude_code_edge/*.jsonl", counting.claude_session, 7),
    ("claude-stream", "formats/claude_code_stream_json/*.jsonl", counting.claude_stream, 1),
    ("claude-stream", "formats/claude_agent_sdk/*.json", counting.claude_stream, 1),
    ("anthropic-managed-agents", "formats/anthropic_managed_agents/*.jsonl", counting.managed_agent, 2),
    ("codex", "formats/codex/rollout-*.jsonl", counting.codex, 3),
    ("codex", "formats/codex/*legacy.jsonl", counting.codex, 2),
    ("codex", "formats/codex/letta_tool-calls*.jsonl", counting.codex, 1),
    ("codex-exec", "formats/codex_exec_json/*.jsonl", counting.codex_exec, 4),
    ("mcp", "formats/mcp_stdio/*.jsonl", counting.mcp_lines, 1),
    ("inspect", "formats/inspect_ai/*.json", counting.inspect_log, 2),
    ("inspect", "formats/inspect_ai/*.eval", counting.inspect_log, 3),
    ("atif", "formats/atif/*.json*", counting.atif, 5),
    ("swe-agent", "formats/swe_agent/*.traj", counting.swe_agent, 2),
    ("swe-agent", "tracelint_samples/*.traj", counting.swe_agent, 1),
    ("mini-swe-agent", "formats/mini_swe_agent/*.json", counting.mini_swe_agent, 1),
    ("openhands", "formats/openhands/*.jsonl", counting.openhands, 1),
    ("gemini-cli", "formats/gemini_cli/[jls][!e]*.json*", counting.gemini, 3),
    ("har", "formats/har_llm/*.har", counting.har, 3),
]


def paths_of(corpus: Path, name: str, pattern: str, at_least: int) -> list[Path]:
    if name == "inspect":
        pytest.importorskip("inspect_ai")
    paths = sorted(corpus.glob(pattern))
    assert len(paths) >= at_least
    return paths


@pytest.mark.parametrize(("name", "pattern", "count", "at_least"), GROUPS, ids=lambda value: value if isinstance(value, str) else "")
def test_counts_agree_with_plain_counting(corpus: Path, name: str, pattern: str, count: Callable[[Path], list[Counter[str]]], at_least: int) -> None:
    for path in paths_of(corpus, name, pattern, at_least):
        found = []
        for trace in read_traces(path):
            table = coverage_table(trace)
            found.append(Counter(calls=table.calls, results=table.results, errors=table.errors))
            assert trace.format == name
        if name == "inspect":
            found.sort(key=repr)
        assert [+each for each in found] == [+each for each in count(path)], path.name


def test_counts_of_mcp_over_http_agree(corpus: Path) -> None:
    for path in corpus.glob("formats/mcp_http/*.yaml"):
        (trace,) = read_traces(path, "mcp")
        table = coverage_table(trace)
        assert [+Counter(calls=table.calls, results=table.results, errors=table.errors)] == [+each for each in counting.mcp_cassette(path)]


@pytest.mark.parametrize(("name", "pattern", "count", "at_least"), GROUPS, ids=lambda value: value if isinstance(value, str) else "")
def test_each_real_session_becomes_a_golden_and_equals_itself(corpus: Path, name: str, pattern: str, count: Callable[[Path], list[Counter[str]]], at_least: int) -> None:
    del count
    for path in paths_of(corpus, name, pattern, at_least):
        for trace in read_traces(path):
            normal = normalize(trace, PROFILE, "h:0")
            written = encode_golden(as_golden(normal, PROFILE))
            comparison = compare(read_golden(written, "golden"), normal, PROFILE, backoff=None, options=CompareOptions())
            assert comparison.changes == [], f"{path.name} {trace.start.trace_id}"


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


def test_files_that_are_no_trace_are_refused(corpus: Path) -> None:
    for name in ("har_generic/missing_page.har", "har_generic/humanssuck.net_duplicate_url.har", "gemini_cli/agent-resume-session.json", "codex/letta_cleanup_input.jsonl"):
        with pytest.raises(InputError):
            list(read_traces(corpus / "formats" / name))
