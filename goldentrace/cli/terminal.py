"""Text for the terminal: what this room prints itself, made safe and fitted to the width.

Reports are rendered elsewhere; here are the messages and the small tables of commands. Must not import rich.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from goldentrace.report.cells import wrap
from goldentrace.report.sanitise import terminal as printable

__all__ = ["columns", "is_colored", "printable", "width_of"]

DEFAULT_WIDTH: Final = 80
_NARROWEST: Final = 20
"""Columns that a wrapped text always has, however wide what stands before it is."""


def is_colored(choice: str, stream: object = None) -> bool:
    """Are colours wanted? choice: auto, always or never; auto asks NO_COLOR, FORCE_COLOR, TERM and the stream.

    Source: the conventions of no-color.org (set and not empty) and force-color.org.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") not in (None, "", "0"):
        return True
    stream = sys.stdout if stream is None else stream
    isatty = getattr(stream, "isatty", None)
    return bool(isatty is not None and isatty()) and os.environ.get("TERM") != "dumb"


def width_of(asked: int | None) -> int:
    """Return the columns to fill: as asked, else COLUMNS, else those of the terminal, else 80."""
    if asked is not None:
        return asked
    named = os.environ.get("COLUMNS", "")
    if named.isdigit() and int(named) >= 20:
        return int(named)
    try:
        return max(40, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError, AttributeError):
        return DEFAULT_WIDTH


def columns(rows: Iterable[Sequence[str]], *, gap: str = "  ", width: int | None = None) -> list[str]:
    """Return rows as lines with aligned columns; the last column keeps its length, or is wrapped where the lines have a
    width. Cells are made safe here."""
    safe = [[printable(cell) for cell in row] for row in rows]
    widths: list[int] = []
    for row in safe:
        for number, cell in enumerate(row[:-1]):
            if number == len(widths):
                widths.append(0)
            widths[number] = max(widths[number], len(cell))
    lines: list[str] = []
    for row in filter(None, safe):
        head = "".join(cell.ljust(widths[n]) + gap for n, cell in enumerate(row[:-1]))
        cells = row[-1:] if width is None else wrap(row[-1], max(width - len(head), _NARROWEST)) or [""]
        for number, cell in enumerate(cells):
            lines.append(f"{head if number == 0 else ' ' * len(head)}{cell}".rstrip())
    return lines
