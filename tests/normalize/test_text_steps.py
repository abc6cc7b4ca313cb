"""Paths and ids inside text: where they begin and end, and what is neither."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.model.event import TraceStart
from goldentrace.model.profile import Ids, Paths
from goldentrace.normalize.ids import (
    _PATTERN,
    IdStep,
    _may_hold,
    find_ids,
    id_values,
    is_content_address,
    values_of,
)
from goldentrace.normalize.paths import PathStep, path_step
from goldentrace.normalize.text import Token, join, split_by

U1 = "0f8fad5b-d9cb-469f-a165-708677289501"


def shown(segments: tuple[Any, ...]) -> list[str]:
    return [s if isinstance(s, str) else f"<{s.kind} {s.value}>" for s in segments]


STEP = PathStep({"cwd": "/srv/ann/job", "home": "/srv/ann/", "tmp": "/tmp", "root": "/", "none": ""})


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("/srv/ann/job", ["<path cwd>"]),
        ("/srv/ann/job/", ["<path cwd>", "/"]),
        ("/srv/ann/jobs", ["<path home>", "/jobs"]),
        ("/srv/ann", ["<path home>"]),
        ("/srv/anna", ["/srv/anna"]),
        ("/mnt/srv/ann", ["/mnt/srv/ann"]),
        ("/srv/ann-2/x", ["/srv/ann-2/x"]),
        ("/srv/ann.bak", ["/srv/ann.bak"]),
        ("cd '/srv/ann/job'; ls", ["cd '", "<path cwd>", "'; ls"]),
        ("file:///srv/ann/job/a", ["file://", "<path cwd>", "/a"]),
        ("--out=/srv/ann/job/x:/srv/ann", ["--out=", "<path cwd>", "/x:", "<path home>"]),
        ("/tmp", ["<path tmp>"]),
        ("/tmp/", ["<path tmp>", "/"]),
        ("/tmp/ab12/x.txt", ["<path tmp>", "/", "<tmp tmp:ab12>", "/x.txt"]),
        ("'/tmp/ab12'", ["'", "<path tmp>", "/", "<tmp tmp:ab12>", "'"]),
        ("/tmp/a /tmp/b", ["<path tmp>", "/", "<tmp tmp:a>", " ", "<path tmp>", "/", "<tmp tmp:b>"]),
        ("/var/tmp/x", ["/var/tmp/x"]),
        ("nothing", ["nothing"]),
        ("", []),
    ],
)
def test_folders_are_found_at_path_boundaries_the_longest_first(text: str, parts: list[str]) -> None:
    found = STEP.split((text,))
    assert shown(found) == parts
    assert join(found) == text


def test_without_a_folder_nothing_is_a_path() -> None:
    for roots in ({}, {"cwd": "/", "home": ""}):
        assert PathStep(roots).split(("/a/b",)) == ("/a/b",)


def test_the_profile_names_which_folders_count() -> None:
    start = TraceStart(format="goldentrace/1", cwd="/w/x", home="/h/y", tmp="/t/z")
    assert path_step(start, Paths()).folders == ("/h/y", "/t/z", "/w/x")
    assert path_step(start, Paths(cwd=False, tmp=False, also={"data": "/data/in"})).folders == ("/data/in", "/h/y")
    also = path_step(TraceStart(format="goldentrace/1"), Paths(also={"data": "/data/in"}))
    assert shown(also.split(("/data/in/x",))) == ["<path data>", "/x"]


def test_a_step_leaves_the_tokens_of_earlier_steps_alone() -> None:
    secret = Token("secret", "/tmp/x", "/tmp/x", "redact/x")
    assert STEP.split((secret, "/tmp")) == (secret, Token("path", "tmp", "/tmp", "paths/tmp"))
    assert split_by((secret,), lambda text: [(0, len(text), secret)]) == (secret,)
    assert (secret.is_id, Token("uuid", "", "", "").is_id) == (False, True)


@pytest.mark.parametrize("around", ["({})", "id={},", "a {}", "{}/x", "é{}é", "_{}", "{}-"])
def test_an_id_is_found_between_characters_that_are_no_letters_or_digits(around: str) -> None:
    assert [token.text for _, _, token in find_ids(around.format(U1))] == [U1]


@pytest.mark.parametrize("around", ["a{}", "{}b", "9{}", "{}0"])
def test_an_id_ends_at_no_letter_or_digit(around: str) -> None:
    assert all(token.kind != "uuid" for _, _, token in find_ids(around.format(U1)))


@given(st.text(alphabet=f'abcdef0123456789-_ {{}}"callreq{U1}', max_size=90))
def test_the_quick_search_of_bytes_finds_what_the_search_of_text_finds(text: str) -> None:
    assert id_values(text.encode()) == {token.value for _, _, token in find_ids(text)}


_PIECES = ("call", "chatcmpl", "rs", "req", "_", "-", " ", "é", "a1b2", "cafe", "x7", "01J", "ZZZZ", U1, U1[:23])


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_where_no_id_may_stand_the_pattern_finds_none(text: str) -> None:
    assert _may_hold(text.encode()) or _PATTERN.search(text) is None


def test_plain_texts_are_passed_over_without_the_pattern() -> None:
    assert not _may_hold(b'{"reservation_id": "4WQ150", "payment": "gift_card_7815826", "date": "2024-05-20"}')


def test_spellings_of_one_id_are_equal_and_a_content_address_is_told_by_its_length() -> None:
    plain, upper = (find_ids(text)[0][2] for text in (U1.replace("-", ""), U1.upper()))
    assert plain.value == upper.value == find_ids(U1)[0][2].value
    assert is_content_address(find_ids("a1" * 20)[0][2])
    assert not is_content_address(find_ids("a1" * 21)[0][2])
    assert not is_content_address(find_ids(U1)[0][2])


def test_the_profile_says_which_values_are_ids() -> None:
    step = IdStep(Ids(keys=["ref", "/deep/*/no"], ignore_keys=["trace"]))
    assert shown(step.split(("Q-7",), "/ref")) == ["<key key:Q-7>"]
    assert shown(step.split((U1,), "/ref")) == [f"<key hex:{U1.replace('-', '')}>"]
    assert shown(step.split((f"a {U1}",), "/ref")) == [f"<key key:a {U1}>"]
    assert shown(step.split(("Q-7",), "/other")) == ["Q-7"]
    assert shown(step.split((U1,), "/trace")) == [U1]
    assert shown(step.split((Token("secret", "s", "s", "r"), "x"), "/ref")) == ["<secret s>", "x"]
    assert step.is_key("/deep/0/no")
    assert shown(IdStep(Ids(kinds="none")).split((U1,), "/id")) == [U1]
    assert values_of(("a", Token("secret", "s", "s", "r"), Token("uuid", "u", "u", "r"))) == ("u",)


@pytest.mark.parametrize("text", ["req-0a1b2c3d", "chatcmpl-abcdefgh", "chatcmpl_0a1b2c3d", "fc_0a1b2c", "abcdefgh-0000-0000-0000-000000000000"])  # fmt: skip
def test_what_only_looks_like_a_listed_shape(text: str) -> None:
    assert find_ids(text) == []
