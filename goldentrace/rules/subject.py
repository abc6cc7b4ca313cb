"""What a rule looks at: one trace, its operations, and the values behind them, decoded once.

A rule asks here instead of decoding for itself, so that all rules mean the same by equal arguments, by a result and by
what is declared of a tool. This module must not say that anything is wrong.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from goldentrace.codec.canonical import ELEMENT_DIGITS, JsonError, canonical, decode, digest
from goldentrace.model.event import ModelTurn, ToolCall, ToolResult
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt, Operation
from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace

MISSING = object()
"""A value that the source did not record."""


@dataclass(slots=False)
class Subject:
    """One trace under the rules.

    trace: as recorded; normal: its operations, in canonical order; profile: what is declared of tools; budgets: limits
    that are checked afterwards, name -> number or mapping (`budgets:` of the scenario); options: code -> the rule's
    options.
    """

    trace: Trace
    normal: NormalTrace
    profile: Profile
    budgets: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def operations(self) -> list[Operation]:
        """The operations in the order of their first calls, which is the order in which the model saw them."""
        return sorted(self.normal.operations, key=lambda operation: operation.first.call_index)

    def model_operations(self, *, succeeded: bool | None = None) -> Iterator[Operation]:
        """Yield the operations that the model asked for; succeeded: only those whose last attempt was ok, or was
        not."""
        for operation in self.operations:
            is_wanted = succeeded is None or (operation.last.status == "ok") == succeeded
            if operation.first.origin == "model" and is_wanted:
                yield operation

    def tool(self, name: str) -> Tool:
        """What is declared of a tool."""
        return self.profile.tool(name)

    def call(self, attempt: Attempt) -> ToolCall:
        """The recorded call of an attempt."""
        event = self.trace.events[attempt.call_index]
        assert isinstance(event, ToolCall)
        return event

    def result(self, attempt: Attempt) -> ToolResult | None:
        """The recorded result of an attempt, None where there is none."""
        event = self.trace.events[attempt.result_index] if attempt.result_index is not None else None
        return event if isinstance(event, ToolResult) else None

    def arguments(self, operation: Operation) -> Any:
        """The decoded arguments of the first attempt; {} where none were recorded, MISSING where they do not parse."""
        call = self.call(operation.first)
        data = bytes(call.args)
        if not data:
            return {} if call.args_raw is None else MISSING
        try:
            return decode(data)
        except JsonError:
            return MISSING

    def result_value(self, attempt: Attempt) -> Any:
        """The decoded result of an attempt, MISSING where the source left it out."""
        result = self.result(attempt)
        if result is None or not bytes(result.result):
            return MISSING
        try:
            return decode(result.result)
        except JsonError:
            return MISSING

    def arguments_key(self, operation: Operation) -> bytes:
        """The arguments as bytes that are equal where a reader sees the same call: key order does not count."""
        found = self._argument_keys.get(operation.first.call_index)
        if found is None:
            value = self.arguments(operation)
            call = self.call(operation.first)
            found = canonical(value) if value is not MISSING else b"raw:" + (call.args_raw or "").encode()
            self._argument_keys[operation.first.call_index] = found
        return found

    def semantic_key(self, operation: Operation) -> bytes:
        """As `arguments_key`, with 5 and "5" equal and strings trimmed."""
        found = self._semantic_keys.get(operation.first.call_index)
        if found is None:
            value = self.arguments(operation)
            found = canonical(semantic(value)) if value is not MISSING else self.arguments_key(operation)
            self._semantic_keys[operation.first.call_index] = found
        return found

    def result_digest(self, operation: Operation) -> str | None:
        """A digest of the last attempt's result, None where the source left it out."""
        index = operation.last.call_index
        if index not in self._result_digests:
            result = self.result(operation.last)
            if result is not None and not bytes(result.result):
                self._result_digests[index] = result.result_hash
            else:
                value = self.result_value(operation.last)
                self._result_digests[index] = None if value is MISSING else digest(canonical(value), 2 * ELEMENT_DIGITS)
        return self._result_digests[index]

    @cached_property
    def _argument_keys(self) -> dict[int, bytes]:
        return {}

    @cached_property
    def _semantic_keys(self) -> dict[int, bytes]:
        return {}

    @cached_property
    def _result_digests(self) -> dict[int, str | None]:
        return {}

    @cached_property
    def turns(self) -> list[tuple[int, ModelTurn]]:
        """The model's turns with the indexes of their events."""
        return [(index, event) for index, event in enumerate(self.trace.events) if isinstance(event, ModelTurn)]

    def line(self, index: int) -> int:
        """The 1-based line of an event."""
        return self.trace.line_of(index)

    @property
    def end_line(self) -> int:
        """The line of the last event."""
        return self.trace.line_of(len(self.trace.events) - 1)


def semantic(value: Any) -> Any:
    """Return a value in which numeric strings are numbers and strings are trimmed; case is not folded."""
    if isinstance(value, str):
        text = value.strip()
        try:
            return int(text)
        except ValueError:
            pass
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    if isinstance(value, dict):
        return {key: semantic(item) for key, item in value.items()}
    if isinstance(value, list):
        return [semantic(item) for item in value]
    return value
