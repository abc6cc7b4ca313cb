"""A page of text for a terminal: lines of styled pieces, none wider than the page, none with a character that acts.

Every piece goes through the sanitiser here, so that no renderer can forget it. Colours are ANSI escapes written only by
this module; a symbol always stands beside them, because some readers see none.
"""

from typing import Final, TypeAlias

from goldentrace.report.cells import CUT, MIN_WIDTH, fit, measure, take, wrap
from goldentrace.report.sanitise import terminal

Piece: TypeAlias = "str | tuple[str, str]"
"""Text, or text and the name of its style."""

_STYLES: Final = {
    "error": "31",
    "warning": "33",
    "note": "36",
    "ok": "32",
    "bold": "1",
    "dim": "2",
    "+": "32",
    "-": "31",
    "~": "33",
    ">": "36",
    "bad": "1;31",
    "good": "1;32",
}
"""Name of a style -> SGR parameters; the symbols of a diff are styles too."""


class Page:
    """Lines of at most `width` columns."""

    def __init__(self, width: int = 80, *, color: bool = False) -> None:
        self.width = max(width, MIN_WIDTH)
        self._color = color
        self._lines: list[str] = []

    def line(self, *pieces: Piece) -> None:
        """Add a line; what does not fit is cut at its end, since what matters was fitted before."""
        room = self.width
        fitted: list[tuple[str, str]] = []
        for piece in pieces:
            text, style = piece if isinstance(piece, tuple) else (piece, "")
            text = terminal(text)
            size = measure(text)
            if size > room:
                text = take(text, room - len(CUT)) + CUT if room > len(CUT) else take(text, room)
                size = measure(text)
            room -= size
            fitted.append((text, style))
        while fitted and not fitted[-1][0].strip():
            fitted.pop()
        if fitted:
            fitted[-1] = (fitted[-1][0].rstrip(), fitted[-1][1])
        self._lines.append("".join(self._painted(text, style) for text, style in fitted))

    def wrapped(self, text: str, indent: int = 2, style: str = "", first: str = "") -> None:
        """Add a text as lines that begin at a column; `first` stands before the first of them, within the indent."""
        lead = first + " " * (indent - measure(first))
        for row in wrap(terminal(text), self.width - max(indent, measure(lead))):
            self.line(lead, (row, style))
            lead = " " * indent

    def raw(self, line: str) -> None:
        """Add a line that was fitted and is to be copied exactly, a command."""
        self._lines.append(line)

    def blank(self) -> None:
        """Add an empty line, unless there is one or nothing yet."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def fit(self, text: str, taken: int) -> str:
        """Return a text that fits beside so many columns, sanitised and cut in its middle where needed."""
        return fit(terminal(text), max(self.width - taken, 1))

    def text(self) -> str:
        """Return the page, ending in one newline."""
        return "\n".join(self._lines).rstrip("\n") + "\n"

    def _painted(self, text: str, style: str) -> str:
        if not self._color or not style or not text.strip():
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def table(rows: list[list[str]], right: frozenset[int] = frozenset()) -> list[list[str]]:
    """Return the rows with all cells but the last padded to the width of their columns; `right`: set to the right."""
    widths = [max(measure(row[n]) for row in rows if n < len(row)) for n in range(max(map(len, rows), default=0))]
    padded: list[list[str]] = []
    for row in rows:
        cells = []
        for n, cell in enumerate(row):
            blanks = " " * (widths[n] - measure(cell))
            is_last = n == len(row) - 1
            cells.append(blanks + cell if n in right else cell if is_last else cell + blanks)
        padded.append(cells)
    return padded
