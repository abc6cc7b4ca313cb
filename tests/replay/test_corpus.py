"""Scripts of real traces: every one that can be read makes a script, and that script makes the calls of the trace."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from goldentrace.errors import GoldentraceError
from goldentrace.model.trace import Trace
from goldentrace.replay.from_trace import script_from_trace
from goldentrace.replay.script import Script
from goldentrace.replay.script_file import parse_script, write_script
from goldentrace.sources.registry import read_traces

PER_FILE = 3
"""Traces taken of a file: some hold hundreds of one kind."""


def traces_of(corpus: Path) -> list[Trace]:
    """Return some traces of each file that can be read."""
    found: list[Trace] = []
    for path in sorted(corpus.rglob("*")):
        if path.is_file() and path.stat().st_size < 2 << 20:
            try:
                found += islice(read_traces(path), PER_FILE)
            except GoldentraceError:
                continue  # a file that is no trace, or of a format that is not read
    return found


def without_lines(script: Script) -> Script:
    agents = tuple(
        replace(agent, turns=tuple(replace(turn, line=0) for turn in agent.turns)) for agent in script.agents
    )
    return replace(script, agents=agents, path="<memory>")


def test_every_trace_makes_a_script_that_asks_for_the_same(corpus: Path) -> None:
    traces = traces_of(corpus)
    if not traces:
        pytest.skip("no trace of a known format in the folder")
    for trace in traces:
        script = script_from_trace(trace, has_references=False).script
        assert without_lines(parse_script(write_script(script))) == script, trace.path
        asked = [
            call.tool_name for call in trace.calls() if call.origin == "model" and call.attempt == 1 and not call.op_id
        ]
        scripted = [call.tool_name for agent in script.agents for turn in agent.turns for call in turn.calls]
        assert sorted(scripted) == sorted(asked), trace.path
