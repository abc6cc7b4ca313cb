"""What normalization replaced, and by which rule: `normalize --explain`, and the summary that `record` prints.

A value that nobody knows to be masked is a change that nobody sees; so every one is listed.
"""

from collections import Counter

from goldentrace.model.normal import Masked, NormalTrace
from goldentrace.report.cells import measure
from goldentrace.report.page import Page, table
from goldentrace.report.sanitise import terminal
from goldentrace.report.values import as_json, plural, shown


def render_masked(normal: NormalTrace, *, width: int = 80, color: bool = False) -> str:
    """Return every masked value: where it stood, what was shown, its placeholder, the rule. Needs `is_explained`."""
    page = Page(width, color=color)
    if not normal.masked:
        page.line("nothing was masked")
        return page.text()
    label = None
    for masked in normal.masked:
        if masked.label != label:
            label = masked.label
            page.line((page.fit(label or "the run", 0), "bold"))
        _add_masked(page, masked)
    page.blank()
    _add_counts(page, normal.masked)
    return page.text()


def _add_masked(page: Page, masked: Masked) -> None:
    pointer, placeholder, rule = map(terminal, (masked.pointer or "/", masked.placeholder, masked.rule))
    value = terminal(as_json(masked.shown))
    taken = 2 + measure(pointer) + 2 + 4 + measure(placeholder) + 2 + measure(rule)
    if taken + min(measure(value), 12) <= page.width:
        page.line(
            "  ", pointer, "  ", (page.fit(value, taken), "dim"), " -> ", (placeholder, "~"), ("  " + rule, "dim")
        )
        return
    page.line("  ", page.fit(pointer, 4 + measure(rule)), ("  " + rule, "dim"))
    page.line("    ", (page.fit(value, 4), "dim"))
    page.line("    -> ", (page.fit(placeholder, 7), "~"))


def _add_counts(page: Page, masked: list[Masked]) -> None:
    counts = Counter(found.rule for found in masked)
    page.line(f"{plural(len(masked), 'value')} masked")
    for rule, count in table([[terminal(rule), str(count)] for rule, count in counts.most_common()]):
        page.line("  ", rule, "  ", count)


def render_masked_summary(normal: NormalTrace, *, width: int = 80, color: bool = False) -> str:
    """Return what `record` says of a golden: the masked values by rule, and each id that no result supplied.

    Those, `<new:…>`, are what the agent made up: whether they are drawn anew or constant, only further runs can tell.
    """
    page = Page(width, color=color)
    if normal.masked:
        _add_counts(page, normal.masked)
    made_up = [
        (operation.label, pointer, written)
        for operation in normal.operations
        for pointer, written in sorted(operation.args.items())
        if isinstance(written, str) and "<new:" in written
    ]
    if made_up:
        page.line(f"{plural(len(made_up), 'id')} that no result supplied (--verify N tells whether they are constant):")
    for label, pointer, written in made_up:
        page.line("  ", page.fit(f"{label} {pointer}  {shown(written)}", 2))
    return page.text() if normal.masked or made_up else ""
