"""JSON Pointers and the globs over them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.model.pointer import compile_globs, escape, is_matched, parent, segments, unescape


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
