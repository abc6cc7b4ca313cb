"""An operation: one tool call as it was asked for, with all its attempts, their results and the decisions about it.

The same values describe a run that was just normalized and a golden read from its file; what only the run has (the
values behind the digests) is kept apart in `Payloads`. Written leaves are what a golden shows: `int h:…`, `str[9]
h:…`, a placeholder `<get_order#1/id>`, or `{"value": …}` where the profile keeps a value in clear.
"""

from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from goldentrace.model.event import Access, DecisionKind, ErrorClass, Origin, Status, Verdict

WrittenLeaf: TypeAlias = str | dict[str, Any]
LeafMap: TypeAlias = dict[str, WrittenLeaf]
"""JSON Pointer -> written leaf; sorted by pointer when written."""


class Attempt(msgspec.Struct, kw_only=True, gc=False):
    """The n-th execution of an operation. Times are in ms since the start of the trace, None where unknown.

    after_model_turn: did a model turn ask for it, so that the gap holds the model's latency; args, args_hash: only
    where they differ from those of the operation; result: the compared form of the result, as the
    profile asks for; call_line, result_line: 1-based lines in the file the attempt was read from.
    """

    number: int = 1
    origin: Origin = "model"
    gap_ms: float | None = None
    after_model_turn: bool = False
    status: Status | None = None
    error_class: ErrorClass | None = None
    http_status: int | None = None
    owed_ms: float | None = None
    sent: bool | None = None
    args: LeafMap | None = None
    args_hash: str | None = None
    result: LeafMap | None = None
    started_ms: float | None = None
    ended_ms: float | None = None
    call_index: int = 0
    result_index: int | None = None
    call_line: int = 0
    result_line: int = 0


class DecisionStep(msgspec.Struct, kw_only=True, gc=False):
    """A decision about an operation, after the attempt that it followed (0: before the first)."""

    decision: DecisionKind
    by: Origin | None = None
    reason: str | None = None
    delay_ms: float | None = None
    inferred: bool = False
    at_ms: float | None = None
    index: int = 0
    line: int = 0


class ApprovalStep(msgspec.Struct, kw_only=True, gc=False):
    """Somebody allowed or denied an attempt. is_early: after its call and before its result."""

    verdict: Verdict
    is_early: bool = False
    by: str | None = None
    at_ms: float | None = None
    index: int = 0
    line: int = 0


BEFORE_TURNS: Final = 0
"""The turn of what an agent called before its first one: it has turns, so that every call of it stands in one."""

Step: TypeAlias = Attempt | DecisionStep | ApprovalStep


class Operation(msgspec.Struct, kw_only=True, gc=False):
    """One operation.

    label: its name in the trace, `tool#n`, with the agent before it where that is not `main`; turn: ordinal of the turn
    from 1 (`BEFORE_TURNS` before it), None where the source knows no turns of the agent; batch: number of the batch
    within its turn, None for a serial call; args_hash: digest of the leaf map with placeholders reduced, the third part
    of the alignment key; uses: labels of the operations whose results gave argument values, None until asked for
    (`NormalTrace.uses_of`); steps: in order.
    """

    label: str
    tool_name: str
    agent: str = "main"
    turn: int | None = None
    batch: int | None = None
    parent: str | None = None
    access: Access | None = None
    resource: str | None = None
    args: LeafMap = {}
    args_hash: str | None = None
    uses: tuple[str, ...] | None = None
    steps: list[Step] = []

    @property
    def key(self) -> tuple[str, str, str | None]:
        """The alignment key: no ordinals, so that an inserted call changes no other operation's."""
        return (self.agent, self.tool_name, self.args_hash)

    @property
    def attempts(self) -> list[Attempt]:
        return [step for step in self.steps if type(step) is Attempt]

    @property
    def first(self) -> Attempt:
        """The first attempt; every operation has one."""
        for step in self.steps:
            if type(step) is Attempt:
                return step
        raise AssertionError("an operation without an attempt")

    @property
    def last(self) -> Attempt:
        """The last attempt."""
        for step in reversed(self.steps):
            if type(step) is Attempt:
                return step
        raise AssertionError("an operation without an attempt")

    @property
    def decisions(self) -> list[DecisionStep]:
        return [step for step in self.steps if type(step) is DecisionStep]

    @property
    def approvals(self) -> list[ApprovalStep]:
        return [step for step in self.steps if type(step) is ApprovalStep]

    def is_beside(self, other: "Operation") -> bool:
        """Are the two members of one batch?"""
        mine, its = (
            (self.turn, self.agent, self.parent, self.batch),
            (other.turn, other.agent, other.parent, other.batch),
        )
        return self.batch is not None and mine == its

    @property
    def is_read(self) -> bool:
        """Only what is declared a read is one; undeclared counts as a write."""
        return self.access == "read"


class LooseEvent(msgspec.Struct, kw_only=True, gc=False):
    """An event of no operation: a decision about the run, a limit, an effect. position: operations before it."""

    kind: Literal["decision", "limit", "effect"]
    position: int
    fields: dict[str, Any]
    at_ms: float | None = None
    index: int = 0
    line: int = 0


def escape_label(name: str) -> str:
    """Return a tool or agent name as it stands in a label: what could end a label or placeholder is percent-encoded."""
    if name.isidentifier():
        return name
    return "".join(f"%{ord(char):02X}" if char in "%<>#/ " or ord(char) < 32 else char for char in name)


def make_label(agent: str, tool_name: str, number: int) -> str:
    """Return the label of the n-th operation of a tool: `tool#n`, `agent/tool#n` for another agent than main."""
    return f"{_label_name(agent, tool_name)}#{number}"


@lru_cache(maxsize=4096)
def _label_name(agent: str, tool_name: str) -> str:
    prefix = "" if agent == "main" else escape_label(agent) + "/"
    return prefix + escape_label(tool_name)
