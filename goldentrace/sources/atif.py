"""ATIF trajectories, versions 1.0 to 1.8: steps of system, user and agent, calls and observations inside a step.

A step has one time, for the response of the model; when its tools ran, nobody wrote, nor whether they failed. Steps
that a continuation copied from the trajectory before it are no new activity. Reasoning is dropped.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, MAIN_AGENT, StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import (
    as_count,
    as_name,
    as_number,
    as_object,
    as_objects,
    as_text,
    as_word,
    text_of_parts,
)
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import rest, result_value, without_reasoning

NAME: Final = "atif"
_VERSION: Final = re.compile(r"ATIF-v1\.([0-8])")
MAX_DEPTH: Final = 32
"""How deep subagents may be nested; what embeds itself ends here."""
_CALL_KEYS: Final = frozenset({"tool_call_id", "function_name", "arguments", "extra"})
_RESULT_KEYS: Final = frozenset({"source_call_id", "content", "extra", "subagent_trajectory_ref"})
_ABSENT: Final = {
    "status": "observations have no flag for failure", "result_times": "a step has one time, observations have none",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether a record names a version of ATIF."""
    return any(as_word(record.get("schema_version")).startswith("ATIF-") for record in head.objects)


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per trajectory. Raises: InputError for what is not JSON."""
    for line, record in document.records():
        for trajectory in record if isinstance(record, list) else [record]:
            if isinstance(trajectory, dict) and isinstance(trajectory.get("steps"), list):
                yield _Trajectory(document, trajectory, line if document.is_line_file() else None).read()


class _Trajectory:
    """One trajectory on its way to a trace, its subagents within it."""

    def __init__(self, document: Document, trajectory: dict[str, Any], line: int | None) -> None:
        self._trajectory = trajectory
        self._line = line
        self._agents: dict[str, int] = {}
        self._copied = 0
        self._stop: StopReason = "unknown"
        agent = as_object(trajectory.get("agent"))
        name = as_text(trajectory.get("trajectory_id")) or as_text(trajectory.get("session_id"))
        self._builder = TraceBuilder(
            document, NAME, trace_id=name, name=name, line=line, absent=_ABSENT,
            attributes={
                "schema_version": trajectory.get("schema_version"), "agent": agent.get("name"),
                "agent_version": agent.get("version"), "tools": agent.get("tool_definitions"),
                "notes": trajectory.get("notes"), "extra": trajectory.get("extra"),
                "continued_by": trajectory.get("continued_trajectory_ref"),
            },
        )  # fmt: skip
        self._embedded = {
            key: each
            for each in as_objects(trajectory.get("subagent_trajectories"))
            for key in (as_text(each.get("trajectory_id")), as_text(each.get("session_id")))
            if key is not None
        }

    def read(self) -> Trace:
        version = as_word(self._trajectory.get("schema_version"))
        if _VERSION.fullmatch(version) is None:
            self._builder.note(f"{version or 'no version'} is not one that is known (1.0 to 1.8)", self._line)
        self._steps(self._trajectory, MAIN_AGENT, None, 0)
        for key in list(self._embedded):
            self._subagent(key, None, 1)
        if self._copied:
            self._builder.note(f"{self._copied} steps copied from an earlier trajectory were left out", self._line)
        return self._builder.finish(
            stop_reason="unknown" if self._builder.has_open_calls else self._stop,
            extra={"final_metrics": self._trajectory.get("final_metrics")},
        )

    def _steps(self, trajectory: dict[str, Any], agent: str, parent: str | None, depth: int) -> None:
        model = as_text(as_object(trajectory.get("agent")).get("model_name"))
        for step in as_objects(trajectory.get("steps")):
            if step.get("is_copied_context") is True:
                self._copied += 1
            else:
                self._step(step, model, agent, parent, depth)

    def _step(self, step: dict[str, Any], model: str | None, agent: str, parent: str | None, depth: int) -> None:
        source, ts = as_word(step.get("source")), clock.utc(step.get("timestamp"))
        text, line = text_of_parts(step.get("message")), self._line
        asked = as_objects(step.get("tool_calls"))
        if source != "agent":
            self._builder.message(source or "user", text, ts=ts, agent=agent, line=line)
            self._stop = "unknown"
        else:
            is_dispatch = step.get("llm_call_count") == 0  # the agent's own code acted, without its model
            if not is_dispatch:
                self._builder.turn(
                    model=as_text(step.get("model_name")) or model, usage=_usage(step.get("metrics")), ts=ts,
                    agent=agent, extra={"step_id": step.get("step_id"), **as_object(step.get("extra"))}, line=line,
                )  # fmt: skip
            self._builder.message("assistant", without_reasoning(text), ts=ts, agent=agent, line=line)
            for call in asked:
                self._builder.call(
                    as_text(call.get("function_name")), call_id=as_name(call.get("tool_call_id")), ts=ts, agent=agent,
                    args=call.get("arguments", ABSENT), origin="harness" if is_dispatch else "model", parent=parent,
                    extra={**rest(call, _CALL_KEYS), **as_object(call.get("extra"))}, line=line,
                )  # fmt: skip
        observed = as_objects(as_object(step.get("observation")).get("results"))
        if agent == MAIN_AGENT and source == "agent":
            self._stop = "unknown" if asked or observed or not text else "final_answer"
        for result in observed:
            self._observe(result, agent, depth, has_calls=bool(asked))

    def _observe(self, result: dict[str, Any], agent: str, depth: int, *, has_calls: bool) -> None:
        call_id = as_name(result.get("source_call_id"))
        for reference in as_objects(result.get("subagent_trajectory_ref")) or [
            as_object(result.get("subagent_trajectory_ref"))
        ]:
            for key in ("trajectory_id", "session_id"):
                self._subagent(as_text(reference.get(key)), call_id, depth + 1)
        content = result.get("content", ABSENT)
        if call_id is None and not has_calls:
            # What was done stands in the text of the message only: there is no call that this could answer.
            self._builder.message("environment", text_of_parts(content), agent=agent, line=self._line)
            return
        extra = {**rest(result, _RESULT_KEYS), **as_object(result.get("extra"))}
        self._builder.result(call_id, value=result_value(content), extra=extra, line=self._line)

    def _subagent(self, key: str | None, call_id: str | None, depth: int) -> None:
        trajectory = self._embedded.pop(key, None) if key is not None else None
        if trajectory is None:
            return
        for other in [name for name, each in self._embedded.items() if each is trajectory]:
            del self._embedded[other]
        if depth > MAX_DEPTH:
            self._builder.note("subagents nested too deeply were left out", self._line)
            return
        name = as_text(as_object(trajectory.get("agent")).get("name")) or "subagent"
        self._agents[name] = self._agents.get(name, 0) + 1
        number = self._agents[name]
        self._steps(trajectory, name if number == 1 else f"{name}-{number}", call_id, depth)


def _usage(value: Any) -> Usage | None:
    metrics = as_object(value)
    found = Usage(
        input_tokens=as_count(metrics.get("prompt_tokens")), output_tokens=as_count(metrics.get("completion_tokens")),
        cached_tokens=as_count(metrics.get("cached_tokens")), cost_usd=as_number(metrics.get("cost_usd")),
    )  # fmt: skip
    return None if found == Usage() else found


SOURCE: Final = Source(
    NAME, "ATIF trajectories, versions 1.0 to 1.8", matches, read,
    notes="one time per step, no flag for a failed tool",
)  # fmt: skip
