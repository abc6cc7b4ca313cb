"""Normalization, sentence by sentence: what is masked, what is named, what stays."""

from typing import Any

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.errors import InputError
from goldentrace.model.event import ABSENT
from goldentrace.model.profile import Profile
from tests.traces import Run, args_of, normal

U1, U2, U3 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(3))
HEX40 = "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"


def test_an_id_of_a_result_is_named_by_the_place_where_it_first_stood() -> None:
    run = Run().call("get", {"ref": "A"}, {"id": U1, "nested": {"id": U1}}).call("use", {"id": U1})
    assert args_of(run.end()) == {"/id": "<get#1/id>"}


def test_the_shortest_then_first_pointer_names_an_id() -> None:
    run = Run().call("get", {}, {"long": {"er": U1}, "b": U1, "a": U1}).call("use", {"id": U1})
    assert args_of(run.end()) == {"/id": "<get#1/a>"}


def test_an_id_of_arguments_is_new_and_then_known_by_its_first_place() -> None:
    run = Run().call("pay", {"key": U1, "other": U2}).call("pay", {"key": U1})
    first, second = (o.args for o in normal(run.end()).operations)
    assert first == {"/key": "<new:uuid>", "/other": "<new:uuid:2>"}
    assert second == {"/key": "<pay#1.args/key>"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (U1, "uuid"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid"),
        ("call_a1b2c3d4", "call"),
        ("toolu_01ABCdef", "toolu"),
        ("chatcmpl-9aBcD1eF", "chatcmpl"),
        ("resp_0a1b2c3d4e", "resp"),
        ("deadbeef00112233", "hex"),
    ],
)
def test_the_list_of_random_shapes(value: str, kind: str) -> None:
    assert args_of(Run().call("use", {"id": value}).end()) == {"/id": f"<new:{kind}>"}


@pytest.mark.parametrize(
    "value",
    [1712345678, "1234567890123456", "2026-01-05", "abcdefabcdefabcdef", "call_abcdefgh", "call_12345678", "run_1", "deadbeef0011223", HEX40],
)  # fmt: skip
def test_what_is_never_an_id_by_shape(value: Any) -> None:
    (leaf,) = args_of(Run().call("use", {"id": value}).end()).values()
    assert " h:" in leaf
    assert "<" not in leaf


def test_a_content_address_is_an_id_only_where_a_result_supplied_it() -> None:
    run = Run().call("commit", {}, {"sha": HEX40}).call("push", {"sha": HEX40})
    assert args_of(run.end()) == {"/sha": "<commit#1/sha>"}


def test_uuids_and_hex_compare_as_numbers() -> None:
    run = Run().call("get", {}, {"id": U1.replace("-", "").upper()}).call("use", {"id": U1})
    assert args_of(run.end()) == {"/id": "<get#1/id>"}


def test_a_random_looking_value_of_the_prompt_is_a_literal() -> None:
    run = Run().say(f"refund {U1}").call("refund", {"id": U1})
    leaf = args_of(run.end())["/id"]
    assert leaf.startswith("str[36] h:")
    other = Run().say(f"refund {U1}").call("refund", {"id": U2})
    found = compare(normal(run.end()), normal(other.end()), Profile(name="test@1"))
    assert [c.code for c in found.changes] == ["GT101"]


def test_a_value_that_a_result_held_before_the_prompt_is_an_id() -> None:
    run = Run().call("get", {}, {"id": U1}).say(f"take {U1}").call("use", {"id": U1})
    assert args_of(run.end()) == {"/id": "<get#1/id>"}


def test_inputs_of_the_scenario_are_literals() -> None:
    run = Run(attributes={"inputs": {"order": [U1]}}).call("refund", {"id": U1})
    assert args_of(run.end())["/id"].startswith("str[36] h:")


def test_elements_of_a_list_are_named_by_index_and_digest() -> None:
    orders = [{"id": U1, "kind": "book"}, {"id": U2, "kind": "lamp"}]
    run = Run().call("list", {}, {"orders": orders}).call("get", {"id": U2})
    leaf = args_of(run.end())["/id"]
    assert leaf.startswith("<list#1/orders/{1:")
    resorted = Run().call("list", {}, {"orders": orders[::-1]}).call("get", {"id": U2})
    wrong = Run().call("list", {}, {"orders": orders}).call("get", {"id": U1})
    golden = normal(run.end())
    assert compare(golden, normal(resorted.end()), Profile(name="test@1")).changes == []
    assert [c.code for c in compare(golden, normal(wrong.end()), Profile(name="test@1")).changes] == ["GT109"]


def test_a_changed_stock_counter_is_no_other_element() -> None:
    def run(stock: int) -> Any:
        orders = [{"id": U1, "kind": "book", "stock": stock}, {"id": U2, "kind": "lamp", "stock": stock + 7}]
        return normal(Run().call("list", {}, {"orders": orders}).call("get", {"id": U2}).end())

    assert compare(run(1), run(5), Profile(name="test@1")).changes == []


def test_equal_elements_are_named_by_index_alone() -> None:
    run = Run().call("list", {}, [{"id": U1}, {"id": U2}]).call("get", {"id": U2})
    assert args_of(run.end())["/id"] == "<list#1/1/id>"


def test_an_object_key_that_holds_an_id_is_named_the_same_way() -> None:
    run = Run().call("list", {}, {"by_id": {U1: {"kind": "book"}, U2: {"kind": "lamp"}}}).call("get", {"id": U2})
    leaf = args_of(run.end())["/id"]
    assert leaf.startswith("<list#1/by_id/{1:")
    assert leaf.endswith("#key>")
    again = Run().call("list", {}, {"by_id": {U3: {"kind": "lamp"}, U1: {"kind": "book"}}}).call("get", {"id": U3})
    assert compare(normal(run.end()), normal(again.end()), Profile(name="test@1")).changes == []


def test_ids_inside_strings_are_the_nth_of_their_leaf() -> None:
    run = Run().call("get", {}, f"made {U1} and {U2}").call("use", {"path": f"/x/{U2}/y/{U3}"})
    leaf = args_of(run.end())["/path"]
    assert leaf.startswith("str[")
    assert leaf.endswith(" <get#1~2> <new:uuid>")


def test_a_string_that_holds_json_is_walked_and_marked() -> None:
    run = (
        Run()
        .call("use", {"body": '{"b": 1, "a": [2]}'})
        .call("use", {"body": '{"a":[2],"b":1}'})
        .call("use", {"body": {"a": [2], "b": 1}})
    )
    one, two, three = (o for o in normal(run.end()).operations)
    assert one.args == two.args
    assert one.args["/body#json"] == "json"
    assert one.args_hash == two.args_hash != three.args_hash


def test_without_the_body_of_an_earlier_result_provenance_is_unknown() -> None:
    run = Run().call("get", {}, ABSENT).call("use", {"id": U1})
    assert args_of(run.end()) == {"/id": "<unknown:uuid>"}
    whole = Run().call("get", {}, {"id": U1}).call("use", {"id": U1})
    found = compare(normal(whole.end()), normal(run.end()), Profile(name="test@1"))
    assert found.not_comparable
    assert not compare(normal(run.end()), normal(whole.end()), Profile(name="test@1")).not_comparable


def test_folders_of_the_machine_become_placeholders() -> None:
    def run(home: str, tmp: str) -> Any:
        trace = Run(cwd=home + "/job", home=home, tmp=tmp)
        args = {
            "a": f"{home}/job/x.txt",
            "b": f"see {home}/.config",
            "c": f"{tmp}/tmpabc{len(home)}/out",
            "d": "/mnt" + home,
        }
        return normal(trace.call("write", args).end())

    one, other = run("/home/ann", "/tmp"), run("/builds/of/ci", "/var/tmp")
    assert {p: one.operations[0].args[p] for p in ("/a", "/b", "/c")} == {
        p: other.operations[0].args[p] for p in ("/a", "/b", "/c")
    }
    assert one.operations[0].args["/d"] != other.operations[0].args["/d"]
    assert "<new:tmp>" in one.operations[0].args["/c"]


def test_the_events_own_clock_is_now_and_another_date_is_not() -> None:
    run = Run().at(5).call("log", {"at": "2026-03-01T09:00:04Z", "epoch": 1772355605, "due": "2026-03-01T10:30:00Z"})
    args = args_of(run.end())
    assert (args["/at"], args["/epoch"]) == ("<now>", "<now>")
    assert args["/due"].startswith("str[20] h:")


def test_dates_that_follow_the_clock_are_named_by_their_distance() -> None:
    profile = {"time": {"relative": ["/day", "/due"]}}
    run = Run().at(5).call("book", {"day": "2026-03-08", "due": "2026-03-01T10:00:05Z"})
    assert args_of(run.end(), profile=profile) == {"/day": "<today+7d>", "/due": "<now+3600s>"}


def test_secrets_are_named_and_equal_ones_stay_equal() -> None:
    key, other = "sk-" + "a1B2" * 8, "sk-" + "c3D4" * 8
    run = Run().call("use", {"k": key, "h": f"Bearer {'x1' * 10}"}).call("use", {"k": key}).call("use", {"k": other})
    one, two, three = (o.args["/k"] for o in normal(run.end()).operations)
    assert one == two == "<secret:2>"  # the header comes first: names are given in the order of the keys
    assert three == "<secret:3>"


def test_a_rotated_key_is_no_change_and_a_swapped_one_is() -> None:
    def run(*keys: str) -> Any:
        trace = Run()
        for n, key in enumerate(keys):
            trace.call("use", {"n": n, "password": key})
        return normal(trace.end())

    profile = Profile(name="test@1")
    assert compare(run("hunter2", "swordfish"), run("other", "words"), profile).changes == []
    assert [c.code for c in compare(run("a", "b"), run("a", "a"), profile).changes] == ["GT109"]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": 1}, {"a": 1.0}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({}, None), ({"a": 1e3}, {"a": 1000})],
)
def test_what_is_equal(one: Any, other: Any) -> None:
    first, second = normal(Run().call("t", one).call("t", other).end()).operations
    assert first.args_hash == second.args_hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": None}, {}),
        ({"a": []}, {"a": {}}),
        ({"a": True}, {"a": 1}),
        ({"a": ["x"]}, {"a": {"0": "x"}}),
        ({"a": "int h:5994471abb01"}, {"a": 12}),
        ({"a": "\ud800"}, {"a": "\ud801"}),
        ({"a": 10**400}, {"a": 10**400 + 1}),
    ],
)
def test_what_differs(one: Any, other: Any) -> None:
    first, second = normal(Run().call("t", one).call("t", other).end()).operations
    assert first.args_hash != second.args_hash


def test_semantic_equivalence_trims_and_reads_numbers_but_keeps_case() -> None:
    run = Run().call("t", {"a": "5", "b": " x "}).call("t", {"a": 5, "b": "x"}).call("t", {"a": 5, "b": "X"})
    one, two, three = normal(run.end(), {"arguments": {"equivalence": "semantic"}}).operations
    assert one.args_hash == two.args_hash != three.args_hash


def test_ignored_kept_and_order_free_leaves() -> None:
    profile = {"arguments": {"ignore": ["/noise"], "keep": ["/amount"], "order_free": ["/tags"]}}
    run = Run().call("t", {"noise": 1, "amount": 49.99, "tags": ["b", "a"]})
    other = Run().call("t", {"noise": 2, "amount": 49.99, "tags": ["a", "b"]})
    args = args_of(run.end(), profile=profile)
    assert args == args_of(other.end(), profile=profile)
    assert args["/amount"] == {"value": 49.99}
    assert "/noise" not in args


def test_keyed_digests_depend_on_the_key() -> None:
    trace = Run().call("t", {"a": 5}).end()
    leaves = {normal(trace, key=key).operations[0].args["/a"] for key in (None, b"one", b"two")}
    assert len(leaves) == 3


def test_long_maps_collapse_deepest_first_and_ids_never() -> None:
    deep = {f"k{n}": n for n in range(60)}
    run = Run().call("t", {"id": U1, "a": {"b": deep}, "flat": {f"f{n}": n for n in range(40)}})
    profile = Profile(name="test@1")
    golden = as_golden(normal(run.end(), profile), profile)
    args = golden.operations[0].args
    assert len(args) <= 64
    assert args["/id"] == "<new:uuid>"
    assert args["/a/b"].startswith("leaves[60] h:")
    assert args["/flat/f3"].startswith("int h:")
    changed = Run().call("t", {"id": U2, "a": {"b": {**deep, "k7": 99}}, "flat": {f"f{n}": n for n in range(40)}})
    found = compare(golden, normal(changed.end(), profile), profile)
    assert [(c.code, c.pointers) for c in found.changes] == [("GT101", ("/a/b",))]


def test_a_list_with_one_element_more_is_one_change_at_the_list() -> None:
    profile = Profile(name="test@1")
    golden = normal(Run().call("t", {"items": [{"n": n} for n in range(9)]}).end(), profile)
    longer = normal(Run().call("t", {"items": [{"n": 99}, *({"n": n} for n in range(9))]}).end(), profile)
    found = compare(golden, longer, profile)
    assert [(c.code, c.pointers) for c in found.changes] == [("GT101", ("/items",))]


def test_a_nonce_per_attempt_does_not_hide_a_retry_and_another_entity_is_none() -> None:
    listed = Run().call("list", {}, [{"id": U1, "k": 1}, {"id": U2, "k": 2}])
    retried = listed.call("get", {"id": U1, "nonce": U3}, status="error").call(
        "get", {"id": U1, "nonce": "5" * 7 + "f" + U1[8:]}
    )
    operations = normal(retried.end()).operations
    assert [len(o.attempts) for o in operations] == [1, 2]
    assert operations[1].decisions == []  # all kinds can be stated, and none was
    other = (
        Run()
        .call("list", {}, [{"id": U1, "k": 1}, {"id": U2, "k": 2}])
        .call("get", {"id": U1}, status="error")
        .call("get", {"id": U2})
    )
    assert [len(o.attempts) for o in normal(other.end()).operations] == [1, 1, 1]


def test_a_user_message_or_another_call_ends_a_series_of_attempts() -> None:
    asked = Run().call("get", {"a": 1}, status="error").say("again").call("get", {"a": 1})
    between = Run().call("get", {"a": 1}, status="error").call("other", {}).call("get", {"a": 1})
    denied = Run().call("get", {"a": 1}, status="denied").call("get", {"a": 1})
    assert [len(normal(run.end()).operations) for run in (asked, between, denied)] == [2, 3, 2]


def test_retries_are_inferred_only_where_the_source_cannot_state_them() -> None:
    def run(**start: Any) -> Any:
        return normal(Run(**start).call("get", {"a": 1}, status="error").call("get", {"a": 1}, origin="sdk").end())

    assert run().operations[0].decisions == []
    (decision,) = run(states=[]).operations[0].decisions
    assert (decision.decision, decision.by, decision.inferred) == ("retry", "sdk", True)


def test_declared_decisions_are_inferred() -> None:
    profile = {
        "tools": {
            "look_up": {"reconciles": "pay", "access": "read"},
            "cheap": {"fallback_for": ["rich"]},
            "page": {"escalates": True},
        }
    }
    run = Run(states=[]).call("pay", {"a": 1}, status="timeout").call("look_up", {}).call("rich", {}, status="error")
    found = normal(run.call("cheap", {}).call("page", {}).end(), profile)
    by_label = {o.label: [d.decision for d in o.decisions] for o in found.operations}
    assert by_label == {"pay#1": ["reconcile"], "look_up#1": [], "rich#1": ["fallback"], "cheap#1": [], "page#1": []}
    assert [e.fields["decision"] for e in found.loose] == ["escalate"]


def test_batches_by_name_and_by_time() -> None:
    stated = Run().turn().call("a", {}, batch="x").call("b", {}, batch="x").call("c", {})
    assert [o.batch for o in normal(stated.end()).operations] == [1, 1, None]
    inferred = (
        Run()
        .turn()
        .call("b", {}, status=None, id="1")
        .call("a", {}, status=None, id="2")
        .result("1")
        .result("2")
        .call("c", {})
    )
    operations = normal(inferred.end()).operations
    assert [(o.label, o.batch) for o in operations] == [("a#1", 1), ("b#1", 1), ("c#1", None)]


def test_the_wild_reused_ids_results_before_calls_and_open_calls() -> None:
    run = Run().call("a", {"n": 1}, id="x").call("a", {"n": 2}, id="x", status=None).result("x", None, "error")
    run.result("early", "first").call("b", {}, id="early", status=None).call("c", {}, id="open", status=None)
    a1, a2, b, c = normal(run.end()).operations
    assert [o.last.status for o in (a1, a2, b, c)] == ["ok", "error", "ok", None]


def test_calls_within_a_call_stand_behind_it() -> None:
    run = (
        Run()
        .turn()
        .call("ask", {}, id="p", status=None)
        .call("read", {}, parent="p", agent="helper")
        .result("p")
        .call("done", {})
    )
    normal_trace = normal(run.end())
    assert [(o.label, o.parent) for o in normal_trace.operations] == [
        ("ask#1", None), ("helper/read#1", "ask#1"), ("done#1", None),
    ]  # fmt: skip
    data = encode_golden(as_golden(normal_trace, Profile(name="test@1")))
    assert encode_golden(read_golden(data, "g")) == data


def test_arguments_that_did_not_parse_are_compared_as_text() -> None:
    args = args_of(Run().call("t", None, args_raw='{"a": ').end())
    assert list(args) == ["#raw"]
    assert args["#raw"].startswith("str[6] h:")


def test_the_idempotency_key_is_a_leaf() -> None:
    assert args_of(Run().call("t", {}, idempotency_key=U1).end()) == {"#idempotency_key": "<new:uuid>"}


def test_arguments_that_are_no_json_name_the_line() -> None:
    from msgspec import Raw

    run = Run()
    run.call("t", {})
    run.events[1] = type(run.events[1])(call_id="x", tool_name="t", args=Raw(b"1" * 5000))
    with pytest.raises(InputError) as caught:
        normal(run.end())
    assert (caught.value.where.line, caught.value.where.pointer) == (2, "$.args")  # type: ignore[union-attr]


def test_what_the_profile_calls_an_id_is_one() -> None:
    profile = {"ids": {"keys": ["order_ref"], "ignore_keys": ["trace"]}}
    run = Run().call("get", {}, {"order_ref": "Q-77"}).call("use", {"order_ref": "Q-77", "trace": U1, "n": 4})
    args = args_of(run.end(), profile=profile)
    assert args["/order_ref"] == "<get#1/order_ref>"
    assert args["/trace"].startswith("str[36] h:")


def test_error_patterns_turn_an_ok_text_into_an_error() -> None:
    profile = {"tools": {"sh": {"error_patterns": ["^Error:"]}}}
    run = Run().call("sh", {}, "Error: no").call("sh", {"n": 1}, "fine")
    assert [o.last.status for o in normal(run.end(), profile).operations] == ["error", "ok"]


@pytest.mark.parametrize(
    ("mode", "changed"), [("status", []), ("shape", []), ("digest", ["GT108"]), ("keep", ["GT108"])]
)
def test_results_are_compared_as_the_profile_says(mode: str, changed: list[str]) -> None:
    import msgspec

    profile = msgspec.convert({"name": "test@1", "results": {"compare": mode}}, Profile)
    one, two = (
        normal(Run().call("t", {}, {"id": u, "limit": n, "deep": [{"x": n}]}).end(), profile)
        for u, n in ((U1, 1), (U2, 2))
    )
    found = compare(one, two, profile)
    assert [c.code for c in found.changes] == changed
    data = encode_golden(as_golden(one, profile))
    assert encode_golden(read_golden(data, "g")) == data
    if mode == "keep":
        assert found.changes[0].hint == "/deep/0/x: 1 -> 2; /limit: 1 -> 2"


def test_a_shape_change_is_seen_under_shape() -> None:
    import msgspec

    profile = msgspec.convert({"name": "test@1", "results": {"compare": "shape"}}, Profile)
    one, two = (normal(Run().call("t", {}, body).end(), profile) for body in ({"limit": 1}, {"limit": "1"}))
    assert [c.code for c in compare(one, two, profile).changes] == ["GT108"]


def test_masked_values_are_listed_with_their_rule() -> None:
    run = Run(cwd="/srv/x").call("get", {}, {"id": U1}).call("use", {"id": U1, "p": "/srv/x/y", "password": "hunter2"})
    masked = normal(run.end(), is_explained=True).masked
    assert {(m.pointer, m.placeholder, m.rule) for m in masked} == {
        ("/id", "<get#1/id>", "ids/1 uuid"), ("/p", "<cwd>", "paths/cwd"), ("/password", "<secret:1>", "redact/secret-key"),
    }  # fmt: skip
    assert "hunter2" not in str(masked)
