"""Events to operations: what joins, what is a batch, which event belongs to which call, what is inferred."""

from typing import Any

import pytest

from goldentrace.model.event import Approval
from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep
from goldentrace.normalize.likeness import RUN_WITHIN_MS
from goldentrace.normalize.operations import group
from tests.traces import AlikeByBytes, Run, clock, normal

U1, U2, U3 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(3))


def attempts(run: Run, profile: dict[str, Any] | None = None) -> list[int]:
    return [len(o.attempts) for o in normal(run.end(), profile).operations]


def failed(first: Any, second: Any, **more: Any) -> Run:
    return Run(**more).call("t", first, status="error").call("t", second)


# -- joining ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["error", "timeout", "cancelled", "unfinished"])
def test_an_equal_call_after_a_failure_is_the_next_attempt(status: str) -> None:
    assert attempts(Run().call("t", {"a": 1}, status=status).call("t", {"a": 1})) == [2]


@pytest.mark.parametrize("status", ["ok", "denied", None])
def test_an_equal_call_after_anything_else_is_a_call_of_its_own(status: str | None) -> None:
    assert attempts(Run().call("t", {"a": 1}, status=status).call("t", {"a": 1})) == [1, 1]


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ({"a": 1}, {"a": 1.0}, [2]),
        ({"a": 1}, {"a": 2}, [1, 1]),
        ({"a": 1}, {"b": 1}, [1, 1]),
        ({"n": U1}, {"n": U2}, [2]),
        ({"n": f"x {U1}"}, {"n": f"x {U2}"}, [2]),
        ({"n": f"x {U1}"}, {"n": f"y {U2}"}, [1, 1]),
        ({"n": f"x {U1}"}, {"n": U2}, [1, 1]),
        ({"n": U1}, {"n": "call_a1b2c3d4"}, [1, 1]),
        ({"n": U1}, {"n": 5}, [1, 1]),
        ({"n": U1}, {"n": U1.upper()}, [2]),
        ({"at": clock(1)}, {"at": clock(2)}, [2]),
        ({"at": clock(1)}, {"at": clock(RUN_WITHIN_MS / 1000)}, [1, 1]),
        ({"at": clock(1)}, {"at": 7}, [1, 1]),
    ],
)
def test_what_asks_for_the_same(first: Any, second: Any, count: list[int]) -> None:
    assert attempts(failed(first, second)) == count


def test_an_id_that_a_message_held_is_another_entity() -> None:
    run = Run().say(f"{U1} or {U2}").call("t", {"n": U1}, status="error").call("t", {"n": U2})
    assert attempts(run) == [1, 1]


def test_idempotency_keys_and_raw_texts() -> None:
    def two(**fields: tuple[Any, Any]) -> list[int]:
        run = Run()
        for n, status in enumerate(("error", "ok")):
            run.call("t", None, status=status, **{name: pair[n] for name, pair in fields.items()})
        return attempts(run)

    assert two(idempotency_key=("a", "b")) == [2]
    assert two(args_raw=("{a", "{a")) == [2]
    assert two(args_raw=("{a", "{b")) == [1, 1]


def test_another_agent_or_tool_joins_nothing() -> None:
    assert attempts(Run().call("t", {}, status="error").call("t", {}, agent="helper")) == [1, 1]
    assert attempts(Run().call("t", {}, status="error").call("u", {})) == [1, 1]


def test_a_stated_operation_joins_whatever_its_arguments_and_only_a_known_one() -> None:
    run = (
        Run()
        .call("t", {"a": 1}, id="1")
        .call("t", {"a": 2}, id="2", op_id="1", attempt=2)
        .call("t", {"a": 3}, op_id="new")
    )
    assert attempts(run.call("t", {"a": 4}, op_id="new")) == [2, 2]


def test_members_of_one_batch_are_no_retry_of_one_another_but_those_of_the_next_are() -> None:
    twins = Run().turn().call("t", {}, status="error", batch="b").call("t", {}, batch="b")
    assert attempts(twins) == [1, 1]
    run = Run().turn()
    for batch in ("first", "second"):
        for n in (1, 2):
            run.call("t", {"n": n}, status="error" if batch == "first" else "ok", batch=batch)
    assert attempts(run) == [2, 2]
    later = Run().turn().call("t", {"n": 1}, status="error").turn().call("u", {}).turn().call("t", {"n": 1})
    assert attempts(later) == [1, 1, 1]


def test_a_changed_argument_of_a_stated_attempt_stands_at_that_attempt() -> None:
    run = (
        Run().call("t", {"a": 1}, status="error", id="1").call("t", {"a": 1}, op_id="1").call("t", {"a": 2}, op_id="1")
    )
    first, second, third = normal(run.end()).operations[0].attempts
    assert (first.args, second.args) == (None, None)
    assert third.args is not None
    assert third.args_hash is not None


# -- which event belongs to which call --------------------------------------------------------------------------------


def test_results_are_matched_by_attempt_where_one_id_is_open_more_than_once() -> None:
    run = (
        Run()
        .call("t", {}, status=None, id="x", attempt=1, op_id="o")
        .call("t", {}, status=None, id="x", attempt=2, op_id="o")
    )
    run.result("x", None, "error", attempt=1).result("x", None, "ok", attempt=2)
    assert [a.status for a in normal(run.end()).operations[0].attempts] == ["error", "ok"]
    unknown = (
        Run()
        .call("t", {}, status=None, id="x")
        .call("t", {"n": 2}, status=None, id="x")
        .result("x", None, "error", attempt=9)
    )
    assert [o.last.status for o in normal(unknown.end()).operations] == [None, "error"]


def test_results_of_no_call_are_counted_and_belong_to_none() -> None:
    run = Run().result("ghost").call("t", {}, id="1").result("1").result("early").result("early", None, "error")
    trace = run.call("u", {}, status=None, id="early").end()
    grouped = group(trace, AlikeByBytes())
    assert len(grouped.unmatched_results) == 3
    assert [o.last.status for o in normal(trace).operations] == ["ok", "ok"]


def test_an_approval_or_decision_before_its_call_stands_before_the_attempt() -> None:
    run = Run().approve("1").decide("fallback", "1").call("t", {}, id="1").decide("abort", "1").approve("1", "denied")
    steps = normal(run.end()).operations[0].steps
    assert [type(step) for step in steps] == [ApprovalStep, DecisionStep, Attempt, DecisionStep, ApprovalStep]


def test_what_is_about_a_call_that_never_came_is_loose() -> None:
    found = normal(Run().approve("ghost").decide("abort", "ghost").call("t", {}).end())
    assert [(e.kind, e.fields["decision"], e.position) for e in found.loose] == [("decision", "abort", 0)]
    assert found.operations[0].approvals == []
    assert isinstance(Run().approve("ghost").events[-1], Approval)


def test_finish_is_no_step() -> None:
    found = normal(Run().call("t", {}, id="1").decide("finish", "1").decide("finish").end())
    assert len(found.operations[0].steps) == 1
    assert found.loose == []


# -- batches ----------------------------------------------------------------------------------------------------------


def test_batches_are_numbered_within_the_turn_of_an_agent() -> None:
    run = Run().turn().call("a", {}, batch="x").call("b", {}, batch="x").call("c", {}, batch=7).call("d", {}, batch=7)
    run.turn().call("e", {}, batch="x").call("f", {}, batch="x").call("g", {}, batch="alone")
    operations = normal(run.end()).operations
    assert [(o.tool_name, o.turn, o.batch) for o in operations] == [
        ("a", 1, 1), ("b", 1, 1), ("c", 1, 2), ("d", 1, 2), ("e", 2, 1), ("f", 2, 1), ("g", 2, None),
    ]  # fmt: skip


def test_calls_that_overlap_are_a_batch_only_while_none_has_ended() -> None:
    run = Run().turn()
    run.call("a", {}, status=None, id="1").call("b", {}, status=None, id="2").result("1")
    run.call("c", {}, status=None, id="3").result("2").result("3")
    assert [o.batch for o in normal(run.end()).operations] == [1, 1, None]


def test_calls_of_two_agents_or_two_parents_are_no_batch() -> None:
    run = Run().turn().call("a", {}, status=None, id="1").call("b", {}, status=None, id="2", agent="helper")
    assert [o.batch for o in normal(run.result("1").result("2").end()).operations] == [None, None]
    children = Run().turn().call("p", {}, id="p", status=None).call("q", {}, id="q", status=None)
    children.call("c", {}, id="c", status=None, parent="p").call("d", {}, id="d", status=None, parent="q")
    assert [(o.tool_name, o.batch) for o in normal(children.end()).operations] == [
        ("p", 1), ("q", 1), ("c", None), ("d", None),
    ]  # fmt: skip


def test_a_call_within_an_unknown_call_is_a_call_like_any() -> None:
    (operation,) = normal(Run().call("t", {}, parent="ghost").end()).operations
    assert operation.parent is None


def test_without_turns_a_source_has_none_and_a_model_turn_opens_one() -> None:
    assert not normal(Run().call("a", {}).end()).has_turns
    run = Run()
    run.turn_number = None
    from goldentrace.model.event import ModelTurn

    for tool in "ab":
        run.add(ModelTurn).call(tool, {})
    found = normal(run.end())
    assert found.has_turns
    assert [o.turn for o in found.operations] == [1, 2]


def test_strict_order_keeps_the_order_in_which_a_batch_arrived() -> None:
    run = Run().turn().call("b", {}, batch="x").call("a", {}, batch="x")
    assert [o.tool_name for o in normal(run.end()).operations] == ["a", "b"]
    assert [o.tool_name for o in normal(run.end(), {"compare": {"parallel_order": "strict"}}).operations] == ["b", "a"]


def test_a_new_id_that_two_members_of_a_batch_share_is_the_firsts() -> None:
    run = Run().turn().call("a", {"k": U1}, batch="x").call("b", {"k": U1}, batch="x")
    first, second = normal(run.end()).operations
    assert (first.args, second.args) == ({"/k": "<new:uuid>"}, {"/k": "<a#1.args/k>"})


# -- inferred decisions -----------------------------------------------------------------------------------------------

TOOLS = {
    "look": {"reconciles": "pay", "access": "read"},
    "cheap": {"fallback_for": ["rich", "pay"]},
    "page": {"escalates": True},
}


def inferred(run: Run) -> dict[str, list[str]]:
    found = normal(run.end(), {"tools": TOOLS})
    assert all(d.inferred for o in found.operations for d in o.decisions)
    about = {o.label: [d.decision for d in o.decisions] for o in found.operations if o.decisions}
    return about | ({"run": [e.fields["decision"] for e in found.loose]} if found.loose else {})


@pytest.mark.parametrize(
    ("status", "sent", "is_open"),
    [("timeout", None, True), ("unfinished", True, True), ("cancelled", None, True), ("timeout", False, False), ("error", None, False), ("ok", None, False)],
)  # fmt: skip
def test_a_read_after_a_write_of_unknown_outcome_reconciles_it(status: str, sent: bool | None, is_open: bool) -> None:
    run = Run(states=[]).call("pay", {}, status=status, sent=sent).call("look", {})
    assert inferred(run) == ({"pay#1": ["reconcile"]} if is_open else {})
    assert inferred(run.call("look", {"n": 2})) == ({"pay#1": ["reconcile"]} if is_open else {})


def test_a_fallback_follows_a_failure_that_was_not_made_good() -> None:
    assert inferred(Run(states=[]).call("rich", {}, status="error").call("cheap", {})) == {"rich#1": ["fallback"]}
    assert inferred(Run(states=[]).call("rich", {}, status="denied").call("cheap", {})) == {"rich#1": ["fallback"]}
    assert inferred(Run(states=[]).call("rich", {}, status="error").call("rich", {"n": 2}).call("cheap", {})) == {}
    assert inferred(Run(states=[]).call("rich", {}, status=None).call("cheap", {})) == {}


def test_what_a_source_can_state_is_not_inferred() -> None:
    every = Run(states=["fallback", "reconcile", "escalate", "retry"])
    run = every.call("pay", {}, status="timeout").call("look", {}).call("cheap", {}).call("page", {})
    assert inferred(run) == {}
    assert inferred(Run(states=["escalate"]).call("rich", {}, status="error").call("cheap", {}).call("page", {})) == {
        "rich#1": ["fallback"]
    }


def test_an_escalation_by_a_tool_is_a_decision_of_the_run() -> None:
    assert inferred(Run(states=[]).call("page", {}).call("page", {"n": 2})) == {"run": ["escalate", "escalate"]}


def test_a_retry_that_is_stated_is_not_inferred_again() -> None:
    run = (
        Run(states=[])
        .call("t", {}, status="error", id="1")
        .decide("retry", "1", by="sdk")
        .call("t", {}, status="error")
    )
    operation = normal(run.call("t", {}, origin="transport").end()).operations[0]
    assert [(d.by, d.inferred) for d in operation.decisions] == [("sdk", False), ("transport", True)]
    assert [type(step) for step in operation.steps] == [Attempt, DecisionStep, Attempt, DecisionStep, Attempt]


# -- events of no call ------------------------------------------------------------------------------------------------


def test_loose_events_keep_their_place_their_agent_and_what_is_known_of_them() -> None:
    run = (
        Run()
        .effect("start")
        .call("a", {}, {"id": U1})
        .limit("max_wall_ms", max=9, agent="helper")
        .decide("escalate", by="model")
    )
    found = normal(run.call("b", {}).end())
    assert [(e.kind, e.position, e.fields) for e in found.loose] == [
        ("effect", 0, {"name": "start"}),
        ("limit", 1, {"limit": "max_wall_ms", "max": 9, "agent": "helper"}),
        ("decision", 1, {"decision": "escalate", "by": "model"}),
    ]


def test_inside_a_batch_there_is_no_place() -> None:
    run = Run().turn().call("a", {}, batch="x").limit("max_wall_ms").call("b", {}, batch="x").call("c", {})
    assert [e.position for e in normal(run.end()).loose] == [2]


def test_effects_are_named_by_provenance() -> None:
    from goldentrace.codec.canonical import encode_raw

    run = (
        Run()
        .call("make", {}, {"id": U1})
        .effect("charge", key=U1, value=encode_raw({"id": U1, "n": 5, "at": clock(9)}))
    )
    run.effect("plain", key="k", value=encode_raw(7)).effect("at", key=clock(0))
    first, second, third = (e.fields for e in normal(run.end()).loose)
    assert first["key"] == first["value"]["/id"]
    assert (first["value"]["/n"][:5], first["value"]["/at"]) == ("int h", "<now>")
    assert (second["key"][:6], second["value"][:5]) == ("str[1]", "int h")
    assert third["key"] == "<now>"
