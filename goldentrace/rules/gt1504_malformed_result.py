"""GT1504 malformed-result: a result that breaks the tool's output schema was taken as success.

What it finds: a result with the status `ok` that is no JSON although the tool's output schema wants an object or
    array, or that does not keep to that schema (schema drift).
Why it matters: the model reads whatever is there; a renamed field becomes a missing value, and nobody notices.
Example: get_price used to give {"amount": 5}; now it gives {"price": 5}, status ok.
Not a finding: a malformed result that was recorded as an error: it was noticed.
Options: none.
Needs: an output schema: `tools.TOOL.output_schema` of the profile, or MCP's `outputSchema` in the trace's list of
    tools; results.
References: MCP 2025-06-18: structured results must keep to `outputSchema`.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.schemas import SchemaError, structured, violations
from goldentrace.rules.subject import MISSING, Subject

CODE = "GT1504"


@rule(CODE, "malformed-result", severity="error", needs={Needs.RESULTS})
def malformed_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per result, at its first violation."""
    unknown: set[str] = set()
    broken: dict[str, str] = {}
    for operation, attempt in subject.attempts:
        schema = subject.tool(operation.tool_name).output_schema
        if schema is None:
            unknown.add(operation.tool_name)
            continue
        value = subject.result_value(attempt)
        if attempt.status != "ok" or value is MISSING or operation.tool_name in broken:
            continue
        is_structured, value = structured(value)
        try:
            found = violations(schema, value)
        except SchemaError as error:
            broken[operation.tool_name] = f"the output schema of {operation.tool_name}: {error}"
            continue
        if found:
            pointer, what = found[0] if is_structured else ("", "is text that holds no JSON")
            yield finding(
                CODE, f"{operation.label}: the result {pointer or 'as a whole'} {what}, and counts as ok",
                lines=[attempt.result_line], labels=[operation.label], tool_name=operation.tool_name, pointer=pointer,
            )  # fmt: skip
    for why in broken.values():
        yield Unchecked(why)
    if unknown:
        few = len(unknown) == 1
        yield Unchecked(f"no output schema of {min(unknown)}" if few else f"no output schema of {len(unknown)} tools")
