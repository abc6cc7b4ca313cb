"""What a span means to a trace, whatever wrote it: a response of a model, a run of a tool or of an agent, or neither.

The readers of span formats turn their spans into steps; `steptrace` turns the steps of one trace into events. Must not
know any format.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from goldentrace.model.event import ErrorClass, Status, Usage, error_class_of_status
from goldentrace.sources import clock
from goldentrace.sources.shapes import as_text
from goldentrace.sources.transcript import Answered, Called, Item, Said

Kind: TypeAlias = Literal["model", "tool", "agent", "other"]

NS_PER_S: Final = 10**9
PROMPT_ROLES: Final = frozenset({"system", "user", "developer"})
_UNITS: Final = ((10**17, 1), (10**14, 10**3), (10**11, 10**6), (0, NS_PER_S))
"""(least number, ns per unit): an epoch of nano-, micro-, milliseconds or seconds; they cannot be confused for any date
from 1973 to 5138.
"""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_ERROR_WORDS: Final[tuple[tuple[str, ErrorClass], ...]] = (
    ("timeout", "timeout"), ("timedout", "timeout"), ("ratelimit", "rate_limited"), ("toomanyrequests", "rate_limited"),
    ("connectionreset", "reset"), ("connectionrefused", "connect"), ("connecterror", "connect"),
    ("connectionerror", "connect"), ("gaierror", "dns"), ("validationerror", "schema"),
    ("jsondecode", "malformed_json"),
    ("authentication", "auth"), ("unauthorized", "auth"), ("permission", "denied"), ("denied", "denied"),
    ("notfound", "not_found"), ("cancelled", "cancelled"), ("canceled", "cancelled"), ("conflict", "conflict"),
    ("badrequest", "bad_request"), ("internalserver", "server_error"),
)  # fmt: skip
"""Words in the names of exception types, in any library's spelling, lower case without separators."""
_STATUSES: Final[dict[ErrorClass, Status]] = {"timeout": "timeout", "cancelled": "cancelled", "denied": "denied"}


@dataclass(slots=True)
class Step:
    """One span. started_ns, ended_ns: since 1970; a step without an end had none when the file was written.

    of a model: model, finish_reason, usage, sent (the request, history and all), got (the response);
    of a tool: called and, where it ended, answered;
    agent: the name of the agent, of an agent or as another span states it;
    failure: what went wrong, None where nothing did;
    is_guess: stands for a model's response only where no better span of the trace does.
    """

    kind: Kind
    step_id: str
    parent_id: str | None
    name: str
    started_ns: int | None = None
    ended_ns: int | None = None
    line: int | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    sent: list[Item] = field(default_factory=list)
    got: list[Item] = field(default_factory=list)
    called: Called = field(default_factory=lambda: Called(None))
    answered: Answered | None = None
    agent: str | None = None
    failure: str | None = None
    is_guess: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


class History:
    """What the requests of one trace say, held once: every request sends all of it again.

    Of a request only what users and the system said and the results are kept; what the model said and called is known
    from its responses.
    """

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], Said] = {}
        self._answers: dict[str, Answered] = {}

    def keep(self, step: Step) -> Step:
        """Return the step with its request reduced."""
        kept: list[Item] = []
        for item in step.sent:
            if isinstance(item, Said) and item.role in PROMPT_ROLES:
                kept.append(self._said.setdefault((item.role, item.text), item))
            elif isinstance(item, Answered) and item.call_id is not None:
                kept.append(self._answers.setdefault(item.call_id, item))
        step.sent = kept
        return step


def nanoseconds(value: Any) -> int | None:
    """Return a time as ns since 1970: ISO 8601, or a number (or digits) of s, ms, µs or ns; None where it is none or 0.

    ISO 8601 is read to the microsecond.
    """
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) < 30:
            value = int(text)
        else:
            moment = clock.utc(value)
            if moment is None:
                return None
            passed = datetime.fromisoformat(moment) - _EPOCH
            micros = (passed.days * 86_400 + passed.seconds) * 10**6 + passed.microseconds
            return micros * 1000 if micros > 0 else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 10**21:
        return None
    factor = next(factor for least, factor in _UNITS if value >= least)
    return int(value * factor) if isinstance(value, float) else value * factor


def timestamp(moment_ns: int | None) -> str | None:
    """Return ns since 1970 as RFC 3339."""
    return None if moment_ns is None else clock.utc_from_epoch(moment_ns, per_second=NS_PER_S)


def failure_class(kind: Any, http_status: int | None = None) -> tuple[Status, ErrorClass]:
    """Return (status, class) of a failure by the name of its exception or error type, or by its HTTP status."""
    if http_status is not None and http_status >= 400:
        named = error_class_of_status(http_status) or "unknown"
        return _STATUSES.get(named, "error"), named
    text = as_text(kind)
    if text is not None:
        if text.isascii() and text.isdigit() and len(text) == 3:
            return failure_class(None, int(text))
        word = text.replace("_", "").replace("-", "").replace(" ", "").lower()
        for part, named in _ERROR_WORDS:
            if part in word:
                return _STATUSES.get(named, "error"), named
    return "error", "tool_error"
