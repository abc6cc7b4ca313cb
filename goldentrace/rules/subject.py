"""What a rule looks at: one trace, its operations, and the values behind them, decoded once.

A rule asks here instead of decoding for itself, so that all rules mean the same by equal arguments, by a result and by
what is declared of a tool. This module must not say that anything is wrong.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from goldentrace.codec.canonical import ELEMENT_DIGITS, JsonError, canonical, decode, digest
from goldentrace.errors import ConfigError
from goldentrace.model.event import Access, Message, ModelTurn, ToolCall, ToolResult
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt, Operation
from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace
from goldentrace.rules.arguments import fill, is_key_name, semantic, without_ignored
from goldentrace.rules.ask import Ask, World, asks_of
from goldentrace.rules.catalogue import declared_tools, merged, open_sets
from goldentrace.rules.pairing import pair_results

MISSING = object()
"""A value that the source did not record."""


@dataclass(slots=False)
class Subject:
    """One trace under the rules.

    trace: as recorded; normal: its operations, in canonical order; profile: what is declared of tools; budgets: limits
    that are checked afterwards, name -> number or mapping (`budgets:` of the scenario); options: code -> the rule's
    options; claimed: index of a call's event -> code of the rule that has spoken about that repeat.
    """

    trace: Trace
    normal: NormalTrace
    profile: Profile
    budgets: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    claimed: dict[int, str] = field(default_factory=dict)

    # -- what happened ------------------------------------------------------------------------------------------------

    @cached_property
    def operations(self) -> list[Operation]:
        """The operations in the order of their first calls, which is the order in which the model saw them."""
        return sorted(self.normal.operations, key=lambda operation: operation.first.call_index)

    @cached_property
    def asks(self) -> list[Ask]:
        """Each time that the model asked for a call, in order, with the retries that others made of it."""
        return asks_of(self)

    @cached_property
    def world(self) -> World:
        """How many calls that may have changed something came before each event of a call."""
        return World(self)

    @cached_property
    def attempts(self) -> list[tuple[Operation, Attempt]]:
        """Every attempt of every operation, in the order of their calls."""
        found = [(operation, attempt) for operation in self.operations for attempt in operation.attempts]
        return sorted(found, key=lambda pair: pair[1].call_index)

    @cached_property
    def pairs(self) -> tuple[dict[int, int], list[int]]:
        """Which result answers which call, and the results that answer none; see `pair_results`."""
        return pair_results(self.trace)

    @cached_property
    def turns(self) -> list[tuple[int, ModelTurn]]:
        """The model's turns with the indexes of their events."""
        return [(index, event) for index, event in enumerate(self.trace.events) if isinstance(event, ModelTurn)]

    @cached_property
    def has_messages(self) -> bool:
        """Does the source record what the user said?"""
        return any(isinstance(e, Message) and e.text is not None and e.role == "user" for e in self.trace.events)

    def call(self, attempt: Attempt) -> ToolCall:
        """The recorded call of an attempt."""
        event = self.trace.events[attempt.call_index]
        assert isinstance(event, ToolCall)
        return event

    def result(self, attempt: Attempt) -> ToolResult | None:
        """The recorded result of an attempt, None where there is none."""
        event = self.trace.events[attempt.result_index] if attempt.result_index is not None else None
        return event if isinstance(event, ToolResult) else None

    def line(self, index: int) -> int:
        """The 1-based line of an event."""
        return self.trace.line_of(index)

    @property
    def end_line(self) -> int:
        """The line of the last event."""
        return self.trace.line_of(len(self.trace.events) - 1)

    # -- what is declared ---------------------------------------------------------------------------------------------

    @cached_property
    def catalogue(self) -> dict[str, Tool] | None:
        """The tools that the trace itself lists (`trace_start.attributes.tools`), None where it lists none."""
        return declared_tools((self.trace.start.attributes or {}).get("tools"))

    @cached_property
    def open_sets(self) -> list[str]:
        """The sets of tools that the trace's list holds without naming their tools."""
        return open_sets((self.trace.start.attributes or {}).get("tools"))

    def tool(self, name: str) -> Tool:
        """What is known of a tool: the profile's word, then that of the trace's own list."""
        found = self._tools.get(name)
        if found is None:
            found = self._tools[name] = merged(self.profile.tool(name), (self.catalogue or {}).get(name))
        return found

    def access(self, operation: Operation) -> Access | None:
        """Read or write, None where neither the recorder nor the profile nor the trace's list of tools says so."""
        return operation.access or self.tool(operation.tool_name).access

    def resource(self, operation: Operation) -> str | None:
        """What the call touches, as recorded or by the tool's template, None where unknown."""
        if operation.resource is not None:
            return operation.resource
        template = self.tool(operation.tool_name).resource
        return None if template is None else fill(template, self.arguments(operation.first))

    def is_declared(self, tool_name: str) -> bool:
        """Does anybody, a recorder included, say anything of the tool that tells how it behaves?"""
        tool = self.tool(tool_name)
        if tool.access is not None or tool.idempotent is not None or tool_name in self._recorded:
            return True
        return tool.schema is not None or tool.output_schema is not None or bool(tool.requires)

    def is_polling(self, tool_name: str) -> bool:
        """Is the tool declared to be asked again and again?"""
        return self.tool(tool_name).polling

    def option(self, code: str, name: str, default: Any) -> Any:
        """An option of a rule from the profile's `rules:`. Raises: ConfigError for a value of another type."""
        given = self.options.get(code)
        value = given.get(name) if isinstance(given, Mapping) else None
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        if (isinstance(default, int | float) and not is_number) or (
            isinstance(default, list | tuple) and not isinstance(value, list)
        ):
            raise ConfigError(
                f"rules.{code}.{name} is {value!r}", next_step=f"write it as `{name}: {default}` under rules.{code}"
            )
        return value

    # -- values -------------------------------------------------------------------------------------------------------

    def arguments(self, attempt: Attempt) -> Any:
        """The decoded arguments of an attempt; {} where none were recorded, MISSING where they do not parse."""
        found = self._arguments.get(attempt.call_index)
        if found is None:
            call = self.call(attempt)
            data = bytes(call.args)
            if not data:
                found = {} if call.args_raw is None else MISSING
            else:
                try:
                    found = decode(data)
                except JsonError:
                    found = MISSING
            self._arguments[attempt.call_index] = found
        return found

    def result_value(self, attempt: Attempt) -> Any:
        """The decoded result of an attempt, MISSING where the source left it out."""
        result = self.result(attempt)
        if result is None or not bytes(result.result):
            return MISSING
        try:
            return decode(result.result)
        except JsonError:
            return MISSING

    def exact_key(self, attempt: Attempt) -> bytes:
        """The arguments as they were sent, byte by byte."""
        call = self.call(attempt)
        return call.args_raw.encode("utf-8", "surrogatepass") if call.args_raw is not None else bytes(call.args)

    def semantic_key(self, attempt: Attempt) -> bytes:
        """The arguments as bytes that are equal where a reader sees the same call: key order does not count, 5 and "5"
        are equal, strings are trimmed, and what the profile ignores is left out."""
        found = self._semantic.get(attempt.call_index)
        if found is None:
            found = self._semantic[attempt.call_index] = self._key(attempt, self.arguments(attempt))
        return found

    def payload_key(self, attempt: Attempt) -> bytes:
        """As `semantic_key`, without an idempotency key among the arguments."""
        value = self.arguments(attempt)
        if not isinstance(value, dict) or not any(is_key_name(name) for name in value):
            return self.semantic_key(attempt)
        return self._key(attempt, {name: item for name, item in value.items() if not is_key_name(name)})

    def _key(self, attempt: Attempt, value: Any) -> bytes:
        if value is MISSING:
            return b"raw:" + self.exact_key(attempt)
        return canonical(semantic(without_ignored(value, self.profile, self.call(attempt).tool_name)))

    def call_key(self, ask: Ask) -> tuple[object, ...]:
        """Who asks for what: the same for calls that repeat one another, whenever and with whatever result."""
        return self._call_keys[ask.place]

    def is_repeated(self, ask: Ask) -> bool:
        """Does the run hold the same call more than once? Of all others nobody need compare the results."""
        return self._counts[self.call_key(ask)] > 1

    def idempotency_key(self, attempt: Attempt) -> str | None:
        """The key under which a write may be repeated: as recorded, or an argument of that name."""
        call = self.call(attempt)
        if call.idempotency_key is not None:
            return call.idempotency_key
        value = self.arguments(attempt)
        if isinstance(value, dict):
            for name, item in value.items():
                if isinstance(item, str | int) and item != "" and is_key_name(name):
                    return str(item)
        return None

    def is_recorded(self, attempt: Attempt) -> bool:
        """Did the source keep the attempt's result, or a digest of it?"""
        result = self.result(attempt)
        return result is not None and (bool(bytes(result.result)) or result.result_hash is not None)

    def result_digest(self, attempt: Attempt) -> str | None:
        """A digest of an attempt's result, None where the source left it out."""
        index = attempt.call_index
        if index not in self._digests:
            result = self.result(attempt)
            if result is None:
                self._digests[index] = None
            elif not bytes(result.result):
                self._digests[index] = result.result_hash
            else:
                data = bytes(result.result)
                if data not in self._digests_by_text:
                    value = self.result_value(attempt)
                    found = None if value is MISSING else digest(canonical(value), 2 * ELEMENT_DIGITS)
                    self._digests_by_text[data] = found
                self._digests[index] = self._digests_by_text[data]
        return self._digests[index]

    @cached_property
    def _recorded(self) -> set[str]:
        return {operation.tool_name for operation in self.operations if operation.access is not None}

    @cached_property
    def _tools(self) -> dict[str, Tool]:
        return {}

    @cached_property
    def _arguments(self) -> dict[int, Any]:
        return {}

    @cached_property
    def _semantic(self) -> dict[int, bytes]:
        return {}

    @cached_property
    def _counts(self) -> Counter[tuple[object, ...]]:
        return Counter(self._call_keys)

    @cached_property
    def _call_keys(self) -> list[tuple[object, ...]]:
        return [(ask.lane, ask.tool_name, self.semantic_key(ask.attempt)) for ask in self.asks]

    @cached_property
    def _digests(self) -> dict[int, str | None]:
        return {}

    @cached_property
    def _digests_by_text(self) -> dict[bytes, str | None]:
        return {}
