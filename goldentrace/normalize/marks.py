"""Which of many literals stand in a document: looked for together, around a rare character of each.

A search for one literal takes half a nanosecond a byte, and there are dozens of them. A character such as `_` or `x` is
rare in prose and in JSON, so that looking for it, and around it for every literal that holds it, takes as long as
looking for one. Must not know what a literal means.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final

_RARE: Final = "zjx_-k"
"""The rarest first."""


class Marks:
    """Finds literals of ASCII letters, digits and punctuation. Patterns are compiled with the first search: 3 ms."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._by_character: dict[str, list[str]] = {}
        for literal in literals:
            rare = next((character for character in _RARE if character in literal), "")
            self._by_character.setdefault(rare, []).append(literal)

    def found_in(self, document: bytes) -> list[str]:
        """Return the literals that stand in a document."""
        found = [literal for literal, encoded in self._single if encoded in document]
        for any_of_them, literals in self._families:
            if any_of_them.search(document) is not None:
                found += [literal for literal, encoded in literals if encoded in document]
        return found

    @cached_property
    def _single(self) -> list[tuple[str, bytes]]:
        return _encoded(self._by_character.get("", []))

    @cached_property
    def _families(self) -> list[tuple[re.Pattern[bytes], list[tuple[str, bytes]]]]:
        return [(_around(rare, them), _encoded(them)) for rare, them in self._by_character.items() if rare]


def _encoded(literals: list[str]) -> list[tuple[str, bytes]]:
    return [(literal, literal.encode()) for literal in literals]


def _around(character: str, literals: list[str]) -> re.Pattern[bytes]:
    """Return a pattern that finds any of the literals where this character of it stands."""
    halves = [literal.partition(character) for literal in literals]
    around = "|".join(f"(?<={re.escape(start + middle)}){re.escape(end)}" for start, middle, end in halves)
    return re.compile(f"{re.escape(character)}(?:{around})".encode())
