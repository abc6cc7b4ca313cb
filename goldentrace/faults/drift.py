"""What faults do to a result as a value: drift from its schema, pages that are cut. Pure."""

import json
from typing import Any

from goldentrace.faults.plan import Pages, Step
from goldentrace.faults.template import MISSING, look_up, put

CURSOR_PREFIX = "page-"


def drifted(value: Any, params: dict[str, Any]) -> Any:
    """Return a result that no longer keeps to its schema.

    drop, rename, retype, add: JSON Pointers, applied in this order. Without any of them the first key goes; what is no
    object becomes text.
    """
    if not any(key in params for key in ("drop", "rename", "retype", "add")):
        if isinstance(value, dict) and value:
            return dict(list(value.items())[1:])
        return json.dumps(value)
    for pointer in params.get("drop", ()):
        value = put(value, pointer, MISSING)
    for pointer, name in params.get("rename", {}).items():
        item = look_up(value, pointer)
        if item is not MISSING:
            value = put(put(value, pointer, MISSING), f"{pointer.rpartition('/')[0]}/{name}", item)
    for pointer, kind in params.get("retype", {}).items():
        item = look_up(value, pointer)
        if item is not MISSING:
            value = put(value, pointer, _retyped(item, kind))
    for pointer, item in params.get("add", {}).items():
        value = put(value, pointer, item)
    return value


def _retyped(value: Any, kind: str) -> Any:
    if kind == "string":
        return value if isinstance(value, str) else json.dumps(value)
    if kind == "number":
        return float(len(str(value)))
    if kind == "boolean":
        return bool(value)
    if kind == "null":
        return None
    return [value] if kind == "array" else {"value": value}


def page(value: Any, pages: Pages, cursor: Any, step: Step | None) -> Any:
    """Return one page of a result. cursor: as a call gave it, MISSING for the first page; step: a `truncated_page`.

    The cursor is in the result exactly if items are left, unless the step is silent.
    """
    items = look_up(value, pages.items)
    if not isinstance(items, list):
        return value
    start = _start(cursor, len(items))
    size = pages.size if pages.size is not None else len(items)
    is_silent = False
    if step is not None:
        left = len(items) - start
        size = min(step.params.get("keep", left // 2), size)
        is_silent = bool(step.params.get("is_silent"))
    end = min(start + size, len(items))
    value = put(value, pages.items, items[start:end])
    is_more = end < len(items) and not is_silent
    return put(value, pages.cursor, f"{CURSOR_PREFIX}{end}" if is_more else MISSING)


def _start(cursor: Any, count: int) -> int:
    """Where a page begins; a cursor that this server did not give out begins at the first item."""
    if isinstance(cursor, str) and cursor.startswith(CURSOR_PREFIX):
        digits = cursor.removeprefix(CURSOR_PREFIX)
        if digits.isascii() and digits.isdecimal() and len(digits) < 10:
            return min(int(digits), count)
    return 0
