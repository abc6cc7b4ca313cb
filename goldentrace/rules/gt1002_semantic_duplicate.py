"""GT1002 semantic-duplicate: the same call twice in one turn, written differently.

What it finds: two or more successful calls by the model of one tool in one turn whose arguments are equal once key
    order, white space around strings, and the difference between 5 and "5" are set aside.
Why it matters: it is one request twice; comparing bytes, as caches and loop guards do, does not see it.
Example: get_user({"id": 5}) and get_user({"id": "5"}) in one response of the model.
Not a finding: byte-equal arguments (GT1001); strings that differ in case; "007" and 7; other arguments; a tool
    declared `polling`; a retry by the harness, the SDK or the transport.
Options: none; `arguments.ignore` and `tools.TOOL.ignore` of the profile leave arguments out of the comparison.
Needs: arguments, turns, status of results.
References: the comparison is that of `equivalence: semantic`, with JSON's own form of numbers (RFC 8259, section 6).
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, rule
from goldentrace.rules.repeats import is_free, repeat
from goldentrace.rules.subject import Subject


@rule("GT1002", "semantic-duplicate", severity="error", needs={Needs.ARGUMENTS, Needs.TURNS, Needs.STATUS})
def semantic_duplicate(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per group of calls of a turn that are equal in meaning but not in bytes."""
    groups: dict[tuple[object, ...], list[Ask]] = {}
    for ask in subject.asks:
        if ask.is_ok and is_free(subject, ask):
            key = (ask.lane, ask.turn, ask.tool_name, subject.semantic_key(ask.attempt))
            groups.setdefault(key, []).append(ask)
    for first, *others in groups.values():
        if others:
            yield repeat("GT1002", subject, first, others, "the same call in one turn, only written differently")
