"""GT1302 duplicate-effect: one write, carried out twice.

What it finds: with a ledger (`effect` events): two attempts of one write that both committed. Without one: a declared
    write that the model invoked twice with equal arguments, both times with success; that is worded "invoked twice,
    delivery not proven".
Why it matters: the customer is charged twice, the mail arrives twice.
Example: send_email with the same text in turn 2 and in turn 7.
Not a finding: the same idempotency key on both; a tool declared `idempotent`; a ledger of that tool that shows one
    commit; a repeat that GT1101, GT1103, GT1001 or GT1002 has spoken about, where no ledger proves two commits; a
    retry by the harness, where no ledger proves two commits. A repeat after a message of the user is a warning: they
    may have asked for it.
Options: none.
Needs: arguments, access of the tool, or a ledger; status of results.
References: design of payment APIs: one intent, one effect; IETF draft idempotency-key-header-07.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.ask import Ask
from goldentrace.rules.ledger import commits
from goldentrace.rules.registry import Unchecked, finding, rule, undeclared
from goldentrace.rules.subject import Subject

CODE = "GT1302"


@rule(CODE, "duplicate-effect", severity="error", needs={Needs.ARGUMENTS, Needs.STATUS})
def duplicate_effect(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per write that took effect, or was invoked, more than once."""
    proven: set[tuple[str, bytes]] = set()
    with_ledger: set[str] = set()
    groups: dict[tuple[str, bytes, str], dict[int, tuple[int, Operation, Attempt]]] = {}
    for effect, index, operation, attempt in commits(subject):
        with_ledger.add(operation.tool_name)
        place = (operation.tool_name, subject.payload_key(attempt), effect.name)
        groups.setdefault(place, {}).setdefault(attempt.call_index, (index, operation, attempt))
    for (tool_name, payload, name), by_attempt in groups.items():
        if len(by_attempt) > 1:
            proven.add((tool_name, payload))
            yield _proven(subject, name, list(by_attempt.values()))
    yield from _invoked(subject, proven, with_ledger)


def _proven(subject: Subject, name: str, made: list[tuple[int, Operation, Attempt]]) -> Finding:
    shown = made if len(made) <= 3 else [made[0], made[1], made[-1]]
    who = " and ".join(dict.fromkeys(operation.label for _, operation, _ in shown))
    return finding(
        CODE, f"{who}: {len(made)} commits of one write in the ledger ({name})",
        lines=[subject.line(index) for index, _, _ in shown], labels=[operation.label for _, operation, _ in shown],
        tool_name=made[0][1].tool_name, count=len(made) - 1, expected=1, actual=len(made),
    )  # fmt: skip


def _invoked(subject: Subject, proven: set[tuple[str, bytes]], with_ledger: set[str]) -> Iterator[Finding | Unchecked]:
    groups: dict[tuple[str, bytes], list[Ask]] = {}
    for ask in subject.asks:
        if ask.is_ok and ask.call_index not in subject.claimed and not subject.tool(ask.tool_name).idempotent:
            groups.setdefault((ask.tool_name, subject.payload_key(ask.attempt)), []).append(ask)
    unknown: set[str] = set()
    for place, asks in groups.items():
        if len(asks) < 2 or place in proven or place[0] in with_ledger:
            continue
        access = subject.access(asks[0].operation)
        if access is None:
            unknown.add(place[0])
        elif access == "write":
            yield from _repeats(subject, asks)
    yield from undeclared(unknown)


def _repeats(subject: Subject, asks: list[Ask]) -> Iterator[Finding]:
    """One finding for the calls that do not carry a key which one before them has."""
    keys: set[str] = set()
    apart: list[Ask] = []
    for ask in asks:
        key = subject.idempotency_key(ask.attempt)
        if key is None or key not in keys:
            apart.append(ask)
        if key is not None:
            keys.add(key)
    if len(apart) < 2:
        return
    shown = apart if len(apart) <= 3 else [apart[0], apart[1], apart[-1]]
    times = "twice" if len(apart) == 2 else f"{len(apart)} times"
    for ask in apart[1:]:
        subject.claimed[ask.call_index] = CODE
    yield finding(
        CODE, f"{shown[0].label} and {shown[-1].label}: invoked {times}, delivery not proven [side effect]",
        lines=[ask.line for ask in shown], labels=[ask.label for ask in shown], tool_name=shown[0].tool_name,
        count=len(apart) - 1, severity="warning" if apart[-1].users > apart[0].users else None,
    )  # fmt: skip
