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
    found: dict[str, Tool] = {}
    for entry in _entries(value):
        if _is_set(entry):
            found |= {name: Tool() for name in _allowed(entry)}
            continue
        function = entry.get("function")
        inner: dict[str, Any] = function if isinstance(function, dict) else entry
        name = inner.get("name") or entry.get("type")
        if isinstance(name, str) and name:
            found[name] = _tool(inner)
    return found or None


def open_sets(value: Any) -> list[str]:
    """Return the sets of tools in a list that do not say which tools they hold, by the name of their server or type."""
    sets = [entry for entry in _entries(value) if _is_set(entry) and not _allowed(entry)]
    return [str(entry.get("mcp_server_name") or entry.get("server_label") or entry["type"]) for entry in sets]


def _entries(value: Any) -> list[dict[str, Any]]:
    listed = value.get("tools") if isinstance(value, dict) else value
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _is_set(entry: dict[str, Any]) -> bool:
    """All tools of one server: OpenAI's `mcp`, Anthropic's `mcp_toolset` and `agent_toolset_…`."""
    kind = entry.get("type")
    return isinstance(kind, str) and "name" not in entry and (kind == "mcp" or "toolset" in kind)


def _allowed(entry: dict[str, Any]) -> list[str]:
    """The tools of an OpenAI `mcp` entry, where it names them."""
    names = entry.get("allowed_tools")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


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
