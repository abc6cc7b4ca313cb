"""Results as far as a profile compares them: not at all beyond the status, their shape, their digests, or their
values."""

import re
from typing import Any

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model import pointer as pointers
from goldentrace.model.event import ToolResult
from goldentrace.model.operation import LeafMap
from goldentrace.model.profile import ResultsMode, Tool
from goldentrace.normalize.leaves import LeafReader, Mixed, Moment
from goldentrace.normalize.operations import Try
from goldentrace.normalize.payloads import result_value

_SEARCHED_CHARACTERS = 10_000
"""How much of a text `error_patterns` look at: a failure says so early, and a pattern must not run for ever."""


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
            written[pointer] = _in_mode(leaf.written, mode)
        else:
            written[pointer] = _in_mode(leaf, mode)
    if mode == "keep":
        return {pointer: _kept(value, pointer, shown) for pointer, shown in written.items()}
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


def is_failure_text(event: Any, patterns: list[str]) -> bool:
    """Does an ok result's text match one of the profile's patterns of failure?"""
    if not isinstance(event, ToolResult) or event.status != "ok" or not bytes(event.result):
        return False
    try:
        value = decode(event.result)
    except JsonError:
        return False
    text = value if isinstance(value, str) else bytes(event.result).decode("utf-8", "replace")
    return any(re.search(pattern, text[:_SEARCHED_CHARACTERS]) for pattern in patterns)
