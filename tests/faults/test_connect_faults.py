"""Faults before a request exists: the client-side shim, in real clients, for the tool server alone."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from goldentrace.faults import FaultsHandle, connect_faults
from goldentrace.faults.shim import NODE_SHIM
from tests.faults.serving import Client

Serve = Callable[..., FaultsHandle]
PLAN = "plan: p\ntools: {a: {result: 1}}\nconnect: [{fault: connect_refused, times: 2}, {fault: dns}, {fault: none}]\n"
QUEUE = [("connect_refused", 1), ("dns", 1)]


def port_of(server: FaultsHandle) -> int:
    return int(server.url.rpartition(":")[2])


def test_connections_meet_the_list_in_order_and_then_the_server(serve: Serve) -> None:
    server = serve(PLAN)
    with connect_faults(port_of(server), QUEUE) as shim:
        for error in (ConnectionRefusedError, socket.gaierror):
            client = Client(server)
            with pytest.raises(error):
                client.call("a")
        client = Client(server)
        assert client.call("a").status == 200
        client.close()
    assert shim.met == ["connect_refused", "dns", "none"]
    assert len(server.calls()) == 1


def test_other_places_are_left_alone(serve: Serve) -> None:
    server, other = serve(PLAN), socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    with connect_faults(port_of(server), [("connect_refused", 9)]) as shim, other:
        socket.create_connection(other.getsockname()).close()
        assert socket.getaddrinfo("localhost", other.getsockname()[1])
    assert shim.met == []
    client = Client(server)
    assert client.call("a").status == 200, "and after the block the server is"
    client.close()


def test_connect_ex_reports_it_as_an_error_number(serve: Serve) -> None:
    server = serve(PLAN)
    with connect_faults(port_of(server), [("connect_refused", 1)]), socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", port_of(server))) == 111


@pytest.mark.parametrize("name", ["httpx", "requests", "aiohttp"])
def test_real_clients_see_it_as_their_connection_error(serve: Serve, name: str) -> None:
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    server = serve(PLAN)
    url = f"{server.url}/tools/a"

    async def with_aiohttp() -> int:
        async with library.ClientSession() as session, session.post(url, json={}) as answer:
            return int(answer.status)

    def ask() -> int:
        if name == "aiohttp":
            return asyncio.run(with_aiohttp())
        return int(library.post(url, json={}).status_code)

    errors = {"httpx": "ConnectError", "requests": "ConnectionError", "aiohttp": "ClientConnector(DNS)?Error"}
    seen = []
    with connect_faults(port_of(server), QUEUE):
        for _ in QUEUE:
            with pytest.raises(Exception) as caught:  # noqa: PT011 (each library has its own)
                ask()
            seen.append(type(caught.value).__name__)
        assert ask() == 200
    pattern = __import__("re").compile(errors[name])
    assert all(pattern.fullmatch(error) for error in seen), seen


SCRIPT = """
import json, os, sys, urllib.error, urllib.request
seen = []
for _ in range(5):
    try:
        request = urllib.request.Request(os.environ["GOLDENTRACE_TOOLS_URL"] + "/tools/a", data=b"{}")
        seen.append(urllib.request.urlopen(request).status)
    except urllib.error.URLError as error:
        seen.append(type(error.reason).__name__)
print(json.dumps([seen, sys.argv[1:]]))
"""


def test_a_python_agent_gets_it_without_a_change_to_its_code(tmp_path: Path) -> None:
    from tests.faults.serving import served

    (tmp_path / "agent.py").write_text(SCRIPT)
    with served(tmp_path, PLAN) as server:
        done = subprocess.run(
            [sys.executable, "-m", "goldentrace.faults.shim", str(tmp_path / "agent.py"), "--task", "charge"],
            env={"PYTHONPATH": ":".join(path for path in sys.path if path), **server.environment()},
            capture_output=True, text=True, timeout=30, check=True,
        )  # fmt: skip
    seen, arguments = json.loads(done.stdout)
    assert seen == ["ConnectionRefusedError", "ConnectionRefusedError", "gaierror", 200, 200]
    assert arguments == ["--task", "charge"]


def test_a_node_agent_gets_it_too(tmp_path: Path) -> None:
    from tests.faults.serving import served

    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    script = """
const seen = [];
for (let n = 0; n < 5; n++) {
  try {
    const answer = await fetch(process.env.GOLDENTRACE_TOOLS_URL + "/tools/a", {method: "POST", body: "{}"});
    await answer.arrayBuffer();
    seen.push(answer.status);
  } catch (error) { seen.push(error.cause?.code ?? error.name); }
}
console.log(JSON.stringify(seen));
"""
    with served(tmp_path, PLAN) as server:
        done = subprocess.run(
            [program, "--require", str(NODE_SHIM), "--input-type=module", "-e", script], env=server.environment(),
            capture_output=True, text=True, timeout=30, check=True,
        )  # fmt: skip
    assert json.loads(done.stdout) == ["ECONNREFUSED", "ECONNREFUSED", "ENOTFOUND", 200, 200]


def test_without_connect_faults_the_environment_asks_for_none(serve: Serve) -> None:
    server = serve("plan: p\ntools: {a: {}}\n", run_id="x")
    assert server.environment() == {"GOLDENTRACE_TOOLS_URL": server.url, "GOLDENTRACE_MCP_URL": f"{server.url}/mcp"}
