"""One line per operation, and the lines of its steps: how a call is shown between its neighbours.

An operation's row: symbol, label, offset of the candidate, status, attempts and waits. Knows no changes.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep, Operation, Step
from goldentrace.report.cells import measure, pad
from goldentrace.report.page import Page
from goldentrace.report.sanitise import terminal
from goldentrace.report.values import brief_wait, offset, plural

INDENT: Final = 2
MAX_LABEL: Final = 34
MAX_STEPS: Final = 12
"""Steps of one operation shown side by side; of more the first and the last are shown."""


class Row(msgspec.Struct, frozen=True):
    """symbol: blank, `+`, `-`, `~` or `>`."""

    symbol: str
    label: str
    offset: str
    words: str


def operation_row(operation: Operation, symbol: str, *, is_short: bool = False) -> Row:
    """Return the row of an operation; is_short: without its attempts, where the steps follow."""
    attempts = operation.attempts
    if not attempts:
        return Row(symbol, operation.label, "", "not executed")
    words = status_words(attempts[-1])
    if len(attempts) > 1 and not is_short:
        gaps = [attempt.gap_ms for attempt in attempts[1:]]
        words += f"  {plural(len(attempts), 'attempt')}, waited {_waits(gaps)}"
    return Row(symbol, operation.label, offset(attempts[0].started_ms), words)


def _waits(gaps: list[float | None]) -> str:
    shown = [brief_wait(gap) for gap in gaps]
    return ", ".join(shown if len(shown) <= 4 else [*shown[:2], "...", shown[-1]])


def status_words(attempt: Attempt) -> str:
    """Return how an attempt ended: `ok`, `error rate_limited 429`."""
    if attempt.status is None:
        return "no result"
    words: list[str] = [attempt.status]
    if attempt.error_class is not None and attempt.error_class != attempt.status:
        words.append(attempt.error_class)
    if attempt.http_status is not None:
        words.append(str(attempt.http_status))
    return " ".join(words)


def add_rows(
    page: Page, rows: list[Row], *, below: int | None = None, between: Callable[[], None] | None = None
) -> None:
    """Add rows with aligned columns. `between` adds what belongs under the first `below` of them."""
    labels = [terminal(row.label) for row in rows]
    label_width = min(max(map(measure, labels), default=0), MAX_LABEL, page.width // 2 - 8)
    offset_width = max((len(row.offset) for row in rows), default=0)
    for number, row in enumerate(rows, start=1):
        label = pad(labels[number - 1], label_width)
        lead = " " * INDENT + (row.symbol or " ") + "  "
        style = row.symbol.strip() or "dim"
        time = f"  {row.offset.rjust(offset_width)}" if offset_width else ""
        page.line((lead, style), (label, style), (time, "dim"), ("  " + row.words, style))
        if number == below and between is not None:
            between()


# -- steps of an operation -----------------------------------------------------------------------------------------


def step_words(step: Step) -> tuple[str, str]:
    """Return a step's name and what is to be said of it."""
    if isinstance(step, Attempt):
        by = "" if step.origin == "model" else f" by {step.origin}"
        waited = f", waited {brief_wait(step.gap_ms)}" if step.gap_ms is not None else ""
        owed = f", owed {brief_wait(step.owed_ms)}" if step.owed_ms is not None else ""
        return f"attempt {step.number}{by}", f"{status_words(step)}{owed}{waited}"
    if isinstance(step, DecisionStep):
        words = [step.reason or "", f"wait {brief_wait(step.delay_ms)}" if step.delay_ms is not None else ""]
        by = f" by {step.by}" if step.by is not None else ""
        inferred = " (inferred)" if step.inferred else ""
        return f"decision {step.decision}{by}", ", ".join(word for word in words if word) + inferred
    by = f"by {step.by}" if step.by is not None else ""
    return f"approval {step.verdict}", by


def _likeness(step: Step) -> tuple[object, ...]:
    """What makes two steps the same on both sides; waits are judged elsewhere."""
    if isinstance(step, Attempt):
        return ("attempt", step.number, step.origin, step.status, step.error_class, step.http_status)
    if isinstance(step, DecisionStep):
        return ("decision", step.decision, step.by, step.reason)
    assert isinstance(step, ApprovalStep)
    return ("approval", step.verdict, step.by)


def step_diff(golden: list[Step], candidate: list[Step]) -> list[tuple[str, Step]]:
    """Return the steps of both sides as lines of a diff: symbol and step, what both have in the candidate's form."""
    left, right = [_likeness(step) for step in golden], [_likeness(step) for step in candidate]
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < min(len(left), len(right)) - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    lines = [(" ", step) for step in candidate[:head]]
    lines += _middle(golden[head : len(golden) - tail], candidate[head : len(candidate) - tail])
    return lines + [(" ", step) for step in candidate[len(candidate) - tail :]]


def _middle(golden: list[Step], candidate: list[Step]) -> list[tuple[str, Step]]:
    """The part between the common ends, its own common steps found by length of the longest common subsequence."""
    left, right = [_likeness(step) for step in golden], [_likeness(step) for step in candidate]
    if len(left) * len(right) > 10_000:
        return [("-", step) for step in golden] + [("+", step) for step in candidate]
    length = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            length[i][j] = length[i + 1][j + 1] + 1 if left[i] == right[j] else max(length[i + 1][j], length[i][j + 1])
    lines: list[tuple[str, Step]] = []
    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left) and j < len(right) and left[i] == right[j]:
            lines.append((" ", candidate[j]))
            i, j = i + 1, j + 1
        elif i < len(left) and (j == len(right) or length[i + 1][j] >= length[i][j + 1]):
            lines.append(("-", golden[i]))
            i += 1
        else:
            lines.append(("+", candidate[j]))
            j += 1
    return lines


def add_steps(page: Page, lines: list[tuple[str, Step]]) -> None:
    """Add the lines of a step diff, the middle of a long common run left out."""
    kept = _folded(lines)
    names = [step_words(step)[0] for _, step in lines]
    width = min(max(map(len, names), default=0), page.width // 2)
    for item in kept:
        if isinstance(item, int):
            page.line(" " * (INDENT + 5), (f"... {item} more ...", "dim"))
            continue
        symbol, step = item
        name, words = step_words(step)
        style = symbol.strip() or "dim"
        page.line((f"{' ' * INDENT}{symbol}    {name.ljust(width)}  {words}", style))


def _folded(lines: list[tuple[str, Step]]) -> list[tuple[str, Step] | int]:
    """Keep what changed and two steps around it; the number of steps left out stands for them."""
    if len(lines) <= MAX_STEPS:
        return list(lines)
    near = {n + d for n, (symbol, _) in enumerate(lines) if symbol != " " for d in (-2, -1, 0, 1, 2)}
    shown = [n for n in range(len(lines)) if n in near or not near]
    if len(shown) > 3 * MAX_STEPS:
        shown = shown[: 2 * MAX_STEPS] + shown[-MAX_STEPS:]
    kept: list[tuple[str, Step] | int] = []
    last = -1
    for n in shown:
        if n > last + 1:
            kept.append(n - last - 1)
        kept.append(lines[n])
        last = n
    if last < len(lines) - 1:
        kept.append(len(lines) - 1 - last)
    return kept
