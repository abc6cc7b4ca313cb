"""Outputs of Codex's tools: a string, JSON in a string, an object, a list of parts, and what they say of failure.

Failure stands in an exit code, or in words that Codex itself writes in front of the output, never in the output.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.event import ABSENT, ErrorClass, Status
from goldentrace.sources.shapes import as_number, as_object, as_objects
from goldentrace.sources.transcript import result_value

REJECTED: Final = ("patch rejected by user", "exec command rejected by user", "rejected by user")
_SANDBOX: Final = re.compile(r"failed in sandbox \w+ with execution error: ")
_EXITED: Final = re.compile(r"^Process exited with code (-?\d{1,10})$", re.MULTILINE)
_WALL: Final = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE)
_HEADER_END: Final = "\nOutput:"


@dataclass(frozen=True, slots=True)
class Output:
    """value: what the tool gave; exit_code, duration_s: None where not told."""

    value: Any
    status: Status = "ok"
    error_class: ErrorClass | None = None
    exit_code: int | None = None
    duration_s: float | None = None


def read_output(output: Any) -> Output:
    """Return what an output says. output: as the row has it, ABSENT or None where it has none."""
    if output is None or output is ABSENT:
        return Output(ABSENT)
    if isinstance(output, list):
        return _from_parts(output)
    if isinstance(output, dict):
        return _from_object(output)
    return _from_text(output) if isinstance(output, str) else Output(output)


def _from_parts(parts: list[Any]) -> Output:
    first = as_objects(parts[:1])
    told = _from_text(first[0]["text"]) if first and isinstance(first[0].get("text"), str) else Output(parts)
    value = told.value if len(parts) == 1 else parts
    return Output(value, told.status, told.error_class, told.exit_code, told.duration_s)


def _from_object(output: dict[str, Any]) -> Output:
    metadata = as_object(output.get("metadata"))
    code = metadata.get("exit_code")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    value = output["output"] if "output" in output and metadata else result_value([output])
    if "content" in output and "success" in output:
        value = output["content"]
    has_failed = exit_code not in (None, 0) or output.get("success") is False
    return Output(
        value, "error" if has_failed else "ok", "tool_error" if has_failed else None, exit_code,
        as_number(metadata.get("duration_seconds")),
    )  # fmt: skip


def _from_text(text: str) -> Output:
    if text.startswith('{"'):
        try:
            value = decode(text)
        except JsonError:
            value = None
        if isinstance(value, dict) and "output" in value and isinstance(value.get("metadata"), dict):
            return _from_object(value)
    if text.startswith(REJECTED):
        return Output(text, "denied", "denied")
    if _SANDBOX.match(text):
        return Output(text, "error", "tool_error")
    header, mark, _ = text.partition(_HEADER_END)
    exited = _EXITED.search(header) if mark else None
    wall = _WALL.search(header) if mark else None
    code = int(exited.group(1)) if exited else None
    has_failed = code not in (None, 0)
    return Output(
        text, "error" if has_failed else "ok", "tool_error" if has_failed else None, code,
        float(wall.group(1)) if wall else None,
    )  # fmt: skip
