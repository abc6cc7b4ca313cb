"""Markdown for a job summary and for a comment on a pull request: a table of traces, then the changes of each.

Both have a limit beyond which GitHub takes nothing at all, so traces are left out from the end, and the page says
which. Trace text stands only in fenced blocks or as words without markup.
"""

import re
from typing import Final

import msgspec

from goldentrace.model.report import Report, TraceReport
from goldentrace.report import text
from goldentrace.report.json_document import counted, summary
from goldentrace.report.places import why_no_verdict
from goldentrace.report.sanitise import markdown, markdown_block
from goldentrace.report.values import plural

MAX_SUMMARY_BYTES: Final = 900_000
"""GitHub refuses a step summary of more than 1 MiB as a whole."""
MAX_COMMENT_CHARS: Final = 60_000
"""GitHub refuses a comment of more than 65,536 characters."""
MAX_TABLE_ROWS: Final = 200
MAX_SECTION_CHARS: Final = 40_000
_HEADINGS: Final = {"clean": "behaves the same", "changed": "behaviour changed", "no-verdict": "no verdict"}


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return the page for a job summary, at most MAX_SUMMARY_BYTES as UTF-8."""
    return _page(report, MAX_SUMMARY_BYTES, "", verbosity)


def render_comment(report: Report, key: str) -> str:
    """Return the page for a comment, at most MAX_COMMENT_CHARS, its first line a hidden marker with the key.

    Whoever posts it looks for a comment with that marker and updates it in place.
    """
    return _page(report, MAX_COMMENT_CHARS, marker(key) + "\n", 0)


def marker(key: str) -> str:
    """Return the hidden line by which an earlier comment is found again; of the key letters, digits, `._/` are kept."""
    return f"<!-- goldentrace:{re.sub(r'[^A-Za-z0-9._/]+', '-', key).strip('-').replace('--', '-')} -->"


def _page(report: Report, limit: int, lead: str, verbosity: int) -> str:
    head = lead + _head(report, verbosity)
    room = limit - _size(head) - 2_000  # for the line that says what was left out
    sections: list[str] = []
    left_out: list[str] = []
    for trace in report.traces:
        if not _is_shown(trace, report):
            continue
        section = _section(trace, report)
        if left_out or _size(section) > room:
            left_out.append(trace.name)
            continue
        room -= _size(section)
        sections.append(section)
    if left_out:
        names = ", ".join(markdown(name[:60]) for name in left_out[:10]) + (" and more" if len(left_out) > 10 else "")
        sections.append(f"\n{plural(len(left_out), 'trace')} left out, the page has a limit: {names}\n")
    return head + "".join(sections)


def _size(page: str) -> int:
    """Bytes: never fewer than characters, so that both limits hold."""
    return len(page.encode("utf-8", "surrogatepass"))


def _is_shown(trace: TraceReport, report: Report) -> bool:
    return trace.status(report.fail_on) != "clean" or bool(counted(trace))


def _head(report: Report, verbosity: int) -> str:
    counts = summary(report)
    words = ", ".join(
        f"{counts[key]} {word}"
        for key, word in (
            ("clean", "clean"),
            ("changed", "changed"),
            ("missing", "missing"),
            ("unreadable", "unreadable"),
            ("not_comparable", "not comparable"),
        )
        if counts[key] or key == "clean"
    )
    heading = f"## goldentrace {markdown(report.command)}: {_HEADINGS[report.verdict]}\n\n"
    line = f"{plural(counts['traces'], 'trace')}: {words} (exit {report.exit_code})\n"
    shown = [trace for trace in report.traces if verbosity > 0 or _is_shown(trace, report)]
    if not shown:
        return heading + line
    rows = ["", "| trace | verdict | changes |", "|---|---|---|"]
    rows += [_row(trace, report) for trace in shown[:MAX_TABLE_ROWS]]
    if len(shown) > MAX_TABLE_ROWS:
        rows.append(f"| {len(shown) - MAX_TABLE_ROWS} more | | |")
    return heading + line + "\n".join(rows) + "\n"


def _row(trace: TraceReport, report: Report) -> str:
    why = why_no_verdict(trace)
    if why is not None:
        gist = markdown(_cut(why))
    else:
        codes: dict[str, int] = {}
        for subject in counted(trace):
            name = f"{subject.code} {subject.name}"
            codes[name] = codes.get(name, 0) + 1
        listed = [name if count == 1 else f"{name} ×{count}" for name, count in codes.items()]
        gist = ", ".join(listed[:4]) + (f", {len(listed) - 4} more" if len(listed) > 4 else "")
    return f"| {markdown(_cut(trace.name))} | {trace.status(report.fail_on)} | {gist} |"


def _cut(words: str) -> str:
    return words if len(words) <= 120 else words[:60] + "..." + words[-57:]


def _section(trace: TraceReport, report: Report) -> str:
    """One trace: its text report, whose symbols stand in the first column so that they are coloured as a diff."""
    alone = msgspec.structs.replace(report, traces=[trace], notes=[])
    shown = text.render(alone, width=100, color=False, verbosity=0)
    if len(shown) > MAX_SECTION_CHARS:
        shown = shown[: MAX_SECTION_CHARS // 2] + "\n...\n" + shown[-MAX_SECTION_CHARS // 2 :]
    lines = "\n".join(line.removeprefix("  ") for line in shown.rstrip("\n").split("\n"))
    return f"\n### {markdown(_cut(trace.name))}\n\n{markdown_block(lines)}\n"
