"""GT1102 ping-pong: a cycle of calls that repeats with the same results.

What it finds: two to eight calls of one agent that come round `rounds` times (3) or more in the same order, each with
    arguments and results equal to those of the round before, without a new message of the user.
Why it matters: the agent goes in a circle, which a guard that looks at one call at a time does not see.
Example: open(a), open(b), open(a), open(b), open(a), open(b), always with the same answers.
Not a finding: a cycle in which any result changes; one call over and over (GT1101); a cycle that holds a tool
    declared `polling`; a cycle of which GT1101 or GT1103 has spoken already.
Options: rounds (3): how often the cycle must come round.
Needs: arguments, results or their digests.
References: cycles longer than eight calls were not met in real runs; the bound keeps the cost linear.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, finding, left_out, rule
from goldentrace.rules.repeats import is_free
from goldentrace.rules.rows import signature
from goldentrace.rules.subject import Subject

CODE = "GT1102"
ROUNDS = 3
MAX_PERIOD = 8


@rule(CODE, "ping-pong", severity="warning", needs={Needs.ARGUMENTS, Needs.RESULTS})
def ping_pong(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per cycle."""
    rounds = max(2, int(subject.option(CODE, "rounds", ROUNDS)))
    lanes: dict[object, list[Ask]] = {}
    for ask in subject.asks:
        lanes.setdefault(ask.lane, []).append(ask)
    for asks in lanes.values():
        yield from _cycles(subject, asks, rounds)
    yield from left_out(subject, (ask.last for ask in subject.asks if subject.is_repeated(ask)))


def _cycles(subject: Subject, asks: list[Ask], rounds: int) -> Iterator[Finding]:
    """One pass per period; a stretch that a shorter period explains is not looked at again."""
    seen = [None if s is None else (s, a.users) for a, s in ((a, signature(subject, a)) for a in asks)]
    is_taken = [not is_free(subject, ask) for ask in asks]
    for period in range(2, MAX_PERIOD + 1):
        start = 0
        for place in range(period, len(asks) + 1):
            is_same = (
                place < len(asks)
                and seen[place] is not None
                and seen[place] == seen[place - period]
                and not is_taken[place]
                and not is_taken[place - period]
            )
            if is_same:
                continue
            length = place - start
            if length >= rounds * period and len(set(seen[start : start + period])) > 1:
                yield _cycle(subject, asks[start:place], period)
                is_taken[start:place] = [True] * length
            start = place - period + 1


def _cycle(subject: Subject, asks: list[Ask], period: int) -> Finding:
    for ask in asks[period:]:
        subject.claimed[ask.call_index] = CODE
    shown = [asks[0], asks[period], asks[-1]]
    names = ", ".join(ask.label for ask in asks[:period])
    rounds = len(asks) // period
    return finding(
        CODE, f"{names} came round {rounds} times with the same results", lines=[ask.line for ask in shown],
        labels=[ask.label for ask in shown], tool_name=asks[0].tool_name, count=len(asks) - period,
    )  # fmt: skip
