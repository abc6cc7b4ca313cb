"""GT1004 repeated-result: the same call again with the same result.

What it finds: a call by the model that repeats an earlier one of the run, at any distance, with arguments that are
    equal after normalization and with the same result, where no write in between could have touched what it reads.
Why it matters: the call brought nothing that was not known; in a loop it is the first sign.
Example: search(flights) in turn 2 and in turn 9, both times the same list.
Not a finding: a repeat whose result differs; a read after a write to its resource (a write of unknown resource counts
    for all); a write (GT1302); a failure that may pass, such as a timeout or 429; a tool declared `polling`; a retry
    by the harness.
Options: none.
Needs: arguments, results or their digests. A tool of undeclared access does not count as a write in between, the
    equal result is the evidence; but where one (another than the repeated) was called in between, the finding is only
    a note.
References: of the injected repeats of a public test set a comparison of arguments and results finds all exact and all
    rewritten ones; the measurement is in docs/what-it-cannot-see.md.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.model.profile import Severity
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, left_out, rule
from goldentrace.rules.repeats import TRANSIENT, is_free, repeat
from goldentrace.rules.subject import Subject


@rule("GT1004", "repeated-result", severity="warning", needs={Needs.ARGUMENTS, Needs.RESULTS})
def repeated_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per group of calls that equal one another in arguments and result."""
    groups: dict[tuple[object, ...], list[Ask]] = {}
    judged: list[Ask] = []
    for ask in subject.asks:
        if not is_free(subject, ask) or not _is_settled(ask) or subject.access(ask.operation) == "write":
            continue
        judged.append(ask)
        digest = subject.result_digest(ask.last) if subject.is_repeated(ask) else None
        if digest is None:
            continue
        state = subject.world.writes_before(ask.call_index, subject.resource(ask.operation))
        key = (*subject.call_key(ask), digest, ask.last.status, state)
        groups.setdefault(key, []).append(ask)
    between = _OtherUnknown(subject)
    for first, *others in groups.values():
        if others:
            note = "" if subject.access(first.operation) else f"; the access of {first.tool_name} is not declared"
            may_differ = between.has_any(first, others[-1])
            if may_differ:
                note += "; a note, because calls of undeclared tools in between may have changed something"
            severity: Severity | None = "note" if may_differ else None
            yield repeat(
                "GT1004", subject, first, others, f"the same call with the same result{note}", severity=severity
            )
    yield from left_out(subject, (ask.last for ask in judged))


class _OtherUnknown:
    """Calls of undeclared tools, so that those of other tools between two calls can be told without a scan."""

    def __init__(self, subject: Subject) -> None:
        self._all: list[int] = []
        self._of_tool: dict[str, list[int]] = {}
        for operation, attempt in subject.attempts:
            if subject.access(operation) is None:
                self._all.append(attempt.call_index)
                self._of_tool.setdefault(operation.tool_name, []).append(attempt.call_index)

    def has_any(self, first: Ask, last: Ask) -> bool:
        """Was a tool of undeclared access, another than the repeated one, called between the two?"""
        bounds = (first.call_index, last.call_index)
        own = self._of_tool.get(first.tool_name, [])
        return _count(self._all, *bounds) > _count(own, *bounds)


def _count(places: list[int], start: int, end: int) -> int:
    return bisect_left(places, end) - bisect_right(places, start)


def _is_settled(ask: Ask) -> bool:
    """Was it answered in a way that the same call would bring again?"""
    last = ask.last
    return last.status == "ok" or (last.status == "error" and last.error_class not in TRANSIENT)
