"""The values behind a run: what stood where, which ids are at a place, whose values were used."""

from typing import Any

import pytest
from msgspec import Raw

from goldentrace.model.event import ABSENT
from goldentrace.model.profile import Ids, Profile
from goldentrace.normalize.elements import ResultDocument, reduce_name
from goldentrace.normalize.leaves import LeafReader
from goldentrace.normalize.paths import PathStep
from goldentrace.normalize.payloads import telling_scalars
from tests.traces import Run, normal

U1, U2, U3, U4 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(4))
H1, H2, H3, H4 = ("hex:" + u.replace("-", "") for u in (U1, U2, U3, U4))
SECRET = "sk-" + "a1" * 10


def payloads(run: Run, profile: dict[str, Any] | None = None) -> Any:
    return normal(run.end(), profile).payloads


ARGS = {"a": [{"b": 5}, "x"], "j": '{"k": [1, {"l": "m"}]}', "password": "p", "t": f"use {SECRET}", "~/": 1, "": 2}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/a/0/b", 5), ("/a/1", "x"), ("/a", [{"b": 5}, "x"]), ("/j/k/1/l", "m"), ("/password", "<secret:1>"),
        ("/t", "use <secret:1>"), ("/~0~1", 1), ("/", 2), ("#idempotency_key", "order-7"), ("/a#json", [{"b": 5}, "x"]),
    ],
)  # fmt: skip
def test_an_argument_is_shown_redacted(pointer: str, found: Any) -> None:
    assert payloads(Run().call("t", ARGS, idempotency_key="order-7")).argument(0, pointer) == (True, found)


@pytest.mark.parametrize("pointer", ["/z", "/a/2", "/a/x", "/a/0/b/c", "/password/x", "#raw", "#idempotency_key"])
def test_an_argument_that_is_not_there_is_said(pointer: str) -> None:
    assert payloads(Run().call("t", ARGS)).argument(0, pointer) == (False, None)


def test_arguments_that_did_not_parse_are_shown_as_text() -> None:
    found = payloads(Run().call("t", None, args_raw=f"{{k: {SECRET}"))
    assert found.argument(0, "#raw") == (True, "{k: <secret:1>")
    assert found.argument(0, "/k") == (False, None)


def test_ids_of_an_argument_by_attempt() -> None:
    run = Run().call("t", {"a": f"{U1} {U2}", "n": 5}, status="error", id="1").call("t", {"a": U3, "n": 5}, op_id="1")
    found = payloads(run)
    assert found.argument_ids(0, "/a") == (H1, H2)
    assert found.argument_ids(0, "/a", 1) == (H3,)
    assert found.argument_ids(0, "/a", 9) == (H3,)
    assert found.argument_ids(0, "/n") == found.argument_ids(0, "/z") == ()


def test_the_last_result_decides_unless_an_attempt_is_named() -> None:
    run = Run().call("t", {}, {"id": U1, "old": U2}, status="error", id="1").call("t", {}, {"id": U3}, op_id="1")
    found = payloads(run)
    assert (found.result_ids(0, "/id"), found.result_ids(0, "/old"), found.result_ids(0, "/gone")) == ((H3,), (), ())
    assert [found.result_ids(0, "/id", attempt) for attempt in (1, 2, 3)] == [(H1,), (H3,), ()]
    assert [found.has_id(0, value) for value in (H1, H2, H3, H4)] == [True, True, True, False]


def test_results_that_are_missing_or_no_json_hold_nothing() -> None:
    run = Run().call("t", {}, ABSENT).call("u", {}, status=None, id="u").call("v", {}, status=None, id="v")
    run.add(type(run.events[2]), call_id="v", status="ok", result=Raw(b"{"))
    found = payloads(run)
    assert [found.result_ids(n, "/id") for n in range(3)] == [(), (), ()]
    assert [found.result_values(n) for n in range(3)] == [set(), set(), set()]
    assert not found.has_id(1, H1)


def test_uses_are_the_latest_earlier_results_that_hold_an_argument() -> None:
    run = Run().turn().call("a", {}, {"x": "alpha", "n": 77}).call("b", {"x": "alpha"}, {"x": "alpha", "y": "beta"})
    run.call("c", {"v": ["beta", 77.0]}).call("d", {"v": '{"w": "alpha"}', "n": 5, "s": "ab", "z": None})
    run.call("e", {"x": "gamma"}, {"x": "gamma"}).call("f", {"x": "gamma"}).call(
        "g", {"x": "lost"}, {"k": "delta"}, status="error"
    )
    assert [payloads(run.call("h", {"x": "delta"})).uses(n) for n in range(8)] == [
        (), (0,), (0, 1), (0,), (), (), (), (),
    ]  # fmt: skip


def test_members_of_a_batch_use_nothing_of_one_another() -> None:
    run = (
        Run()
        .turn()
        .call("a", {}, {"x": "alpha"}, batch="b")
        .call("b", {"x": "alpha"}, batch="b")
        .turn()
        .call("c", {"x": "alpha"})
    )
    found = payloads(run)
    assert [found.uses(n) for n in range(3)] == [(), (), (0,)]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("abc", {"abc"}), ("ab", set()), (10, {10}), (9, set()), (-10.5, {-10.5}), (True, set()), (None, set()),
        ({"abc": ["xyz", {"k": 12}]}, {"xyz", 12}), ('{"k": "xyz"}', {'{"k": "xyz"}', "xyz"}), ("{not}", {"{not}"}),
        ('"xyz"', {'"xyz"'}), ("[5]", {"[5]"}),
    ],
)  # fmt: skip
def test_which_values_can_name_their_source(value: Any, found: set[Any]) -> None:
    assert {item for _, item in telling_scalars(value)} == found


def test_long_payloads_are_read_like_short_ones() -> None:
    names = [f"name-{n}" for n in range(60)]
    assert payloads(Run().call("list", {}, names).call("get", {"n": "name-59"})).uses(1) == (0,)


# -- names of places --------------------------------------------------------------------------------------------------


def document(value: Any, **ids: Any) -> ResultDocument:
    return ResultDocument(value, LeafReader(Profile(name="p", ids=Ids(**ids)), PathStep({"tmp": "/tmp"}), None))


VALUE = {
    "id": U1,
    "list": [{"id": U2, "k": "book"}, {"id": U3, "k": "lamp"}],
    "plain": [U4, "x"],
    "text": f"made {U1} and {U4}",
    "json": f'{{"in": ["{U4}"]}}',
    "by": {U2: {"v": U3}, "other": 1},
}


@pytest.mark.parametrize("wanted", [H1, H2, H3, H4])
def test_the_name_of_a_place_leads_back_to_the_id(wanted: str) -> None:
    found = document(VALUE)
    (name,) = found.places({wanted}).values()
    assert found.ids_at(name) == (wanted,)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("/id", (H1,)), ("/list/1/id", (H3,)), ("/list/{0}/id", (H2,)), ("/list/{9}/id", ()), ("/list/{5:000000}/id", ()),
        ("/list/{1:000000}/id", (H3,)), ("/plain/0", (H4,)), ("/plain/1", ()), ("/plain/7", ()), ("/text", (H1, H4)),
        ("/text~2", (H4,)), ("/text~3", ()), ("/json/in/0", (H4,)), ("/by/{0}#key", (H2,)), ("/by/{0}/v", (H3,)),
        ("/by/{4}#key", ()), ("/other", ()), ("/by/other#key", ()), ("/id/x", ()), ("/gone", ()), ("/id/{0}", ()),
    ],
)  # fmt: skip
def test_which_ids_stand_at_a_named_place(name: str, ids: tuple[str, ...]) -> None:
    assert document(VALUE).ids_at(name) == ids


def test_numbers_under_a_named_key_have_places() -> None:
    found = document({"order": 77, "n": 77, "rows": [{"order": 78}]}, keys=["order"])
    assert found.places({"key:77", "key:78"})["key:77"] == "/order"
    assert (found.ids_at("/order"), found.ids_at("/n"), found.ids_at("/rows/0/order")) == (("key:77",), (), ("key:78",))


def test_a_temporary_folder_of_a_result_is_named() -> None:
    found = document({"path": "/tmp/ab12/x"})
    assert found.places({"tmp:ab12"}) == {"tmp:ab12": "/path~1"}
    assert found.ids_at("/path~1") == ("tmp:ab12",)


def test_by_digest_an_element_is_found_wherever_it_stands_now() -> None:
    name = document(VALUE).places({H3})[H3]
    assert name.startswith(("/list/{1:", "/by/{0:"))
    turned = {**VALUE, "list": VALUE["list"][::-1]}  # type: ignore[index]
    by_list = next(n for n in (document({"list": VALUE["list"]}).places({H3})[H3],))
    assert document(turned).ids_at(by_list) == (H3,)


def test_a_reduced_name_holds_the_digest_alone() -> None:
    assert reduce_name("/list/{3:0a1b2c}/id") == "/list/{0a1b2c}/id"
    assert reduce_name("/list/{3}/id") == "/list/3/id"
    assert reduce_name("/list/3/id") == "/list/3/id"


def test_the_nth_id_of_a_result_that_is_one_string_is_that_one() -> None:
    found = document(f"made {U1} and {U2}")
    assert found.places({H1, H2}) == {H1: "~1", H2: "~2"}
    assert [found.ids_at(name) for name in ("~1", "~2", "~3", "")] == [(H1,), (H2,), (), (H1, H2)]
