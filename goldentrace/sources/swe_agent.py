"""SWE-agent trajectories: `.traj` files with steps, a history, or both.

A step holds what was done, as a shell line, and what came back; the history holds the calls by which the model asked
for it, where it called functions. Demonstrations in the history are no activity. There is no clock, but steps tell
how long they took; nothing tells whether they failed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from goldentrace.model.event import ABSENT, StopReason
from goldentrace.model.trace import Trace
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_list, as_name, as_number, as_object, as_objects, as_text, text_of_parts
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import result_value, without_reasoning

NAME: Final = "swe-agent"
SHELL: Final = "shell"
"""Tool of an action that is a line of text and no function call."""
STOPS: Final[dict[str, StopReason]] = {
    "submitted": "final_answer", "exit_cost": "cost_limit", "exit_context": "context_limit",
    "exit_api": "provider_error", "exit_total_execution_time": "wall_clock_limit",
    "exit_command_timeout": "execution_limit", "exit_format": "tool_error",
}  # fmt: skip
"""info.exit_status; `submitted (exit_cost)` is a limit after which the work so far was submitted."""
_ABSENT: Final = {
    "times": "there is no clock, only how long steps took", "usage": "token counts are for whole runs only",
    "status": "observations have no flag for failure",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether it is a trajectory of steps with an action and an observation, or a history in SWE-agent's words."""
    if not head.has_key():
        return False
    value = as_object(head.value)
    steps = as_objects(value.get("trajectory"))
    if steps and all("action" in step for step in steps[:1]) and ("observation" in steps[0] or len(steps) == 1):
        return True
    history = as_objects(value.get("history"))
    return "trajectory" not in value and any("message_type" in each and "role" in each for each in history)


@dataclass(frozen=True, slots=True)
class _Action:
    """What the model asked for in one response. calls: of functions; line: as a shell line, where it is one."""

    text: str
    calls: list[dict[str, Any]]
    line: str | None


def read(document: Document) -> Iterator[Trace]:
    """Yield the one run. Raises: InputError for what is not JSON."""
    value = as_object(document.json())
    info = as_object(value.get("info"))
    history = [each for each in as_objects(value.get("history")) if each.get("is_demo") is not True]
    name = as_name(info.get("instance_id")) or as_name(value.get("instance_id"))
    builder = TraceBuilder(
        document, NAME, name=name, scenario_id=name, absent=_ABSENT,
        attributes={"environment": value.get("environment"), "swe_agent_version": info.get("swe_agent_version")},
    )  # fmt: skip
    steps = as_objects(value.get("trajectory"))
    if steps:
        _read_steps(builder, steps, history)
    else:
        _read_history(builder, history)
    status = as_text(info.get("exit_status"))
    kept = {"exit_status": status, "model_stats": info.get("model_stats")}
    yield builder.finish(stop_reason=_stop(status), extra=kept)


def _read_steps(builder: TraceBuilder, steps: list[dict[str, Any]], history: list[dict[str, Any]]) -> None:
    actions = [_action(each) for each in history if each.get("role") == "assistant"]
    are_aligned = len(actions) == len(steps)
    for message in history:
        if message.get("role") == "assistant":
            break
        builder.message(as_text(message.get("role")) or "user", text_of_parts(message.get("content")))
    for number, step in enumerate(steps):
        action = actions[number] if are_aligned else _Action(_spoken(step), [], as_text(step.get("action")))
        seconds = as_number(step.get("execution_time"))
        extra = {"duration_ms": None if seconds is None else round(seconds * 1000, 3), "step": number + 1}
        _append(builder, action, as_text(step.get("action")))
        if builder.has_open_calls:
            builder.result(value=step.get("observation", ABSENT), extra=extra)
        else:
            builder.message("environment", as_text(step.get("observation")))


def _read_history(builder: TraceBuilder, history: list[dict[str, Any]]) -> None:
    for message in history:
        role = as_text(message.get("role")) or "user"
        if role == "assistant":
            action = _action(message)
            _append(builder, action, action.line)
        elif builder.has_open_calls and (role == "tool" or message.get("message_type") == "observation"):
            ids = [as_name(each) for each in as_list(message.get("tool_call_ids"))] or [None]
            value = result_value(message.get("content", ABSENT))
            builder.result(ids[0], value=value)
        else:
            builder.message(role, text_of_parts(message.get("content")))


def _append(builder: TraceBuilder, action: _Action, line: str | None) -> None:
    builder.turn()
    builder.message("assistant", without_reasoning(action.text))
    for call in action.calls:
        function = as_object(call.get("function"))
        given = function.get("arguments", ABSENT)
        told: dict[str, Any] = {"args_text": given} if isinstance(given, str) else {"args": given}
        builder.call(as_text(function.get("name")), call_id=as_name(call.get("id")), extra={"action": line}, **told)
    if not action.calls and line:
        builder.call(SHELL, args={"command": line})


def _action(message: dict[str, Any]) -> _Action:
    text = text_of_parts(message.get("content"))
    return _Action(text, as_objects(message.get("tool_calls")), as_text(message.get("action")))


def _spoken(step: dict[str, Any]) -> str:
    return as_text(step.get("response")) or as_text(step.get("thought")) or ""


def _stop(status: str | None) -> StopReason:
    if status is None:
        return "unknown"
    outer, _, inner = status.partition("(")
    return STOPS.get(inner.rstrip(") "), STOPS.get(outer.strip(), "unknown"))


SOURCE: Final = Source(
    NAME, "SWE-agent trajectories", matches, read, notes="no clock, but how long each step took; no flag for failure"
)
