"""The waits of one call as a small table: golden, now, allowed, deviation, and the setting that sets the tolerance."""

from goldentrace.model.change import Change, Tolerance
from goldentrace.model.operation import Attempt, DecisionStep, Operation
from goldentrace.report.page import Page, table
from goldentrace.report.values import wait

MAX_ROWS = 8


def add_waits(page: Page, change: Change, golden: Operation | None, candidate: Operation | None) -> None:
    """Add the table. Waits that the change does not speak of are shown beside it without an interval."""
    before, now = _gaps(golden), _gaps(candidate)
    at = (change.attempt or 2) - 2
    places = range(max(len(before), len(now), at + 1))
    if len(places) > MAX_ROWS:
        start = max(0, min(at - MAX_ROWS // 2, len(places) - MAX_ROWS))
        places = places[start : start + MAX_ROWS]
    rows = [["", "golden", "now", "allowed", "deviation"]]
    for place in places:
        if place == at:
            rows.append(_judged(change, _is_announced(change, candidate)))
        else:
            rows.append([f"retry {place + 1}", _at(before, place), _at(now, place), "", ""])
    if change.tolerance is not None and max(map(_width, table(rows, frozenset({1, 2})))) > page.width:
        rows[0][-1] = "off by"
        rows[-1 - (places[-1] - at)][-1] = f"{change.tolerance.deviation_ms / 1000:+.3f}s"
    for number, cells in enumerate(table(rows, frozenset({1, 2}))):
        is_judged = number > 0 and places[number - 1] == at
        style = "bold" if number == 0 else "~" if is_judged else "dim"
        page.line("  ~    " if is_judged else "       ", ("  ".join(cells), style))
    if change.tolerance is not None and change.tolerance.source:
        page.wrapped(change.tolerance.source, indent=18, style="dim", first="       tolerance: ")


def _width(cells: list[str]) -> int:
    return 7 + len("  ".join(cells))


def _gaps(operation: Operation | None) -> list[float | None]:
    return [] if operation is None else [attempt.gap_ms for attempt in operation.attempts[1:]]


def _at(gaps: list[float | None], place: int) -> str:
    return wait(gaps[place]) if place < len(gaps) else "-"


def _judged(change: Change, is_announced: bool) -> list[str]:  # noqa: FBT001 - one of two columns' names
    name = f"retry {(change.attempt or 2) - 1}" + (" announced" if is_announced else "")
    tolerance = change.tolerance
    return [
        name,
        wait(change.expected if isinstance(change.expected, int | float) else None),
        wait(change.actual if isinstance(change.actual, int | float) else None),
        allowed(tolerance) if tolerance is not None else "?",
        deviation(tolerance) if tolerance is not None else "",
    ]


def _is_announced(change: Change, candidate: Operation | None) -> bool:
    """Does the change speak of the delay that a decision asked for, rather than of the observed wait?"""
    if candidate is None or change.actual is None:
        return False
    delay: float | None = None
    for step in candidate.steps:
        if isinstance(step, DecisionStep):
            delay = step.delay_ms if step.decision == "retry" else delay
        elif isinstance(step, Attempt):
            if step.number == change.attempt:
                return bool(change.actual != step.gap_ms and change.actual == delay)
            delay = None
    return False


def allowed(tolerance: Tolerance) -> str:
    """Return an interval in words: `1.995s .. 2.450s`, `>= 1.995s`, `<= 2.450s`."""
    if tolerance.hi_ms is None:
        return f">= {wait(tolerance.lo_ms)}"
    if tolerance.lo_ms <= 0:
        return f"<= {wait(tolerance.hi_ms)}"
    return f"{wait(tolerance.lo_ms)} .. {wait(tolerance.hi_ms)}"


def deviation(tolerance: Tolerance) -> str:
    """Return how far outside a wait lies, in words."""
    if not tolerance.deviation_ms:
        return "ok"
    return f"{wait(abs(tolerance.deviation_ms))} too {'short' if tolerance.deviation_ms < 0 else 'long'}"
