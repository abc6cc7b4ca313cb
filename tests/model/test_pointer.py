"""JSON Pointers and the globs over them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.model.pointer import compile_globs, escape, glob_problem, is_matched, parent, segments, unescape


@given(st.lists(st.text(max_size=6), max_size=5))
def test_a_pointer_is_read_as_the_keys_it_was_made_of(keys: list[str]) -> None:
    pointer = "".join("/" + escape(key) for key in keys)
    assert list(segments(pointer)) == keys
    assert [unescape(escape(key)) for key in keys] == keys
    assert parent(pointer) == "".join("/" + escape(key) for key in keys[:-1])


@pytest.mark.parametrize(
    ("glob", "pointer", "is_named"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b/0", True),
        ("/a", "/ab", False),
        ("/a", "/x/a", False),
        ("/a/*/c", "/a/b/c", True),
        ("/a/*/c", "/a/b/b/c", False),
        ("/a/**/c", "/a/c", True),
        ("/a/**/c", "/a/b/b/c", True),
        ("/a/**/c", "/a/b/b/d", False),
        ("/a/b*", "/a/bcd", True),
        ("/a.c", "/abc", False),
        ("id", "/id", True),
        ("id", "/x/0/id/y", True),
        ("id", "/x/idx", False),
        ("*_id", "/x/order_id", True),
        ("a/b", "/x/a~1b", True),
        ("/a", "/a#json", True),
        ("/a", "/a/b#object", True),
    ],
)
def test_what_a_glob_names(glob: str, pointer: str, is_named: bool) -> None:
    assert is_matched(compile_globs((glob,)), pointer) is is_named
    assert is_matched(compile_globs(("/never", glob)), pointer) is is_named


def test_no_glob_names_nothing() -> None:
    assert compile_globs(()) is None
    assert not is_matched(None, "/a")


def plain(glob: str, pointer: str) -> bool:
    """The globs as the module describes them, tried in every way."""

    def segment(part: str) -> str:
        return "".join("[^/]*" if char == "*" else re.escape(char) for char in part)

    if not glob.startswith("/"):
        pattern = rf"(?:.*/)?{segment(escape(glob))}(?:/.*)?"
    else:
        parts = ["(?:/[^/]*)*" if part == "**" else "/" + segment(part) for part in glob[1:].split("/")]
        pattern = "".join(parts) + "(?:/.*)?"
    return re.fullmatch(pattern, pointer, re.DOTALL) is not None


SEGMENTS = st.sampled_from(["a", "b", "*", "**", "a*", "*b", "a*b", "*a*", "", "ab", "a**b", "*a*b*", "a\n"])


@given(
    st.one_of(
        st.lists(SEGMENTS, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts)), SEGMENTS.filter(bool)
    ),
    st.lists(st.text("ab\n", max_size=4), max_size=5).map(lambda keys: "".join("/" + key for key in keys)),
)
def test_a_glob_names_what_trying_every_way_names(glob: str, pointer: str) -> None:
    assert is_matched(compile_globs((glob,)), pointer) is plain(glob, pointer)


def test_a_glob_of_many_stars_takes_no_longer() -> None:
    assert not is_matched(compile_globs(("/**" + "/a*/**" * 12 + "/b",)), "/a" * 200)
    assert not is_matched(compile_globs(("*a" * 15 + "*b",)), "/" + "a" * 20_000)


@pytest.mark.parametrize(
    ("glob", "next_step"),
    [
        ("", "write a key name, or a pointer like /items/*/id"),
        ("[", "write /** for everything, or * for what stands in the brackets"),
        ("$.items[0].id", "write /items/0/id"),
        ("$['order id']", "write /order id"),
        ("/items[*]/id", "write /items/*/id"),
        ("/a~b", "write /a~0b"),
    ],
)
def test_what_is_no_glob_is_told_what_was_meant(glob: str, next_step: str) -> None:
    found = glob_problem(glob)
    assert found is not None
    assert found[1] == next_step


@pytest.mark.parametrize("glob", ["id", "*_id", "/a/*/b", "/a/**", "a/b", "~", "a~b", "/a~0b~1c", "größe", "#"])
def test_what_is_a_glob_has_no_problem(glob: str) -> None:
    assert glob_problem(glob) is None
