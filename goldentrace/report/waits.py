"""The waits of one call as a small table: golden, now, allowed, deviation, and the setting that sets the tolerance."""

from typing import Final, Literal, TypeAlias

from goldentrace.model.change import Change, Tolerance
from goldentrace.model.operation import Attempt, DecisionStep, Operation
from goldentrace.report.page import Page, table
from goldentrace.report.values import wait

MAX_ROWS: Final = 8
Measure: TypeAlias = Literal["gap", "delay", "sum"]


def add_waits(page: Page, change: Change, golden: Operation | None, candidate: Operation | None) -> None:
    """Add the table. Waits that the change does not speak of are shown beside it without an interval."""
    before, now = _gaps(golden), _gaps(candidate)
    measure = _measure(change, candidate)
    at = (change.attempt or 2) - 2
    places = range(max(len(before), len(now), at + 1))
    if len(places) > MAX_ROWS:
        start = max(0, min(at - MAX_ROWS // 2, len(places) - MAX_ROWS))
        places = places[start : start + MAX_ROWS]
    judged = _judged(change, measure)
    rows = [["", "golden", "now", "allowed", "deviation"]]
    rows += [
        judged
        if place == at and measure != "sum"
        else [f"retry {place + 1}", _at(before, place), _at(now, place), "", ""]
        for place in places
    ]
    rows += [judged] if measure == "sum" else []
    right = frozenset({1, 2})
    if change.tolerance is not None and max(map(_width, table(rows, right))) > page.width:
        rows[0][-1] = "off by"
        judged[-1] = f"{change.tolerance.deviation_ms / 1000:+.3f}s"
    for cells, row in zip(table(rows, right), rows, strict=True):
        style = "bold" if row is rows[0] else "~" if row is judged else "dim"
        page.line("  ~    " if row is judged else "       ", ("  ".join(cells), style))
    if change.tolerance is not None and change.tolerance.source:
        page.wrapped(change.tolerance.source, indent=18, style="dim", first="       tolerance: ")


def _width(cells: list[str]) -> int:
    return 7 + len("  ".join(cells))


def _gaps(operation: Operation | None) -> list[float | None]:
    return [] if operation is None else [attempt.gap_ms for attempt in operation.attempts[1:]]


def _at(gaps: list[float | None], place: int) -> str:
    return wait(gaps[place]) if place < len(gaps) else "-"


def _judged(change: Change, measure: Measure) -> list[str]:
    place = (change.attempt or 2) - 1
    tolerance = change.tolerance
    return [
        {"gap": f"retry {place}", "delay": f"retry {place} announced", "sum": "together"}[measure],
        wait(change.expected if isinstance(change.expected, int | float) else None),
        wait(change.actual if isinstance(change.actual, int | float) else None),
        allowed(tolerance) if tolerance is not None else "?",
        deviation(tolerance) if tolerance is not None else "",
    ]


def _measure(change: Change, candidate: Operation | None) -> Measure:
    """What a change speaks of: the observed wait, the delay that a decision asked for, or several waits together."""
    if candidate is None or change.actual is None:
        return "gap"
    delay: float | None = None
    for step in candidate.steps:
        if isinstance(step, DecisionStep):
            delay = step.delay_ms if step.decision == "retry" else delay
        elif isinstance(step, Attempt):
            if step.number == change.attempt:
                return "gap" if change.actual == step.gap_ms else "delay" if change.actual == delay else "sum"
            delay = None
    return "gap"


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
