"""GT1205 non-idempotent-retry: a write that may have taken effect was made again without the same idempotency key.

What it finds: a declared write that ended without an answer (timeout, reset, partial body, 500, 502, 504 …), and an
    equal call after it, by whoever, that carries no idempotency key or another one.
Why it matters: the first may have been carried out; the second then charges, sends or books twice.
Example: charge_card times out after the request left, and is sent again with a new key.
Not a finding: the same key; a request that did not leave (`sent: false`, refused connection, DNS); 429 and 503; a
    tool declared `idempotent`; a repeat after the outcome was looked up (a `reconcile` decision, or a tool that
    `reconciles` it); a read.
Options: none.
Needs: arguments, access of the tool, failed calls told from successful ones.
References: RFC 9110, section 9.2.2; IETF draft idempotency-key-header-07.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.registry import Unchecked, finding, rule, undeclared
from goldentrace.rules.subject import Subject
from goldentrace.rules.writes import Write, unknown_writes

CODE = "GT1205"


@rule(CODE, "non-idempotent-retry", severity="error", needs={Needs.ARGUMENTS, Needs.FAILURES})
def non_idempotent_retry(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per attempt that may double a write."""
    writes, unknown = unknown_writes(subject)
    done: set[int] = set()
    for write in writes:
        if subject.tool(write.operation.tool_name).idempotent:
            continue
        yield from _check(subject, write, done)
    yield from undeclared(unknown)


def _check(subject: Subject, write: Write, done: set[int]) -> Iterator[Finding]:
    key = subject.idempotency_key(write.attempt)
    for operation, attempt in write.repeats:
        if attempt.call_index in done:
            continue
        other = subject.idempotency_key(attempt)
        if key is not None and other == key:
            continue
        done.add(attempt.call_index)
        how = "without an idempotency key" if other is None else "with another idempotency key"
        how_first = write.attempt.error_class or write.attempt.status
        yield finding(
            CODE, f"{write.operation.label} may have taken effect ({how_first}), and was made again by the "
            f"{attempt.origin} {how}",
            lines=[write.attempt.call_line, attempt.call_line], labels=[write.operation.label, operation.label],
            tool_name=operation.tool_name,
        )  # fmt: skip
