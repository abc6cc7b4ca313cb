"""The waits of one call as a small table: golden, now, allowed, deviation, and the setting that sets the tolerance."""

from typing import Final

from goldentrace.model.change import Change, JudgedWait, Tolerance
from goldentrace.report.page import Page, table
from goldentrace.report.values import wait

MAX_ROWS: Final = 8


def add_waits(page: Page, change: Change) -> None:
    """Add the table of all judged waits of the operation; those that the change speaks of are marked."""
    shown = _shown(change.waits)
    rows = [["", "golden", "now", "allowed", "deviation"], *(_row(judged) for judged in shown)]
    right = frozenset({1, 2})
    if max(map(_width, table(rows, right))) > page.width:
        rows[0][-1] = "off by"
        for row, judged in zip(rows[1:], shown, strict=True):
            row[-1] = f"{judged.tolerance.deviation_ms / 1000:+.3f}s" if judged.tolerance is not None else ""
            if not judged.is_wrong:
                row[-2:] = ["", ""]
    for n, cells in enumerate(table(rows, right)):
        is_wrong = n > 0 and shown[n - 1].is_wrong
        style = "bold" if n == 0 else "~" if is_wrong else "dim"
        page.line("  ~    " if is_wrong else "       ", ("  ".join(cells), style))
    if change.tolerance is not None and change.tolerance.source:
        page.wrapped(change.tolerance.source, indent=18, style="dim", first="       tolerance: ")


def _shown(waits: tuple[JudgedWait, ...]) -> tuple[JudgedWait, ...]:
    """At most MAX_ROWS, around the first that is wrong."""
    wrong = next((n for n, judged in enumerate(waits) if judged.is_wrong), 0)
    start = max(0, min(wrong - MAX_ROWS // 2, len(waits) - MAX_ROWS))
    return waits[start : start + MAX_ROWS]


def _row(judged: JudgedWait) -> list[str]:
    tolerance = judged.tolerance
    return [
        {"gap": f"retry {judged.retry}", "delay": f"retry {judged.retry} announced", "sum": "together"}[judged.measure],
        wait(judged.golden_ms),
        wait(judged.now_ms),
        allowed(tolerance) if tolerance is not None else "",
        deviation(tolerance) if tolerance is not None else "",
    ]


def _width(cells: list[str]) -> int:
    return 7 + len("  ".join(cells))


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
