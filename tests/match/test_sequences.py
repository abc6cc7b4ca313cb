"""The fewest inserts and deletes, against a plain table; what is approximate is said."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from goldentrace.match import sequences
from goldentrace.match.sequences import Pairs, align

LETTERS = st.lists(st.sampled_from("abc"), max_size=24)


def longest(golden: Sequence[str], candidate: Sequence[str]) -> int:
    """The length of a longest common subsequence, by the table of the textbook."""
    row = [0] * (len(candidate) + 1)
    for one in golden:
        before = 0
        for n, other in enumerate(candidate, start=1):
            before, row[n] = row[n], before + 1 if one == other else max(row[n], row[n - 1])
    return row[-1]


def check_pairs(golden: Sequence[object], candidate: Sequence[object], pairs: Pairs) -> None:
    assert all(golden[g] == candidate[c] for g, c in pairs)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(pairs))


@given(LETTERS, LETTERS)
def test_the_pairs_are_a_longest_common_subsequence(golden: list[str], candidate: list[str]) -> None:
    pairs, is_exact = align(golden, candidate)
    check_pairs(golden, candidate, pairs)
    assert (len(pairs), is_exact) == (longest(golden, candidate), True)
    far = sequences._indel([ord(one) for one in golden], [ord(one) for one in candidate])
    check_pairs(golden, candidate, far)
    assert len(far) == len(pairs)


@given(LETTERS, st.data())
def test_one_edit_of_a_loop_is_one_edit(golden: list[str], data: st.DataObject) -> None:
    assume(golden)
    place = data.draw(st.integers(0, len(golden) - 1))
    candidate = golden[:place] + golden[place + 1 :]
    assert len(align(golden, candidate)[0]) == len(golden) - 1
    assert len(align(candidate, golden)[0]) == len(golden) - 1


def test_keys_may_be_anything_that_can_be_hashed() -> None:
    golden, candidate = [("a", None), 1, "x"], ["x", ("a", None), 1]
    assert align(golden, candidate) == ([(0, 1), (1, 2)], True)
    assert align(["a", "b"], ["c"]) == ([], True)
    assert align([], ["a"]) == ([], True)
    assert align([], []) == ([], True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences of eight are far, windows are four wide."""
    monkeypatch.setattr(sequences, "SHORT_CELLS", 0)
    monkeypatch.setattr(sequences, "MAX_CELLS", 20)
    monkeypatch.setattr(sequences, "WINDOW", 4)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [8, 9, 31])
def test_windows_are_a_common_subsequence_marked_approximate(count: int) -> None:
    import random

    for seed in range(60):
        draw = random.Random(seed)
        golden = ["x", *draw.choices("abcd", k=count), "y"]
        candidate = ["z", *draw.choices("abcd", k=count + draw.randint(-3, 3)), "w"]
        pairs, is_exact = align(golden, candidate)
        check_pairs(golden, candidate, pairs)
        assert not is_exact
        assert len(pairs) <= longest(golden, candidate)


@pytest.mark.usefixtures("small")
def test_windows_find_all_where_edits_are_far_apart() -> None:
    golden = [str(n) for n in range(60)]
    candidate = ["new", *golden[:20], "inserted", *golden[20:40], *golden[41:59], "other"]
    pairs, is_exact = align(golden, candidate)
    assert (len(pairs), is_exact) == (58, False)


@pytest.mark.usefixtures("small")
def test_windows_without_anything_in_common_at_one_place_go_on_behind_it() -> None:
    golden = [*"abcdefgh", "same", "1"]
    candidate = [*"ijklmnop", "same", "2"]
    assert align(golden, candidate) == ([(8, 8)], False)


@pytest.mark.usefixtures("small")
def test_a_far_aligner_is_asked_only_where_it_is_far_and_its_word_holds() -> None:
    asked: list[tuple[list[int], list[int]]] = []

    def far(left: Sequence[int], right: Sequence[int]) -> tuple[Pairs, bool]:
        asked.append((list(left), list(right)))
        return [(0, 1)], True

    assert align([*"abc"], [*"ac"], far) == ([(0, 0), (2, 1)], True)
    assert align([*"aabcdex"], [*"abbcdey"], far)[1] is True
    assert asked == [([0, 1, 2, 3, 4, 5], [1, 1, 2, 3, 4, 6])]
    assert align([*"pabcdeq"], [*"qabcdepp"], lambda left, right: None)[1] is False
