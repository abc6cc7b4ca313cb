"""The admin interface: state, ledger and verdict for the runner, on a port that the agent is not told."""

import json
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from goldentrace.errors import ConfigError
from goldentrace.faults import FaultsHandle
from tests.faults.serving import Client

Serve = Callable[..., FaultsHandle]
Open = Callable[..., Client]
PLAN = """
plan: first
tools:
  charge: {access: write, idempotency: {header: Idempotency-Key}, effect_record: {charge: "{/amount}"}}
expect: {effects: {charge: {values: [500]}}}
"""


def ask(server: FaultsHandle, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    place = urlsplit(server.admin_url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=5)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    value = json.loads(answer.read())
    connection.close()
    return answer.status, value


def test_ready_says_what_is_served_and_how_it_stands(serve: Serve) -> None:
    server = serve(PLAN)
    status, value = ask(server, "GET", "/ready")
    assert status == 200
    assert (value["state"], value["plan"], value["run"], value["calls"]) == ("serving", "first", "run", 0)
    assert (value["url"], value["mcp_url"]) == (server.url, f"{server.url}/mcp")
    assert (value["limit"], value["failures"]) == (None, [])


def test_the_ledger_and_the_verdict(serve: Serve, client: Open) -> None:
    server = serve(PLAN)
    client(server).call("charge", {"amount": 500}, Idempotency_Key="k1")
    assert server.effects() == [{"name": "charge", "value": 500, "key": "k1", "tool": "charge", "n": 1}]
    _, verdict = ask(server, "GET", "/verify")
    assert (verdict["is_ok"], verdict["effects"], verdict["differences"]) == (True, {"charge": 1}, [])
    client(server).call("charge", {"amount": 20}, Idempotency_Key="k2")
    _, verdict = ask(server, "GET", "/verify")
    assert verdict["differences"] == [{"name": "charge", "expected": [500], "actual": [20, 500]}]
    assert not verdict["is_ok"]


def test_a_failure_is_no_good_verdict(serve: Serve, client: Open) -> None:
    server = serve(PLAN)
    client(server).call("charge", {"amount": 500}, Idempotency_Key="k1")
    client(server).call("chrage")
    _, verdict = ask(server, "GET", "/verify")
    assert (verdict["is_ok"], verdict["differences"], len(verdict["failures"])) == (False, [], 1)


def test_reset_forgets_a_run(serve: Serve, client: Open) -> None:
    server = serve(PLAN)
    client(server).call("charge", {"amount": 500}, Idempotency_Key="k1")
    client(server).call("gone")
    server.reset()
    assert (server.effects(), server.failures(), server.events()) == ([], [], [])


def test_load_takes_another_plan_or_says_what_is_wrong_with_it(serve: Serve, client: Open) -> None:
    server = serve(PLAN)
    status, value = ask(server, "POST", "/load", b"plan: second\ntools: {a: {}}\n")
    assert (status, value) == (200, {"plan": "second"})
    assert client(server).call("a").status == 200
    status, value = ask(server, "POST", "/load", b"plan: third\ntools: {a: {stesp: 1}}\n")
    assert status == 400
    assert value["error"]["what"] == "unknown key 'stesp'"
    assert ask(server, "GET", "/ready")[1]["plan"] == "second", "a wrong plan changes nothing"
    with pytest.raises(ConfigError):
        server.load(b"tools: {}")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/gone", 404),
        ("POST", "/ready", 405),
        ("GET", "/stop", 405),
        ("GET", "/calls?run=never-seen", 404),
        ("POST", "/tools/charge", 404),
    ],
)
def test_what_is_not_there_is_told(serve: Serve, method: str, path: str, status: int) -> None:
    assert ask(serve(PLAN), method, path)[0] == status


def test_a_web_page_cannot_stop_it(serve: Serve) -> None:
    server = serve(PLAN)
    assert ask(server, "POST", "/stop", Origin="https://evil.test")[0] == 403
    assert ask(server, "POST", "/stop", Host="evil.test")[0] == 403
    assert server.is_alive()


def test_the_agents_port_is_no_admin_port(serve: Serve, client: Open) -> None:
    server = serve(PLAN)
    assert client(server).request("POST", "/stop").status == 404
    assert client(server).request("GET", "/effects").status == 404


def test_stop_ends_it(serve: Serve) -> None:
    server = serve(PLAN, run_id="mine")
    assert ask(server, "POST", "/stop") == (200, {"state": "stopping"})
    server._process.wait(5)
    assert not server.is_alive()
