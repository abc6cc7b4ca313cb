"""HAR files of a browser or proxy: traffic with a model's API, put together to conversations.

Entries of other traffic are left out and counted. A HAR tells when a request began and how long it took, headers as a
list, and bodies as text, sometimes base64.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from goldentrace.errors import InputError
from goldentrace.model.trace import Trace
from goldentrace.sources import clock, providers
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.requestlog import Exchange, read_exchanges
from goldentrace.sources.shapes import as_count, as_number, as_object, as_objects, as_text
from goldentrace.sources.source import Source

NAME: Final = "har"
_RPC: Final = re.compile(rb"jsonrpc[\\\"']*\s*:\s*[\\\"']*2\.0")
_MODEL_PATH: Final = re.compile(rb"/(?:chat/completions|responses|messages)[\"'?\s]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One request with its response, as logged. request_body, response_body: text, None where not kept."""

    url: str
    request_headers: dict[str, str]
    request_body: str | None
    response_headers: dict[str, str]
    response_body: str | None
    is_base64: bool
    status: int | None
    started_ts: str | None
    ended_ts: str | None


def is_har(head: Head) -> bool:
    """Whether the one document is a HTTP archive."""
    log = as_object(head.value).get("log")
    return head.has_key("log") and isinstance(log, dict) and ("entries" in log or {"version", "creator"} <= log.keys())


def is_mcp_only(head: Head) -> bool:
    """Whether recorded HTTP holds messages of JSON-RPC, and no request to a model is in sight."""
    return _RPC.search(head.data) is not None and _MODEL_PATH.search(head.data) is None


def matches(head: Head) -> bool:
    """Whether it is a HTTP archive that is none of an MCP server."""
    return is_har(head) and not is_mcp_only(head)


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per conversation. Raises: InputError where no entry is traffic with a model."""
    logged = [_exchange(entry) for entry in entries(document)]
    exchanges = [exchange for exchange in logged if exchange is not None]
    if not exchanges:
        raise InputError(
            f"none of its {len(logged)} entries is traffic with a model", where=document.where(),
            next_step="record the requests to the model's API, with their bodies",
        )  # fmt: skip
    yield from read_exchanges(document, NAME, exchanges)


def entries(document: Document) -> Iterator[Entry]:
    """Yield the entries in their order. Raises: InputError for what is not JSON."""
    for each in as_objects(as_object(as_object(document.json()).get("log")).get("entries")):
        request, response = as_object(each.get("request")), as_object(each.get("response"))
        content = as_object(response.get("content"))
        started_ts = clock.utc(each.get("startedDateTime"))
        yield Entry(
            url=as_text(request.get("url")) or "",
            request_headers=_headers(request),
            request_body=as_text(as_object(request.get("postData")).get("text")),
            response_headers=_headers(response),
            response_body=as_text(content.get("text")),
            is_base64=content.get("encoding") == "base64",
            status=as_count(response.get("status")) or None,  # 0 is how a HAR says that nothing came back
            started_ts=started_ts,
            ended_ts=_after(started_ts, as_number(each.get("time"))),
        )


def _exchange(entry: Entry) -> Exchange | None:
    # Bodies stand in a HAR as they read, whatever the header says of their encoding on the wire.
    plain = {name: value for name, value in entry.response_headers.items() if name.lower() != "content-encoding"}
    return providers.read_exchange(
        entry.url, entry.request_body, entry.response_body, request_headers=entry.request_headers,
        response_headers=plain, is_base64=entry.is_base64, status=entry.status, started_ts=entry.started_ts,
        ended_ts=entry.ended_ts,
    )  # fmt: skip


def _headers(message: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for header in as_objects(message.get("headers")):
        name, value = as_text(header.get("name")), header.get("value")
        if name is not None and isinstance(value, str):
            found[name] = value
    return found


def _after(ts: str | None, milliseconds: float | None) -> str | None:
    """The end of a request; a HAR writes -1 where it does not know how long it took."""
    if ts is None or milliseconds is None or not 0 <= milliseconds < 1e12:
        return None
    return clock.utc((datetime.fromisoformat(ts) + timedelta(milliseconds=milliseconds)).isoformat())


SOURCE: Final = Source(NAME, "HAR: recorded traffic with the APIs of OpenAI and Anthropic", matches, read)
