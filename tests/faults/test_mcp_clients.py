"""What the official MCP client makes of faults, over Streamable HTTP and stdio, with and without the handshake."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goldentrace.faults import FaultsHandle
from goldentrace.faults.journal import read_journal
from goldentrace.model.event import ToolCall, ToolResult
from tests.faults.serving import Client, served

pytest.importorskip("mcp", reason="mcp is not installed")

TIMEOUT_S = 0.4
TOOLS = """
  ok: {description: answers, access: read, schema: {type: object, properties: {a: {type: integer}}}, result: {x: 1}}
  text: {access: write, destructive: true, result: plain words}
  hang: {steps: [{fault: hang}], after_steps: repeat}
  slow: {effect_record: {e: 1}, steps: [{fault: slow, delay_ms: 700}], after_steps: repeat}
  rate_limited: {steps: [{fault: status, status: 429, retry_after: 2}], after_steps: repeat}
  rate_limited_rpc: {steps: [{fault: status, status: 429, retry_after: 2, mcp: jsonrpc_error}], after_steps: repeat}
  denied: {steps: [{fault: denied}], after_steps: repeat}
  expired: {steps: [{fault: auth_expired}], after_steps: repeat}
  a_little_slow: {steps: [{fault: slow, phase: after_commit, delay_ms: 40}], after_steps: repeat, result: {x: 1}}
  wrong_id: {steps: [{fault: wrong_id}], after_steps: repeat, result: {x: 1}}
  twice: {steps: [{fault: duplicate_result}], after_steps: repeat, result: {x: 1}}
  malformed: {steps: [{fault: malformed_json}], after_steps: repeat, result: {x: 1}}
  bad_utf8: {steps: [{fault: bad_utf8}], after_steps: repeat, result: {x: 1}}
  drift:
    result: {x: 1, y: 2}
    output_schema: {type: object, required: [x], properties: {x: {type: integer}}}
    steps: [{fault: schema_drift}]
    after_steps: repeat
  overtaken: {steps: [{fault: out_of_order, delay_ms: 2000}, {fault: none}], after_steps: ok, result: {n: "{n}"}}
"""
SOCKET_TOOLS = """
  empty: {steps: [{fault: empty_reply}], after_steps: repeat}
  reset: {steps: [{fault: reset}], after_steps: repeat}
  cut: {steps: [{fault: partial_body}], after_steps: repeat, result: {x: 1}}
  rate_limited_http: {steps: [{fault: status, status: 429, retry_after: 2, mcp: http}], after_steps: repeat}
  unavailable_http: {steps: [{fault: status, status: 503, mcp: http}], after_steps: repeat}
"""
STDIO_TOOLS = """
  garbage: {steps: [{fault: garbage}], after_steps: repeat}
  exits: {steps: [{fault: server_exit}], after_steps: repeat}
  drips: {steps: [{fault: drip, bytes_per_second: 2000}], after_steps: repeat, result: {x: 1}}
"""
MODES = ("auto", "legacy")
TIMED_OUT = "MCPError: Request 'tools/call' timed out"
EVERYWHERE = {
    "ok": "{'x': 1}",
    "hang": TIMED_OUT,
    "rate_limited": "error 429 owed 2000",
    "rate_limited_rpc": "MCPError: Too Many Requests",
    "denied": "error 403 owed None",
    "expired": "error 401 owed None",
    "a_little_slow": "{'x': 1}",
    "wrong_id": TIMED_OUT,
    "twice": "{'x': 1}",
    "drift": "RuntimeError: Invalid structured content",
}
"""Tool -> what `call_tool` gives or raises, in both modes and over both transports."""
OVER_HTTP = {
    **EVERYWHERE,
    "malformed": "MCPError: Failed to parse JSON response",
    "bad_utf8": "MCPError: Failed to parse JSON response",
    "rate_limited_http": "MCPError: Server returned an error response",
    "unavailable_http": "MCPError: Server returned an error response",
}
KILLS_THE_SESSION = {"empty": "RemoteProtocolError", "reset": "ReadError", "cut": "RemoteProtocolError"}
OVER_STDIO = {**EVERYWHERE, "drips": "{'x': 1}", "malformed": TIMED_OUT, "exits": "MCPError: Connection closed"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The SDK logs the broken responses that are meant here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultsHandle]:
    with served(tmp_path_factory.mktemp("mcp"), f"plan: mcp\ntools:\n{TOOLS}{SOCKET_TOOLS}") as handle:
        yield handle


@pytest.fixture(scope="module")
def stdio_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stdio") / "plan.yaml"
    path.write_text(f"plan: mcp\ntools:\n{TOOLS}{STDIO_TOOLS}")
    return path


def over_stdio(plan: Path, journal: Path | None = None) -> Any:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = "import sys; from goldentrace.cli.main import run; sys.exit(run(sys.argv[1:]))"
    arguments = ["-c", command, "serve", "faults", str(plan), "--stdio"]
    if journal is not None:
        arguments += ["--journal", str(journal)]
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=environment))


def root_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def call_once(client: Any, tool: str, arguments: dict[str, Any] | None = None) -> str:
    """What one call gives or raises, in words."""
    try:
        result = await client.call_tool(tool, arguments or {})
    except Exception as error:  # noqa: BLE001 (which it raises is what is asked)
        return f"{type(error).__name__}: {error}"
    if result.is_error:
        return f"error {result.structured_content['status']} owed {result.structured_content.get('retry_after_ms')}"
    return str(result.structured_content)


def call_all(place: Any, mode: str, tools: list[str]) -> dict[str, str]:
    """Call tools one after the other in one session, which the faults of this list leave alive."""
    from mcp.client.client import Client as McpClient

    async def whole() -> dict[str, str]:
        async with McpClient(place, mode=mode, read_timeout_seconds=TIMEOUT_S) as client:
            return {tool: await call_once(client, tool) for tool in tools}

    return asyncio.run(whole())


def matches(seen: dict[str, str], expected: dict[str, str]) -> None:
    wrong = {tool: seen[tool] for tool, start in expected.items() if not seen[tool].startswith(start)}
    assert not wrong


@pytest.mark.parametrize("mode", MODES)
def test_over_http_a_client_makes_this_of_each_fault(server: FaultsHandle, mode: str) -> None:
    server.reset()
    matches(call_all(server.mcp_url, mode, [*OVER_HTTP, "ok"]), OVER_HTTP)
    assert server.failures() == []
    limited = {call["tool"]: (call["http_status"], call["error_class"], call["owed_ms"]) for call in server.calls()}
    assert limited["rate_limited"] == (None, "rate_limited", 2000.0), (
        "the failure is inside a result that went out as 200"
    )
    assert limited["rate_limited_http"] == (429, "rate_limited", 2000.0)
    arrivals = [call["tool"] for call in server.calls()]
    assert arrivals.count("rate_limited_http") == 1, "an MCP client repeats no tools/call"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tool", KILLS_THE_SESSION)
def test_a_broken_connection_ends_the_whole_session(server: FaultsHandle, mode: str, tool: str) -> None:
    from mcp.client.client import Client as McpClient

    seen: list[str] = []

    async def whole() -> None:
        async with McpClient(server.mcp_url, mode=mode, read_timeout_seconds=5) as client:
            try:
                await client.call_tool(tool, {})
            except asyncio.CancelledError as error:
                seen.append(type(error).__name__)
                raise

    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(asyncio.wait_for(whole(), 5))
    assert seen == ["CancelledError"], "the call is cancelled from within, not told what happened"
    assert type(root_of(caught.value)).__name__ == KILLS_THE_SESSION[tool]


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio_a_client_makes_this_of_each_fault(stdio_plan: Path, tmp_path: Path, mode: str) -> None:
    order = sorted(OVER_STDIO, key=lambda tool: tool == "exits")  # nothing answers after it
    seen = call_all(over_stdio(stdio_plan, tmp_path / "j.jsonl"), mode, order)
    matches(seen, OVER_STDIO)
    journal = read_journal(tmp_path / "j.jsonl")
    last = journal.events[-1]
    assert isinstance(last, ToolResult)
    assert (last.status, last.error_class) == ("error", "reset")
    assert journal.failures == []


@pytest.mark.parametrize("tool", ["bad_utf8", "garbage"])
def test_bytes_that_are_no_text_kill_a_stdio_session(stdio_plan: Path, tool: str) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        call_all(over_stdio(stdio_plan), "auto", [tool])
    assert isinstance(root_of(caught.value), UnicodeDecodeError)


def test_a_handshake_client_says_that_it_cancels_and_a_modern_one_just_leaves(server: FaultsHandle) -> None:
    for mode, status in (("legacy", "cancelled"), ("auto", "timeout")):
        server.reset()
        call_all(server.mcp_url, mode, ["hang", "ok"])
        hung = next(call for call in server.calls() if call["tool"] == "hang")
        assert (hung["status"], hung["is_gone"]) == (status, True)


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_was_given_up_does_not_take_effect_later(server: FaultsHandle, mode: str) -> None:
    """2026-07-28: leaving is a cancellation; before it, the notification is."""
    server.reset()
    call_all(server.mcp_url, mode, ["slow", "ok"])
    call_all(server.mcp_url, mode, ["ok"])
    assert [call["status"] for call in server.calls() if call["tool"] == "slow"] == ["cancelled"]
    assert server.effects() == []


def test_a_plain_http_client_that_leaves_does_not_cancel(server: FaultsHandle) -> None:
    server.reset()
    caller = Client(server, timeout_s=0.2)
    with pytest.raises(TimeoutError):
        caller.call("slow")
    caller.close()
    patient = Client(server)
    patient.call("slow")
    patient.close()
    assert len(server.effects()) == 2


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_answers_can_overtake_each_other(server: FaultsHandle, stdio_plan: Path, transport: str) -> None:
    from mcp.client.client import Client as McpClient

    server.reset()
    place = server.mcp_url if transport == "http" else over_stdio(stdio_plan)
    order: list[str] = []

    async def one(client: Any) -> None:
        order.append(await call_once(client, "overtaken"))

    async def whole() -> None:
        async with McpClient(place, read_timeout_seconds=10) as client:
            first = asyncio.create_task(one(client))
            await asyncio.sleep(0.2)
            await one(client)
            await first

    asyncio.run(whole())
    assert order == ["{'n': 2}", "{'n': 1}"]


@pytest.mark.parametrize("mode", MODES)
def test_tools_are_listed_with_what_the_plan_says_of_them(server: FaultsHandle, mode: str) -> None:
    from mcp.client.client import Client as McpClient

    async def whole() -> Any:
        async with McpClient(server.mcp_url, mode=mode) as client:
            return await client.list_tools(), client.protocol_version

    listing, version = asyncio.run(whole())
    tools = {tool.name: tool for tool in listing.tools}
    assert version == ("2026-07-28" if mode == "auto" else "2025-11-25")
    assert (tools["ok"].description, tools["ok"].annotations.read_only_hint) == ("answers", True)
    assert tools["ok"].input_schema == {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert (tools["text"].annotations.read_only_hint, tools["text"].annotations.destructive_hint) == (False, True)
    assert tools["drift"].output_schema["required"] == ["x"]
    assert tools["hang"].annotations is None


@pytest.mark.parametrize(
    ("revision", "mode", "version"),
    [
        ("2025-11-25", "auto", "2025-11-25"),
        ("2025-06-18", "legacy", "2025-06-18"),
        ("2026-07-28", "auto", "2026-07-28"),
        ("2026-07-28", "legacy", None),
    ],
)
def test_the_plan_says_which_revision_is_spoken(tmp_path: Path, revision: str, mode: str, version: str | None) -> None:
    from mcp.client.client import Client as McpClient

    async def whole(url: str) -> str:
        async with McpClient(url, mode=mode) as client:
            await client.call_tool("a", {})
            return str(client.protocol_version)

    with served(tmp_path, f'plan: p\nmcp_revision: "{revision}"\ntools: {{a: {{}}}}\n') as server:
        if version is None:
            with pytest.raises(BaseException) as caught:  # noqa: PT011 (a group around the SDK's own error)
                asyncio.run(whole(server.mcp_url))
            assert "Unsupported protocol version" in str(root_of(caught.value))
        else:
            assert asyncio.run(whole(server.mcp_url)) == version


@pytest.mark.parametrize("mode", MODES)
def test_answers_may_come_as_a_stream_of_events(tmp_path: Path, mode: str) -> None:
    text = "plan: p\nmcp_reply: sse\ntools:\n  a: {result: {x: 1}}\n  cut: {result: {x: 1}, steps: [{fault: partial_body}]}\n"
    with served(tmp_path, text) as server:
        seen = call_all(server.mcp_url, mode, ["a", "cut", "a"])
    assert seen["a"] == "{'x': 1}"
    assert seen["cut"].startswith("MCPError: SSE stream ended without a response"), "and the session lives on"


def test_an_idempotency_key_and_a_call_id_reach_the_journal_in_meta(tmp_path: Path) -> None:
    from mcp.client.client import Client as McpClient

    text = "plan: p\ntools:\n  pay: {access: write, idempotency: {key: /key}, effect_record: {e: 1}, result: {x: 1}}\n"

    async def whole(url: str) -> None:
        async with McpClient(url) as client:
            for attempt in (1, 2):
                meta = {"goldentrace/call_id": "toolu_9", "goldentrace/attempt": attempt}
                await client.call_tool("pay", {"key": "k"}, meta=meta)

    with served(tmp_path, text) as server:
        asyncio.run(whole(server.mcp_url))
        calls = [event for event in server.events() if isinstance(event, ToolCall)]
        assert [(call.call_id, call.attempt, call.idempotency_key) for call in calls] == [
            ("toolu_9", 1, "k"),
            ("toolu_9", 2, "k"),
        ]
        assert len(server.effects()) == 1


# --- messages that no client sends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"gone"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":[]}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 200, None),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', 202, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 202, None),
    ],
)
def test_json_rpc_is_answered_by_its_rules(server: FaultsHandle, body: bytes, status: int, code: int | None) -> None:
    server.reset()
    caller = Client(server)
    answer = caller.request("POST", "/mcp", body)
    caller.close()
    assert answer.status == status
    if code is not None:
        assert answer.value["error"]["code"] == code


def test_an_unknown_tool_fails_the_run(server: FaultsHandle) -> None:
    server.reset()
    caller = Client(server)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "gone"}}
    assert caller.request("POST", "/mcp", message).value["error"]["message"] == "Unknown tool: gone"
    assert caller.request("GET", "/mcp").status == 405
    caller.close()
    assert "'gone', which is no tool of the plan" in server.failures()[0].what
    server.reset()


def test_a_modern_request_must_agree_with_its_headers(server: FaultsHandle) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ok", "arguments": {}, "_meta": meta},
    }
    caller = Client(server)
    right = {"Mcp_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "ok"}
    assert caller.request("POST", "/mcp", message, **right).value["result"]["structuredContent"] == {"x": 1}
    for name in right:
        wrong = caller.request("POST", "/mcp", message, **{**right, name: "other"})
        assert (wrong.status, wrong.value["error"]["code"]) == (400, -32020)
    caller.close()


def test_faults_of_mcp_have_no_meaning_over_plain_http(server: FaultsHandle) -> None:
    server.reset()
    caller = Client(server)
    assert caller.call("wrong_id").status == 500
    caller.close()
    assert "needs MCP" in server.failures()[0].what
    server.reset()


def test_a_message_over_stdio_that_is_too_long_ends_the_server_and_is_noted(tmp_path: Path) -> None:
    plan, journal = tmp_path / "p.yaml", tmp_path / "j.jsonl"
    plan.write_text("plan: p\ntools: {a: {}}\nlimits: {max_body_bytes: 1000}\n")
    import subprocess

    command = "import sys; from goldentrace.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", command, "serve", "faults", str(plan), "--stdio", "--journal", str(journal)],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * 5000}}).encode() + b"\n",
        capture_output=True, timeout=30, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 3
    assert b"more than 1000 bytes" in done.stderr
