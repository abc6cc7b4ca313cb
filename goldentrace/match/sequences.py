"""The fewest inserts and deletes between two sequences of keys.

Equal sequences are done at once; common ends are trimmed; a short rest is done by the textbook's table, for which
nothing is imported; a longer one by rapidfuzz's bit-parallel LCS while N*M allows it, and by a far aligner that the
caller passes in (git's) beyond. No unique anchors and no difflib: both turn one edit of a loop into many. Without a far
aligner the result is made of windows and marked approximate. This module must not know what a key is.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

SHORT_CELLS: Final = 4_096
"""N*M up to which the table is filled: less work than importing rapidfuzz."""
MAX_CELLS: Final = 2_000_000_000
"""N*M up to which the bit-parallel alignment runs: its bits take N*M/8 bytes, 250 MB here."""
WINDOW: Final = 40_000
"""Side of one window of the approximate fallback; WINDOW**2 stays below MAX_CELLS."""

Pairs: TypeAlias = list[tuple[int, int]]
FarAligner: TypeAlias = Callable[[Sequence[int], Sequence[int]], tuple[Pairs, bool] | None]
"""Aligns two long sequences: the pairs and whether they are exact; None where it cannot."""


def align(
    golden: Sequence[Hashable], candidate: Sequence[Hashable], far: FarAligner | None = None
) -> tuple[Pairs, bool]:
    """Return the pairs of a longest common subsequence, ascending on both sides, and whether it is exact."""
    if golden == candidate:
        return [(n, n) for n in range(len(golden))], True
    start = 0
    limit = min(len(golden), len(candidate))
    while start < limit and golden[start] == candidate[start]:
        start += 1
    end = 0
    while end < limit - start and golden[-1 - end] == candidate[-1 - end]:
        end += 1
    left, right = _as_ints(golden[start : len(golden) - end], candidate[start : len(candidate) - end])
    inner, is_exact = _align_ints(left, right, far)
    pairs = [(n, n) for n in range(start)]
    pairs.extend((g + start, c + start) for g, c in inner)
    pairs.extend((len(golden) - n, len(candidate) - n) for n in range(end, 0, -1))
    return pairs, is_exact


def _as_ints(golden: Sequence[Hashable], candidate: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(key, len(numbers)) for key in golden]
    return left, [numbers.setdefault(key, len(numbers)) for key in candidate]


def _align_ints(left: list[int], right: list[int], far: FarAligner | None) -> tuple[Pairs, bool]:
    if not left or not right or not set(left) & set(right):
        return [], True
    if len(left) * len(right) <= SHORT_CELLS:
        return _short(left, right), True
    if len(left) * len(right) <= MAX_CELLS:
        return _indel(left, right), True
    found = far(left, right) if far is not None else None
    return found if found is not None else (_windows(left, right), False)


def _short(left: list[int], right: list[int]) -> Pairs:
    """The longest common subsequence by the table of the lengths that the rests of both sides have."""
    rests = [[0] * (len(right) + 1)]
    for key in reversed(left):
        below = rests[-1]
        row = [0] * (len(right) + 1)
        for c in range(len(right) - 1, -1, -1):
            row[c] = below[c + 1] + 1 if key == right[c] else max(below[c], row[c + 1])
        rests.append(row)
    rests.reverse()
    pairs: Pairs = []
    g = c = 0
    while g < len(left) and c < len(right):
        if left[g] == right[c]:
            pairs.append((g, c))
            g, c = g + 1, c + 1
        elif rests[g + 1][c] >= rests[g][c + 1]:
            g += 1
        else:
            c += 1
    return pairs


def _indel(left: Sequence[int], right: Sequence[int]) -> Pairs:
    from rapidfuzz.distance import Indel

    pairs: Pairs = []
    for step in Indel.opcodes(left, right):
        if step.tag == "equal":
            pairs.extend(zip(range(step.src_start, step.src_end), range(step.dest_start, step.dest_end), strict=True))
    return pairs


def _windows(left: Sequence[int], right: Sequence[int]) -> Pairs:
    """Align window by window, each time keeping the first half of what matched."""
    pairs: Pairs = []
    g = c = 0
    while g < len(left) and c < len(right):
        found = _indel(left[g : g + WINDOW], right[c : c + WINDOW])
        is_last = g + WINDOW >= len(left) and c + WINDOW >= len(right)
        kept = (
            found
            if is_last
            else [pair for pair in found if pair[0] < WINDOW // 2 and pair[1] < WINDOW // 2] or found[:1]
        )
        pairs.extend((g + one, c + other) for one, other in kept)
        if is_last:
            break
        g, c = (pairs[-1][0] + 1, pairs[-1][1] + 1) if kept else (g + WINDOW // 2, c + WINDOW // 2)
    return pairs
