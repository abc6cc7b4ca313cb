"""One arrival of a tool call: who asked, what it met, what it came to. Plain records; nothing here acts."""

from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final

from goldentrace.faults.answer import Answer
from goldentrace.faults.ledger import Entry
from goldentrace.faults.plan import Step, Tool
from goldentrace.model.event import ErrorClass, Origin, Status

if TYPE_CHECKING:
    from goldentrace.faults.runs import Run

RUN_HEADER: Final = "x-goldentrace-run"
CALL_HEADER: Final = "x-goldentrace-call-id"
ATTEMPT_HEADER: Final = "x-goldentrace-attempt"
ORIGIN_HEADER: Final = "x-goldentrace-origin"
_ORIGINS: Final[dict[str, Origin]] = {
    "model": "model", "harness": "harness", "sdk": "sdk", "transport": "transport",
}  # fmt: skip
MAX_ID_CHARS: Final = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """What the request says about itself. retries: how often an SDK says that it has sent this before, None if it does
    not say; credential: compared, never written; key_header: name -> value of every header, for idempotency."""

    transport: str
    connection: int
    headers: dict[str, str]
    call_id: str | None = None
    attempt: int | None = None
    origin: Origin | None = None
    retries: int | None = None

    @property
    def credential(self) -> str | None:
        return self.headers.get("authorization")


def caller(transport: str, connection: int, headers: dict[str, str], meta: dict[str, Any] | None = None) -> Caller:
    """Return who asks. headers: lower-case names; meta: `_meta` of an MCP request, `goldentrace/call_id` and the
    like."""
    meta = meta or {}
    call_id = meta.get("goldentrace/call_id", headers.get(CALL_HEADER))
    attempt = _whole(meta.get("goldentrace/attempt", headers.get(ATTEMPT_HEADER)))
    return Caller(
        transport, connection, headers,
        call_id=call_id if isinstance(call_id, str) and 0 < len(call_id) <= MAX_ID_CHARS else None,
        attempt=attempt if attempt is not None and attempt >= 1 else None,
        origin=_ORIGINS.get(str(meta.get("goldentrace/origin", headers.get(ORIGIN_HEADER, "")))),
        retries=_retries(headers),
    )  # fmt: skip


def _retries(headers: dict[str, str]) -> int | None:
    """How often the SDK has sent this before: `x-stainless-retry-count` (OpenAI, Anthropic and other generated SDKs)
    counts from 0, the attempt in `amz-sdk-request: attempt=2; max=3` (AWS SDKs) from 1."""
    counted = _whole(headers.get("x-stainless-retry-count"))
    if counted is not None:
        return counted
    for part in headers.get("amz-sdk-request", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == "attempt" and (attempt := _whole(value)) is not None:
            return max(attempt - 1, 0)
    return None


def _whole(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    return None


class Call:
    """One arrival. Filled on its way through the engine.

    n: which call of its tool (1-based); step: what it meets; answer: what it is answered with, once known; key: its
    idempotency key; digest: of its canonical arguments; entry: its place in the idempotency store.
    """

    __slots__ = (
        "answer",
        "args",
        "args_raw",
        "attempt",
        "call_id",
        "caller",
        "digest",
        "entry",
        "has_arrived",
        "has_waited",
        "is_cancelled",
        "is_cancelled_by_leaving",
        "is_committed",
        "is_drawn",
        "is_finished",
        "is_replay",
        "is_unread",
        "key",
        "n",
        "op",
        "run",
        "started_ns",
        "step",
        "tool",
    )  # fmt: skip

    def __init__(self, run: "Run", tool: Tool, n: int, step: Step, who: Caller, *, is_drawn: bool = False) -> None:
        self.run = run
        self.tool = tool
        self.n = n
        self.step = step
        self.caller = who
        self.is_drawn = is_drawn
        self.started_ns = monotonic_ns()
        self.call_id = ""
        self.attempt = 1
        self.args: Any = None
        self.args_raw: str | None = None
        self.has_arrived = False
        self.has_waited = False
        self.digest = ""
        self.key: str | None = None
        self.entry: Entry | None = None
        self.answer: Answer | None = None
        self.op: Operation | None = None
        self.is_cancelled = False
        self.is_cancelled_by_leaving = False
        self.is_committed = False
        self.is_replay = False
        self.is_unread = False
        self.is_finished = False

    def elapsed_ms(self) -> float:
        return round((monotonic_ns() - self.started_ns) / 1e6, 3)


@dataclass(slots=True)
class Operation:
    """The attempts of one operation, as far as the server can join them."""

    op_id: str
    attempts: int = 0
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to, seen from the server.

    result: what the client was given whole, None for nothing; bytes_sent: of the response, at most; is_gone: the client
    closed before the response was complete; has_result: was there a whole body?
    """

    status: Status
    error_class: ErrorClass | None = None
    http_status: int | None = None
    has_result: bool = False
    result: Any = None
    bytes_sent: int = 0
    is_gone: bool = False
