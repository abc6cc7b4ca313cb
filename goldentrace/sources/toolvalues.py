"""Arguments and results as instrumentation keeps them, and the wrappers of frameworks taken off.

A result failed only where a field of a known wrapper says so. Must not know about spans.
"""

from collections.abc import Mapping
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.event import ABSENT
from goldentrace.sources import langchain
from goldentrace.sources.contents import REDACTED, items_of, parsed
from goldentrace.sources.literals import literal
from goldentrace.sources.shapes import as_list, as_object, as_objects
from goldentrace.sources.transcript import Answered, Called, result_value

_SMOLAGENTS: Final = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
HIDDEN: Final = "hidden by the instrumentation"


def called_of(
    tool_name: str | None, call_id: str | None, given: Any, *, has_input: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Called:  # fmt: skip
    """Return a call whose arguments were recorded as `given`: a value, its JSON text, or a Python literal.

    has_input: whether the recorder puts them into `{"input": …}`.
    """
    extra = dict(extra or {})
    if given is None or given is ABSENT or given == "":
        return Called(tool_name, call_id, extra=extra)
    if given == REDACTED:
        return Called(tool_name, call_id, extra={**extra, "arguments": HIDDEN})
    value = _arguments(given)
    inner = _unwrapped(value, has_input=has_input)
    if isinstance(given, str) and inner is value and value is not ABSENT and _is_json_text(given):
        return Called(tool_name, call_id, args_text=given, extra=extra)
    if value is ABSENT:
        return Called(tool_name, call_id, args_text=given if isinstance(given, str) else None, extra=extra)
    return Called(tool_name, call_id, inner, extra=extra)


def _arguments(given: Any) -> Any:
    """The value; the text itself where it is no JSON and no literal; ABSENT where it is damaged JSON."""
    if not isinstance(given, str):
        return given
    try:
        return decode(given)
    except JsonError:
        pass
    found = literal(given)
    if found is not None:
        return found
    return ABSENT if given.lstrip()[:1] in ("{", "[") else given


def _is_json_text(given: str) -> bool:
    return isinstance(parsed(given), (dict, list))


def _unwrapped(value: Any, *, has_input: bool) -> Any:
    if not isinstance(value, dict):
        return value
    if "input_str" in value:  # LangChain's callback, as Traceloop writes it
        inner = value.get("inputs")
        if isinstance(inner, dict) and inner:
            return inner
        found = _arguments(value["input_str"])
        return value["input_str"] if found is ABSENT else found
    if "sanitize_inputs_outputs" in value and value.keys() <= _SMOLAGENTS:
        inner = as_object(value.get("kwargs"))
        return inner if not value.get("args") else {"args": value["args"], **inner}
    if has_input and value.keys() == {"input"}:
        inner = value["input"]
        found = _arguments(inner)
        return inner if found is ABSENT else found
    return value


def answered_of(call_id: str | None, given: Any, *, tool_name: str | None = None) -> Answered:
    """Return a result that was recorded as `given`; its call id where only the result holds it."""
    if given is None or given is ABSENT:
        return Answered(call_id, ABSENT, tool_name=tool_name)
    if given == REDACTED:
        return Answered(call_id, ABSENT, tool_name=tool_name, extra={"result": HIDDEN})
    value = _result(given)
    found = _message_answer(value, 0)
    if found is not None:
        known = call_id or found.call_id
        return Answered(known, found.value, found.status, found.error_class, tool_name, extra=found.extra)
    holder = as_object(value)
    if isinstance(holder.get("content"), list) and ("isError" in holder or "is_error" in holder or len(holder) == 1):
        return _mcp_answer(call_id, tool_name, holder)
    parts = as_objects(value)
    if len(parts) == 1 and len(as_list(value)) == 1 and parts[0].keys() == {"text"}:
        value = parts[0]["text"]
    elif isinstance(given, str) and not isinstance(value, (dict, list, str)):
        value = given
    return Answered(call_id, value, tool_name=tool_name)


def _result(given: Any) -> Any:
    """The value of a JSON text or of a Python literal, anything else as it is."""
    value = parsed(given)
    found = literal(value) if isinstance(value, str) else None
    return value if found is None else found


def _message_answer(value: Any, depth: int) -> Answered | None:
    """The result inside LangChain's tool message, or inside what holds one."""
    if depth > 4 or not isinstance(value, dict):
        return None
    if langchain.is_message(value):
        return next((item for item in langchain.items(value) if isinstance(item, Answered)), None)
    if "output" in value and value.keys() <= {"output", "kwargs", "tags", "metadata"}:
        inner = _message_answer(parsed(value["output"]), depth + 1)
        return inner or (Answered(None, parsed(value["output"])) if "kwargs" in value or len(value) == 1 else None)
    update = as_object(value.get("update"))
    if update and "messages" in update:
        return next((item for item in items_of(update["messages"]) if isinstance(item, Answered)), None)
    return None


def _mcp_answer(call_id: str | None, tool_name: str | None, holder: dict[str, Any]) -> Answered:
    has_failed = holder.get("isError") is True or holder.get("is_error") is True
    structured = holder.get("structuredContent")
    value = result_value(holder["content"]) if structured is None else structured
    status, error = ("error", "tool_error") if has_failed else ("ok", None)
    return Answered(call_id, value, status, error, tool_name)  # type: ignore[arg-type]
