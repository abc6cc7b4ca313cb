"""Idempotency: one effect per key, whatever is lost on the way, and the refusals that services give."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from goldentrace.faults import FaultsHandle
from goldentrace.faults.verify import EffectDifference
from tests.faults.serving import Client, Response

PLAN = """
plan: charges
tools:
  charge_card:
    access: write
    idempotency: {key: /key, header: Idempotency-Key%s}
    result: {charge_id: "{new_id}", status: succeeded, amount: "{/amount}"}
    effect_record: {charge: "{/amount}"}
    steps: [%s{fault: none}]
    after_steps: ok
  get_charge_status: {lookup: charge_card, by: [charge_id, idempotency_key]}
expect: {effects: {charge: 1}}
"""
Serve = Callable[..., FaultsHandle]
Open = Callable[..., Client]


def plan(steps: str = "", options: str = "") -> str:
    return PLAN % (f", {options}" if options else "", f"{steps}, " if steps else "")


def lost(client: Client, arguments: dict[str, object]) -> None:
    """A call whose client gives up."""
    with pytest.raises(TimeoutError):
        client.call("charge_card", arguments)
    client.close()


def test_a_lost_response_and_the_same_key_make_one_charge(serve: Serve, client: Open) -> None:
    server = serve(plan("{fault: hang, phase: after_commit}"))
    lost(client(server, timeout_s=0.2), {"amount": 500, "key": "k1"})
    again = client(server).call("charge_card", {"amount": 500, "key": "k1"})
    assert (again.status, again.value["status"]) == (200, "succeeded")
    assert [effect["value"] for effect in server.effects()] == [500]
    assert server.verify().is_ok


def test_a_lost_response_and_a_new_key_make_two(serve: Serve, client: Open) -> None:
    server = serve(plan("{fault: hang, phase: after_commit}"))
    lost(client(server, timeout_s=0.2), {"amount": 500, "key": "k1"})
    client(server).call("charge_card", {"amount": 500, "key": "k2"})
    assert server.verify().differences == (EffectDifference("charge", 1, 2),)
    assert not server.failures(), "two charges are the agent's fault, not the server's"


def test_a_hang_before_the_commit_charges_nothing_and_frees_the_key(serve: Serve, client: Open) -> None:
    server = serve(plan("{fault: hang, phase: before_commit}"))
    lost(client(server, timeout_s=0.2), {"amount": 500, "key": "k1"})
    assert server.effects() == []
    assert client(server).call("charge_card", {"amount": 500, "key": "k1"}).status == 200
    assert len(server.effects()) == 1


def test_the_second_answer_is_the_first_one(serve: Serve, client: Open) -> None:
    caller = client(serve(plan()))
    first, second = (caller.call("charge_card", {"amount": 500, "key": "k1"}) for _ in range(2))
    assert first.body == second.body
    assert caller.call("charge_card", {"amount": 500, "key": "k2"}).value["charge_id"] != first.value["charge_id"]


def test_a_charge_is_found_by_its_id_and_by_its_key(serve: Serve, client: Open) -> None:
    caller = client(serve(plan()))
    charge = caller.call("charge_card", {"amount": 500, "key": "k1"}).value
    assert caller.call("get_charge_status", {"charge_id": charge["charge_id"]}).value == charge
    assert caller.call("get_charge_status", {"idempotency_key": "k1"}).value == charge
    assert caller.call("get_charge_status", {"idempotency_key": "k1", "charge_id": "other"}).status == 404
    assert caller.call("get_charge_status", {"idempotency_key": "k2"}).status == 404
    assert caller.call("get_charge_status", {}).status == 404


def test_the_key_may_come_in_the_header_quoted_or_not(serve: Serve, client: Open) -> None:
    server = serve(plan())
    caller = client(server)
    caller.call("charge_card", {"amount": 500}, Idempotency_Key='"k1"')
    caller.call("charge_card", {"amount": 500}, Idempotency_Key="k1")
    assert [effect["key"] for effect in server.effects()] == ["k1"]


@pytest.mark.parametrize(("options", "status"), [("", 400), ("missing: 428", 428), ("missing: allow", 200)])
def test_a_missing_key(serve: Serve, client: Open, options: str, status: int) -> None:
    assert client(serve(plan(options=options))).call("charge_card", {"amount": 1}).status == status


@pytest.mark.parametrize(("options", "status"), [("", 422), ("mismatch: 400", 400), ("mismatch: 409", 409)])
def test_a_key_used_for_something_else(serve: Serve, client: Open, options: str, status: int) -> None:
    server = serve(plan(options=options))
    caller = client(server)
    caller.call("charge_card", {"amount": 500, "key": "k1"})
    other = caller.call("charge_card", {"amount": 501, "key": "k1"})
    assert (other.status, other.value["error"]["type"]) == (status, "idempotency_key_reused")
    assert len(server.effects()) == 1
    assert server.calls()[-1]["error_class"] == "payload_mismatch"


def test_a_service_that_ignores_the_payload_answers_again(serve: Serve, client: Open) -> None:
    caller = client(serve(plan(options="mismatch: replay")))
    first = caller.call("charge_card", {"amount": 500, "key": "k1"})
    assert caller.call("charge_card", {"amount": 501, "key": "k1"}).body == first.body


def concurrently(server: FaultsHandle, client: Open) -> list[Response]:
    """Two calls with one key, the second while the first is under way."""
    first, second = client(server), client(server)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(first.call, "charge_card", {"amount": 500, "key": "k1"})
        while server.ready()["calls"] == 0:
            time.sleep(0.01)
        time.sleep(0.05)
        answer = second.call("charge_card", {"amount": 500, "key": "k1"})
        return [running.result(), answer]


def test_a_duplicate_under_way_is_refused(serve: Serve, client: Open) -> None:
    server = serve(plan("{fault: slow, delay_ms: 400}"))
    first, second = concurrently(server, client)
    assert (first.status, second.status) == (200, 409)
    assert second.value["error"]["type"] == "idempotency_key_in_flight"
    assert len(server.effects()) == 1


def test_or_waits_for_the_first_and_gets_its_answer(serve: Serve, client: Open) -> None:
    server = serve(plan("{fault: slow, delay_ms: 300}", "in_flight: wait"))
    first, second = concurrently(server, client)
    assert (first.status, second.status) == (200, 200)
    assert first.body == second.body
    assert len(server.effects()) == 1


def test_an_error_is_not_kept_for_its_key(serve: Serve, client: Open) -> None:
    caller = client(serve(plan("{fault: status, status: 503, phase: after_commit}")))
    arguments = {"amount": 500, "key": "k1"}
    assert [caller.call("charge_card", arguments).status for _ in range(2)] == [503, 200]


@pytest.mark.parametrize(
    ("options", "statuses", "charges"),
    [("", [500, 500], 1), ("replay_errors: false", [500, 200], 2)],
    ids=["kept as Stripe does", "only successes kept"],
)
def test_a_saved_error_is_answered_again_or_executed_again(
    serve: Serve, client: Open, options: str, statuses: list[int], charges: int
) -> None:
    server = serve(plan("{fault: status, status: 500, phase: after_commit, saved: true}", options))
    caller = client(server)
    arguments = {"amount": 500, "key": "k1"}
    assert [caller.call("charge_card", arguments).status for _ in range(2)] == statuses
    assert len(server.effects()) == charges


def test_a_declined_charge_stays_declined_without_effect(serve: Serve, client: Open) -> None:
    body = "{error: {type: card_declined, amount: '{/amount}'}}"
    server = serve(plan(f"{{fault: status, status: 402, saved: true, body: {body}}}"))
    caller = client(server)
    answers = [caller.call("charge_card", {"amount": 500, "key": "k1"}) for _ in range(2)]
    assert [answer.status for answer in answers] == [402, 402]
    assert answers[0].value == {"error": {"type": "card_declined", "amount": 500}}
    assert server.effects() == []


def test_a_fault_strikes_a_repeated_answer_too(serve: Serve, client: Open) -> None:
    server = serve(plan("{fault: hang, phase: after_commit, times: 2}"))
    for _ in range(2):
        lost(client(server, timeout_s=0.2), {"amount": 500, "key": "k1"})
    assert client(server).call("charge_card", {"amount": 500, "key": "k1"}).status == 200
    assert len(server.effects()) == 1
    assert [call["is_replay"] for call in server.calls()] == [False, True, True]


def test_a_hundred_duplicates_at_once_make_one_charge(serve: Serve, client: Open) -> None:
    server = serve(plan(options="in_flight: wait"))
    barrier = threading.Barrier(20)

    def call(_: int) -> int:
        caller = client(server)
        barrier.wait()
        return sum(caller.call("charge_card", {"amount": 500, "key": "k1"}).status == 200 for _ in range(5))

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(call, range(20))) == 100
    assert len(server.effects()) == 1
