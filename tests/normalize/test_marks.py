"""Literals that are looked for together: those that stand in a document, all of them and no others."""

from hypothesis import given
from hypothesis import strategies as st

from goldentrace.normalize.marks import Marks

LITERALS = ("sk-", "_live_", "ghp_", "jwt", "eyj", "xox", "sg.", "://", "-----begin", "key", "api-key", "next_cursor")


@given(st.lists(st.sampled_from((*LITERALS, *(each[:3] for each in LITERALS), "x", " ", "_")), max_size=9).map("".join))
def test_the_literals_found_are_those_that_stand_there(text: str) -> None:
    assert sorted(Marks(LITERALS).found_in(text.encode())) == sorted(each for each in LITERALS if each in text)


def test_of_no_literals_none_is_found() -> None:
    assert Marks(()).found_in(b"sk-") == []
