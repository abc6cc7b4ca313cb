"""What an exception or an error answer means, in the vocabulary of the format.

Exceptions of HTTP clients and SDKs are told by the names of their classes and by their attributes, so that none of
these libraries is imported or needed. The names are those of httpx 0.28, requests 2.32, urllib3 2, aiohttp 3.12, and
the standard library; what each client raises for which failure on the wire was measured. This module must not raise: an
exception that it cannot place is an error of the tool.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from goldentrace.model.event import ErrorClass, Status, error_class_of_status

MAX_CHAIN: Final = 8
"""How far causes of an exception are followed; real chains have two or three links."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt ended other than well. owed_ms: what Retry-After asks for, from receipt; sent: did the request
    leave?"""

    status: Status = "error"
    error_class: ErrorClass = "tool_error"
    http_status: int | None = None
    owed_ms: float | None = None
    sent: bool | None = None


CANCELLED: Final = Failure("cancelled", "cancelled")
_TIMEOUT: Final = Failure("timeout", "timeout")
_TIMEOUT_UNSENT: Final = Failure("timeout", "timeout", sent=False)
_CONNECT: Final = Failure(error_class="connect", sent=False)
_DNS: Final = Failure(error_class="dns", sent=False)
_RESET: Final = Failure(error_class="reset")
_EMPTY: Final = Failure(error_class="empty_reply")
_PARTIAL: Final = Failure(error_class="partial_body")
_PROTOCOL: Final = Failure(error_class="protocol")
_MALFORMED: Final = Failure(error_class="malformed_json")
_SCHEMA: Final = Failure(error_class="schema")

_BY_CLASS: Final[dict[str, Failure]] = {
    "asyncio.CancelledError": CANCELLED, "concurrent.CancelledError": CANCELLED, "trio.Cancelled": CANCELLED,
    "goldentrace.LimitReached": CANCELLED, "builtins.KeyboardInterrupt": CANCELLED, "builtins.GeneratorExit": CANCELLED,
    "builtins.TimeoutError": _TIMEOUT, "concurrent.TimeoutError": _TIMEOUT,
    "subprocess.TimeoutExpired": _TIMEOUT, "trio.TooSlowError": _TIMEOUT,
    "builtins.ConnectionRefusedError": _CONNECT, "socket.gaierror": _DNS, "socket.herror": _DNS,
    "builtins.ConnectionResetError": _RESET, "builtins.ConnectionAbortedError": _RESET,
    "builtins.BrokenPipeError": _RESET,
    "builtins.FileNotFoundError": Failure(error_class="not_found"),
    "builtins.UnicodeDecodeError": _MALFORMED, "json.JSONDecodeError": _MALFORMED,
    "ssl.SSLCertVerificationError": _CONNECT, "ssl.SSLError": _PROTOCOL,
    "http.RemoteDisconnected": _EMPTY, "http.IncompleteRead": _PARTIAL, "http.HTTPException": _PROTOCOL,
    "httpx.ConnectTimeout": _TIMEOUT_UNSENT, "httpx.PoolTimeout": _TIMEOUT_UNSENT, "httpx.TimeoutException": _TIMEOUT,
    "httpx.ConnectError": _CONNECT, "httpx.NetworkError": _RESET, "httpx.ProtocolError": _PROTOCOL,
    "httpx.LocalProtocolError": replace(_PROTOCOL, sent=False), "httpx.DecodingError": _PROTOCOL,
    "requests.ConnectTimeout": _TIMEOUT_UNSENT, "requests.Timeout": _TIMEOUT, "requests.SSLError": _CONNECT,
    "requests.ChunkedEncodingError": _PARTIAL, "requests.ContentDecodingError": _PROTOCOL,
    "requests.ConnectionError": _RESET, "urllib3.NameResolutionError": _DNS,
    "urllib3.ConnectTimeoutError": _TIMEOUT_UNSENT, "urllib3.TimeoutError": _TIMEOUT,
    "urllib3.NewConnectionError": _CONNECT, "urllib3.IncompleteRead": _PARTIAL, "urllib3.InvalidChunkLength": _PROTOCOL,
    "urllib3.DecodeError": _PROTOCOL, "urllib3.SSLError": _CONNECT, "urllib3.ProtocolError": _RESET,
    "aiohttp.ConnectionTimeoutError": _TIMEOUT_UNSENT, "aiohttp.ServerTimeoutError": _TIMEOUT,
    "aiohttp.ClientConnectorDNSError": _DNS, "aiohttp.ClientConnectorError": _CONNECT,
    "aiohttp.ServerDisconnectedError": _EMPTY, "aiohttp.ClientOSError": _RESET, "aiohttp.ClientPayloadError": _PARTIAL,
    "aiohttp.ContentLengthError": _PARTIAL, "aiohttp.ContentEncodingError": _PROTOCOL,
    "aiohttp.ContentTypeError": _MALFORMED, "aiohttp.ClientResponseError": _PROTOCOL,
    "openai.APITimeoutError": _TIMEOUT, "anthropic.APITimeoutError": _TIMEOUT,
    "pydantic.ValidationError": _SCHEMA, "pydantic_core.ValidationError": _SCHEMA,
    "jsonschema.ValidationError": _SCHEMA, "msgspec.ValidationError": _SCHEMA, "msgspec.DecodeError": _MALFORMED,
}  # fmt: skip
"""Top package and class name -> what it means. Of an exception's bases the nearest one that is listed decides."""

_LOOKED_INTO: Final = frozenset({
    "requests.ConnectionError", "requests.ChunkedEncodingError", "urllib3.ProtocolError", "httpx.ConnectError",
    "httpx.NetworkError", "aiohttp.ClientPayloadError",
})  # fmt: skip
"""Wrappers whose inner exception says more than they do: requests raises ConnectionError for a hang after the headers,
for a reset, an empty reply, a refused connection and an unknown host alike."""

_BY_PHRASE: Final = {
    "httpx.RemoteProtocolError": (
        ("without sending a response", _EMPTY),
        ("incomplete", _PARTIAL),
        ("peer closed", _PARTIAL),
    ),
    "urllib3.ProtocolError": (("IncompleteRead", _PARTIAL), ("InvalidChunkLength", _PROTOCOL)),
}
"""Where one class stands for several failures and only its text tells them apart."""


def classify(error: BaseException, now_ns: int) -> Failure:
    """Return what an exception means. now_ns: wall clock at its receipt, which Retry-After counts from."""
    with contextlib.suppress(Exception):  # properties and __str__ of foreign exceptions are foreign code
        return _classify(error, now_ns)
    return Failure()


def _classify(error: BaseException, now_ns: int) -> Failure:
    http_status, headers = _http_of(error)
    if http_status is not None and http_status >= 400:
        return http_failure(http_status, headers, now_ns)
    found: Failure | None = None
    for inner in chain(error):
        names = _names(inner)
        text = str(inner)
        for name in names:
            for phrase, meaning in _BY_PHRASE.get(name, ()):
                if phrase in text:
                    return meaning
        named = next((_BY_CLASS[name] for name in names if name in _BY_CLASS), None)
        found = named or found
        if named is not None and not _LOOKED_INTO.intersection(names):
            break
    return replace(found or Failure(), http_status=http_status)


def http_failure(status: int, headers: Mapping[str, Any] | None, now_ns: int) -> Failure:
    """Return what an HTTP error status means (RFC 9110, section 15). status: 400 to 599."""
    owed_ms = owed_wait_ms(headers, now_ns) if headers is not None else None
    return Failure("error", error_class_of_status(status) or "unknown", status, owed_ms, sent=True)


def failure_in_result(value: Any, now_ns: int) -> Failure | None:
    """Return the failure that a returned value is: an HTTP response with an error status, an MCP result flagged as
    one."""
    kind = type(value)
    if kind is str or value is None:
        return None
    if isinstance(value, Mapping):
        return Failure() if value.get("isError") is True else None
    with contextlib.suppress(Exception):  # foreign properties
        status, headers = _status_in(value), _headers_of(value)
        if status is not None and headers is not None:
            return http_failure(status, headers, now_ns) if status >= 400 else None
        if getattr(value, "isError", None) is True or getattr(value, "is_error", None) is True:
            return Failure()
    return None


def owed_wait_ms(headers: Mapping[str, Any], now_ns: int) -> float | None:
    """Return the wait in ms that a response asks for, counted from its receipt; None where it asks for none that is
    valid.

    `retry-after-ms` first, as the OpenAI and Anthropic SDKs do; then Retry-After in seconds or as a date (RFC 9110,
    section 10.2.3). Junk, a negative number and a doubled header count as none; a date that is past owes 0.
    """
    milliseconds = _header(headers, "retry-after-ms")
    if milliseconds is not None and (number := _number(milliseconds)) is not None:
        return number
    text = _header(headers, "retry-after")
    if text is None:
        return None
    if (seconds := _number(text)) is not None:
        return seconds * 1000
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, round((date - moment).total_seconds() * 1000, 3))


def _number(text: str) -> float | None:
    """Digits with at most one point: what the wire allows for a duration, and nothing else that float() takes."""
    digits = text.strip()
    return float(digits) if digits.isascii() and digits.replace(".", "", 1).isdigit() and len(digits) < 16 else None


def _header(headers: Mapping[str, Any], name: str) -> str | None:
    """One header, by any spelling; None where it is missing or no text."""
    value = headers.get(name)
    if value is None:
        value = next((item for key, item in headers.items() if str(key).lower() == name), None)
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what it wraps, nearest first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < MAX_CHAIN:
        seen.add(id(current))
        yield current
        inner = getattr(current, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((item for item in reversed(current.args) if isinstance(item, BaseException)), None)
        current = inner or current.__cause__ or _context_of(current)


def _context_of(error: BaseException) -> BaseException | None:
    """What was being handled when a library's or the agent's own error was raised. An error of the language itself
    (KeyError, TypeError) is a slip in the handler and stands for nothing that came before it."""
    is_own = type(error).__module__ != "builtins"
    return error.__context__ if is_own and not error.__suppress_context__ else None


def _names(error: BaseException) -> list[str]:
    """`package.Class` of the exception and its bases, nearest first; gaierror and its like are of `socket` and
    `_ssl`."""
    names = []
    for kind in type(error).__mro__:
        package = kind.__module__.partition(".")[0].removeprefix("_")
        names.append(f"{package}.{kind.__name__}")
    return names


def _http_of(error: BaseException) -> tuple[int | None, Mapping[str, Any] | None]:
    if error.__cause__ is not None and "aiohttp.HttpProcessingError" in _names(error.__cause__):
        return None, None  # aiohttp gives a reply that is no HTTP the status 400, which nobody sent
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        metadata = response.get("ResponseMetadata")
        if isinstance(metadata, Mapping):
            status = metadata.get("HTTPStatusCode")
            headers = metadata.get("HTTPHeaders")
            return status if isinstance(status, int) else None, headers if isinstance(headers, Mapping) else None
    for source in (response, error) if not isinstance(error, SystemExit) else ():
        status = _status_in(source)
        if status is not None:
            return status, _headers_of(source) or _headers_of(error)
    return None, None


def _status_in(source: Any) -> int | None:
    for name in ("status_code", "status", "http_status", "code"):
        value = getattr(source, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return int(value)
    return None


def _headers_of(source: Any) -> Mapping[str, Any] | None:
    headers = getattr(source, "headers", None)
    return headers if callable(getattr(headers, "get", None)) and callable(getattr(headers, "items", None)) else None
