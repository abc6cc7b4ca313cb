"""Results that drift from their schema, and pages: what is cut can be had, unless the fault hides it."""

import pytest

from goldentrace.faults.drift import drifted, page
from goldentrace.faults.plan import Pages, Step
from goldentrace.faults.template import MISSING

VALUE = {"id": "ch_1", "amount": 500, "nested": {"ok": True}}
PAGES = Pages("/items", "/next", "/cursor")


@pytest.mark.parametrize(
    ("params", "value"),
    [
        ({}, {"amount": 500, "nested": {"ok": True}}),
        ({"drop": ["/nested/ok"]}, {"id": "ch_1", "amount": 500, "nested": {}}),
        ({"rename": {"/id": "charge_id"}}, {"amount": 500, "nested": {"ok": True}, "charge_id": "ch_1"}),
        ({"rename": {"/nested/ok": "fine"}}, {"id": "ch_1", "amount": 500, "nested": {"fine": True}}),
        ({"retype": {"/amount": "string"}}, {"id": "ch_1", "amount": "500", "nested": {"ok": True}}),
        ({"retype": {"/nested": "array"}}, {"id": "ch_1", "amount": 500, "nested": [{"ok": True}]}),
        ({"retype": {"/id": "null"}}, {"id": None, "amount": 500, "nested": {"ok": True}}),
        ({"add": {"/extra": 1}}, {**VALUE, "extra": 1}),
        ({"drop": ["/gone"]}, VALUE),
    ],
)
def test_drift(params: dict[str, object], value: object) -> None:
    assert drifted(VALUE, params) == value


def test_what_is_no_object_becomes_text() -> None:
    assert drifted([1, 2], {}) == "[1, 2]"


def test_a_truncated_page_names_the_rest_and_the_rest_can_be_had() -> None:
    whole = {"items": [1, 2, 3, 4, 5]}
    first = page(whole, PAGES, MISSING, Step("truncated_page", "after_commit", 1, {"keep": 2}))
    assert first["items"] == [1, 2]
    rest = page(whole, PAGES, first["next"], None)
    assert rest == {"items": [3, 4, 5]}


def test_pages_of_a_size_follow_each_other_to_the_end() -> None:
    whole = {"items": list(range(7))}
    pages = Pages("/items", "/next", "/cursor", size=3)
    cursor, seen = MISSING, []
    while True:
        found = page(whole, pages, cursor, None)
        seen += found["items"]
        if "next" not in found:
            break
        cursor = found["next"]
    assert seen == whole["items"]


def test_a_silent_cut_says_nothing() -> None:
    found = page(
        {"items": [1, 2, 3, 4]}, PAGES, MISSING, Step("truncated_page", "after_commit", 1, {"is_silent": True})
    )
    assert found == {"items": [1, 2]}


@pytest.mark.parametrize("cursor", ["", "page-x", "page-99", 7, None])
def test_a_cursor_that_was_never_given_out_breaks_nothing(cursor: object) -> None:
    assert page({"items": [1, 2]}, PAGES, cursor, None)["items"] in ([1, 2], [])
