"""What real HTTP clients see of each fault, each cell asserted: the table in docs/faults.md is this table.

A client that is not installed is skipped by name. Node's cells come from one process (node_client.mjs).
"""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goldentrace.faults import FaultsHandle
from tests.faults.serving import served

SHORT_S, LONG_S = 0.3, 10.0
RESULT = '{ok: true, text: "0123456789"}'
FAULTS = {
    "hang": "{fault: hang}",
    "hang in headers": "{fault: hang, phase: mid_headers}",
    "headers, then hang": "{fault: hang, phase: mid_body}",
    "empty reply": "{fault: empty_reply}",
    "reset": "{fault: reset}",
    "reset in headers": "{fault: reset, phase: mid_headers}",
    "reset in body": "{fault: reset_mid_body}",
    "reset after response": "{fault: reset, phase: after_response}",
    "partial body": "{fault: partial_body}",
    "short length": "{fault: short_length}",
    "long length": "{fault: long_length}",
    "drip": "{fault: drip, bytes_per_second: 50}",
    "bad UTF-8": "{fault: bad_utf8}",
    "malformed JSON": "{fault: malformed_json}",
    "bad chunk": "{fault: bad_chunk}",
    "garbage": "{fault: garbage}",
    "bad gzip": "{fault: bad_gzip}",
    "slow close": "{fault: slow_close, delay_ms: 1000}",
    "repeated header": "{fault: duplicate_header}",
    "stale connection": "{fault: stale_keepalive}",
}
TABLE = {
    "hang": ("ReadTimeout", "ReadTimeout", "TimeoutError", "TimeoutError"),
    "hang in headers": ("ReadTimeout", "ReadTimeout", "TimeoutError", "TimeoutError"),
    "headers, then hang": ("ReadTimeout", "ConnectionError", "TimeoutError", "TimeoutError"),
    "empty reply": ("RemoteProtocolError", "ConnectionError", "ServerDisconnectedError", "UND_ERR_SOCKET"),
    "reset": ("ReadError", "ConnectionError", "ClientOSError", "ECONNRESET"),
    "reset in headers": ("ReadError", "ConnectionError", "ClientOSError", "ECONNRESET"),
    "reset in body": ("ReadError", "ChunkedEncodingError", "ClientPayloadError", "ECONNRESET"),
    "reset after response": ("200 json", "200 json", "200 json", "200 json"),
    "partial body": ("RemoteProtocolError", "ChunkedEncodingError", "ClientPayloadError", "UND_ERR_SOCKET"),
    "short length": ("200 JSONDecodeError", "200 JSONDecodeError", "ClientResponseError", "200 SyntaxError"),
    "long length": ("ReadTimeout", "ConnectionError", "TimeoutError", "TimeoutError"),
    "drip": ("200 json", "200 json", "TimeoutError", "TimeoutError"),
    "bad UTF-8": ("200 UnicodeDecodeError", "200 json", "200 UnicodeDecodeError", "200 json"),
    "malformed JSON": ("200 JSONDecodeError", "200 JSONDecodeError", "200 JSONDecodeError", "200 SyntaxError"),
    "bad chunk": ("RemoteProtocolError", "ChunkedEncodingError", "ClientResponseError", "HPE_INVALID_CHUNK_SIZE"),
    "garbage": ("RemoteProtocolError", "ConnectionError", "ClientResponseError", "HPE_INVALID_CONSTANT"),
    "bad gzip": ("DecodingError", "ContentDecodingError", "ClientPayloadError", "Z_DATA_ERROR"),
    "slow close": ("ReadTimeout", "ConnectionError", "TimeoutError", "TimeoutError"),
    "repeated header": ("429 1, 2", "429 1, 2", "429 1", "429 1, 2"),
    "stale connection": ("200, then ReadError", "200, then ConnectionError", "200, then ClientOSError", "200, then ECONNRESET"),
}  # fmt: skip
"""Fault -> what httpx, requests, aiohttp and Node's fetch see: a status and what the body is, or the class of the error."""
UNANSWERED = ("hang", "long length", "drip", "slow close")
"""Faults that a client leaves by its timeout; with the others a busy machine must not decide."""
CLIENTS = ("httpx", "requests", "aiohttp", "node")


def tool(fault: str) -> str:
    return fault.replace(" ", "_").replace(",", "").replace("-", "_")


def plan() -> str:
    tools = "".join(
        f"  {tool(name)}: {{result: {RESULT}, steps: [{step}], after_steps: {'ok' if 'stale' in step else 'repeat'}}}\n"
        for name, step in FAULTS.items()
    )
    return f"plan: client table\ntools:\n{tools}"


def timeout_s(fault: str) -> float:
    return SHORT_S if any(word in fault for word in UNANSWERED) else LONG_S


def name_of(error: BaseException) -> str:
    return type(error).__name__


def seen(status: int, header: str | None, decode: Callable[[], Any]) -> str:
    if status == 429:
        return f"429 {header}"
    try:
        decode()
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError
        return f"{status} {name_of(error)}"
    return f"{status} json"


def ask_httpx(url: str, fault: str) -> str:
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    with httpx.Client(timeout=timeout_s(fault)) as client:
        try:
            answer = client.post(url, json={})
            first = seen(answer.status_code, answer.headers.get("retry-after"), answer.json)
        except httpx.HTTPError as error:
            return name_of(error)
        try:
            return first if "stale" not in fault else f"200, then {client.post(url, json={}).status_code}"
        except httpx.HTTPError as error:
            return f"200, then {name_of(error)}"


def ask_requests(url: str, fault: str) -> str:
    requests = pytest.importorskip("requests", reason="requests is not installed")
    with requests.Session() as session:
        try:
            answer = session.post(url, json={}, timeout=timeout_s(fault))
            first = seen(answer.status_code, answer.headers.get("retry-after"), answer.json)
        except requests.RequestException as error:
            return name_of(error)
        try:
            return (
                first if "stale" not in fault else f"200, then {session.post(url, json={}, timeout=LONG_S).status_code}"
            )
        except requests.RequestException as error:
            return f"200, then {name_of(error)}"


def ask_aiohttp(url: str, fault: str) -> str:
    aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")

    async def once(session: Any) -> str:
        async with session.post(url, json={}) as answer:
            body = await answer.read()
            return seen(answer.status, answer.headers.get("retry-after"), lambda: json.loads(body.decode("utf-8")))

    async def ask() -> str:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s(fault))) as session:
            try:
                first = await once(session)
            except (aiohttp.ClientError, TimeoutError) as error:
                return name_of(error)
            try:
                return first if "stale" not in fault else f"200, then {await once(session)}"
            except (aiohttp.ClientError, TimeoutError) as error:
                return f"200, then {name_of(error)}"

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with served(tmp_path_factory.mktemp("table"), plan()) as handle:
        yield handle


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What Node's fetch sees of every fault, asked on a server of its own."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    script = Path(__file__).with_name("node_client.mjs")
    with served(tmp_path_factory.mktemp("node"), plan()) as handle:
        # First the one that needs the connection that it left behind: later ones leave others to choose from.
        order = sorted(FAULTS, key=lambda fault: "stale" not in fault)
        urls = {fault: [f"{handle.url}/tools/{tool(fault)}", timeout_s(fault) * 1000] for fault in order}
        done = subprocess.run(
            [program, script], input=json.dumps(urls), capture_output=True, text=True, timeout=60,
            check=True,
        )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_sees_a_fault_as_this(
    request: pytest.FixtureRequest, server: FaultsHandle, fault: str, client: str
) -> None:
    expected = TABLE[fault][CLIENTS.index(client)]
    if client == "node":
        assert request.getfixturevalue("node")[fault] == expected
        return
    server.reset()
    ask = {"httpx": ask_httpx, "requests": ask_requests, "aiohttp": ask_aiohttp}[client]
    assert ask(f"{server.url}/tools/{tool(fault)}", fault) == expected
    assert server.failures() == []


def test_the_table_has_every_fault_and_client() -> None:
    assert set(TABLE) == set(FAULTS)
    assert all(len(row) == len(CLIENTS) for row in TABLE.values())


def test_the_page_shows_this_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in page.splitlines() if row.startswith("| ")]
    shown = {row[0]: tuple(cell.replace("200, whole", "200 json") for cell in row[1:]) for row in rows if len(row) == 5}
    shown.pop("fault")
    assert shown == TABLE


def test_only_a_total_deadline_sees_a_drip(server: FaultsHandle) -> None:
    """A timeout per read, which is what httpx and requests have, lets a response take as long as it drips."""
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    with httpx.Client(timeout=0.2) as client:
        answer = client.post(f"{server.url}/tools/{tool('drip')}", json={})
    assert answer.elapsed.total_seconds() > 0.4
    assert answer.json() == {"ok": True, "text": "0123456789"}


def test_stray_bytes_break_the_next_call_on_their_connection_and_the_journal_shows_which(server: FaultsHandle) -> None:
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    server.reset()
    with httpx.Client(timeout=LONG_S) as client:
        assert client.post(f"{server.url}/tools/{tool('short length')}", json={}).status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(f"{server.url}/tools/{tool('reset after response')}", json={})
    short = server.calls()[0]
    assert (short["fault"], short["error_class"]) == ("short_length", "partial_body")
    assert short["connection"] > 0


@pytest.mark.parametrize(
    ("fault", "status", "error_class"),
    [
        ("hang", "timeout", "timeout"),
        ("headers, then hang", "timeout", "timeout"),
        ("empty reply", "error", "empty_reply"),
        ("reset", "error", "reset"),
        ("reset in body", "error", "reset"),
        ("partial body", "error", "partial_body"),
        ("short length", "error", "partial_body"),
        ("bad chunk", "error", "protocol"),
        ("garbage", "error", "protocol"),
        ("bad gzip", "error", "protocol"),
        ("bad UTF-8", "error", "malformed_json"),
        ("malformed JSON", "error", "malformed_json"),
        ("repeated header", "error", "rate_limited"),
        ("slow close", "cancelled", "cancelled"),
    ],
)
def test_the_journal_calls_a_fault_by_its_class(
    server: FaultsHandle, fault: str, status: str, error_class: str
) -> None:
    server.reset()
    ask_httpx(f"{server.url}/tools/{tool(fault)}", fault)
    call = server.calls()[-1]
    assert (call["status"], call["error_class"]) == (status, error_class)
    assert call["is_gone"] == (fault in ("hang", "headers, then hang", "slow close"))


def test_a_drip_that_is_given_up_is_cancelled_and_one_that_is_borne_is_ok(server: FaultsHandle) -> None:
    server.reset()
    url = f"{server.url}/tools/{tool('drip')}"
    ask_aiohttp(url, "drip")
    ask_httpx(url, "drip")
    first, second = server.calls()
    assert (first["status"], first["is_gone"]) == ("cancelled", True)
    assert (second["status"], second["is_gone"]) == ("ok", False)
    assert 0 < first["bytes_sent"] < second["bytes_sent"]


def test_a_call_over_a_stale_connection_is_written_down_but_takes_no_step(server: FaultsHandle) -> None:
    server.reset()
    assert ask_httpx(f"{server.url}/tools/{tool('stale connection')}", "stale connection") == "200, then ReadError"
    first, second = server.calls()
    assert (first["status"], first["n"]) == ("ok", 1)
    assert (second["status"], second["error_class"], second["n"], second["is_committed"]) == (
        "error",
        "reset",
        1,
        False,
    )
