"""Columns of a terminal: how wide a text is, and how it is made to fit without losing its ends.

Width is that of the display, not of the string: a CJK letter takes two columns, a combining mark none. The table of
widths is rich's, asked only for text that is not ASCII, so that a small report loads nothing. Nothing here knows of
colours.
"""

import re
import shlex
from typing import Final

from goldentrace.report.sanitise import terminal

CUT: Final = "..."
MIN_WIDTH: Final = 40
CONTINUED: Final = 11
"""Columns before a command's next line: as many as before its first."""


def measure(text: str) -> int:
    """Return how many columns a line of text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def take(text: str, columns: int) -> str:
    """Return the longest beginning of the text that fits into so many columns."""
    if text.isascii():
        return text[: max(columns, 0)]
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= columns:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def take_end(text: str, columns: int) -> str:
    """Return the longest end of the text that fits into so many columns."""
    if text.isascii():
        return text[len(text) - columns :] if columns > 0 else ""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if measure(text[middle:]) <= columns:
            high = middle
        else:
            low = middle + 1
    return text[low:]


def fit(text: str, columns: int) -> str:
    """Return the text, cut in its middle where it is wider than so many columns: both ends tell values apart."""
    if len(text) > 8 * max(columns, 8):  # what cannot fit need not be measured whole
        text = text[: 4 * columns] + text[-4 * columns :]
        is_long = True
    else:
        is_long = measure(text) > columns
    if not is_long:
        return text
    room = columns - len(CUT)
    if room < 2:
        return take(CUT, columns)
    head = take(text, (room + 1) // 2)
    return head + CUT + take_end(text, room - measure(head))


def pad(text: str, columns: int) -> str:
    """Return the text, cut or filled with blanks to so many columns."""
    text = fit(text, columns)
    return text + " " * (columns - measure(text))


def pad_left(text: str, columns: int) -> str:
    """Return the text, cut or filled with blanks on its left to so many columns."""
    text = fit(text, columns)
    return " " * (columns - measure(text)) + text


_WORDS: Final = re.compile(r"\s*\S+")


def wrap(text: str, columns: int) -> list[str]:
    """Return the text as lines of at most so many columns, broken at blanks; a word too wide is cut in its middle."""
    lines: list[str] = []
    line = ""
    for word in _WORDS.findall(text):
        if line and measure(line) + measure(word) <= columns:
            line += word
            continue
        if line:
            lines.append(line)
        line = fit(word.lstrip(), columns)
    if line:
        lines.append(line)
    return lines


_SAFE_WORD: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def command_lines(words: list[str], columns: int, indent: int = 0) -> list[str]:
    r"""Return a shell command as lines that fit, to be copied as they are; a line that goes on ends in `\`.

    Nothing is cut. The first line has `indent` columns less. A word that is wider than a line is split where the shell
    joins it again.
    """
    quoted = [_quote(word, columns - max(indent, CONTINUED) - 2) for word in words]
    lines: list[str] = []
    line = ""
    room = columns - indent
    for pieces in quoted:
        whole = pieces[0] if len(pieces) == 1 else None
        if whole is not None and measure(line) + 1 + measure(whole) <= room - 2:
            line = f"{line} {whole}" if line else whole
            continue
        lead = ""
        if line:
            lines.append(line + " \\")
            room, lead = columns, " " * CONTINUED
        first, *rest = pieces  # only the first may be indented: the shell joins the others with what is before them
        *front, line = [lead + first, *rest]
        lines.extend(piece + "\\" for piece in front)
    lines.append(line)
    return lines


def _quote(word: str, columns: int) -> list[str]:
    r"""A word as the shell reads it, in pieces that fit and that a backslash and a newline join again.

    What a terminal would act upon is written in the `$'\x1b'` form of bash and zsh.
    """
    if terminal(word) != word:
        return _escaped(word, columns)
    if measure(shlex.quote(word)) <= columns:
        return [shlex.quote(word)]
    pieces: list[str] = []
    while word:
        # a single quote takes five columns once it is quoted itself
        piece = take(word, columns if _SAFE_WORD.fullmatch(word) else max(1, columns // 5))
        piece = piece or word[0]
        pieces.append(shlex.quote(piece))
        word = word[len(piece) :]
    return pieces


def _escaped(word: str, columns: int) -> list[str]:
    pieces: list[str] = []
    piece = ""
    for char in word:
        is_plain = char.isascii() and char.isprintable() and char not in "'\\:#"
        errors = (
            "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
        )  # a byte of a file name, or text
        made = char if is_plain else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", errors))
        if len(piece) + len(made) + 3 > columns:
            pieces.append(f"$'{piece}'")
            piece = ""
        piece += made
    return [*pieces, f"$'{piece}'"]
