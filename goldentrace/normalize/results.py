"""Results as far as a profile compares them: not at all beyond the status, their shape, their digests, or their
values."""

from typing import Any

import msgspec

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.codec.patterns import compile_pattern
from goldentrace.model import pointer as pointers
from goldentrace.model.event import ToolResult
from goldentrace.model.operation import LeafMap
from goldentrace.model.profile import Profile, ResultsMode, Tool
from goldentrace.model.trace import Trace
from goldentrace.normalize.leaves import LeafReader, Mixed, Moment
from goldentrace.normalize.moments import moment_placeholder
from goldentrace.normalize.operations import Try
from goldentrace.normalize.payloads import result_value

_SEARCHED_CHARACTERS = 10_000
"""How much of a text `error_patterns` look at: a failure says so early."""


def compared_result(attempt: Try, mode: ResultsMode, reader: LeafReader, tool: Tool | None) -> LeafMap:
    """Return the leaves of an attempt's result as the mode wants them. Ids and clock values are named by kind only."""
    result = attempt.result
    if result is None or not bytes(result.result):
        return {"#hash": result.result_hash} if result is not None and result.result_hash and mode != "shape" else {}
    value = result_value(attempt)
    flat = reader.flatten(value, tool)
    written: LeafMap = {}
    for pointer, leaf in flat.leaves.items():
        if isinstance(leaf, Mixed):
            kinds = [part if isinstance(part, str) else f"<{part.kind}>" for part in leaf.segments]
            shown = kinds[0] if len(kinds) == 1 else f"str {reader.digest(kinds)}"
            written[pointer] = "str" if mode == "shape" else shown
        elif isinstance(leaf, Moment):
            now = moment_placeholder(leaf, result) if mode != "shape" else None
            written[pointer] = now if now is not None else _in_mode(leaf.written, mode)
        else:
            written[pointer] = _in_mode(leaf, mode)
    if mode == "keep":
        for pointer, leaf in flat.leaves.items():
            if isinstance(leaf, Moment) and written[pointer] != leaf.written:
                continue  # the clock's
            if not isinstance(leaf, Mixed):  # a text with a secret, a folder or an id in it is never in clear
                written[pointer] = _kept(value, pointer, written[pointer])
    return written


def _in_mode(leaf: Any, mode: ResultsMode) -> Any:
    if mode != "shape" or not isinstance(leaf, str):
        return leaf
    return leaf.partition(" ")[0].partition("[")[0] or leaf


def _kept(value: Any, pointer: str, shown: Any) -> Any:
    """The value in clear where the leaf is plain; the digest or placeholder where it is not, or stands in a JSON
    string."""
    if not isinstance(shown, str) or " h:" not in shown:
        return shown
    for key in pointers.segments(pointer):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return shown
    return {"value": value}


def with_failures(trace: Trace, profile: Profile) -> Trace:
    """Return the trace with the ok results made errors whose text matches the `error_patterns` of their tool."""
    tools = {name: tool.error_patterns for name, tool in profile.tools.items() if tool.error_patterns}
    if not tools:
        return trace
    names = {call.call_id: call.tool_name for call in trace.calls() if call.tool_name in tools}
    events = list(trace.events)
    for index, event in enumerate(events):
        if isinstance(event, ToolResult) and event.call_id in names and _is_failure(event, tools[names[event.call_id]]):
            error_class = event.error_class or "tool_error"
            events[index] = msgspec.structs.replace(event, status="error", error_class=error_class)
    return msgspec.structs.replace(trace, events=events)


def _is_failure(result: ToolResult, patterns: list[str]) -> bool:
    if result.status != "ok" or not bytes(result.result):
        return False
    try:
        value = decode(result.result)
    except JsonError:
        return False
    text = value if isinstance(value, str) else bytes(result.result).decode("utf-8", "replace")
    return any(compile_pattern(pattern).is_found(text[:_SEARCHED_CHARACTERS]) for pattern in patterns)
