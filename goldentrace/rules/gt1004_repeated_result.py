"""GT1004 repeated-result: the same call again with the same result.

What it finds: a call by the model that repeats an earlier one of the run, at any distance, with arguments that are
    equal after normalization and with the same result, where no write in between could have touched what it reads.
Why it matters: the call brought nothing that was not known; in a loop it is the first sign.
Example: search(flights) in turn 2 and in turn 9, both times the same list.
Not a finding: a repeat whose result differs; a read after a write to its resource (a write of unknown resource counts
    for all); a write (GT1302); a failure that may pass, such as a timeout or 429; a tool declared `polling`; a retry
    by the harness.
Options: none.
Needs: results or their digests. A tool of undeclared access counts neither as a write in between nor as one that may
    not be repeated: the equal result is the evidence, and the finding says so.
References: of the injected repeats of a public test set a comparison of arguments and results finds all exact and all
    rewritten ones; the measurement is in docs/what-it-cannot-see.md.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, rule
from goldentrace.rules.repeats import TRANSIENT, is_free, repeat
from goldentrace.rules.subject import Subject


@rule("GT1004", "repeated-result", severity="warning", needs=Needs.RESULTS)
def repeated_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per group of calls that equal one another in arguments and result."""
    groups: dict[tuple[object, ...], list[Ask]] = {}
    missing = 0
    for ask in subject.asks:
        if not is_free(subject, ask) or not _is_settled(ask) or subject.access(ask.operation) == "write":
            continue
        digest = subject.result_digest(ask.last)
        if digest is None:
            missing += ask.is_ok
            continue
        state = subject.world.writes_before(ask.call_index, subject.resource(ask.operation))
        key = (ask.lane, ask.tool_name, subject.semantic_key(ask.attempt), digest, ask.last.status, state)
        groups.setdefault(key, []).append(ask)
    for first, *others in groups.values():
        if others:
            note = "" if subject.access(first.operation) else f"; the access of {first.tool_name} is not declared"
            yield repeat("GT1004", subject, first, others, f"the same call with the same result{note}")
    if missing:
        yield Unchecked(f"the results of {missing} calls were left out")


def _is_settled(ask: Ask) -> bool:
    """Was it answered in a way that the same call would bring again?"""
    last = ask.last
    return last.status == "ok" or (last.status == "error" and last.error_class not in TRANSIENT)
