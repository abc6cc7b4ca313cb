"""MCP over HTTP, as cassettes and HARs record it: requests as messages, replies as JSON or server-sent events.

Must not know what the messages mean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from goldentrace.sources import har, httpbody, vcr
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_count, as_list, as_object, as_objects, as_text

SESSION_HEADER: Final = "mcp-session-id"


@dataclass(frozen=True, slots=True)
class Packet:
    """Messages that were sent together. ts, reply_ts: when a request was sent, when a response came; session: its name;
    status: of HTTP, on the packet of the request.
    """

    messages: list[dict[str, Any]]
    is_from_client: bool | None
    ts: str | None = None
    reply_ts: str | None = None
    session: str | None = None
    line: int | None = None
    status: int | None = None


def http_packets(document: Document, *, is_har: bool) -> Iterator[Packet]:
    """Yield the messages of every exchange, request first. Raises: InputError where the recording cannot be read."""
    return _har_packets(document) if is_har else _cassette_packets(document)


def _har_packets(document: Document) -> Iterator[Packet]:
    for entry in har.entries(document):
        sent = httpbody.read_body(entry.request_body, entry.request_headers)
        got = httpbody.read_body(entry.response_body, entry.response_headers, is_base64=entry.is_base64)
        session = _session(entry.request_headers, entry.response_headers)
        yield from _packets(sent, got, session, entry.status, entry.started_ts, entry.ended_ts)


def _cassette_packets(document: Document) -> Iterator[Packet]:
    for interaction in as_objects(as_object(vcr.load(document)).get("interactions")):
        request, response = as_object(interaction.get("request")), as_object(interaction.get("response"))
        headers, reply_headers = as_object(request.get("headers")), as_object(response.get("headers"))
        sent = httpbody.read_body(vcr.body_of(request), headers)
        got = httpbody.read_body(vcr.body_of(response), reply_headers)
        status = as_count(as_object(response.get("status")).get("code")) or as_count(response.get("status"))
        yield from _packets(sent, got, _session(headers, reply_headers), status, None, None)


def _packets(
    sent: Any, got: Any, session: str | None, status: int | None, started_ts: str | None, ended_ts: str | None
) -> Iterator[Packet]:
    asked, told = _messages(sent), _messages(got)
    if asked:
        has_refused = status is not None and status >= 400 and not told
        yield Packet(asked, True, started_ts, ended_ts, session, None, status if has_refused else None)
    if told and (asked or not sent):  # a stream that the client opened with GET has replies without a request
        yield Packet(told, False, ended_ts, ended_ts, session)


def _messages(body: Any) -> list[dict[str, Any]]:
    return [each for each in (as_list(body) or [body]) if isinstance(each, dict) and "jsonrpc" in each]


def _session(*headers: Mapping[str, Any]) -> str | None:
    return next((name for each in headers if (name := as_text(httpbody.header(each, SESSION_HEADER)))), None)
