"""The Model Context Protocol by hand: JSON-RPC messages in, results and errors out, for both transports.

Written by hand because the SDK takes longer to import than this server to start, and would not let a result carry a
wrong id. Revisions up to 2025-11-25 open with `initialize`; 2026-07-28 has no handshake, an envelope in `_meta`
instead. This module must not read or write a stream. Source: the MCP specification of those revisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from goldentrace.codec.canonical import encode
from goldentrace.faults.answer import Answer
from goldentrace.faults.plan import Plan, Tool

MODERN: Final = "2026-07-28"
HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
TOOL_FAILED: Final = -32000
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
_SERVER: Final = {"name": "goldentrace-faults", "version": "1"}

HTTP_STATUS: Final = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}  # fmt: skip
"""Status of an error of 2026-07-28 over HTTP; earlier revisions answer 200."""

RequestId: TypeAlias = str | int | None


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message. kind `reply`: an answer to a question that this server never asks."""

    kind: Literal["request", "notification", "reply"]
    method: str
    request_id: RequestId
    params: dict[str, Any]
    is_modern: bool

    @property
    def meta(self) -> dict[str, Any]:
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}


class RpcError(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code: int, message: str, request_id: RequestId = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.request_id = request_id
        self.data = data

    def envelope(self) -> dict[str, Any]:
        return rpc_error(self.request_id, self.code, self.message, self.data)


def rpc_error(request_id: RequestId, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return an error response."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def read_message(value: Any) -> Message:
    """Return the message that a decoded JSON value is. Raises: RpcError."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "not one JSON-RPC 2.0 message")
    request_id = value.get("id")
    if "id" in value and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise RpcError(INVALID_REQUEST, "an id that is no string or integer")
    if "method" not in value and ("result" in value or "error" in value):
        return Message("reply", "", request_id, {}, is_modern=False)
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "no method, or params that are no object", request_id)
    meta = params.get("_meta")
    is_modern = isinstance(meta, dict) and _VERSION_KEY in meta
    return Message("request" if "id" in value else "notification", method, request_id, params, is_modern)


def check_modern(message: Message, plan: Plan, headers: Mapping[str, str] | None) -> None:
    """Check the envelope of a 2026-07-28 request, and over HTTP the headers that mirror it.

    headers: lower-case names, None for stdio. Raises: RpcError.
    """
    asked = message.meta.get(_VERSION_KEY)
    if _CAPABILITIES_KEY not in message.meta or not isinstance(asked, str):
        raise RpcError(INVALID_PARAMS, f"_meta lacks {_VERSION_KEY} or {_CAPABILITIES_KEY}", message.request_id)
    if headers is not None:
        mirrored = {"mcp-protocol-version": asked, "mcp-method": message.method}
        if message.method == "tools/call":
            mirrored["mcp-name"] = str(message.params.get("name"))
        for name, value in mirrored.items():
            if headers.get(name) != value:
                raise RpcError(HEADER_MISMATCH, f"the header {name} does not match the request", message.request_id)
    if asked != MODERN or plan.mcp_revision not in ("auto", MODERN):
        data = {"supported": supported(plan), "requested": asked}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", message.request_id, data)


def supported(plan: Plan) -> list[str]:
    """Return the revisions that the server speaks under a plan, oldest first."""
    revision = plan.mcp_revision
    if revision == MODERN:
        return [MODERN]
    if revision == "auto":
        return [*HANDSHAKE, MODERN]
    return list(HANDSHAKE[: HANDSHAKE.index(revision) + 1])


def reply_to(message: Message, plan: Plan) -> dict[str, Any]:
    """Return the result of any request but tools/call. Raises: RpcError."""
    if message.method == "initialize" and not message.is_modern:
        return _initialized(message, plan)
    if message.method == "ping" and not message.is_modern:
        return {}
    if message.method == "server/discover" and message.is_modern:
        return _modern({"supportedVersions": supported(plan), "capabilities": {"tools": {}}}, is_cacheable=True)
    if message.method == "tools/list":
        listing = {"tools": [_listed(tool) for tool in plan.tools.values()]}
        return _modern(listing, is_cacheable=True) if message.is_modern else listing
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: {message.method}", message.request_id)


def _initialized(message: Message, plan: Plan) -> dict[str, Any]:
    spoken = [version for version in supported(plan) if version != MODERN]
    asked = message.params.get("protocolVersion")
    if not spoken:
        data = {"supported": supported(plan), "requested": asked}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", message.request_id, data)
    version = asked if asked in spoken else spoken[-1]
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": _SERVER}


def _modern(result: dict[str, Any], *, is_cacheable: bool = False) -> dict[str, Any]:
    caching = {"ttlMs": 0, "cacheScope": "private"} if is_cacheable else {}
    return {**result, "resultType": "complete", **caching, "_meta": {_SERVER_KEY: _SERVER}}


def _listed(tool: Tool) -> dict[str, Any]:
    """One entry of tools/list; annotations only where the plan states them."""
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    hints: dict[str, Any] = {}
    if tool.access is not None:
        hints["readOnlyHint"] = tool.access == "read"
    if tool.is_destructive is not None:
        hints["destructiveHint"] = tool.is_destructive
    if tool.idempotency is not None:
        hints["idempotentHint"] = True
    entry: dict[str, Any] = {"name": tool.name, "inputSchema": {"type": "object", **schema}}
    if tool.description:
        entry["description"] = tool.description
    if tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    return {**entry, "annotations": hints} if hints else entry


def call_arguments(message: Message, plan: Plan) -> tuple[Tool | None, dict[str, Any]]:
    """Return the tool that tools/call names (None if the plan has none) and its arguments. Raises: RpcError."""
    name, arguments = message.params.get("name"), message.params.get("arguments", {})
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "tools/call without a name", message.request_id)
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments that are no object", message.request_id)
    return plan.tools.get(name), arguments


def call_envelope(message: Message, answer: Answer) -> dict[str, Any]:
    """Return the response to tools/call for an answer: a result, a result with `isError`, or a JSON-RPC error.

    A wait that is owed is carried as `retry_after_ms`, because headers do not reach an MCP client.
    """
    owed = {} if answer.owed_ms is None else {"retry_after_ms": answer.owed_ms}
    if answer.is_error and answer.mcp == "jsonrpc_error":
        detail = answer.value.get("error", {}) if isinstance(answer.value, dict) else {}
        text = detail.get("message", "the tool failed") if isinstance(detail, dict) else "the tool failed"
        data = {"status": answer.status, **owed, "body": answer.value}
        return rpc_error(message.request_id, TOOL_FAILED, str(text), data)
    value = {"status": answer.status, **owed, **_as_object(answer.value)} if answer.is_error else answer.value
    text = value if isinstance(value, str) else encode(value).decode("utf-8", "replace")
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": answer.is_error}
    if isinstance(value, dict) or (message.is_modern and value is not None):
        result["structuredContent"] = value
    return envelope(message, result)


def envelope(message: Message, result: dict[str, Any]) -> dict[str, Any]:
    """Return a success response, with what 2026-07-28 wants on every result."""
    if message.is_modern and "resultType" not in result:
        result = _modern(result)
    return {"jsonrpc": "2.0", "id": message.request_id, "result": result}


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"body": value}


def other_id(request_id: RequestId) -> RequestId:
    """Return an id that is not the request's, of the same type: what the fault `wrong_id` answers with."""
    return request_id + 1_000_000 if isinstance(request_id, int) else f"{request_id}-other"


def sse_body(payloads: list[bytes]) -> bytes:
    """Return messages as a stream of server-sent events."""
    return b"".join(b"event: message\r\ndata: " + payload + b"\r\n\r\n" for payload in payloads)
