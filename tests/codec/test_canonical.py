"""Canonical JSON against RFC 8785 by another implementation, and what it refuses."""

import json
import math
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from goldentrace.codec import canonical as module
from goldentrace.codec.canonical import JsonError, canonical, decode, digest, encode, encode_raw, number

EXACT = 2**53 - 1
"""RFC 8785 knows no larger integers; ours stay exact."""
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text()
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=())).map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
"""With lone surrogates; two that make a pair are one character in JSON."""


def values(scalars: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )


NO_ASTRAL = st.text(st.characters(max_codepoint=0xD7FF))
"""Keys that sort alike by code point (ours) and by UTF-16 unit (RFC 8785)."""
RFC_VALUES = values(st.none() | st.booleans() | st.integers(-EXACT, EXACT) | FLOATS | TEXT, NO_ASTRAL)
JSON_VALUES = values(st.none() | st.booleans() | st.integers() | FLOATS | ANY_TEXT, ANY_TEXT)


def is_beyond(value: float) -> bool:
    """Does the oracle refuse this number, or write it as an integer that is not exact?"""
    return value.is_integer() and EXACT < abs(value) < 1e21


@given(FLOATS)
@example(0.0)
@example(-0.0)
@example(1e21)
@example(9.99e20)
@example(1e-6)
@example(1e-7)
@example(-0.000001234)
@example(5e-324)
@example(1.7976931348623157e308)
@example(123456.789)
@example(1e22)
def test_numbers_are_written_as_the_rfc_writes_them(value: float) -> None:
    if is_beyond(value):
        assert canonical(value) == str(int(value)).encode()
    else:
        assert canonical(value) == rfc8785.dumps(value)


@given(RFC_VALUES)
def test_values_are_written_as_the_rfc_writes_them(value: Any) -> None:
    def has_beyond(part: Any) -> bool:
        if isinstance(part, dict):
            return any(has_beyond(item) for item in part.values())
        if isinstance(part, list):
            return any(has_beyond(item) for item in part)
        return isinstance(part, float) and is_beyond(part)

    if not has_beyond(value):
        assert canonical(value) == rfc8785.dumps(value)


@given(JSON_VALUES)
def test_what_is_written_reads_back_as_the_same_value(value: Any) -> None:
    assert decode(encode(value)) == value
    assert decode(canonical(value)) == value
    assert canonical(decode(canonical(value))) == canonical(value)
    assert bytes(encode_raw(value)) == encode(value)


@given(JSON_VALUES)
def test_the_order_of_keys_is_kept_by_encode_and_sorted_by_canonical(value: Any) -> None:
    def turned(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: turned(part[key]) for key in reversed(part)}
        return [turned(item) for item in part] if isinstance(part, list) else part

    assert canonical(turned(value)) == canonical(value)
    pairs = json.loads(encode(value), object_pairs_hook=list)
    if isinstance(value, dict):
        assert [key for key, _ in pairs] == list(value)


def test_integers_are_exact_up_to_the_limit_and_refused_beyond_it() -> None:
    most = 10**module.MAX_INTEGER_DIGITS - 1
    assert decode(str(most)) == most
    assert canonical([most]) == b"[%d]" % most
    assert canonical([2**53 + 1]) != canonical([2**53])
    with pytest.raises(JsonError, match="more than 4300 digits"):
        decode("1" + "0" * module.MAX_INTEGER_DIGITS)
    for write in (encode, canonical):
        with pytest.raises(JsonError, match="more than 4300 digits"):
            write({"n": most + 1})
        with pytest.raises(JsonError):
            write({"n": most + 1, "s": "\ud800"})


def test_1_and_1_0_are_one_value_and_the_text_another() -> None:
    assert canonical(1) == canonical(1.0) == b"1"
    assert canonical("1") != canonical(1) != canonical(True)
    assert canonical((1, 2.0)) == canonical([1, 2])


def test_lone_surrogates_stay_distinct_in_values_and_keys() -> None:
    assert canonical("\ud800") == b'"\\ud800"' != canonical("\ud801")
    assert canonical({"\udfff": [1.0, None, (True,)]}) == b'{"\\udfff":[1,null,[true]]}'
    assert encode({"b": "\ud800", "a": 1}) == b'{"b":"\\ud800","a":1}'
    assert decode(b'"\\ud800"') == "\ud800"
    assert decode('"\ud800"') == "\ud800"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_when_written(value: float) -> None:
    for write in (encode, canonical):
        for shape in (value, [value], {"a": (value,)}, ["\ud800", value]):
            with pytest.raises(JsonError, match="NaN and Infinity are not JSON"):
                write(shape)
    with pytest.raises(JsonError):
        number(value)


@pytest.mark.parametrize("value", [object(), {"a": object()}, ["\ud800", object()], {1.5: object()}])
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    for write in (encode, canonical):
        with pytest.raises(JsonError):
            write(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"NaN", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"[1e400]", "a number out of range"),
        (b"[-1e999]", "a number out of range"),
        (b'["\xff"]', r"not UTF-8 \(byte 2 of the value\)"),
        (b"[1,]", r"not JSON \(\w.*character \d+\)"),
        (b"", "not JSON"),
        (b"{'a': 1}", "not JSON"),
        ("[" * 200_000, "nested deeper than"),
        ('["\\ud800",' + "[" * 200_000, "nested deeper than"),
    ],
)
def test_what_is_no_json_is_refused_in_one_clause(data: bytes | str, message: str) -> None:
    with pytest.raises(JsonError, match=message) as caught:
        decode(data)
    assert "\n" not in str(caught.value)


def test_raw_values_are_decoded_like_their_bytes() -> None:
    assert decode(msgspec.Raw(b'{"a":1}')) == {"a": 1}
    with pytest.raises(JsonError, match="not UTF-8"):
        decode(msgspec.Raw(b'"\xff"'))


def test_a_value_that_nests_without_end_is_refused_when_written() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    for write in (encode, canonical):
        with pytest.raises(JsonError, match="nested deeper than"):
            write(value)


def test_digests_are_those_of_sha_256_and_of_hmac() -> None:
    # FIPS 180-4: SHA-256 of `abc`; RFC 4231, test case 2.
    assert digest(b"abc", 16) == "h:ba7816bf8f01cfea"
    assert digest(b"abc", 64) == "h:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest(b"what do ya want for nothing?", 12, b"Jefe") == "h:5bdcc146bf60"
