"""Limits that are enforced while the agent runs: counted here, and stopped before one would be passed.

They come from the agent's own code and from the runner (GOLDENTRACE_LIMITS); of two, the lower one holds. Each process
counts for itself. This module must not write events; the recorder does, when it is told of a breach.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import msgspec

from goldentrace.errors import ConfigError, Where
from goldentrace.model.event import StopReason, Usage

LIMITS_VARIABLE: Final = "GOLDENTRACE_LIMITS"
DEFAULT_TOOL: Final = "default"

_Count = Annotated[int, msgspec.Meta(ge=0)] | None
_Amount = Annotated[float, msgspec.Meta(ge=0)] | None

STOP_REASONS: Final[dict[str, StopReason]] = {
    "max_tool_calls": "call_limit", "max_executions": "execution_limit", "max_attempts": "attempt_limit",
    "max_model_turns": "turn_limit", "max_wall_ms": "wall_clock_limit", "max_writes": "write_limit",
    "max_destructive": "destructive_limit", "max_tokens": "token_limit", "max_cost_usd": "cost_limit",
    "max_calls": "call_limit", "max_elapsed_ms": "wall_clock_limit",
}  # fmt: skip
"""What trace_end says after a limit fired; the last two are those of one tool."""


class LimitReached(BaseException):
    """An enforced limit would be passed; the agent has to stop.

    Not an Exception, so that an agent's `except Exception` around its tools, which turns errors into text for the
    model, does not swallow the stop (as pytest's and Python's own exits are not). limit: its name; value: what it would
    have become.
    """

    def __init__(self, limit: str, value: float, maximum: float, *, tool_name: str | None = None) -> None:
        about = f" for {tool_name}" if tool_name else ""
        super().__init__(f"limit reached{about}: {limit} is {maximum:g}, this would make it {value:g}")
        self.limit = limit
        self.value = value
        self.maximum = maximum
        self.tool_name = tool_name

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(LimitReached, tool_name=self.tool_name), (self.limit, self.value, self.maximum)

    @property
    def stop_reason(self) -> StopReason:
        """What trace_end gives as the reason."""
        return STOP_REASONS.get(self.limit, "unknown")


class ToolLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of one tool. max_calls: operations; max_elapsed_ms: from the first attempt of one operation."""

    max_calls: _Count = None
    max_elapsed_ms: _Amount = None


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None is no limit, 0 allows none.

    max_tool_calls: by the model, failed ones included; max_executions: every attempt, whoever asked; max_attempts: of
    one operation; max_writes, max_destructive: operations with that access; max_tokens: input and output together;
    per_tool: by tool name, `default` for the others.
    """

    max_tool_calls: _Count = None
    max_executions: _Count = None
    max_attempts: _Count = None
    max_model_turns: _Count = None
    max_wall_ms: _Amount = None
    max_writes: _Count = None
    max_destructive: _Count = None
    max_tokens: _Count = None
    max_cost_usd: _Amount = None
    per_tool: dict[str, ToolLimits] = {}

    def of_tool(self, name: str) -> ToolLimits:
        return self.per_tool.get(name) or self.per_tool.get(DEFAULT_TOOL) or _NO_TOOL_LIMITS

    @property
    def is_empty(self) -> bool:
        return self == _NO_LIMITS


_AnyLimits = TypeVar("_AnyLimits", Limits, ToolLimits)
_NO_TOOL_LIMITS: Final = ToolLimits()
_NO_LIMITS: Final = Limits()


def read_limits(given: Mapping[str, Any] | Limits | None, text: str | None) -> Limits:
    """Return the limits that hold. given: the agent's own; text: the runner's, JSON. Raises: ConfigError."""
    own = given if isinstance(given, Limits) else _convert(dict(given or {}), "limits")
    if not text:
        return own
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise _invalid(error, LIMITS_VARIABLE) from None
    return _stricter(own, _convert(value, LIMITS_VARIABLE))


def _convert(value: Any, name: str) -> Limits:
    try:
        return msgspec.convert(value, Limits)
    except msgspec.ValidationError as error:
        raise _invalid(error, name) from None


def _invalid(error: Exception, name: str) -> ConfigError:
    known = ", ".join([*(field for field in Limits.__struct_fields__ if field != "per_tool"), "per_tool"])
    text = str(error)
    return ConfigError(
        f"not valid limits: {text[:1].lower()}{text[1:]}", where=Where(name), next_step=f"the limits are {known}"
    )


def _stricter(one: Limits, other: Limits) -> Limits:
    tools = one.per_tool.keys() | other.per_tool.keys()
    merged = {name: _lower(one.of_tool(name), other.of_tool(name)) for name in sorted(tools)}
    return msgspec.structs.replace(_lower(one, other), per_tool=merged)


def _lower(one: _AnyLimits, other: _AnyLimits) -> _AnyLimits:
    """For each number the lower of two; None is no limit."""
    lower: dict[str, Any] = {}
    for name in one.__struct_fields__:
        if name != "per_tool":
            stated = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
            lower[name] = min(stated, default=None)
    return msgspec.structs.replace(one, **lower)


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt that is about to start. elapsed_ms: since its operation began; wall_ms: since the run began."""

    tool_name: str
    attempt: int
    is_by_model: bool
    is_write: bool
    is_destructive: bool
    elapsed_ms: float
    wall_ms: float


class Meter:
    """Counts against the limits. Each `take_…` counts one more, or raises LimitReached and counts nothing."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._calls_of_tool: Counter[str] = Counter()
        self._calls = self._executions = self._turns = self._writes = self._destructive = self._tokens = 0
        self._cost_usd = 0.0
        self.reset_lock()

    def reset_lock(self) -> None:
        """After a fork: the lock may have been held by a thread that is not here."""
        self._lock = threading.Lock()

    def take_turn(self, wall_ms: float) -> None:
        """Count a turn that is about to be asked for. Raises: LimitReached."""
        limits = self.limits
        with self._lock:
            _check("max_model_turns", self._turns + 1, limits.max_model_turns)
            _check("max_wall_ms", wall_ms, limits.max_wall_ms)
            self._turns += 1

    def take_usage(self, usage: Usage) -> None:
        """Count what a turn has used. It is known only afterwards, so it is counted first. Raises: LimitReached."""
        with self._lock:
            self._tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
            self._cost_usd += usage.cost_usd or 0
            _check("max_tokens", self._tokens, self.limits.max_tokens)
            _check("max_cost_usd", self._cost_usd, self.limits.max_cost_usd)

    def take_execution(self, execution: Execution) -> None:
        """Count an attempt that is about to start. Raises: LimitReached."""
        limits, tool = self.limits, execution.tool_name
        of_tool = limits.of_tool(tool)
        is_first = execution.attempt == 1
        by_model = int(is_first and execution.is_by_model)
        write, destructive = int(is_first and execution.is_write), int(is_first and execution.is_destructive)
        with self._lock:
            if is_first:
                _check("max_calls", self._calls_of_tool[tool] + 1, of_tool.max_calls, tool)
            if by_model:
                _check("max_tool_calls", self._calls + 1, limits.max_tool_calls)
            if write:
                _check("max_writes", self._writes + 1, limits.max_writes)
            if destructive:
                _check("max_destructive", self._destructive + 1, limits.max_destructive)
            _check("max_attempts", execution.attempt, limits.max_attempts, tool)
            _check("max_executions", self._executions + 1, limits.max_executions)
            _check("max_elapsed_ms", execution.elapsed_ms, of_tool.max_elapsed_ms, tool)
            _check("max_wall_ms", execution.wall_ms, limits.max_wall_ms)
            self._calls_of_tool[tool] += is_first
            self._calls += by_model
            self._writes += write
            self._destructive += destructive
            self._executions += 1

    def remaining_ms(self, tool_name: str, elapsed_ms: float, wall_ms: float) -> tuple[float, str] | None:
        """Return how long an attempt may still run and which limit says so; None where none does."""
        of_tool = self.limits.of_tool(tool_name)
        bounds = []
        if of_tool.max_elapsed_ms is not None:
            bounds.append((of_tool.max_elapsed_ms - elapsed_ms, "max_elapsed_ms"))
        if self.limits.max_wall_ms is not None:
            bounds.append((self.limits.max_wall_ms - wall_ms, "max_wall_ms"))
        return min(bounds, default=None)


def _check(name: str, value: float, maximum: float | None, tool_name: str | None = None) -> None:
    if maximum is not None and (value > maximum or maximum == 0):
        raise LimitReached(name, value, maximum, tool_name=tool_name)
