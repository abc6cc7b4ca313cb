"""Which provider's API a logged exchange belongs to. Must not know how a log keeps its exchanges."""

from collections.abc import Mapping
from typing import Any, Final

from goldentrace.sources import anthropic_messages, httpbody, openai_chat, openai_responses
from goldentrace.sources.dialect import Dialect, Message
from goldentrace.sources.requestlog import Exchange
from goldentrace.sources.shapes import as_object, as_objects

_PATHS: Final = (
    ("/chat/completions", openai_chat.DIALECT),
    ("/responses", openai_responses.DIALECT),
    ("/messages", anthropic_messages.DIALECT),
)
DIALECTS: Final = (openai_responses.DIALECT, anthropic_messages.DIALECT, openai_chat.DIALECT)


def dialect_of(url: str, request: Message, response: Any) -> Dialect | None:
    """Return the dialect of an exchange, None where it is no request to a model.

    The path decides, together with what was sent: gateways keep the paths of the API that they stand in for.
    """
    path = url.partition("?")[0].rstrip("/")
    for ending, dialect in _PATHS:
        if path.endswith(ending) and any(key in request for key in (*dialect.list_keys, "input")):
            return dialect
    parts = as_objects(response) or as_objects([response])
    for dialect in DIALECTS:
        if any(dialect.is_response(part) or dialect.is_event(part) for part in parts):
            return dialect
    return None


def read_exchange(
    url: str, request_body: Any, response_body: Any, *, request_headers: Mapping[str, Any] | None = None,
    response_headers: Mapping[str, Any] | None = None, is_base64: bool = False, **about: Any,
) -> Exchange | None:  # fmt: skip
    """Return an HTTP exchange as an Exchange, None where it is no request to a model.

    Bodies: text, bytes or parsed JSON; is_base64: of the response's body; about: status, started_ts, ended_ts, line.
    """
    request = as_object(httpbody.read_body(request_body, request_headers))
    response = httpbody.read_body(response_body, response_headers, is_base64=is_base64)
    dialect = dialect_of(url, request, response)
    if dialect is None:
        return None
    if isinstance(response, list):
        response = dialect.assemble(as_objects(response)) if dialect.assemble else None
    return Exchange(dialect, request, as_object(response) or None, **about)
