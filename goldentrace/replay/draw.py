"""Draws that follow from a seed and a scope alone, so that no request shifts the ids or splits of another.

This module must not keep a state and must not read a clock.
"""

import hashlib
import random
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH: Final = 24
"""Characters after the prefix, as the providers' own ids have (`call_` and 24, `toolu_01` and 22)."""


def draw_id(prefix: str, seed: int, *scope: object) -> str:
    """Return an id: the prefix and 24 letters and digits, the same for the same seed and scope."""
    number = int.from_bytes(_digest(seed, scope), "big")
    letters = []
    for _ in range(ID_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return prefix + "".join(letters)


def generator(seed: int, *scope: object) -> random.Random:
    """Return a random generator of its own for a scope."""
    return random.Random(_digest(seed, scope))


def _digest(seed: int, scope: tuple[object, ...]) -> bytes:
    return hashlib.sha256(repr((seed, *scope)).encode()).digest()
