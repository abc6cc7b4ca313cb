"""Results: how each mode compares them, and what stands for a failure inside an ok text."""

from typing import Any

import msgspec
import pytest

from goldentrace.model.event import ABSENT
from goldentrace.model.profile import Profile
from tests.traces import Run, clock, normal

U1, U2 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(2))


def compared(mode: str, result: Any, **more: Any) -> Any:
    return normal(Run().call("t", {}, result).end(), {"results": {"compare": mode}, **more}).operations[0].last.result


BODY = {
    "id": U1,
    "at": clock(0),
    "n": 5,
    "f": 1.5,
    "s": "text",
    "none": None,
    "ok": True,
    "e": [],
    "deep": [{"x": "y"}],
    "note": f"see {U1}",
}


def test_under_status_nothing_of_a_result_is_compared() -> None:
    assert compared("status", BODY) is None


def test_under_shape_pointers_and_types_are() -> None:
    assert compared("shape", BODY) == {
        "/id": "str", "/at": "str", "/n": "int", "/f": "float", "/s": "str", "/none": "null", "/ok": "bool", "/e": "[]",
        "/deep/0/x": "str", "/note": "str",
    }  # fmt: skip
    assert compared("shape", {**BODY, "id": U2, "n": 6, "s": "longer", "at": clock(99)}) == compared("shape", BODY)


def test_under_digest_values_are_but_ids_only_by_kind() -> None:
    found = compared("digest", BODY)
    assert found["/id"] == "<uuid>"
    assert found == compared("digest", {**BODY, "id": U2, "note": f"see {U2}"})
    for name, other in (("n", 6), ("s", "texts"), ("note", f"saw {U1}"), ("at", clock(9999))):
        assert found != compared("digest", {**BODY, name: other})
    assert found["/at"] == "<now>" == compared("keep", BODY)["/at"]


def test_under_keep_plain_values_stand_in_clear_and_no_secret_does() -> None:
    found = compared("keep", {**BODY, "password": "hunter2", "json": '{"a": 5}'})
    assert (found["/n"], found["/s"], found["/deep/0/x"]) == ({"value": 5}, {"value": "text"}, {"value": "y"})
    assert (found["/id"], found["/none"], found["/e"], found["/password"]) == ("<uuid>", "null", "[]", "<secret>")
    assert found["/json/a"].startswith("int h:")
    assert found["/note"].startswith("str h:")


def test_a_tool_may_ask_for_another_mode_than_the_profile() -> None:
    assert compared("status", 5, tools={"t": {"results": "keep"}}) == {"": {"value": 5}}
    assert compared("keep", 5, tools={"t": {"results": "status"}}) is None


@pytest.mark.parametrize(("mode", "found"), [("digest", {"#hash": "h:1"}), ("keep", {"#hash": "h:1"}), ("shape", {})])
def test_of_a_result_that_was_left_out_its_hash_is_compared(mode: str, found: Any) -> None:
    run = Run().call("t", {}, status=None, id="1").result("1", ABSENT, result_hash="h:1")
    assert normal(run.end(), {"results": {"compare": mode}}).operations[0].last.result == found


def test_without_a_result_there_is_nothing_to_compare() -> None:
    run = Run().call("t", {}, status=None).call("u", {}, ABSENT)
    assert [o.last.result for o in normal(run.end(), {"results": {"compare": "digest"}}).operations] == [None, {}]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Error: no", "error"), ("fine\nError: no", "error"), ({"msg": "Error: no"}, "error"), ("Errors: none", "ok"),
        ("x" * 10_000 + "Error: no", "ok"), (ABSENT, "ok"), (None, "ok"),
    ],
)  # fmt: skip
def test_error_patterns_are_looked_for_in_the_first_characters(text: Any, status: str) -> None:
    run = Run().call("sh", {}, text).call("other", {}, "Error: no")
    found = normal(run.end(), {"tools": {"sh": {"error_patterns": ["Error: "]}}}).operations
    assert [o.last.status for o in found] == [status, "ok"]
    assert found[0].last.error_class == ("tool_error" if status == "error" else None)


def test_what_has_failed_already_keeps_its_class_and_what_is_no_json_its_status() -> None:
    run = Run().call("sh", {}, "Error: ", status="error", error_class="timeout")
    run.add(type(run.events[-1]), call_id="x", status="ok", result=msgspec.Raw(b"Error: no JSON"))
    run.call("sh", {}, status=None, id="x")
    found = normal(run.end(), {"tools": {"sh": {"error_patterns": ["Error: "]}}}).operations
    assert [(a.status, a.error_class) for o in found for a in o.attempts] == [("error", "timeout"), ("ok", None)]


def test_an_http_status_of_an_ok_result_is_not_compared() -> None:
    assert normal(Run().call("t", {}, http_status=201).end(), Profile(name="p")).operations[0].last.http_status is None


def test_under_keep_a_secret_inside_a_text_is_never_in_clear() -> None:
    secret = "sk-" + "a1" * 10
    found = compared(
        "keep", {"text": f"use {secret} now", "json": f'{{"a": "x {secret}"}}', "list": [f"Bearer {secret}"]}
    )
    assert secret not in str(found)
    assert secret not in str(compared("keep", f"export KEY={secret}"))
