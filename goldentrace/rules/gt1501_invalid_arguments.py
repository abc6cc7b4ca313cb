"""GT1501 invalid-arguments: a call whose arguments break the tool's schema.

What it finds: a call by the model whose arguments do not keep to the JSON Schema of the tool.
Why it matters: a strict tool refuses it; a lenient one does something else than was meant.
Example: transfer(amount="lots") where the schema wants a number.
Not a finding: arguments that are no JSON at all (GT1503); a tool that the list of tools does not have (GT1502).
Options: none.
Needs: a schema: `tools.TOOL.schema` of the profile, or the trace's own list of tools.
References: JSON Schema 2020-12, or the draft that the schema names; MCP `inputSchema`.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.schemas import SchemaError, violations
from goldentrace.rules.subject import MISSING, Subject

CODE = "GT1501"


@rule(CODE, "invalid-arguments", severity="error", needs={Needs.ARGUMENTS})
def invalid_arguments(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per call, at its first violation."""
    unknown: set[str] = set()
    broken: dict[str, str] = {}
    for ask in subject.asks:
        schema = subject.tool(ask.tool_name).schema
        if schema is None:
            unknown.add(ask.tool_name)
            continue
        value = subject.arguments(ask.attempt)
        if value is MISSING or ask.tool_name in broken:
            continue
        try:
            found = violations(schema, value)
        except SchemaError as error:
            broken[ask.tool_name] = f"the schema of {ask.tool_name}: {error}"
            continue
        if found:
            pointer, what = found[0]
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            place = pointer or "the whole value"
            yield finding(
                CODE, f"{ask.label}: {place} {what}{more}", lines=[ask.line], labels=[ask.label],
                tool_name=ask.tool_name, pointer=pointer,
            )  # fmt: skip
    for why in broken.values():
        yield Unchecked(why)
    if unknown:
        yield Unchecked(f"no schema of {len(unknown)} tools" if len(unknown) > 1 else f"no schema of {min(unknown)}")
