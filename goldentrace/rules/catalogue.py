"""The tools that a trace lists itself: `trace_start.attributes.tools`.

That is where an importer or a recorder puts what the model was offered: a list of tools as MCP `tools/list` gives them
(`name, inputSchema, outputSchema, annotations`), as OpenAI's Chat Completions (`function: {name, parameters}`) and
Responses (`name, parameters`), or as Anthropic's Messages (`name, input_schema`). Of MCP's annotations only what is
stated counts: `readOnlyHint`, `destructiveHint`, `idempotentHint` (MCP 2025-06-18, schema.ts, ToolAnnotations); they
are hints of the server and give way to the profile. Must not judge.
"""

from typing import Any

import msgspec

from goldentrace.model.event import Access
from goldentrace.model.profile import UNKNOWN_TOOL, Tool


def declared_tools(value: Any) -> dict[str, Tool] | None:
    """Return name -> what a list of tools says of each, None for what is no such list."""
    if isinstance(value, dict):
        value = value.get("tools")
    if not isinstance(value, list) or not value:
        return None
    found: dict[str, Tool] = {}
    for entry in value:
        if not isinstance(entry, dict):
            continue
        function = entry.get("function")
        inner: dict[str, Any] = function if isinstance(function, dict) else entry
        name = inner.get("name") or entry.get("type")
        if isinstance(name, str) and name:
            found[name] = _tool(inner)
    return found or None


def _tool(entry: dict[str, Any]) -> Tool:
    schema = next(
        (entry[k] for k in ("inputSchema", "parameters", "input_schema") if isinstance(entry.get(k), dict)), None
    )
    output = next((entry[k] for k in ("outputSchema", "output_schema") if isinstance(entry.get(k), dict)), None)
    hints = entry.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    access: Access | None = None
    if isinstance(hints.get("readOnlyHint"), bool):
        access = "read" if hints["readOnlyHint"] else "write"
    idempotent = hints.get("idempotentHint")
    return Tool(
        access=access, destructive=access != "read" and hints.get("destructiveHint") is True,
        idempotent=idempotent if isinstance(idempotent, bool) else None, schema=schema, output_schema=output,
    )  # fmt: skip


def _first_object(entry: dict[str, Any], *names: str) -> dict[str, Any] | None:
    return next((entry[name] for name in names if isinstance(entry.get(name), dict)), None)


def merged(own: Tool, listed: Tool | None) -> Tool:
    """Return what the profile says of a tool, completed by what the trace's list says."""
    if listed is None or own == listed:
        return own
    if own == UNKNOWN_TOOL:
        return listed
    names = ("access", "idempotent", "schema", "output_schema")
    missing = {name: getattr(listed, name) for name in names if getattr(own, name) is None}
    is_destructive = own.destructive or (own.access is None and listed.destructive)
    return msgspec.structs.replace(own, destructive=is_destructive, **missing)
