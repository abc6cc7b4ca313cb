"""What an exception means, by real exceptions of the standard library and httpx, and by classes named as other clients' are."""

import asyncio
import http.client
import json
import socket
import ssl
import types
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.record.failures import Failure, classify, failure_in_result, owed_wait_ms
from tests.record.conftest import Run

NOW_NS = 1_700_000_000_500_000_000
NOW = datetime.fromtimestamp(NOW_NS / 1e9, UTC)


def made(module: str, name: str, *bases: type[BaseException]) -> type[Any]:
    """A class that says of itself what a client's exception says."""
    return types.new_class(name, bases or (Exception,), {}, lambda body: body.update(__module__=module))


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status", "error_class", "sent"),
    [
        (TimeoutError(), "timeout", "timeout", None),
        (asyncio.CancelledError(), "cancelled", "cancelled", None),
        (KeyboardInterrupt(), "cancelled", "cancelled", None),
        (ConnectionRefusedError(111, "refused"), "error", "connect", False),
        (socket.gaierror(-2, "unknown"), "error", "dns", False),
        (ConnectionResetError(104, "reset"), "error", "reset", None),
        (BrokenPipeError(32, "pipe"), "error", "reset", None),
        (http.client.RemoteDisconnected("closed"), "error", "empty_reply", None),
        (http.client.IncompleteRead(b"x", 3), "error", "partial_body", None),
        (http.client.BadStatusLine("x"), "error", "protocol", None),
        (json.JSONDecodeError("bad", "x", 0), "error", "malformed_json", None),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "error", "malformed_json", None),
        (ssl.SSLCertVerificationError("bad"), "error", "connect", False),
        (FileNotFoundError(2, "missing"), "error", "not_found", None),
        (ValueError("anything"), "error", "tool_error", None),
        (SystemExit(404), "error", "tool_error", None),
        (urllib.error.URLError(socket.gaierror(-2, "unknown")), "error", "dns", False),
        (urllib.error.URLError(TimeoutError()), "timeout", "timeout", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_the_standard_library(error: BaseException, status: str, error_class: str, *, sent: bool | None) -> None:
    found = classify(error, NOW_NS)
    assert (found.status, found.error_class, found.sent) == (status, error_class, sent)


REQUESTS, URLLIB3, AIOHTTP = "requests.exceptions", "urllib3.exceptions", "aiohttp.client_exceptions"
HTTP_ERROR = made(URLLIB3, "HTTPError")
PROTOCOL_ERROR = made(URLLIB3, "ProtocolError", HTTP_ERROR)
REQUESTS_CONNECTION = made(REQUESTS, "ConnectionError", OSError)
REQUESTS_TIMEOUT = made(REQUESTS, "Timeout", OSError)
MAX_RETRY = made(URLLIB3, "MaxRetryError", HTTP_ERROR)
URLLIB3_TIMEOUT = made(URLLIB3, "TimeoutError", HTTP_ERROR)
CLIENT_OS_ERROR = made(AIOHTTP, "ClientOSError", OSError)


BAD_MESSAGE = made("aiohttp.http_exceptions", "BadHttpMessage", made("aiohttp.http_exceptions", "HttpProcessingError"))
PAYLOAD_ERROR = made(AIOHTTP, "ClientPayloadError")


def with_status(error: BaseException, status: int) -> BaseException:
    error.status = status  # type: ignore[attr-defined]
    return error


def max_retry(reason: BaseException) -> BaseException:
    error = MAX_RETRY("retries")
    error.reason = reason
    return REQUESTS_CONNECTION(error)


@pytest.mark.parametrize(
    ("error", "status", "error_class", "sent"),
    [
        (REQUESTS_CONNECTION(PROTOCOL_ERROR("x", http.client.RemoteDisconnected("x"))), "error", "empty_reply", None),
        (REQUESTS_CONNECTION(PROTOCOL_ERROR("x", ConnectionResetError(104, "x"))), "error", "reset", None),
        (max_retry(made(URLLIB3, "NewConnectionError", HTTP_ERROR)("x")), "error", "connect", False),
        (max_retry(made(URLLIB3, "NameResolutionError", HTTP_ERROR)("x")), "error", "dns", False),
        (max_retry(made(URLLIB3, "ReadTimeoutError", URLLIB3_TIMEOUT)("x")), "timeout", "timeout", None),
        (REQUESTS_CONNECTION("nothing inside"), "error", "reset", None),
        (made(REQUESTS, "ConnectTimeout", REQUESTS_CONNECTION, REQUESTS_TIMEOUT)("x"), "timeout", "timeout", False),
        (made(REQUESTS, "ReadTimeout", REQUESTS_TIMEOUT)("x"), "timeout", "timeout", None),
        (made(REQUESTS, "ChunkedEncodingError")(PROTOCOL_ERROR("IncompleteRead(3)")), "error", "partial_body", None),
        (made(REQUESTS, "ChunkedEncodingError")(PROTOCOL_ERROR("x", ConnectionResetError())), "error", "reset", None),
        (made(REQUESTS, "JSONDecodeError", json.JSONDecodeError)("bad", "x", 0), "error", "malformed_json", None),
        (made(AIOHTTP, "ServerDisconnectedError")("x"), "error", "empty_reply", None),
        (CLIENT_OS_ERROR(104, "x"), "error", "reset", None),
        (made(AIOHTTP, "ClientConnectorError", CLIENT_OS_ERROR)(111, "x"), "error", "connect", False),
        (made(AIOHTTP, "ClientConnectorDNSError", CLIENT_OS_ERROR)(111, "x"), "error", "dns", False),
        (PAYLOAD_ERROR("x"), "error", "partial_body", None),
        (caused(PAYLOAD_ERROR("x"), ConnectionResetError(104, "x")), "error", "reset", None),
        (caused(PAYLOAD_ERROR("x"), made("aiohttp.http_exceptions", "ContentEncodingError", BAD_MESSAGE)("x")), "error", "protocol", None),
        (caused(with_status(made(AIOHTTP, "ClientResponseError")("x"), 400), BAD_MESSAGE("x")), "error", "protocol", None),
        (made(AIOHTTP, "SocketTimeoutError", made(AIOHTTP, "ServerTimeoutError", TimeoutError))(), "timeout", "timeout", None),
        (made("openai", "APITimeoutError")("x"), "timeout", "timeout", None),
        (caused(made("openai", "APIConnectionError")("x"), httpx.ReadError("x")), "error", "reset", None),
        (made("pydantic_core._pydantic_core", "ValidationError", ValueError)("x"), "error", "schema", None),
        (made("trio", "Cancelled", BaseException)(), "cancelled", "cancelled", None),
    ],
)  # fmt: skip
def test_other_clients(error: BaseException, status: str, error_class: str, *, sent: bool | None) -> None:
    found = classify(error, NOW_NS)
    assert (found.status, found.error_class, found.sent) == (status, error_class, sent)


def test_the_agents_own_error_means_what_caused_it() -> None:
    own = made("agent.tools", "SearchFailed")
    assert classify(caused(own("x"), TimeoutError()), NOW_NS).status == "timeout"
    for suppress, status in ((False, "timeout"), (True, "error")):
        error = own("x")
        error.__context__, error.__suppress_context__ = TimeoutError(), suppress
        assert classify(error, NOW_NS).status == status


def test_a_slip_in_a_handler_is_not_what_was_handled() -> None:
    slip = KeyError("typo")
    slip.__context__ = TimeoutError()
    assert classify(slip, NOW_NS) == Failure()


def test_an_exception_that_goes_round_in_circles_is_placed() -> None:
    first, second = made("a", "A")("x"), made("b", "B")("x")
    first.__cause__, second.__cause__ = second, first
    assert classify(first, NOW_NS) == Failure()


class UnrulyError(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("not in this state")

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_whose_own_code_fails_is_an_error_of_the_tool() -> None:
    assert classify(UnrulyError(), NOW_NS) == Failure()


# --- HTTP ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error_class"),
    [(400, "bad_request"), (401, "auth"), (403, "auth"), (404, "not_found"), (408, "timeout"), (409, "conflict"),
     (422, "bad_request"), (429, "rate_limited"), (500, "server_error"), (503, "server_error"), (599, "server_error")],
)  # fmt: skip
def test_an_http_status(status: int, error_class: str) -> None:
    request = httpx.Request("GET", "http://x.test")
    response = httpx.Response(status, headers={"Retry-After": "2"}, request=request)
    error = httpx.HTTPStatusError("x", request=request, response=response)
    assert classify(error, NOW_NS) == Failure("error", error_class, status, 2000.0, sent=True)  # type: ignore[arg-type]


def with_attributes(error: BaseException, **attributes: Any) -> BaseException:
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    "error",
    [
        with_attributes(made("openai", "RateLimitError")("x"), status_code=429),
        with_attributes(made(AIOHTTP, "ClientResponseError")("x"), status=429),
        with_attributes(made("google.api_core.exceptions", "TooManyRequests")("x"), code=429),
        with_attributes(
            made("botocore.exceptions", "ClientError")("x"), response={"ResponseMetadata": {"HTTPStatusCode": 429}}
        ),
        urllib.error.HTTPError("http://x.test", 429, "slow down", Message(), None),
    ],
    ids=["openai", "aiohttp", "google", "botocore", "urllib"],
)
def test_where_clients_keep_the_status(error: BaseException) -> None:
    found = classify(error, NOW_NS)
    assert (found.error_class, found.http_status) == ("rate_limited", 429)


def test_a_reply_of_the_wrong_type_keeps_its_status() -> None:
    error = with_attributes(made(AIOHTTP, "ContentTypeError")("x"), status=200)
    found = classify(error, NOW_NS)
    assert (found.error_class, found.http_status) == ("malformed_json", 200)


@pytest.mark.parametrize(
    ("headers", "owed_ms"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3000.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": "1.5"}, 1500.0),
        ({"retry-after": 7}, 7000.0),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 250.0),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9000.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1, 2"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": format_datetime(NOW.replace(microsecond=0) + timedelta(seconds=2), usegmt=True)}, 1500.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:22 GMT"}, 1500.0),
        ({"retry-after": "Tuesday, 14-Nov-23 22:13:22 GMT"}, 1500.0),
        ({"retry-after": format_datetime(NOW - timedelta(hours=1), usegmt=True)}, 0.0),
    ],
)
def test_what_retry_after_owes(headers: Mapping[str, Any], owed_ms: float | None) -> None:
    assert owed_wait_ms(headers, NOW_NS) == owed_ms


@given(st.text(max_size=40))
def test_no_header_is_too_strange(text: str) -> None:
    owed_ms = owed_wait_ms({"retry-after": text}, NOW_NS)
    assert owed_ms is None or owed_ms >= 0


def test_a_returned_response_may_be_a_failure() -> None:
    too_many = httpx.Response(429, headers={"retry-after": "1"})
    assert failure_in_result(too_many, NOW_NS) == Failure("error", "rate_limited", 429, 1000.0, sent=True)
    assert failure_in_result(httpx.Response(204), NOW_NS) is None


@pytest.mark.parametrize(
    ("value", "is_failure"),
    [
        ({"isError": True, "content": []}, True),
        ({"isError": False}, False),
        (types.SimpleNamespace(isError=True), True),
        ({"status": 500}, False),
        (types.SimpleNamespace(status=500), False),
        ("Error: no", False),
        (None, False),
        ([1], False),
        (UnrulyError(), False),
    ],
)
def test_only_what_is_flagged_is_a_failure(value: Any, *, is_failure: bool) -> None:
    assert (failure_in_result(value, NOW_NS) is not None) is is_failure


# --- real failures on the wire ---------------------------------------------------------------------------------------


class Broken(BaseHTTPRequestHandler):
    """Fails as the path says."""

    def do_GET(self) -> None:
        match self.path:
            case "/partial":
                self.send_response(200)
                self.send_header("content-length", "100")
                self.end_headers()
                self.wfile.write(b"{")
            case "/reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.server.shutdown_request = self.server.close_request  # type: ignore[method-assign] # no FIN before
            case "/hang":
                self.server.wait()  # type: ignore[attr-defined]
            case "/text":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"not json")
            case "/busy":
                self.send_response(503)
                self.send_header("retry-after", "2")
                self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        pass


class BrokenServer(HTTPServer):
    timeout = 20

    def wait(self) -> None:
        """Say nothing for longer than the client listens."""
        with socket.socket() as quiet:
            quiet.bind(("127.0.0.1", 0))
            quiet.listen()
            quiet.settimeout(0.5)
            with pytest.raises(TimeoutError):
                quiet.accept()


@pytest.fixture
def broken() -> Iterator[Callable[[str], str]]:
    with BrokenServer(("127.0.0.1", 0), Broken) as server:
        thread = Thread(target=server.handle_request)  # one request, then it is over
        thread.start()
        yield lambda path: f"http://127.0.0.1:{server.server_port}{path}"
        thread.join()


@pytest.mark.parametrize(
    ("path", "status", "error_class"),
    [("/empty", "error", "empty_reply"), ("/partial", "error", "partial_body"), ("/reset", "error", "reset"),
     ("/hang", "timeout", "timeout"), ("/text", "error", "malformed_json"), ("/busy", "error", "server_error")],
)  # fmt: skip
def test_what_httpx_says_of_real_failures(
    path: str, status: str, error_class: str, broken: Callable[[str], str]
) -> None:
    with httpx.Client(timeout=0.2, trust_env=False) as client, pytest.raises(Exception) as caught:  # noqa: PT011
        client.get(broken(path)).raise_for_status().json()
    found = classify(caught.value, NOW_NS)
    assert (found.status, found.error_class) == (status, error_class)
    if path == "/busy":
        assert (found.http_status, found.owed_ms) == (503, 2000.0)


def test_what_httpx_says_where_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        with httpx.Client(timeout=2, trust_env=False) as client, pytest.raises(httpx.ConnectError) as caught:
            client.get(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert classify(caught.value, NOW_NS) == Failure("error", "connect", sent=False)


def test_what_httpx_says_of_an_unknown_host() -> None:
    with httpx.Client(timeout=5, trust_env=False) as client, pytest.raises(httpx.ConnectError) as caught:
        client.get("http://no-such-host.invalid/")
    assert classify(caught.value, NOW_NS) == Failure("error", "dns", sent=False)


def test_a_value_whose_redaction_takes_too_long_is_not_recorded_and_the_agent_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("goldentrace.codec.patterns.MAX_SECONDS", 0.05)
    monkeypatch.setenv("GOLDENTRACE_RECORD", '{"redact": {"rules": [{"name": "own", "pattern": "(a+)+$"}]}}')
    with run.recorder() as recorder:

        @recorder.tool()
        def echo(text: str) -> str:
            return text

        assert echo("a" * 5000 + "!") == "a" * 5000 + "!"
    assert "takes over" in capfd.readouterr().err
    assert "aaaa" not in run.path.read_text()
    assert run.trace.incomplete is not None
