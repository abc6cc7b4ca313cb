"""What detection sees: a document that was cut anywhere still shows what stood before the cut."""

import json

from hypothesis import given
from hypothesis import strategies as st

from goldentrace.sources.head import Head, outline

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
CONTAINERS = st.lists(JSON, max_size=5) | st.dictionaries(st.text(max_size=5), JSON, max_size=5)


def is_part(part: object, whole: object) -> bool:
    """Whether `part` is `whole` with values missing at its end only."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return list(part) == list(whole)[: len(part)] and all(is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(is_part(a, b) for a, b in zip(part, whole, strict=False))
    return part == whole


@given(CONTAINERS, st.integers(min_value=0), st.sampled_from([None, 2]), st.booleans())
def test_a_document_that_is_cut_anywhere_says_what_stood_before(value: object, cut: int, indent: int | None, is_ascii: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    found = outline(data[: 1 + cut % len(data)])
    assert found is not None
    assert is_part(found[0], value)


@given(CONTAINERS)
def test_a_whole_document_is_itself(value: object) -> None:
    data = json.dumps(value).encode()
    assert outline(data) == (value, len(data))
    assert Head(data, is_whole=True).records == (value,)


def test_what_is_no_container_or_no_json_has_no_outline() -> None:
    for data in (b"", b"   ", b"12", b'"text"', b"interactions:\n- request", b"[1, 2}", b"{'a': 1}", b"\xff\xfe"):
        assert outline(data) is None
        assert Head(data, is_whole=True).value is None


def test_a_quote_that_does_not_end_hides_what_follows_it() -> None:
    assert outline(b'{"a": 1, "text": "] } [ {\\" ') == ({"a": 1}, 28)


def test_lines_are_told_from_one_document() -> None:
    assert Head(b'{"a":1}\n{"b":2}\n{"c":', is_whole=False).records == ({"a": 1}, {"b": 2})
    assert Head(b'{"a":1}\n', is_whole=True).records == ({"a": 1},)
    assert Head(b'{\n "a":1\n}\n{\n "b":2\n}', is_whole=True).records == ({"a": 1}, {"b": 2})
    assert Head(b'{"first": {"a": 1}, "second": "cut of', is_whole=False).records == ({"first": {"a": 1}},)


def test_the_objects_of_an_array_are_its_elements() -> None:
    assert Head(b'[{"a":1}, 3, {"b":2}]', is_whole=True).objects == ({"a": 1}, {"b": 2})
