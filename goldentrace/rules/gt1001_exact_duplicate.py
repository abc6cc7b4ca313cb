"""GT1001 exact-duplicate: the same call twice in one turn.

What it finds: two or more successful calls by the model of one tool in one turn with byte-equal arguments.
Why it matters: both were asked for before either answer was used, so the second cannot bring anything new; a write of
    this kind takes effect twice.
Example: one response of the model asks for get_user(id=7) twice.
Not a finding: a retry by the harness, the SDK or the transport; a call that failed and was asked for again; other
    arguments; a tool declared `polling`; a second call in a later turn (GT1003, GT1004).
Options: none.
Needs: arguments, turns, status of results.
References: per repeat one rule speaks, in the order GT1101, GT1405, GT1103, GT1001, GT1002, GT1102, GT1003, GT1004.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, rule
from goldentrace.rules.repeats import is_free, repeat
from goldentrace.rules.subject import Subject


@rule("GT1001", "exact-duplicate", severity="error", needs={Needs.ARGUMENTS, Needs.TURNS, Needs.STATUS})
def exact_duplicate(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per group of equal calls of a turn."""
    groups: dict[tuple[object, ...], list[Ask]] = {}
    for ask in subject.asks:
        if ask.is_ok and is_free(subject, ask):
            key = (ask.lane, ask.turn, ask.tool_name, subject.exact_key(ask.attempt))
            groups.setdefault(key, []).append(ask)
    for first, *others in groups.values():
        if others:
            yield repeat("GT1001", subject, first, others, "the same call with the same bytes in one turn")
