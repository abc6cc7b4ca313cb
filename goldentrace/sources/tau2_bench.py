"""tau2-bench and what is built on it: its own results, RedundancyBench (both versions), AgentSuite's rows.

Results hold `simulations`, each with a task and a list of messages; a row of AgentSuite is one simulation. Arguments
are objects, a tool message states failure in `error`, and both the agent and the simulated user (`requestor`) have
tools. The index of a message in its simulation, by which RedundancyBench labels steps, is kept as `message_index`.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import ABSENT, Outcome, StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_list, as_name, as_number, as_object, as_objects, as_text
from goldentrace.sources.source import Source
from goldentrace.sources.tau_bench import reward_outcome
from goldentrace.sources.transcript import Answered, Called, Item, Said, Transcript, Turn, rest

NAME: Final = "tau2-bench"
USER: Final = "user"
_STOPS: Final[dict[str, StopReason]] = {
    "user_stop": "final_answer", "agent_stop": "final_answer", "max_steps": "turn_limit", "timeout": "wall_clock_limit",
    "too_many_errors": "tool_error", "agent_error": "provider_error", "infrastructure_error": "provider_error",
}  # fmt: skip
"""termination_reason (tau2/data_model/simulation.py); others are `unknown`."""
_ABSENT: Final = {"times": "the messages carry no timestamp", "usage": "the messages carry no token counts"}
_ABOUT: Final = ("trial", "seed", "duration", "agent_cost", "user_cost", "reward_info", "reward", "termination_reason")


def matches(head: Head) -> bool:
    """Whether it is a results file, a list or table of simulations, or rows of AgentSuite."""
    value = head.value
    if isinstance(value, dict) and isinstance(value.get("simulations"), list):
        return True
    if isinstance(value, dict) and isinstance(value.get("tasks"), list) and {"info", "timestamp"} <= value.keys():
        return True  # the simulations come after the tasks, beyond the head
    first = head.objects[0] if head.objects else {}
    return ("benchmark_name" in first and "eval_result" in first) or _is_simulation(first)


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per simulation."""
    for line, value in document.records():
        for simulation in _simulations(value):
            yield _read_simulation(document, simulation, line)


def items(message: dict[str, Any]) -> list[Item]:
    """Return the items of one message."""
    role, content = message.get("role"), message.get("content")
    ts = clock.utc(message.get("timestamp"))
    if role == "tool" and isinstance(message.get("tool_messages"), list):
        return [item for each in as_objects(message["tool_messages"]) for item in items({**each, "role": "tool"})]
    if role == "tool":
        has_failed = message.get("error") is True
        call_id = as_name(message.get("id")) or as_name(message.get("tool_call_id"))
        return [
            Answered(
                call_id, content, "error" if has_failed else "ok", "tool_error" if has_failed else None,
                as_text(message.get("name")), ts=ts,
            )
        ]  # fmt: skip
    text = as_text(content)
    said: list[Item] = [Said(role if isinstance(role, str) else USER, text, ts)] if text else []
    opening: list[Item] = [Turn(usage=_usage(message), ts=ts)] if role == "assistant" else []
    return [*opening, *said, *(_call(each, role, ts) for each in as_objects(message.get("tool_calls")))]


def _is_simulation(record: dict[str, Any]) -> bool:
    """Whether only tau2 writes the object so: flat calls with a requestor, in messages of a task."""
    if "task_id" not in record:
        return False
    calls = [call for message in as_objects(record.get("messages")) for call in as_objects(message.get("tool_calls"))]
    return any("requestor" in call for call in calls)


def _simulations(value: Any) -> Iterator[dict[str, Any]]:
    """The simulations of a results file, a list, a table by task, or one row."""
    if isinstance(value, list):
        for each in as_objects(value):
            yield from _simulations(each)
    elif isinstance(value, dict):
        if isinstance(value.get("simulations"), list):
            yield from as_objects(value["simulations"])
        elif isinstance(value.get("messages"), list):
            yield value
        elif value and all(isinstance(each, dict) and "messages" in each for each in value.values()):
            yield from ({"task_id": task, **each} for task, each in value.items())


def _read_simulation(document: Document, simulation: dict[str, Any], line: int) -> Trace:
    about, meta = simulation, as_object(simulation.get("meta"))
    task = as_name(about.get("task_id")) or as_name(meta.get("task_id")) or as_name(meta.get("id"))
    trial = as_name(about.get("trial"))
    start = about.get("start_time") or meta.get("simulation_start_time")
    end = about.get("end_time") or meta.get("simulation_end_time")
    domain = as_text(about.get("task_name"))
    named = [part for part in (domain, f"task-{task}" if task else None, f"trial-{trial}" if trial else None) if part]
    attributes = {key: about.get(key) for key in _ABOUT} | {
        "eval_result": about.get("eval_result"), "finish_reason": meta.get("finish_reason"),
        "model": about.get("model_path"),
    }  # fmt: skip
    builder = TraceBuilder(
        document, NAME, name="_".join(named) or None, trace_id=as_name(about.get("id")) or "_".join(named) or None,
        scenario_id=f"task-{task}" if task else None, attributes=attributes, absent=_ABSENT, line=line,
        ts=clock.utc(start),
    )  # fmt: skip
    messages = as_list(simulation.get("messages"))
    if _has_local_times(messages):
        builder.note("clock times without a zone were read as UTC")
    transcript = Transcript(builder)
    for index, message in enumerate(messages):
        if isinstance(message, dict):
            transcript.add(items(message), message_index=index)
    reason = about.get("termination_reason", meta.get("finish_reason"))
    stop = _STOPS.get(reason, "unknown") if isinstance(reason, str) else None
    return transcript.finish(_outcome(about), stop, ts=clock.utc(end))


def _has_local_times(messages: list[Any]) -> bool:
    times = [each.get("timestamp") for each in as_objects(messages)]
    return any(clock.utc(each) is not None and not clock.has_zone(each) for each in times)


def _outcome(about: dict[str, Any]) -> Outcome:
    """The reward under any of the names that it has; AgentSuite's `is_correct` is of another judge and not taken."""
    for value in (
        as_object(about.get("reward_info")).get("reward"), about.get("reward"),
        as_object(about.get("eval_result")).get("score"),
    ):  # fmt: skip
        if as_number(value) is not None:
            return reward_outcome(value)
    return "unknown"


def _call(call: dict[str, Any], role: Any, ts: str | None) -> Called:
    """A flat call, or one in the words of Chat Completions."""
    function = as_object(call.get("function")) or call
    name, call_id = as_text(function.get("name")), as_name(call.get("id"))
    is_user = call.get("requestor", role) == USER
    arguments = function.get("arguments", ABSENT)
    extra = rest(call, frozenset({"id", "name", "arguments", "requestor", "function", "type"}))
    asked_by = USER if is_user else None
    if isinstance(arguments, str):
        return Called(name, call_id, args_text=arguments, asked_by=asked_by, ts=ts, extra=extra)
    return Called(name, call_id, arguments, asked_by=asked_by, ts=ts, extra=extra)


def _usage(message: dict[str, Any]) -> Usage | None:
    counts = as_object(message.get("usage"))
    found = Usage(
        input_tokens=as_count(counts.get("prompt_tokens")), output_tokens=as_count(counts.get("completion_tokens")),
        cost_usd=as_number(message.get("cost")),
    )  # fmt: skip
    return None if found == Usage() else found


SOURCE: Final = Source(
    NAME, "tau2-bench results, RedundancyBench traces, AgentSuite rows", matches, read,
    notes="clock times have no zone; calls of the simulated user stand under the agent `user`",
)  # fmt: skip
