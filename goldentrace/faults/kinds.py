"""The faults by name: where in a call each may strike, what may be set about it, which transports can show it.

One table, so that the plan's checks, its JSON Schema, the wire and the journal cannot disagree. This module must not do
anything to a connection.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from goldentrace.model.event import ErrorClass, Status

Phase: TypeAlias = Literal["before_read", "before_commit", "after_commit", "mid_headers", "mid_body", "after_response"]
PHASES: Final[tuple[Phase, ...]] = (
    "before_read", "before_commit", "after_commit", "mid_headers", "mid_body", "after_response",
)  # fmt: skip
"""In the order in which a call passes them. From `after_commit` on, the effect stands in the ledger."""

Transport: TypeAlias = Literal["http", "mcp_http", "stdio"]
HTTP: Final = "http"
MCP_HTTP: Final = "mcp_http"
STDIO: Final = "stdio"
_SOCKET: Final[frozenset[Transport]] = frozenset((HTTP, MCP_HTTP))
_ALL: Final[frozenset[Transport]] = frozenset((HTTP, MCP_HTTP, STDIO))
_MCP: Final[frozenset[Transport]] = frozenset((MCP_HTTP, STDIO))

_STATUS_PARAMS: Final = (
    "status", "headers", "retry_after", "retry_after_ms", "rate_limit", "body", "mcp", "saved", "delay_ms",
)  # fmt: skip
_LATENCY: Final = ("delay_ms", "uniform_ms", "lognormal_ms")


@dataclass(frozen=True, slots=True)
class Kind:
    """One fault.

    phases: allowed ones, the default first; params: keys of a step beyond fault, phase and times; status and
    error_class: what the call came to, seen from the server (None: as the answer's status says).
    """

    name: str
    phases: tuple[Phase, ...]
    params: tuple[str, ...] = ()
    status: Status | None = "error"
    error_class: ErrorClass | None = None
    transports: frozenset[Transport] = _SOCKET
    needs: tuple[str, ...] = ()


_BEFORE_OR_AFTER: Final[tuple[Phase, ...]] = ("before_commit", "before_read", "after_commit")
_ANY_POINT: Final[tuple[Phase, ...]] = (*_BEFORE_OR_AFTER, "mid_headers", "mid_body")

_TABLE: Final = (
    Kind("none", ("after_commit",), ("result",), None, None, _ALL),
    Kind("hang", _ANY_POINT, ("duration_ms",), "timeout", "timeout", _ALL),
    Kind("slow", _ANY_POINT, (*_LATENCY, "on_disconnect", "result"), None, None, _ALL),
    Kind("drip", ("mid_body", "mid_headers"), ("bytes_per_second", "result"), None, None, _ALL, ("bytes_per_second",)),
    Kind("status", _BEFORE_OR_AFTER, _STATUS_PARAMS, "error", None, _ALL, ("status",)),
    Kind("auth_expired", ("before_commit", "before_read"), ("sticky", "mcp"), "error", "auth", _ALL),
    Kind("denied", ("before_commit", "before_read"), ("mcp",), "denied", "denied", _ALL),
    Kind("malformed_json", ("after_commit",), ("result",), "error", "malformed_json", _ALL),
    Kind("schema_drift", ("after_commit",), ("drop", "rename", "retype", "add", "result"), "error", "schema", _ALL),
    Kind("truncated_page", ("after_commit",), ("keep", "is_silent", "result"), None, None, _ALL),
    Kind("empty_reply", _BEFORE_OR_AFTER, (), "error", "empty_reply"),
    Kind("reset", (*_ANY_POINT, "after_response"), ("sent_bytes",), "error", "reset"),
    Kind("reset_mid_body", ("mid_body",), ("sent_bytes",), "error", "reset"),
    Kind("partial_body", ("mid_body",), ("sent_bytes",), "error", "partial_body"),
    Kind("short_length", ("mid_body",), ("missing_bytes",), "error", "partial_body"),
    Kind("long_length", ("mid_body",), ("surplus_bytes", "duration_ms"), "timeout", "partial_body"),
    Kind("bad_chunk", ("mid_body",), (), "error", "protocol"),
    Kind("garbage", ("before_commit", "after_commit"), ("size_bytes",), "error", "protocol", _ALL),
    Kind("bad_utf8", ("mid_body",), ("result",), "error", "malformed_json", _ALL),
    Kind("bad_gzip", ("mid_body",), ("result",), "error", "protocol"),
    Kind("duplicate_header", ("before_commit", "after_commit"), ("status", "name", "values", "body"), None, None),
    Kind("slow_close", ("after_response",), ("delay_ms", "result"), None, None),
    Kind("stale_keepalive", ("after_response",), ("result",), None, None),
    Kind("wrong_id", ("after_commit",), (), "error", "protocol", _MCP),
    Kind("duplicate_result", ("after_commit",), (), None, None, _MCP),
    Kind("out_of_order", ("after_commit",), ("delay_ms",), None, None, _MCP),
    Kind("server_exit", ("before_commit", "after_commit"), (), "error", "reset", frozenset((STDIO,))),
)
KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in _TABLE}

CONNECT_KINDS: Final = ("connect_refused", "dns")
"""Faults that the server never sees: they strike in the client, before a request exists."""

RESULT_KINDS: Final = frozenset(
    ("none", "slow", "drip", "malformed_json", "schema_drift", "truncated_page", "bad_utf8", "bad_gzip", "slow_close",
     "stale_keepalive")
)  # fmt: skip
"""Faults that go together with the tool's own answer, which a step may then replace."""


def commits(fault: str, phase: Phase) -> bool:
    """Does a call that meets this fault in this phase still take effect? A slow call goes on, whatever its phase."""
    return fault == "slow" or PHASES.index(phase) >= PHASES.index("after_commit")
