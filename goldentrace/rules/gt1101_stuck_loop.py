"""GT1101 stuck-loop: the same call over and over with the same result.

What it finds: a call that the model makes `times` times (5) or more in a row, with arguments that are equal after
    normalization and with the same result, without a new message of the user. One finding for all of them; its range
    begins at the call that made it a loop.
Why it matters: the agent does not take in what it gets; only a limit ends it, and every round is paid for.
Example: list_files(/tmp) 43 times: one finding, from the fifth on.
Not a finding: a tool declared `polling`; a result that changes; other calls of the same agent in between (GT1102 for
    cycles, GT1004 for single repeats); retries by the harness, the SDK or the transport.
Options: times (5): how many equal calls in a row make a loop.
Needs: arguments, results or their digests.
References: requiring the same result brought the findings of a published loop rule on shell traces from 2,622 to 31.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, left_out, rule
from goldentrace.rules.repeats import repeat
from goldentrace.rules.rows import signature
from goldentrace.rules.subject import Subject

CODE = "GT1101"
TIMES = 5
"""At four equal calls a person may still be watching something change; no run of the corpora has five of use."""


@rule(CODE, "stuck-loop", severity="error", needs={Needs.ARGUMENTS, Needs.RESULTS})
def stuck_loop(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per row of equal calls."""
    times = max(2, int(subject.option(CODE, "times", TIMES)))
    rows: dict[object, tuple[object, list[Ask]]] = {}
    for ask in subject.asks:
        seen = signature(subject, ask)
        key = None if seen is None else (seen, ask.users)
        before = rows.get(ask.lane)
        if before is not None and key is not None and before[0] == key:
            before[1].append(ask)
            continue
        if before is not None:
            yield from _loop(subject, before[1], times)
        rows[ask.lane] = (key, [ask])
    for _, row in rows.values():
        yield from _loop(subject, row, times)
    yield from left_out(subject, (ask.last for ask in subject.asks if subject.is_repeated(ask)))


def _loop(subject: Subject, row: list[Ask], times: int) -> Iterator[Finding]:
    if len(row) >= times and not subject.is_polling(row[0].tool_name):
        what = f"the same call with the same result {len(row)} times in a row"
        yield repeat(CODE, subject, row[0], row[times - 1 :], what, claims=row[1:])
