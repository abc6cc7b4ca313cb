"""The public samples of tracelint: what it says of each, what the rules here say, and who is right where they differ.

Its words are those of tracelint 0.14.0 (`check --include-candidates`); the SWE-agent run it does not read at all. What
is a defect only under a contract of the tools is judged with one, as its own tests do.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.canonical import decode
from goldentrace.model.finding import LintResult
from goldentrace.model.profile import Profile, Tool
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.registry import run_rules
from goldentrace.sources.registry import read_traces

ERROR_KEY = r'^\{"error":'
RELEASES = {
    "run_release_pipeline": Tool(error_patterns=[r'"result": ?"(FAILURE|UNSTABLE|ABORTED)"']),
    "deploy": Tool(access="write", error_patterns=[r'"status": ?"(failed|rolled_back)"']),
}
CANCELLATIONS = {"cancel_subscription": Tool(access="write", error_patterns=[ERROR_KEY])}
RECEIPTS = {"check_fraud2": Tool(error_patterns=[ERROR_KEY]), "send_receipt": Tool(access="write")}


@dataclass(frozen=True)
class Sample:
    """theirs: its findings, empty for none, None where it cannot read the file; ours: the codes of ours; why: who is
    right where one finds something and the other does not."""

    name: str
    calls: tuple[str, ...]
    theirs: tuple[str, ...] | None = ()
    ours: tuple[str, ...] = ()
    why: str = ""
    tools: dict[str, Tool] = field(default_factory=dict)

    @property
    def test_id(self) -> str:
        return self.name + (" under a contract" if self.tools else "")


SAMPLES = [
    Sample(
        "crewai_trace.json", ("refund_order",), theirs=("R3 candidate",),
        why="we: it calls order A100 invented, but the task says 'Refund order A100'; CrewAI writes it on the agent's span",
    ),
    Sample("langflow_trace.json", ("fetch_content",)),
    Sample("langgraph_trace.json", ("refund_order",)),
    Sample("langgraph_phoenix_trace.json", ("run_release_pipeline", "deploy")),
    Sample(
        "langgraph_phoenix_trace.json", ("run_release_pipeline", "deploy"), theirs=("R2a hard_event", "R2b hard_defect"), ours=("GT1506",),
        why="both: the deploy used a build that only the failed pipeline named; that the pipeline failed is no defect by itself", tools=RELEASES,
    ),
    Sample("langgraph_capture_trace.json", ("run_release_pipeline", "deploy")),
    Sample(
        "langgraph_capture_trace.json", ("run_release_pipeline", "deploy"), theirs=("R2a hard_event", "R2b hard_defect"), ours=("GT1506",),
        why="both, as above: the same run from another recorder", tools=RELEASES,
    ),
    Sample(
        "langgraph_retry_spans.json", ("cancel_subscription", "cancel_subscription"), theirs=("R2a hard_event",),
        why="both: it reports that a call timed out, which is so; we report defects, and the retry made up for it",
    ),
    Sample(
        "langgraph_retry_spans.json", ("cancel_subscription", "cancel_subscription"), theirs=("R2a hard_event",), ours=("GT1005",),
        why="both: told that an `error` is a failure, we note that the second attempt made up for it", tools=CANCELLATIONS,
    ),
    Sample(
        "langgraph_parallel_spans.json", ("check_fraud2", "send_receipt"), theirs=("R2a hard_event", "R2b candidate"),
        why="we: the failed check was told in the answer ('fraud check could not run, flagged for manual review'), so nothing was passed over",
    ),
    Sample(
        "langgraph_parallel_spans.json", ("check_fraud2", "send_receipt"), theirs=("R2a hard_event", "R2b candidate"),
        why="we, as above: the receipt has its values from the user", tools=RECEIPTS,
    ),
    Sample("langgraph_optional_args_spans.json", ("send_sms",) * 3),
    Sample("langgraph_optional_args_spans.json", ("send_sms",) * 3, tools={"send_sms": Tool(access="write")}),
    Sample(
        "langgraph_hide_inputs_spans.json", ("get_order", "refund_order"), theirs=("R3 candidate",),
        why="we: the user's words were hidden by the instrumentation, so nobody can say that A100 was invented",
    ),
    Sample("langgraph_hide_inputs_outputs_spans.json", ("get_order", "refund_order")),
    Sample("langsmith_lcel_run.json", ("lookup_ticket",)),
    Sample("lcel_string_tool_spans.json", ("lookup_ticket",)),
    Sample("smolagents_trace.json", ("refund_order", "final_answer")),
    Sample(
        "swebench_sample.traj", ("shell",) * 7, theirs=None, ours=("GT1004",),
        why="we: the fourth step means to open the source and prints setup.py a second time, unchanged",
    ),
]  # fmt: skip


def lint(path: Path, tools: dict[str, Tool]) -> LintResult:
    (trace,) = read_traces(path)
    profile = Profile(name="sample@1", tools=tools)
    return run_rules(trace, normalize(trace, profile, "h:0"), profile)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.test_id)
def test_a_sample_gets_this_verdict(corpus: Path, sample: Sample) -> None:
    path = corpus / "tracelint_samples" / sample.name
    (trace,) = read_traces(path)
    assert tuple(call.tool_name for call in trace.calls()) == sample.calls
    assert tuple(finding.code for finding in lint(path, sample.tools).findings) == sample.ours
    is_different = bool(sample.theirs) != bool(sample.ours)
    assert sample.why.startswith(("we", "both", "tracelint")) or not is_different


def test_every_sample_is_in_the_table(corpus: Path) -> None:
    there = {path.name for path in (corpus / "tracelint_samples").iterdir()} - {"LICENSE"}
    assert there == {sample.name for sample in SAMPLES}


def test_arguments_that_a_recorder_wrote_bare_are_those_of_the_response(corpus: Path) -> None:
    def args(name: str) -> list[Any]:
        (trace,) = read_traces(corpus / "tracelint_samples" / name)
        return [decode(call.args) if bytes(call.args) else None for call in trace.calls()]

    assert args("langgraph_optional_args_spans.json") == [
        {"phone": "+15550001"}, {"phone": "+15550002", "text": "Delayed"}, {"phone": "+15550003"},
    ]  # fmt: skip
    assert args("langgraph_hide_inputs_spans.json") == [{"order_id": "A100"}, {"order_id": "A100", "amount": 49.99}]
    assert args("langgraph_hide_inputs_outputs_spans.json") == [None, None]
