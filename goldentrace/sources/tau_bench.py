"""tau-bench: a list of simulated runs, each with its task, trial and reward around a list of Chat messages.

The reward is the benchmark's own verdict: 1 is success, 0 failed, between is partial.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import Outcome, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources import envelope, openai_chat
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_list, as_name, as_number, as_object, as_text
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Transcript

NAME: Final = "tau-bench"
STOP_MARK: Final = "###STOP###"
"""How the simulated user says that the conversation is over (tau_bench/envs/user.py)."""
_ABSENT: Final = {**openai_chat.DIALECT.absent, "usage": "the files carry no token counts"}


def matches(head: Head) -> bool:
    """Whether the first record has a trajectory and a reward."""
    return any(isinstance(record.get("traj"), list) and "reward" in record for record in head.objects[:1])


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per run, named by task and trial."""
    for line, value in document.records():
        for run in value if isinstance(value, list) else [value]:
            if isinstance(run, dict) and isinstance(run.get("traj"), list):
                yield _read_run(document, run, line)


def reward_outcome(reward: Any) -> Outcome:
    """Return what a reward between 0 and 1 says about a run."""
    number = as_number(reward)
    if number is None:
        return "unknown"
    return "success" if number >= 1 else "partial" if number > 0 else "failed"


def _read_run(document: Document, run: dict[str, Any], line: int) -> Trace:
    task, trial = as_name(run.get("task_id")), as_name(run.get("trial"))
    name = (
        "_".join(part for part in (f"task-{task}" if task else "", f"trial-{trial}" if trial else "") if part) or None
    )
    info = as_object(run.get("info"))
    attributes = {
        "task_id": run.get("task_id"), "trial": run.get("trial"), "reward": run.get("reward"),
        "reward_info": info.get("reward_info"), "user_cost_usd": info.get("user_cost"),
    }  # fmt: skip
    builder = TraceBuilder(
        document, NAME, trace_id=name, scenario_id=f"task-{task}" if task else None, attributes=attributes,
        absent=_ABSENT, line=line,
    )  # fmt: skip
    transcript = Transcript(builder)
    messages = as_list(run["traj"])
    for index, message in enumerate(messages):
        if isinstance(message, dict):
            items = envelope.items_of(openai_chat.DIALECT, document, message, line=line, index=index)
            transcript.add(items, message_index=index)
    return transcript.finish(reward_outcome(run.get("reward")), _stop_reason(messages, transcript))


def _stop_reason(messages: list[Any], transcript: Transcript) -> StopReason:
    """The user's stop mark answers the agent's last word; any other end is not told."""
    last = as_object(messages[-1]) if messages else {}
    is_stopped = last.get("role") == "user" and STOP_MARK in (as_text(last.get("content")) or "")
    return "final_answer" if is_stopped and not transcript.builder.has_open_calls else transcript.stop_reason()


SOURCE: Final = Source(
    NAME, "tau-bench runs: task, trial, reward, Chat messages", matches, read,
    notes="no clock, no token counts, no failed-tool flag; the reward gives the outcome",
)  # fmt: skip
