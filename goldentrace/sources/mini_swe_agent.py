"""mini-SWE-agent trajectories: one shell command per response, in a fenced block or as a function call.

The first versions are a bare list of messages, in which the template of an observation is all that tells an exit code.
A response with no block or several was refused by the agent and ran nothing.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import StopReason, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources import clock
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.openai_chat import usage_of
from goldentrace.sources.shapes import as_list, as_name, as_object, as_objects, as_text, as_word, text_of_parts
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import without_reasoning

NAME: Final = "mini-swe-agent"
TOOL: Final = "bash"
STOPS: Final[dict[str, StopReason]] = {
    "submitted": "final_answer", "limitsexceeded": "cost_limit", "timeexceeded": "wall_clock_limit",
    "userinterruption": "user_cancelled", "contextwindowexceeded": "context_limit",
}  # fmt: skip
_BLOCK: Final = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
_RETURNED: Final = re.compile(r"\s*<returncode>(-?\d{1,10})</returncode>")
_TIMED_OUT: Final = re.compile(r"\s*The last command <command>.*?</command> timed out", re.DOTALL)
_SHOWN: Final = re.compile(rb"```(?:mswea_bash_command|bash)\\n")
_ABSENT: Final = {"times": "messages carry no clock", "usage": "token counts are for whole runs only"}


def matches(head: Head) -> bool:
    """Whether it names the format, or is a bare list of messages with a command in a block and a return code."""
    value = head.value
    if isinstance(value, dict):
        named = as_word(value.get("trajectory_format")).startswith("mini-swe-agent")
        info = as_object(value.get("info"))
        return named or ("mini_version" in info and "messages" in value)
    is_list = len(head.records) == 1 and isinstance(value, list) and bool(value)
    if not is_list or not all("role" in each and "content" in each for each in as_objects(value)):
        return False
    return _SHOWN.search(head.data) is not None and b"<returncode>" in head.data


def read(document: Document) -> Iterator[Trace]:
    """Yield the one run. Raises: InputError for what is not JSON."""
    value = document.json()
    record = as_object(value)
    info = as_object(record.get("info"))
    name = as_name(record.get("instance_id"))
    builder = TraceBuilder(
        document, NAME, name=name, scenario_id=name, absent=_ABSENT,
        attributes={"version": info.get("mini_version"), "config": info.get("config")},
    )  # fmt: skip
    for message in as_objects(value if isinstance(value, list) else record.get("messages")):
        _add(builder, message)
    status = as_text(info.get("exit_status"))
    stop = STOPS.get((status or "").lower(), "unknown")
    yield builder.finish(stop_reason=stop, extra={"exit_status": status, "model_stats": info.get("model_stats")})


def _add(builder: TraceBuilder, message: dict[str, Any]) -> None:
    role, text = as_word(message.get("role")) or "user", text_of_parts(message.get("content"))
    extra = as_object(message.get("extra"))
    ts = clock.utc_from_epoch(extra.get("timestamp", message.get("timestamp")), per_second=1)
    if role == "assistant":
        _act(builder, message, text, ts)
    elif builder.has_open_calls and role in ("user", "tool"):
        returned = _RETURNED.match(text)
        code = int(returned.group(1)) if returned else None
        told: dict[str, Any] = {"status": "ok"}
        if _TIMED_OUT.match(text):
            told = {"status": "timeout", "error_class": "timeout"}
        elif code not in (None, 0):
            told = {"status": "error", "error_class": "tool_error"}
        call_id = as_name(message.get("tool_call_id"))
        builder.result(call_id, value=text, ts=ts, extra={"exit_code": code}, **told)
    elif role != "exit":
        builder.message(role, text, ts=ts)


def _act(builder: TraceBuilder, message: dict[str, Any], text: str, ts: str | None) -> None:
    response = as_object(as_object(message.get("extra")).get("response"))
    usage: Usage | None = usage_of(response.get("usage"))
    builder.turn(model=as_text(response.get("model")), usage=usage, ts=ts)
    builder.message("assistant", without_reasoning(text), ts=ts)
    called = as_objects(message.get("tool_calls"))
    for call in called:
        function = as_object(call.get("function"))
        given = as_text(function.get("arguments"))
        builder.call(as_text(function.get("name")), call_id=as_name(call.get("id")), args_text=given or "", ts=ts)
    if called:
        return
    actions = [as_text(as_object(each).get("command")) or as_text(each) for each in as_list(_actions(message))]
    commands = [each for each in actions if each is not None] or _BLOCK.findall(text)
    if len(commands) == 1 or (actions and commands):
        for command in commands:
            builder.call(TOOL, args={"command": command}, ts=ts)
    elif commands:
        builder.note("a response with several commands ran none of them")


def _actions(message: dict[str, Any]) -> Any:
    return as_object(message.get("extra")).get("actions")


SOURCE: Final = Source(
    NAME, "mini-SWE-agent trajectories", matches, read, notes="exit codes where the observation tells them"
)
