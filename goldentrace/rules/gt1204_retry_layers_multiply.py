"""GT1204 retry-layers-multiply: several layers retry one operation, and together go past one budget.

What it finds: an operation that two or more of model, harness, SDK and transport tried again, with more than
    `max_attempts` attempts (5) in all.
Why it matters: three layers of three attempts are 27 requests for one call; no layer knows of the others.
Example: the SDK tries three times, fails, the harness calls it again: six requests.
Not a finding: attempts of one layer (GT1203); several layers within the budget; a tool declared `polling`.
Options: max_attempts (5): attempts of one operation over all layers, the first included.
Needs: origins of attempts: a recorder inside the agent, or a tool server that sees the SDK's retry header.
References: one retry budget per operation: the sum over the layers counts, not the number of each.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.layers import MAX_ATTEMPTS, retry_layers
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1204"


@rule(CODE, "retry-layers-multiply", severity="error", needs={Needs.RETRIES})
def retry_layers_multiply(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per operation, at its first attempt, the first past the budget and the last."""
    allowed = int(subject.option(CODE, "max_attempts", MAX_ATTEMPTS))
    for operation in subject.operations:
        attempts = operation.attempts
        layers = retry_layers(operation)
        if len(attempts) <= allowed or len(layers) < 2 or subject.is_polling(operation.tool_name):
            continue
        counts = [f"{sum(a.origin == layer for a in attempts[1:])} by the {layer}" for layer in layers]
        yield finding(
            CODE, f"{operation.label}: {len(attempts)} attempts, one budget of {allowed}: retries {', '.join(counts)}",
            lines=[attempts[0].call_line, attempts[allowed].call_line, attempts[-1].call_line],
            labels=[operation.label] * 3, tool_name=operation.tool_name, count=len(attempts) - allowed,
            expected=allowed, actual=len(attempts),
        )  # fmt: skip
