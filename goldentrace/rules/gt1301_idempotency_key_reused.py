"""GT1301 idempotency-key-reused: one idempotency key for two different requests.

What it finds: two calls of one tool with the same idempotency key and arguments that are not equal after
    normalization.
Why it matters: the service answers the second with the result of the first, or with an error; the second write is
    lost.
Example: charge_card(amount 500, key k1) and later charge_card(amount 900, key k1).
Not a finding: a retry with the same key and the same arguments; the same key at two tools.
Options: none.
Needs: idempotency keys: recorded on calls, or arguments named like `idempotency_key`.
References: IETF draft idempotency-key-header-07, section 2.2; services answer 409 or 422.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1301"


@rule(CODE, "idempotency-key-reused", severity="error", needs={Needs.ARGUMENTS})
def idempotency_key_reused(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per call that reuses the key of another request."""
    first: dict[tuple[str, str], tuple[Operation, Attempt, bytes]] = {}
    reported: set[tuple[str, str, bytes]] = set()
    for operation, attempt in subject.attempts:
        key = subject.idempotency_key(attempt)
        if key is None:
            continue
        payload = subject.payload_key(attempt)
        before, failed, known = first.setdefault((operation.tool_name, key), (operation, attempt, payload))
        place = (operation.tool_name, key, payload)
        if known == payload or place in reported:
            continue
        reported.add(place)
        yield finding(
            CODE, f"{operation.label} has the idempotency key of {before.label}, and other arguments",
            lines=[failed.call_line, attempt.call_line], labels=[before.label, operation.label],
            tool_name=operation.tool_name,
        )  # fmt: skip
