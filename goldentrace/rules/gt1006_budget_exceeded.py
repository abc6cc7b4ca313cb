"""GT1006 budget-exceeded: a run used more than its scenario allows.

What it finds: more tool calls in all or of one tool, attempts, wall time, tokens, cost, writes or destructive calls
    than the scenario's `budgets:` allow.
Why it matters: a prompt or model change that costs five more calls is invisible in the answer and visible on the
    bill.
Example: budgets {tool_calls: 5} and a run of six calls by the model.
Not a finding: retries by the harness, the SDK or the transport do not count as tool calls of the model; they count as
    attempts.
Options: none; the numbers are the scenario's.
Needs: a budget; times for wall_ms, usage for tokens and cost_usd, access for writes.
References: `limits:` are enforced while running, budgets are checked afterwards.
"""

from collections import Counter
from collections.abc import Iterator

from goldentrace.model.event import ModelTurn
from goldentrace.model.finding import Finding
from goldentrace.normalize.offsets import offsets_of
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1006"


@rule(CODE, "budget-exceeded", severity="error")
def budget_exceeded(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per budget that was passed, pointing at the event that passed it."""
    budgets = dict(subject.budgets)
    per_tool = budgets.pop("tools", None) or {}
    for name, allowed in budgets.items():
        if allowed is not None:
            yield from _check(subject, name, allowed)
    counts: Counter[str] = Counter()
    totals = Counter(ask.tool_name for ask in subject.asks)
    for ask in subject.asks:
        counts[ask.tool_name] += 1
        allowed = per_tool.get(ask.tool_name)
        if allowed is not None and counts[ask.tool_name] == allowed + 1:
            yield _over(f"tools.{ask.tool_name}", totals[ask.tool_name], allowed, ask.line, ask.label)


def _check(subject: Subject, name: str, allowed: float) -> Iterator[Finding | Unchecked]:
    if name == "tool_calls":
        if len(subject.asks) > allowed:
            over = subject.asks[int(allowed)]
            yield _over(name, len(subject.asks), allowed, over.line, over.label)
    elif name == "attempts":
        for operation in subject.operations:
            tries = operation.attempts
            if len(tries) > allowed:
                yield _over(name, len(tries), allowed, tries[int(allowed)].call_line, operation.label)
    elif name == "wall_ms":
        yield from _check_wall(subject, allowed)
    elif name in ("tokens", "cost_usd"):
        yield from _check_usage(subject, name, allowed)
    elif name in ("writes", "destructive"):
        yield from _check_access(subject, name, allowed)


def _check_wall(subject: Subject, allowed: float) -> Iterator[Finding | Unchecked]:
    offsets = [offset for offset in offsets_of(subject.trace) if offset is not None]
    if len(offsets) < 2:
        yield Unchecked("budget wall_ms: the source records no times")
    elif max(offsets) > allowed:
        yield _over("wall_ms", round(max(offsets)), allowed, subject.end_line)


def _check_usage(subject: Subject, name: str, allowed: float) -> Iterator[Finding | Unchecked]:
    total = 0.0
    is_known = False
    for index, event in enumerate(subject.trace.events):
        if not isinstance(event, ModelTurn) or event.usage is None:
            continue
        usage = event.usage
        parts = (usage.input_tokens, usage.output_tokens) if name == "tokens" else (usage.cost_usd,)
        before = total
        for part in parts:
            if part is not None:
                is_known = True
                total += part
        if before <= allowed < total:
            line = subject.line(index)
            yield _over(name, _total_usage(subject, name), allowed, line)
    if not is_known:
        yield Unchecked(f"budget {name}: the source records no {'usage' if name == 'tokens' else 'cost'}")


def _total_usage(subject: Subject, name: str) -> float:
    total = 0.0
    for _, turn in subject.turns:
        if turn.usage is not None:
            parts = (turn.usage.input_tokens, turn.usage.output_tokens) if name == "tokens" else (turn.usage.cost_usd,)
            total += sum(part for part in parts if part is not None)
    return total


def _check_access(subject: Subject, name: str, allowed: float) -> Iterator[Finding | Unchecked]:
    count = 0
    unknown: set[str] = set()
    over = None
    for operation in subject.operations:
        tool = subject.tool(operation.tool_name)
        is_counted = tool.destructive if name == "destructive" else subject.access(operation) == "write"
        if name == "writes" and subject.access(operation) is None:
            unknown.add(operation.tool_name)
        count += is_counted
        if is_counted and count == allowed + 1:
            over = operation
    if over is not None:
        yield _over(name, count, allowed, over.first.call_line, over.label)
    elif unknown:
        yield Unchecked(f"budget {name}: the access of {', '.join(sorted(unknown))} is not declared")


def _over(name: str, actual: float, allowed: float, line: int, label: str | None = None) -> Finding:
    shown = int(actual) if float(actual).is_integer() else round(actual, 6)
    return finding(
        CODE, f"budget {name}: {shown}, allowed {allowed}", lines=[line], labels=[label] if label else [],
        pointer=name, expected=allowed, actual=shown,
    )  # fmt: skip
