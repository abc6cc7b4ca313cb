"""GT1003 stale-refetch: a resource read again although nothing touched it.

What it finds: a successful read by the model that it made in an earlier turn with arguments that are equal after
    normalization, with no write to that resource and no call of unknown access in between.
Why it matters: the result is already in the context; the repeat costs a round trip and grows every later request.
Example: read_file(config.json) in turn 2 and again in turn 3.
Not a finding: a read after a write (it verifies); another slice of the same file (other arguments); a read whose
    result is recorded and differs (something else did touch the resource); a tool declared `polling`; a retry by the
    harness.
Options: none.
Needs: arguments, turns, status of results, access of the tool; its `resource` template narrows which writes count.
    Where the access of a repeated tool is not declared it says so, and GT1004 judges by the results alone.
References: a published detector without the condition of equal arguments reached 3 % precision on 30 hand-checked
    pairs.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, rule, undeclared
from goldentrace.rules.repeats import is_free, repeat
from goldentrace.rules.subject import Subject


@rule("GT1003", "stale-refetch", severity="warning", needs={Needs.ARGUMENTS, Needs.TURNS, Needs.STATUS})
def stale_refetch(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per run of re-reads, the first read as their reference."""
    fresh: dict[tuple[object, ...], tuple[tuple[object, ...], list[Ask]]] = {}
    groups: list[list[Ask]] = []
    unknown: set[str] = set()
    for ask in subject.asks:
        if not ask.is_ok or not is_free(subject, ask):
            continue
        access = subject.access(ask.operation)
        if access == "write":
            continue
        place = subject.call_key(ask)
        state, group = _state(subject, ask), fresh.get(place)
        if group is None or group[0] != state or _is_changed(subject, group[1][-1], ask):
            fresh[place] = (state, [ask])
        elif group[1][0].turn < ask.turn:
            if access is None:
                unknown.add(ask.tool_name)
            elif len(group[1]) == 1:
                groups.append(group[1])
                group[1].append(ask)
            else:
                group[1].append(ask)
    for first, *others in groups:
        where = subject.resource(first.operation)
        what = f"nothing wrote to {where} in between" if where else "nothing wrote in between"
        yield repeat("GT1003", subject, first, others, what)
    yield from undeclared(unknown)


def _state(subject: Subject, ask: Ask) -> tuple[object, ...]:
    """What a read may depend on: the writes that may touch its resource, and the calls of unknown access."""
    writes = subject.world.writes_before(ask.call_index, subject.resource(ask.operation))
    is_known = subject.access(ask.operation) is not None
    return (writes, subject.world.unknown_before(ask.call_index) if is_known else 0)


def _is_changed(subject: Subject, before: Ask, ask: Ask) -> bool:
    one, other = subject.result_digest(before.last), subject.result_digest(ask.last)
    return one is not None and other is not None and one != other
