"""GT1203 too-many-attempts: one layer tried an operation more often than is of use.

What it finds: an operation with more than `max_attempts` attempts (5) that one layer (harness, SDK or transport)
    made.
Why it matters: a failure that does not pass within a few attempts will not pass within twenty; time and load are
    spent.
Example: 503 nine times in a row, all by the harness.
Not a finding: attempts of several layers (GT1204); repeats by the model (GT1101, GT1103); a tool declared `polling`.
Options: max_attempts (5): attempts of one operation, the first included.
Needs: attempts that others than the model make: recorded by a recorder inside the agent.
References: default numbers of attempts of the SDKs: openai-python and anthropic-sdk-python 3, botocore 5.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.layers import MAX_ATTEMPTS, retry_layers
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1203"


@rule(CODE, "too-many-attempts", severity="error", needs={Needs.RETRIES})
def too_many_attempts(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per operation, at its first attempt, the first too many and the last."""
    allowed = int(subject.option(CODE, "max_attempts", MAX_ATTEMPTS))
    for operation in subject.operations:
        attempts = operation.attempts
        layers = retry_layers(operation)
        if len(attempts) <= allowed or len(layers) != 1 or layers == ["model"]:
            continue
        if subject.is_polling(operation.tool_name):
            continue
        yield finding(
            CODE, f"{operation.label}: {len(attempts)} attempts by the {layers[0]}, at most {allowed} are of use",
            lines=[attempts[0].call_line, attempts[allowed].call_line, attempts[-1].call_line],
            labels=[operation.label] * 3, tool_name=operation.tool_name, count=len(attempts) - allowed,
            expected=allowed, actual=len(attempts),
        )  # fmt: skip
