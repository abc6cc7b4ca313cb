"""The whole lint over 10,000 real calls, and over longer and longer runs: the cost must grow as the calls do.

Real runs come from the folder that GOLDENTRACE_CORPUS names (`toolathlon/`, `tau_bench/`); without it only generated
runs are measured. The rules are measured alone too, so that neither part hides in the other. The collector of garbage
is off, as in the command: a lint makes no cycles.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from timing import Row

from goldentrace.codec.canonical import encode_raw
from goldentrace.model.event import Message, ModelTurn, ToolCall, ToolResult, TraceEnd, TraceStart
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.registry import run_rules
from goldentrace.sources.registry import read_traces

CALLS = 10_000
PROFILE = Profile(name="default@1")


def rows(folder: Path) -> Iterator[Row]:  # noqa: ARG001 - the runner's signature
    """Yield the rules over real runs, and over one long run of three lengths."""
    gc.disable()
    corpus = os.environ.get("GOLDENTRACE_CORPUS")
    if corpus:
        files = [*_files(Path(corpus))]
        traces = list(_real(files))
        pairs = [(trace, normalize(trace, PROFILE, "h:bench")) for trace in traces]
        calls = sum(len(trace.calls()) for trace in traces)
        yield Row(f"rules, {calls:,} real calls", lambda: _lint(pairs), repeat=5, amount=calls, unit="calls")
        yield Row(
            f"read, normalize and rules, {calls:,} real calls", lambda: _whole(files), lambda: _lint(pairs),
            "rules alone", repeat=5, amount=calls, unit="calls", targets={"cpu_s": 2.0},
        )  # fmt: skip
    base = _long_run(CALLS)
    for factor, repeat in ((10, 3), (100, 1)):
        longer = _long_run(CALLS * factor)
        yield Row(
            f"normalize and rules, one run of {CALLS * factor:,} calls", lambda longer=longer: _lint([_pair(longer)]),
            lambda: _lint([_pair(base)]), f"one of {CALLS:,}", repeat=repeat, amount=CALLS * factor, unit="calls",
            targets={"ratio": factor * 1.4},
        )  # fmt: skip


def _lint(pairs: list[tuple[Trace, NormalTrace]]) -> int:
    return sum(len(run_rules(trace, normal, PROFILE).findings) for trace, normal in pairs)


def _whole(files: list[Path]) -> int:
    return _lint([_pair(trace) for trace in _real(files)])


def _pair(trace: Trace) -> tuple[Trace, NormalTrace]:
    return trace, normalize(trace, PROFILE, "h:bench")


def _files(corpus: Path) -> Iterator[Path]:
    yield from sorted(path for path in (corpus / "toolathlon").glob("*.json") if path.name != "MANIFEST.json")
    yield corpus / "tau_bench" / "gpt-4o-airline.json"


def _real(files: list[Path]) -> Iterator[Trace]:
    """The real runs, again and again until there are enough calls."""
    count = 0
    while count < CALLS:
        before = count
        for file in files:
            for trace in read_traces(file):
                if count >= CALLS:
                    return
                count += len(trace.calls())
                yield trace
        if count == before:
            return


def _long_run(calls: int) -> Trace:
    """One run: a third of the calls repeats an earlier one, every tenth fails, every hundredth turn the user speaks."""
    events: list[Any] = [TraceStart(format="goldentrace/1"), Message(role="user", text="begin")]
    for number in range(calls):
        if number % 3 == 0:
            events.append(ModelTurn(turn=number // 3 + 1))
        if number % 300 == 299:
            events.append(Message(role="user", text="go on"))
        key = number // 3 if number % 3 == 2 else number
        events.append(
            ToolCall(
                call_id=f"c{number}", tool_name=f"tool_{key % 7}", args=encode_raw({"id": key, "q": f"item {key}"})
            )
        )
        status = "error" if number % 10 == 9 else "ok"
        result = encode_raw({"id": key, "rows": [key, key + 1], "next": None})
        events.append(ToolResult(call_id=f"c{number}", status=status, result=result))
    events.append(TraceEnd(outcome="success", stop_reason="final_answer"))
    return Trace(events, "long.jsonl")
