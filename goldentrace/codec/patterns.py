"""Regular expressions that users write: compiled in one place, run with a bound on their time.

Python's own `re` runs `(a+)+$` over thirty characters for minutes, and a profile is run over texts that nobody chose.
The syntax is that of `re`; `regex` runs it, because it can be told when to stop. It is imported with the first pattern:
it costs 30 ms. What goes beyond the bound is an error, never a text without a match: a secret would be printed. This
module must not know what a match means.
"""

import re
from functools import lru_cache
from typing import Any, Final

from goldentrace.errors import ConfigError, Where

MAX_SECONDS: Final = 1.0
SECONDS_PER_CHARACTER: Final = 1e-6
"""What one pattern may take over one text: a second, and for long texts a tenth of the speed of a slow pattern."""
MAX_CHARACTERS: Final = 10_000
"""Of a pattern. Long lists of words are written by programs, and compile in a second."""
_SHOWN: Final = 60

_BRACE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?!\d*,?\d*\})", re.DOTALL)
"""What is escaped, a set, and a brace that begins no count: `re` takes it as it stands, `regex` as a fuzzy match."""

_places: dict[str, Where] = {}


class Pattern:
    """A regular expression with a bound on its time. Each method raises PatternTimeoutError beyond it."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str, compiled: Any) -> None:
        self.text = text
        self._compiled = compiled

    def is_found(self, text: str) -> bool:
        """Does it match anywhere in a text?"""
        try:
            return self._compiled.search(text, timeout=_seconds(text)) is not None
        except TimeoutError:
            raise PatternTimeoutError(self.text, text) from None

    def is_whole(self, text: str) -> bool:
        """Does it match a whole text?"""
        try:
            return self._compiled.fullmatch(text, timeout=_seconds(text)) is not None
        except TimeoutError:
            raise PatternTimeoutError(self.text, text) from None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return (start, end) of every match in a text, in order; empty matches are none."""
        try:
            return [
                match.span()
                for match in self._compiled.finditer(text, timeout=_seconds(text))
                if match.end() > match.start()
            ]
        except TimeoutError:
            raise PatternTimeoutError(self.text, text) from None


class PatternTimeoutError(ConfigError):
    """A pattern took longer over a text than it may."""

    def __init__(self, pattern: str, text: str) -> None:
        super().__init__(
            f"the pattern {_shown(pattern)} takes over {_seconds(text):.0f} s for a text of {len(text):,} characters",
            where=_places.get(pattern),
            next_step="write it so that it can match a text in one way only: no repeat within a repeat, as in (a+)+",
        )


def compile_pattern(text: str, where: Where | None = None) -> Pattern:
    """Return a pattern that a user wrote. where: its place, for the message; default the one that `remember` was told.

    Raises: ConfigError for what is no regular expression, or too long.
    """
    try:
        return _compiled(text)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise ConfigError(
            f"not a regular expression: {error}", where=where or _places.get(text), next_step="correct the pattern"
        ) from None


def remember(text: str, where: Where) -> None:
    """Keep the place where a pattern stands: those who run it know its text alone."""
    _places[text] = where


@lru_cache(maxsize=512)
def _compiled(text: str) -> Pattern:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"longer than {MAX_CHARACTERS:,} characters")
    re.compile(text)
    import regex

    try:
        return Pattern(text, regex.compile(_BRACE.sub(_escaped, text), regex.V0))
    except regex.error as error:
        raise ValueError(str(error)) from None


def _escaped(part: re.Match[str]) -> str:
    return "\\{" if part[0] == "{" else part[0]


def _seconds(text: str) -> float:
    return MAX_SECONDS + len(text) * SECONDS_PER_CHARACTER


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _SHOWN else pattern[: _SHOWN - 1] + "…")
