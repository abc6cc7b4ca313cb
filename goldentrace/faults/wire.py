"""Responses as bytes on the wire, right ones and wrong ones: for each fault the moves that a connection makes.

Pure: bytes and moves out, nothing sent. HTTP libraries cannot lie about lengths, cut, drip or reset, which is why
responses are written by hand here.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from goldentrace.faults.answer import Headers, reason
from goldentrace.faults.plan import Step


@dataclass(frozen=True, slots=True)
class Send:
    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait, then go on even if the client has gone: what it missed it has missed."""

    delay_ms: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Wait until the client goes, at most `duration_ms` (None: as long as the plan allows)."""

    duration_ms: float | None


@dataclass(frozen=True, slots=True)
class Drip:
    """Send byte by byte, stop when the client goes."""

    data: bytes
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection in order (FIN)."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection (RST)."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Keep the connection until its next request, then break it unanswered."""


Move: TypeAlias = Send | Wait | Hang | Drip | Close | Reset | Stale

SETTLE_MS: Final = 20
"""Pause between data and a reset: a reset overtakes what the client has not read, and a cut in mid-body would be seen
as one before the head."""
JSON_TYPE: Final = "application/json"
SSE_TYPE: Final = "text/event-stream"
_GARBAGE_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole, right response. is_open_ended: no length, the close ends it."""

    status: int
    headers: Headers
    body: bytes
    content_type: str = JSON_TYPE
    is_open_ended: bool = False
    is_last: bool = False
    """Does the connection close afterwards?"""

    def head(self, *, length: int | None = None, is_chunked: bool = False, more: Headers = ()) -> bytes:
        """Return the status line and headers. length: Content-Length, None for the true one."""
        lines = [f"HTTP/1.1 {self.status} {reason(self.status)}", f"Content-Type: {self.content_type}"]
        if is_chunked:
            lines.append("Transfer-Encoding: chunked")
        elif not self.is_open_ended:
            lines.append(f"Content-Length: {len(self.body) if length is None else length}")
        lines.extend(f"{name}: {value}" for name, value in (*self.headers, *more))
        if self.is_last or self.is_open_ended:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def whole(self) -> bytes:
        return self.head() + self.body


def plain(reply: Reply) -> list[Move]:
    """Return the moves of a response without a fault."""
    moves: list[Move] = [Send(reply.whole())]
    return [*moves, Close()] if reply.is_last or reply.is_open_ended else moves


def unanswered(step: Step, dice: random.Random) -> list[Move]:
    """Return the moves of a fault that leaves a call without a response (engine.SILENT)."""
    if step.fault == "hang":
        return [Hang(step.params.get("duration_ms")), Close()]
    if step.fault == "reset":
        return [Reset()]
    if step.fault == "garbage":
        return [Send(garbage(step, dice)), Close()]
    return [Close()]


def moves(step: Step, reply: Reply, wait_ms: float, dice: random.Random) -> list[Move]:
    """Return the moves of a step whose call has a response. wait_ms: the drawn wait of `slow`."""
    fault, phase = step.fault, step.phase
    if fault in ("hang", "slow", "reset", "reset_mid_body", "drip"):
        return _in_time(step, reply, wait_ms)
    if fault in ("empty_reply", "garbage") and phase == "after_commit":
        return unanswered(step, dice)
    body = reply.body
    sent = step.params.get("sent_bytes", len(body) // 2)
    if fault == "partial_body":
        return [Send(reply.head() + body[:sent]), Close()]
    if fault == "short_length":
        length = max(0, len(body) - step.params.get("missing_bytes", (len(body) + 1) // 2))
        return _kept(reply, Send(reply.head(length=length) + body))
    if fault == "long_length":
        length = len(body) + step.params.get("surplus_bytes", 64)
        return [Send(reply.head(length=length) + body), Hang(step.params.get("duration_ms")), Close()]
    if fault == "bad_chunk":
        return [Send(reply.head(is_chunked=True) + b"zz\r\n" + body + b"\r\n0\r\n\r\n"), Close()]
    if fault == "bad_gzip":
        return _kept(reply, Send(reply.head(more=(("Content-Encoding", "gzip"),)) + body))
    if fault in ("malformed_json", "bad_utf8"):
        broken = broken_body(fault, body)
        return _kept(reply, Send(reply.head(length=len(broken)) + broken))
    if fault == "slow_close":
        last = Reply(reply.status, reply.headers, body, reply.content_type, is_open_ended=True)
        return [Send(last.whole()), Wait(step.params.get("delay_ms", 1000)), Close()]
    if fault == "stale_keepalive":
        return [Send(reply.whole()), Stale()]
    return plain(reply)


def _in_time(step: Step, reply: Reply, wait_ms: float) -> list[Move]:
    """Faults that strike at a point of the response: what is before it is sent first."""
    head, body = reply.head(), reply.body
    first, rest = {
        "mid_headers": (head[: len(head) // 2], head[len(head) // 2 :] + body),
        "mid_body": (
            head + body[: step.params.get("sent_bytes", len(body) // 2)],
            body[step.params.get("sent_bytes", len(body) // 2) :],
        ),
        "after_response": (head + body, b""),
    }.get(step.phase, (b"", head + body))
    before: list[Move] = [Send(first)] if first else []
    if step.fault == "hang":
        return [*before, Hang(step.params.get("duration_ms")), Close()]
    if step.fault in ("reset", "reset_mid_body"):
        return [*before, Wait(SETTLE_MS), Reset()] if before else [Reset()]
    if step.fault == "drip":
        part = (Send(head), body) if step.phase == "mid_body" else (None, head + body)
        start: list[Move] = [part[0]] if part[0] is not None else []
        return _ended(reply, [*start, Drip(part[1], step.params["bytes_per_second"])])
    if step.phase in ("before_read", "before_commit"):
        return plain(reply)  # it waited before the commit
    return _ended(reply, [*before, Wait(wait_ms), Send(rest)])


def _kept(reply: Reply, send: Send) -> list[Move]:
    return _ended(reply, [send])


def _ended(reply: Reply, done: Sequence[Move]) -> list[Move]:
    return [*done, Close()] if reply.is_last or reply.is_open_ended else list(done)


def broken_body(fault: str, body: bytes) -> bytes:
    """Return a body that is no JSON (`malformed_json`: a comma before the end) or no UTF-8 (`bad_utf8`)."""
    if fault == "malformed_json":
        return body[:-1] + b",}"
    if body.startswith(b"{") and len(body) > 2:
        return body[:-1] + b',"note":"\xff\xfe"}'
    return b'"\xff\xfe"'


def garbage(step: Step, dice: random.Random) -> bytes:
    """Return seeded bytes that are no HTTP: the first is never a letter."""
    size = step.params.get("size_bytes", _GARBAGE_BYTES)
    return bytes([0x16, *(int(dice.random() * 256) for _ in range(size - 1))])
