"""Small traces for the tests of commands, built by hand."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def start(**fields: Any) -> dict[str, Any]:
    return {"type": "trace_start", "format": "goldentrace/1", "scenario_id": "orders", **fields}


def call(number: int, tool: str = "search", *, status: str = "ok", **args: Any) -> list[dict[str, Any]]:
    """A call of a turn of its own, and its result."""
    ids = {"turn": number, "call_id": f"call-{number}"}
    failure = {} if status == "ok" else {"error_class": "server_error", "http_status": 503}
    return [
        {"type": "tool_call", **ids, "tool_name": tool, "args": args},
        {"type": "tool_result", **ids, "status": status, **failure, "result": {"found": number}},
    ]


def end(outcome: str = "success", stop_reason: str = "final_answer") -> dict[str, Any]:
    return {"type": "trace_end", "outcome": outcome, "stop_reason": stop_reason}


def searches(count: int, query: str = "abc") -> list[dict[str, Any]]:
    """A whole run of so many searches."""
    return [start(), *(event for n in range(1, count + 1) for event in call(n, page=n, q=query)), end()]


def dump(events: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def write(path: Path, events: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump(events))
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with what it holds: to show that nothing was written."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
