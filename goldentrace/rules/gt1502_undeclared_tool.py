"""GT1502 undeclared-tool: a call of a tool that the model was not offered.

What it finds: a call by the model of a tool that is not in the trace's own list of tools.
Why it matters: the model made the name up, or the list that was recorded is not the one that it saw.
Example: the list has search and book; the model calls search_flights.
Not a finding: a tool that only the profile knows; a trace without a list of tools, or with a set of tools in it that
    does not name them (the tools of an MCP server).
Options: also ([]): names that count as offered.
Needs: the list of tools in the trace (`trace_start.attributes.tools`).
References: MCP `tools/list`; the `tools` of a provider's request.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1502"


@rule(CODE, "undeclared-tool", severity="error")
def undeclared_tool(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per unknown tool, its first and its last call."""
    catalogue, sets = subject.catalogue or {}, subject.open_sets
    if not catalogue and not sets:
        if subject.asks:
            yield Unchecked("the trace has no list of tools")
        return
    known = {*catalogue, *subject.profile.tools, *subject.option(CODE, "also", [])}
    calls: dict[str, list[Ask]] = {}
    for ask in subject.asks:
        if ask.tool_name not in known:
            calls.setdefault(ask.tool_name, []).append(ask)
    if calls and sets:
        yield Unchecked(f"the trace's list holds sets of tools without naming them ({', '.join(sets)})")
        return
    for tool_name, asks in calls.items():
        shown = asks if len(asks) == 1 else [asks[0], asks[-1]]
        yield finding(
            CODE, f"{shown[0].label}: {tool_name} is not among the {len(catalogue)} tools of the trace's list",
            lines=[ask.line for ask in shown], labels=[ask.label for ask in shown], tool_name=tool_name,
            count=len(asks),
        )  # fmt: skip
