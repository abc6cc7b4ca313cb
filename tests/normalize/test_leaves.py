"""Values as leaves: how each is written, what a profile changes, and what a long map of them collapses to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from goldentrace.codec.canonical import digest
from goldentrace.diff.collapse import COLLAPSED, collapse, collapse_like
from goldentrace.model.event import ToolCall
from goldentrace.model.profile import Profile
from goldentrace.normalize import leaves as module
from goldentrace.normalize.leaves import LeafReader, instant_ms
from goldentrace.normalize.paths import PathStep
from goldentrace.normalize.pipeline import ArgumentCache
from tests.traces import Run, args_of, normal

U1, U2, U3 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(3))
CAR = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def leaf(value: Any, **profile: Any) -> Any:
    return args_of(Run().call("t", {"a": value}).end(), profile=profile)["/a"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("é€", "str[2] " + digest('"é€"'.encode(), 12)),
        ("", "str[0] " + digest(b'""', 12)),
        (5, "int " + digest(b"5", 12)),
        (5.0, "int " + digest(b"5", 12)),
        (5.5, "float " + digest(b"5.5", 12)),
        (1e21, "float " + digest(b"1e+21", 12)),
        (True, "bool " + digest(b"true", 12)),
        (None, "null"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_a_leaf_is_written_as_type_length_and_digest(value: Any, written: str) -> None:
    assert leaf(value) == written


def test_an_object_with_the_keys_of_a_list_is_no_list() -> None:
    args = args_of(Run().call("t", {"a": {"0": 1, "1": 2}}).end())
    assert args["/a#object"] == "object"
    assert "/a#object" not in args_of(Run().call("t", {"a": {"0": 1, "2": 2}}).end())


@pytest.mark.parametrize("text", ["{not json}", "[1", "{1: 2}", "[1]x", '"[1]"', "{}x"])
def test_a_string_that_is_no_json_is_a_string(text: str) -> None:
    assert leaf(text).startswith(f"str[{len(text)}] h:")


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("5", 5, True), (" 5.0 ", 5, True), ("5e0", 5.0, True), ("-.5", -0.5, True), ("+7", 7, True), ("5", "5 ", True),
        ("x ", "x", True), ("X", "x", False), ("5x", 5, False), ("0x5", 5, False), ("", " ", True), (True, 1, False),
        (None, "null", False), ("1e999", "1e999", True), ("1e999", "-1e999", False), ("1_0", 10, False), ("inf", "inf", True),
    ],
)  # fmt: skip
def test_semantic_equivalence(one: Any, other: Any, is_equal: bool) -> None:
    semantic = {"arguments": {"equivalence": "semantic"}}
    assert (leaf(one, **semantic) == leaf(other, **semantic)) is is_equal
    if one != other:
        assert leaf(one) != leaf(other)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1772355600, "<now>"), (1772355600.5, "<now>"), (1772355600000, "<now>"), (1772355600000000, "<now>"),
        (1772355600000000000, "<now>"), ("2026-03-01T09:04:59Z", "<now>"), ("2026-03-01 10:00+01:00", "<now>"),
        ("2026-03-01T08:56:00", "<now>"),
    ],
)  # fmt: skip
def test_the_clock_of_the_event_in_every_form_is_now(value: Any, written: str) -> None:
    assert leaf(value) == written


@pytest.mark.parametrize("value", [1772355000, 999_999_999, 10**20, "2026-03-01T09:05:01Z", "2026-03-01", "2026-13-01T09:00:00Z", "2026-03-01T09:00:00 is long before this is over"])  # fmt: skip
def test_another_time_is_an_ordinary_value(value: Any) -> None:
    assert " h:" in leaf(value)


def test_without_a_clock_of_the_event_no_value_is_now() -> None:
    args = args_of(
        Run().at(None).call("t", {"a": 1772355600, "d": "2026-03-01"}).end(), profile={"time": {"relative": ["/d"]}}
    )
    assert args["/a"].startswith("int h:")
    assert args["/d"].startswith("str[10] h:")


def test_times_that_follow_the_clock_are_named_by_their_distance() -> None:
    profile = {"time": {"relative": ["/a"]}}
    assert leaf(1772355600 + 3605, **profile) == "<now+3600s>"
    assert leaf("2026-03-01T07:59:58Z", **profile) == "<now-3600s>"
    assert leaf("2026-02-27", **profile) == "<today-2d>"
    assert leaf("2026-02-30", **profile).startswith("str[10] h:")


def test_kept_leaves_stand_in_clear_but_never_a_secret() -> None:
    profile = {"arguments": {"keep": ["/**"]}, "tools": {"t": {"keep": ["x"]}}}
    args = args_of(
        Run().call("t", {"a": "text", "n": 5, "password": "hunter2", "id": U1, "f": 1.5}).end(), profile=profile
    )
    assert args == {
        "/a": {"value": "text"}, "/n": {"value": 5}, "/f": {"value": 1.5}, "/password": "<secret:1>", "/id": "<new:uuid>",
    }  # fmt: skip


def test_what_a_tool_declares_adds_to_the_profile() -> None:
    profile = {
        "arguments": {"ignore": ["/one"]}, "tools": {"t": {"ignore": ["/two"], "order_free": ["/list"], "keep": ["/k"]}},
    }  # fmt: skip
    args = {"one": 1, "two": 2, "list": [3, 1], "k": "v"}
    first, second = (o.args for o in normal(Run().call("t", args).call("other", args).end(), profile).operations)
    assert set(first) == {"/list/0", "/list/1", "/k"}
    assert set(second) == {"/two", "/list/0", "/list/1", "/k"}
    assert (first["/list/0"], first["/list/1"]) == (second["/list/1"], second["/list/0"])
    assert first["/k"] == {"value": "v"}


def test_numbers_under_a_named_key_are_ids() -> None:
    profile = {"ids": {"keys": ["order", "/a"]}}
    run = (
        Run()
        .call("get", {}, {"order": 77, "n": 77.5})
        .call("use", {"order": 77})
        .call("use", {"a": 77})
        .call("use", {"order": 78.5})
    )
    written = [o.args for o in normal(run.end(), profile).operations]
    assert written[1:] == [{"/order": "<get#1/order>"}, {"/a": "<get#1/order>"}, {"/order": "<new:key>"}]


def test_a_short_folder_is_found_in_short_text() -> None:
    args = args_of(Run(cwd="/w").call("t", {"a": "/w/x", "b": "/ww"}).end())
    assert args["/a"].startswith("str[")
    assert args["/a"] == args_of(Run(cwd="/another/one").call("t", {"a": "/another/one/x"}).end())["/a"]
    assert args["/b"].startswith("str[3] h:")


def test_a_mixed_leaf_is_the_digest_of_its_template_and_its_placeholders_in_order() -> None:
    def one(first: str, second: str, key: str, around: str = "to") -> str:
        return str(leaf(f"{first} {around} {second} with Bearer {key}"))

    found = one(U1, U2, "a1" * 10)
    assert found.endswith(" <new:uuid> <new:uuid:2> <secret:1>")
    assert one(U2, U3, "b2" * 10) == found
    assert one(U1, U1, "a1" * 10) != found
    assert one(U1, U2, "a1" * 10, "from").split(" ", 2)[1] != found.split(" ", 2)[1]


def test_a_literal_among_ids_is_part_of_the_template() -> None:
    run = Run().say(f"use {U1}").call("t", {"a": f"{U1} {U2}"}).call("t", {"a": f"{U1} x"}).call("t", {"a": f"{U1} x"})
    first, second, third = (o.args["/a"] for o in normal(run.end()).operations)
    assert first.endswith(" <new:uuid>")
    assert second == third
    assert second.startswith("str[38] h:")


def test_the_raw_text_and_the_key_of_a_call_are_leaves_with_ids_in_them() -> None:
    run = Run().call("t", None, args_raw=f'{{"id": "{U1}"', idempotency_key="order-7").call("t", None, args_raw="")
    first, second = (o.args for o in normal(run.end()).operations)
    assert first["#raw"].endswith(" <new:uuid>")
    assert first["#idempotency_key"].startswith("str[7] h:")
    assert second == {"#raw": "str[0] " + digest(b'""', 12)}


@given(st.dictionaries(st.text(max_size=3), st.text(max_size=20) | st.integers() | st.just(U1), max_size=4))
def test_the_cache_changes_nothing(args: dict[str, Any]) -> None:
    trace = Run().call("t", args).call("t", args).end()
    plain, cached = (normal(trace, cache=ArgumentCache(is_used=is_used)) for is_used in (False, True))
    assert [(o.args, o.args_hash) for o in plain.operations] == [(o.args, o.args_hash) for o in cached.operations]


def test_the_cache_of_digests_stays_bounded_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_DIGESTS", 2)
    reader = LeafReader(Profile(name="p"), PathStep({}), None)
    words = [reader.describe(value) for value in ("a", "b", "c", "a", 1, 2, 3, 1)]
    assert (words[0], words[4]) == (words[3], words[7])
    assert len(set(words)) == 6


def test_an_instant_without_a_zone_is_utc() -> None:
    assert instant_ms("2026-03-01T09:00:00") == instant_ms("2026-03-01T10:00:00+01:00") == 1772355600000
    assert instant_ms("not a date") is None


# -- long maps --------------------------------------------------------------------------------------------------------


def flat(count: int, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}/k{n}": f"int h:{n:012x}" for n in range(count)}


def test_a_short_map_is_left_as_it_is() -> None:
    leaves = flat(3)
    assert collapse(leaves, 3) is leaves
    assert collapse_like(leaves, flat(3)) is leaves


def test_the_deepest_then_largest_then_last_container_goes_first() -> None:
    leaves = {**flat(2, "/a"), **flat(3, "/b"), **flat(3, "/c"), **flat(2, "/d/e")}
    assert [p for p, v in collapse(leaves, 9).items() if v.startswith(COLLAPSED)] == ["/d/e"]
    shown = [p for p, v in collapse(leaves, 8).items() if v.startswith(COLLAPSED)]
    assert len(shown) == 2
    assert collapse({**flat(3, "/b"), **flat(3, "/c")}, 5)["/c"].startswith("leaves[3] h:")
    assert collapse({**flat(3, "/b"), **flat(4, "/a")}, 5)["/a"].startswith("leaves[4] h:")


def test_ids_and_kept_values_never_collapse() -> None:
    leaves = {**flat(5), "/id": "<new:uuid>", "/text": "str[9] h:00 <new:uuid>", "/kept": {"value": 1}}
    shown = collapse(leaves, 1)
    assert {p for p in shown if p} == {"/id", "/text", "/kept"}
    assert shown[""].startswith("leaves[5] h:")


def test_a_root_that_has_collapsed_beside_many_ids_collapses_no_further() -> None:
    ids = {f"id{n}": f"0f8fad5b-d9cb-469f-a165-7086772895{n:02d}" for n in range(70)}
    leaves = args_of(Run().call("t", {**ids, "a": 1, "b": 2}).end())
    shown = collapse(leaves, 64)
    assert len(shown) == 71
    assert shown[""].startswith("leaves[2] h:")


def test_leaves_that_are_spread_collapse_at_what_holds_two() -> None:
    leaves = {f"/list/{n}/x": f"int h:{n:012x}" for n in range(9)}
    shown = collapse(leaves, 4)
    assert list(shown) == ["/list"]
    assert shown["/list"].startswith("leaves[9] h:")


def test_where_nothing_holds_two_the_map_stays_long() -> None:
    leaves = {"/a/b/c/d": "null", "/e/f/g/h": "null"}
    assert collapse(leaves, 1) == leaves
    assert collapse({"/a": "<new:uuid>", "/b": "<new:uuid:2>"}, 1) == {"/a": "<new:uuid>", "/b": "<new:uuid:2>"}


def test_what_marks_a_container_collapses_with_it() -> None:
    leaves = {"/body#json": "json", "/body/a": "null", "/body/b": "null", "/x": "null"}
    shown = collapse(leaves, 2)
    assert set(shown) == {"/body", "/x"}
    assert shown["/body"].startswith("leaves[3] h:")


VALUES = st.recursive(
    st.sampled_from([None, 1, U1, '{"x": [1, 2]}']),
    lambda inner: st.dictionaries(st.sampled_from("ab01"), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=14,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), st.integers(1, 6))
def test_a_map_collapsed_like_a_golden_is_the_goldens_and_a_change_inside_shows(
    args: dict[str, Any], most: int
) -> None:
    leaves = args_of(Run().call("t", args).end())
    golden = collapse(leaves, most)
    assert collapse_like(leaves, golden) == golden
    assert {p: v for p, v in golden.items() if "<" in v} == {p: v for p, v in leaves.items() if "<" in v}
    for pointer, written in leaves.items():
        if "<" not in written:
            assert collapse_like({**leaves, pointer: "str[1] h:11"}, golden) != golden


def test_a_container_that_is_empty_now_is_gone() -> None:
    golden = collapse(flat(4, "/a"), 1)
    assert list(golden) == ["/a"]
    assert collapse_like({"/b": "null"}, golden) == {"/b": "null"}


def test_arguments_beyond_the_limits_name_the_field() -> None:
    run = Run()
    run.add(ToolCall, call_id="1", tool_name="t", args=Raw(b'{"a": "' + CAR.encode() + b'", "n": 1}'))
    assert normal(run.end()).operations[0].args["/a"] == "<new:ulid>"
