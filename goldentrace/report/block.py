"""One change as a block of text: heading, what differs, its neighbours, its cause and what to do about it."""

from collections.abc import Callable
from typing import Final

from goldentrace.model.change import Change
from goldentrace.model.finding import Finding
from goldentrace.report.cells import measure
from goldentrace.report.page import Page
from goldentrace.report.rows import Row, add_rows, add_steps, step_diff
from goldentrace.report.values import plural, shown
from goldentrace.report.view import CONTEXT, View, short_message, subject
from goldentrace.report.waits import add_waits

MAX_POINTERS: Final = 5
MAX_ARGUMENTS: Final = 4
"""Leaves of one call that are shown; the others are counted."""

SETTING: Final = "add to the profile: "
"""What a hint says before a line of YAML, which then stands on a line of its own."""

EXPLAINED: Final = "explained by "
"""How the reason of a finding begins that a change accounts for: nobody accepted it."""

_VALUES: Final = {"GT101", "GT108", "GT109"}
_STEPS: Final = {"GT201", "GT202", "GT203", "GT204", "GT205", "GT206", "GT301", "GT302"}
_WAITS: Final = {"GT401", "GT402", "GT403", "GT404", "GT206"}
_ROWS_SAY_IT: Final = {"GT102", "GT103", "GT104", "GT105", "GT106", "GT107", "GT602"}
_ENDS: Final = {"GT501", "GT502"}


def add_change(page: Page, change: Change, view: View, *, has_context: bool = True) -> None:
    """Add the block of a change; has_context: its neighbours too, once for the changes of one call."""
    _add_heading(page, change.code, change.name, change.severity, subject(change), _lines(change))
    if change.caused_by is not None:
        _add_follower(page, change)
        return
    place = view.place(change)
    page.wrapped(_message(change))
    if place is None:
        _add_run_change(page, change, view)
    else:
        _add_surrounded(page, change, view, place, has_context=has_context)
    if change.hint:
        words, _, setting = change.hint.partition(SETTING)
        page.wrapped(words + SETTING if setting else words, indent=8, first="  hint: ")
        page.wrapped(setting, indent=8)


def _add_heading(page: Page, code: str, name: str, severity: str, about: str, lines: str) -> None:
    head = f"{code} {name}"
    taken = measure(head) + measure(severity) + 4
    room = page.width - taken - (measure(lines) + 2 if lines else 0)
    is_wide = bool(lines) and room < min(measure(about), 16)
    about = page.fit(about, taken if is_wide else page.width - room)
    page.line(
        (head, "bold"),
        "  ",
        (severity, severity),
        "  ",
        (about, "bold"),
        *((("  " + lines, "dim"),) if lines and not is_wide else ()),
    )
    if is_wide:
        page.line(("  " + lines, "dim"))


def _lines(change: Change) -> str:
    known = [f"golden:{change.golden_line}"] if change.golden_line else []
    return " ".join(known + ([f"now:{change.candidate_line}"] if change.candidate_line else []))


def _message(change: Change) -> str:
    message = short_message(change)
    if change.code in _WAITS:  # the table says the rest
        message = message.partition(", golden ")[0].partition(", now ")[0]
    return message


def _add_follower(page: Page, change: Change) -> None:
    cause = change.caused_by
    assert cause is not None
    page.wrapped(_message(change))
    page.wrapped(f"follows from {cause.code} {cause.name} at {subject(cause)}", style="dim")


def _add_surrounded(page: Page, change: Change, view: View, place: int, *, has_context: bool) -> None:
    if not has_context:
        _add_details(page, change, view, place)
        return
    here = view.rows(place, is_short=change.code not in _ROWS_SAY_IT)
    _add_context(page, view, place, place + 1, here, lambda: _add_details(page, change, view, place))


def _add_context(page: Page, view: View, start: int, end: int, here: list[Row], add_here: Callable[[], None]) -> None:
    """Add the rows around the places from start to end, `here` for those between, and below it what add_here adds."""
    count = len(view.comparison.pairs)
    first, last = max(0, start - CONTEXT), min(count, end + CONTEXT)
    first = 0 if first == 1 else first  # one call takes no more room than the line that would count it
    last = count if last == count - 1 else last
    if first:
        page.line("     ", (f"... {plural(first, 'call')} before ...", "dim"))
    before = [row for at in range(first, start) for row in view.rows(at)]
    after = [row for at in range(end, last) for row in view.rows(at)]
    if not before and not here:
        add_here()
        add_rows(page, after)
    else:
        add_rows(page, before + here + after, below=len(before) + len(here), between=add_here)
    if count > last:
        page.line("     ", (f"... {plural(count - last, 'call')} after ...", "dim"))


def _add_details(page: Page, change: Change, view: View, place: int) -> None:
    one, other = view.sides(place)
    if change.code in _VALUES:
        _add_values(page, change, view)
    elif change.code in ("GT102", "GT103"):
        _add_arguments(page, change, view)
    elif change.code in _WAITS and (change.tolerance, change.expected, change.actual) != (None, None, None):
        add_waits(page, change)
    elif change.code in _STEPS and one is not None and other is not None:
        add_steps(page, step_diff(one.steps, other.steps))


def _add_values(page: Page, change: Change, view: View) -> None:
    pointers = change.pointers or ("",)
    for number, pointer in enumerate(pointers[:MAX_POINTERS]):
        expected, actual = change.expected, change.actual
        if number and change.code != "GT108":
            expected, actual = view.leaf(change, pointer)
        page.line("       ", page.fit(pointer or "(the whole value)", 7))
        if number and change.code == "GT108":
            continue
        page.line(("  -    ", "-"), (page.fit(shown(expected), 7), "-"))
        page.line(("  +    ", "+"), (page.fit(shown(actual), 7), "+"))
    if len(pointers) > MAX_POINTERS:
        page.line("       ", (f"... {len(pointers) - MAX_POINTERS} more ...", "dim"))


def _add_arguments(page: Page, change: Change, view: View) -> None:
    """The arguments of a call that only one side has."""
    is_added = change.code == "GT102"
    side, index = (
        (view.comparison.candidate, change.candidate_index)
        if is_added
        else (view.comparison.golden, change.golden_index)
    )
    if index is None:
        return
    style = "+" if is_added else "-"
    leaves = list(side.operations[index].args)
    for pointer in leaves[:MAX_ARGUMENTS]:
        value = view.leaf(change, pointer)[is_added]
        text = f"{pointer or '(the whole value)'}  {shown(value)}"
        page.line(f"  {style}    ", (page.fit(text, 7), style))
    if len(leaves) > MAX_ARGUMENTS:
        page.line("       ", (f"... {plural(len(leaves) - MAX_ARGUMENTS, 'more argument')} ...", "dim"))


def _add_run_change(page: Page, change: Change, view: View) -> None:
    """Golden and now of a change of the run as a whole; between the calls where it stood, if it stood between any."""
    golden, now = view.comparison.golden, view.comparison.candidate
    if change.code in _ENDS:
        _add_sides(page, f"{golden.outcome}  {golden.stop_reason}", f"{now.outcome}  {now.stop_reason}")
        return
    place = None if change.code == "GT504" else view.place_before(change)
    if place is None:
        _add_sides(page, _words(change.expected), _words(change.actual))
        return
    kind = "limit" if change.code == "GT503" else "decision"

    def add_events() -> None:
        for symbol, value in (("-", change.expected), ("+", change.actual)):
            if value not in (None, "none"):
                page.line((f"  {symbol}  {kind} ", symbol), (page.fit(_words(value), 6 + len(kind)), symbol))

    _add_context(page, view, place + 1, place + 1, [], add_events)


def _add_sides(page: Page, before: str, after: str) -> None:
    if before == after:
        return
    page.line(("  -  golden  ", "-"), (page.fit(before, 13), "-"))
    page.line(("  +  now     ", "+"), (page.fit(after, 13), "+"))


def _words(value: object) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_words(item)}" for name, item in value.items())
    return shown(value)


# -- findings ------------------------------------------------------------------------------------------------------


def add_finding(page: Page, finding: Finding, path: str) -> None:
    """Add what a rule found, with the place of each event: `file:line`, first before repeat."""
    about = ", ".join(finding.labels) if finding.labels else "the run"
    _add_heading(page, finding.code, finding.name, finding.severity, about, "")
    page.wrapped(_without(finding.message, finding.labels))
    places = finding.lines[:MAX_POINTERS]
    names = finding.labels if len(finding.labels) == len(finding.lines) else ("",) * len(finding.lines)
    for line, name in zip(places, names, strict=False):
        place = page.fit(f"{path}:{line}" if line else path, 4 + measure(name) + 2)
        page.line("    ", (place, "dim"), f"  {name}" if name else "")
    if len(finding.lines) > MAX_POINTERS:
        page.line("    ", (f"... {len(finding.lines) - MAX_POINTERS} more ...", "dim"))
    if finding.pointer is not None:
        page.line("       ", page.fit(finding.pointer or "(the whole value)", 7))
    if finding.expected is not None:
        page.line(("  -    ", "-"), (page.fit(shown(finding.expected), 7), "-"))
    if finding.actual is not None:
        page.line(("  +    ", "+"), (page.fit(shown(finding.actual), 7), "+"))
    if finding.accepted is not None:
        is_explained = finding.accepted.startswith(EXPLAINED)
        page.wrapped(finding.accepted if is_explained else f"accepted: {finding.accepted}", style="dim")


def _without(message: str, labels: tuple[str, ...]) -> str:
    prefix = f"{labels[-1]}: " if labels else ""
    return message.removeprefix(prefix)
