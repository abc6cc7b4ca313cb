"""The lines of a golden: the events of `goldentrace/1` as a reviewer reads them, and what only they have.

`call` is a label and replaces the call id; `args` maps pointers to written leaves. The same lines with `t_offset_ms`
are what `normalize` prints. Unknown fields are an error: a golden is written by a tool and never guessed at.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from goldentrace.model.event import Access, DecisionKind, ErrorClass, Origin, Outcome, Status, StopReason, Verdict

KINDS: Final = ("golden", "normalized")


class GoldenLine(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="type",
):
    """A line of a golden."""


class GoldenStart(GoldenLine, frozen=True, kw_only=True, tag="trace_start"):
    format: Literal["goldentrace/1"]
    kind: Literal["golden", "normalized"]
    profile: str
    profile_hash: str
    scenario_id: str | None = None
    seed: int | None = None
    description: str | None = None
    states: list[DecisionKind] | None = None
    accepts: list[dict[str, Any]] | None = None
    backoff: dict[str, Any] | None = None
    seen: int | None = None


class GoldenTurn(GoldenLine, frozen=True, kw_only=True, tag="model_turn"):
    agent: str = "main"


class GoldenCall(GoldenLine, frozen=True, kw_only=True, tag="tool_call"):
    call: str
    attempt: int = 1
    origin: Origin = "model"
    agent: str = "main"
    tool_name: str | None = None
    access: Access | None = None
    parent: str | None = None
    batch: int | None = None
    args_hash: str | None = None
    args: dict[str, str | dict[str, Any]] | None = None
    uses: list[str] | None = None
    gap_ms: float | None = None
    after_model_turn: bool = False
    t_offset_ms: float | None = None


class GoldenResult(GoldenLine, frozen=True, kw_only=True, tag="tool_result"):
    call: str
    status: Status
    attempt: int = 1
    error_class: ErrorClass | None = None
    http_status: int | None = None
    owed_ms: float | None = None
    result: dict[str, str | dict[str, Any]] | None = None
    t_offset_ms: float | None = None


class GoldenDecision(GoldenLine, frozen=True, kw_only=True, tag="decision"):
    decision: DecisionKind
    call: str | None = None
    agent: str = "main"
    by: Origin | None = None
    reason: str | None = None
    delay_ms: float | None = None
    inferred: bool = False
    t_offset_ms: float | None = None


class GoldenApproval(GoldenLine, frozen=True, kw_only=True, tag="approval"):
    call: str
    verdict: Verdict
    by: str | None = None
    t_offset_ms: float | None = None


class GoldenEffect(GoldenLine, frozen=True, kw_only=True, tag="effect"):
    name: str
    agent: str = "main"
    key: Any = None
    value: Any = None
    t_offset_ms: float | None = None


class GoldenLimit(GoldenLine, frozen=True, kw_only=True, tag="limit"):
    limit: str
    agent: str = "main"
    max: float | int | None = None
    t_offset_ms: float | None = None


class GoldenEnd(GoldenLine, frozen=True, kw_only=True, tag="trace_end"):
    outcome: Outcome
    stop_reason: StopReason
    t_offset_ms: float | None = None


AnyGoldenLine: TypeAlias = (
    GoldenStart
    | GoldenTurn
    | GoldenCall
    | GoldenResult
    | GoldenDecision
    | GoldenApproval
    | GoldenEffect
    | GoldenLimit
    | GoldenEnd
)
