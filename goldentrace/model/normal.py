"""A normalized trace: what is compared. A golden read from its file is one too, without payloads."""

from typing import Any, Protocol

import msgspec

from goldentrace.model.event import Outcome, StopReason
from goldentrace.model.operation import LooseEvent, Operation


class Header(msgspec.Struct, frozen=True):
    """What stands in the first line of a golden.

    states: the decision kinds that the source can state, None means all; accepts: findings accepted with a reason;
    backoff: the policy of waits; seen: how many of the baseline's runs took this variant.
    """

    scenario_id: str | None = None
    seed: int | None = None
    description: str | None = None
    profile: str = ""
    profile_hash: str = ""
    states: tuple[str, ...] | None = None
    accepts: tuple[dict[str, Any], ...] = ()
    backoff: dict[str, Any] | None = None
    seen: int | None = None


class Payloads(Protocol):
    """The values behind a normalized run. Pointers are those of the leaf map."""

    def argument(self, operation: int, pointer: str) -> tuple[bool, Any]:
        """Is there a value at that leaf of the operation's arguments, and which (redacted)?"""

    def argument_ids(self, operation: int, pointer: str, attempt: int = 0) -> tuple[str, ...]:
        """The ids that the leaf has placeholders for, in order, in comparable form."""

    def effect_ids(self, event: int, place: str) -> tuple[str, ...]:
        """The same of an effect's leaf. event: its index; place: `key` or `value` with the pointer in it."""

    def result_ids(self, operation: int, pointer: str, attempt: int | None = None) -> tuple[str, ...]:
        """The id at that place of the operation's last result, or of that attempt's (from 1); none where it is gone."""

    def has_id(self, operation: int, value: str) -> bool:
        """Does any result of the operation hold this id?"""

    def argument_values(self, operation: int) -> set[Any]:
        """The values of the operation's arguments that can name their source, hashable."""

    def result_values(self, operation: int) -> set[Any]:
        """The values that the operation's ok results hold and its own arguments do not, hashable."""

    def uses(self, operation: int) -> tuple[int, ...]:
        """The operations whose results hold values of this operation's arguments, ascending."""


class NormalTrace(msgspec.Struct):
    """Operations in canonical order and the events between them.

    incomplete: why the recording is not whole; has_turns, has_times: does the source record them; masked: what was
    replaced and by which rule, only when asked for.
    """

    header: Header
    operations: list[Operation]
    loose: list[LooseEvent]
    outcome: Outcome
    stop_reason: StopReason
    path: str
    has_turns: bool
    has_times: bool
    incomplete: str | None = None
    is_golden: bool = False
    end_line: int = 0
    end_ms: float | None = None
    payloads: Payloads | None = None
    notes: tuple[str, ...] = ()
    masked: list["Masked"] = msgspec.field(default_factory=list)

    def turned_agents(self) -> set[str]:
        """Return the agents of which the source records turns."""
        return {operation.agent for operation in self.operations if operation.turn is not None}

    def values(self) -> frozenset[str]:
        """Return the texts that arguments hold as values, as written: what looks random and is among them is no id."""
        return frozenset(
            leaf
            for operation in self.operations
            for leaf in operation.args.values()
            if type(leaf) is str and leaf.startswith("str[") and "<" not in leaf
        )

    def uses_of(self, index: int) -> tuple[str, ...]:
        """Labels of the operations whose results gave this one's argument values; computed once for a run."""
        operation = self.operations[index]
        if operation.uses is None:
            found = self.payloads.uses(index) if self.payloads is not None else ()
            operation.uses = tuple(self.operations[source].label for source in found)
        return operation.uses


class Masked(msgspec.Struct, frozen=True):
    """One value that normalization replaced: where, by what, and which rule did it."""

    label: str
    pointer: str
    shown: str
    placeholder: str
    rule: str
