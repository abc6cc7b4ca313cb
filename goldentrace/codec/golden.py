"""Golden lines to a normalized trace and back: fixed key order, defaults left out, one event per line.

Written for the person who reviews it in git. A turn is opened by a bare `model_turn` line, members of a batch carry its
number within the turn, an operation's lines stand together. The same form with `t_offset_ms` is what `normalize`
prints. This module must not decide what is behaviour: it writes what the normalized trace holds.
"""

from typing import Any, Final, Literal

import msgspec

from goldentrace.codec.canonical import encode
from goldentrace.codec.trace import BOM, read_line
from goldentrace.errors import InputError, Where
from goldentrace.model.event import (
    FORMAT,
    Access,
    DecisionKind,
    ErrorClass,
    Origin,
    Outcome,
    Status,
    StopReason,
    Verdict,
)
from goldentrace.model.normal import Header, NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep, LooseEvent, Operation

KINDS: Final = ("golden", "normalized")


class _Line(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="type",
):
    """A line of a golden."""


class GoldenStart(_Line, frozen=True, kw_only=True, tag="trace_start"):
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


class GoldenTurn(_Line, frozen=True, kw_only=True, tag="model_turn"):
    agent: str = "main"


class GoldenCall(_Line, frozen=True, kw_only=True, tag="tool_call"):
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
    t_offset_ms: float | None = None


class GoldenResult(_Line, frozen=True, kw_only=True, tag="tool_result"):
    call: str
    status: Status
    attempt: int = 1
    error_class: ErrorClass | None = None
    http_status: int | None = None
    owed_ms: float | None = None
    result: dict[str, str | dict[str, Any]] | None = None
    t_offset_ms: float | None = None


class GoldenDecision(_Line, frozen=True, kw_only=True, tag="decision"):
    decision: DecisionKind
    call: str | None = None
    agent: str = "main"
    by: Origin | None = None
    reason: str | None = None
    delay_ms: float | None = None
    inferred: bool = False
    t_offset_ms: float | None = None


class GoldenApproval(_Line, frozen=True, kw_only=True, tag="approval"):
    call: str
    verdict: Verdict
    by: str | None = None
    t_offset_ms: float | None = None


class GoldenEffect(_Line, frozen=True, kw_only=True, tag="effect"):
    name: str
    agent: str = "main"
    key: Any = None
    value: Any = None
    t_offset_ms: float | None = None


class GoldenLimit(_Line, frozen=True, kw_only=True, tag="limit"):
    limit: str
    agent: str = "main"
    max: float | int | None = None
    t_offset_ms: float | None = None


class GoldenEnd(_Line, frozen=True, kw_only=True, tag="trace_end"):
    outcome: Outcome
    stop_reason: StopReason
    t_offset_ms: float | None = None


AnyGoldenLine = (
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
_DECODER: Final = msgspec.json.Decoder(AnyGoldenLine)


def is_golden(data: bytes) -> bool:
    """Does the first line say that this is a golden or normalized trace?"""
    first = data.removeprefix(BOM).lstrip().partition(b"\n")[0]
    if b'"trace_start"' not in first or b'"kind"' not in first:
        return False
    try:
        fields = msgspec.json.decode(first)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(fields, dict) and fields.get("type") == "trace_start" and fields.get("kind") in KINDS


# -- writing -------------------------------------------------------------------------------------------------------


def encode_golden(normal: NormalTrace, *, kind: str = "golden") -> bytes:
    """Return the file of a normalized trace. kind `normalized` adds `t_offset_ms` to every line that has a time."""
    return b"".join(encode(line) + b"\n" for line in golden_lines(normal, kind=kind))


def golden_lines(normal: NormalTrace, *, kind: str = "golden") -> list[dict[str, Any]]:
    """Return the lines of a golden as mappings in the order of their keys."""
    is_timed = kind == "normalized"
    lines = [_header(normal.header, kind)]
    turns: dict[str, int | None] = {}
    loose = iter(normal.loose)
    waiting = next(loose, None)
    for index, operation in enumerate(normal.operations):
        while waiting is not None and waiting.position <= index:
            lines.append(_loose_line(waiting, is_timed=is_timed))
            waiting = next(loose, None)
        if operation.turn is not None and turns.get(operation.agent) != operation.turn:
            turns[operation.agent] = operation.turn
            lines.append(_compact({"type": "model_turn", "agent": _unless_main(operation.agent)}))
        lines.extend(operation_lines(operation, normal.uses_of(index), is_timed=is_timed))
    while waiting is not None:
        lines.append(_loose_line(waiting, is_timed=is_timed))
        waiting = next(loose, None)
    end = {"type": "trace_end", "outcome": normal.outcome, "stop_reason": normal.stop_reason}
    lines.append(_compact({**end, "t_offset_ms": _ms(normal.end_ms) if is_timed else None}))
    return lines


def _header(header: Header, kind: str) -> dict[str, Any]:
    return _compact(
        {
            "type": "trace_start",
            "format": FORMAT,
            "kind": kind,
            "scenario_id": header.scenario_id,
            "seed": header.seed,
            "description": header.description,
            "profile": header.profile,
            "profile_hash": header.profile_hash,
            "states": None if header.states is None else list(header.states),
            "accepts": list(header.accepts) or None,
            "backoff": header.backoff,
            "seen": header.seen,
        }
    )


def operation_lines(operation: Operation, uses: tuple[str, ...], *, is_timed: bool) -> list[dict[str, Any]]:
    """Return the lines of one operation: its calls, results, decisions and approvals in order."""
    lines: list[dict[str, Any]] = []
    for step in operation.steps:
        if isinstance(step, Attempt):
            lines.append(_call_line(operation, step, uses, is_timed=is_timed))
            if step.status is not None:
                lines.append(_result_line(operation, step, is_timed=is_timed))
        elif isinstance(step, DecisionStep):
            lines.append(
                _compact(
                    {
                        "type": "decision", "call": operation.label, "decision": step.decision, "by": step.by,
                        "reason": step.reason, "delay_ms": _ms(step.delay_ms), "inferred": step.inferred or None,
                        "t_offset_ms": _ms(step.at_ms) if is_timed else None,
                    }
                )
            )  # fmt: skip
        else:
            lines.append(
                _compact(
                    {
                        "type": "approval", "call": operation.label, "verdict": step.verdict, "by": step.by,
                        "t_offset_ms": _ms(step.at_ms) if is_timed else None,
                    }
                )
            )  # fmt: skip
    return lines


def _call_line(operation: Operation, attempt: Attempt, uses: tuple[str, ...], *, is_timed: bool) -> dict[str, Any]:
    is_first = attempt.number == 1
    args = operation.args if is_first else attempt.args
    args_hash = operation.args_hash if is_first else attempt.args_hash
    return _compact(
        {
            "type": "tool_call",
            "call": operation.label,
            "attempt": None if is_first else attempt.number,
            "origin": None if attempt.origin == "model" else attempt.origin,
            "agent": _unless_main(operation.agent) if is_first else None,
            "tool_name": operation.tool_name if is_first else None,
            "access": operation.access if is_first else None,
            "parent": operation.parent if is_first else None,
            "batch": operation.batch if is_first else None,
            "args_hash": args_hash,
            "args": dict(sorted(args.items())) if args else None,
            "uses": (list(uses) or None) if is_first else None,
            "gap_ms": _ms(attempt.gap_ms),
            "t_offset_ms": _ms(attempt.started_ms) if is_timed else None,
        }
    )


def _result_line(operation: Operation, attempt: Attempt, *, is_timed: bool) -> dict[str, Any]:
    return _compact(
        {
            "type": "tool_result",
            "call": operation.label,
            "attempt": None if attempt.number == 1 else attempt.number,
            "status": attempt.status,
            "error_class": attempt.error_class,
            "http_status": attempt.http_status,
            "owed_ms": _ms(attempt.owed_ms),
            "result": None if attempt.result is None else dict(sorted(attempt.result.items())),
            "t_offset_ms": _ms(attempt.ended_ms) if is_timed else None,
        }
    )


def _loose_line(event: LooseEvent, *, is_timed: bool) -> dict[str, Any]:
    fields = {name: event.fields[name] for name in _LOOSE_ORDER if name in event.fields}
    if "delay_ms" in fields:
        fields["delay_ms"] = _ms(fields["delay_ms"])
    return _compact({"type": event.kind, **fields, "t_offset_ms": _ms(event.at_ms) if is_timed else None})


_LOOSE_ORDER: Final[tuple[str, ...]] = (
    "decision",
    "limit",
    "name",
    "agent",
    "by",
    "reason",
    "delay_ms",
    "inferred",
    "max",
    "key",
    "value",
)


def _compact(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _unless_main(agent: str) -> str | None:
    return None if agent == "main" else agent


def _ms(value: float | None) -> float | int | None:
    if value is None:
        return None
    return int(value) if float(value).is_integer() else round(value, 3)


# -- reading -------------------------------------------------------------------------------------------------------


def read_golden(data: bytes, path: str) -> NormalTrace:
    """Return the normalized trace that a golden file holds.

    Raises: InputError naming the line for conflict markers, lines that are no golden event, a call that no line opens,
    a missing header or end. Nothing is accepted in part: a golden is written whole or not at all.
    """
    reading = _Reading(path)
    rows = data.removeprefix(BOM).split(b"\n")
    for number, row in enumerate(rows, start=1):
        if row.strip():
            reading.add(row, number)
    return reading.finish()


class _Reading:
    """The operations of a golden as its lines come in."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: GoldenStart | None = None
        self.end: GoldenEnd | None = None
        self.end_line = 0
        self.operations: list[Operation] = []
        self.by_label: dict[str, Operation] = {}
        self.open: dict[tuple[str, int], Attempt] = {}
        self.loose: list[LooseEvent] = []
        self.turns: dict[str, int] = {}
        self.turn = 0
        self.has_times = False

    def add(self, row: bytes, number: int) -> None:
        where = Where(self.path, number)
        line = read_line(row, where, _DECODER, "golden", REPAIR.format(path=self.path))
        if self.header is None:
            if not isinstance(line, GoldenStart):
                raise self._error("the first line of a golden is no trace_start", number)
            self.header = line
            return
        if self.end is not None:
            raise self._error("a line after trace_end", number)
        if isinstance(line, GoldenStart):
            raise self._error("a second trace_start", number)
        if isinstance(line, GoldenTurn):
            self.turn += 1
            self.turns[line.agent] = self.turn
        elif isinstance(line, GoldenCall):
            self.add_call(line, number)
        elif isinstance(line, GoldenResult):
            self.add_result(line, number)
        elif isinstance(line, GoldenDecision) and line.call is not None:
            self.operation(line.call, number).steps.append(
                DecisionStep(
                    decision=line.decision, by=line.by, reason=line.reason, delay_ms=line.delay_ms,
                    inferred=line.inferred, at_ms=line.t_offset_ms, line=number,
                )
            )  # fmt: skip
        elif isinstance(line, GoldenApproval):
            step = ApprovalStep(verdict=line.verdict, by=line.by, at_ms=line.t_offset_ms, line=number)
            self.operation(line.call, number, is_opening=True).steps.append(step)
        elif isinstance(line, GoldenEnd):
            self.end, self.end_line = line, number
        else:
            self.add_loose(line, number)

    def _error(self, what: str, number: int) -> InputError:
        return InputError(
            f"golden is not readable: {what}", where=Where(self.path, number), next_step=REPAIR.format(path=self.path)
        )

    def operation(self, label: str, number: int, *, is_opening: bool = False) -> Operation:
        found = self.by_label.get(label)
        if found is None:
            if not is_opening:
                raise self._error(f"no line before this one opens the call {label}", number)
            found = self.by_label[label] = Operation(label=label, tool_name="", steps=[])
            self.operations.append(found)
        return found

    def add_call(self, line: GoldenCall, number: int) -> None:
        attempt = Attempt(
            number=line.attempt, origin=line.origin, gap_ms=line.gap_ms, started_ms=line.t_offset_ms, call_line=number
        )
        self.has_times = self.has_times or line.gap_ms is not None or line.t_offset_ms is not None
        found = self.by_label.get(line.call)
        if line.attempt == 1:
            if found is not None and found.tool_name:
                raise self._error(f"a second first attempt of {line.call}", number)
            if line.tool_name is None:
                raise self._error("a call without its tool_name", number)
            found = self.operation(line.call, number, is_opening=True)
            found.tool_name, found.agent, found.parent = line.tool_name, line.agent, line.parent
            found.turn = self.turns.get(line.agent)
            found.batch, found.access = line.batch, line.access
            found.args, found.args_hash, found.uses = line.args or {}, line.args_hash, tuple(line.uses or ())
        else:
            found = self.operation(line.call, number)
            attempt.args, attempt.args_hash = line.args, line.args_hash
        found.steps.append(attempt)
        self.open[line.call, line.attempt] = attempt

    def add_result(self, line: GoldenResult, number: int) -> None:
        attempt = self.open.pop((line.call, line.attempt), None)
        if attempt is None:
            raise self._error(f"a result that no open attempt {line.attempt} of {line.call} waits for", number)
        attempt.status, attempt.error_class, attempt.http_status = line.status, line.error_class, line.http_status
        attempt.owed_ms, attempt.result = line.owed_ms, line.result
        attempt.ended_ms, attempt.result_line = line.t_offset_ms, number

    def add_loose(self, line: _Line, number: int) -> None:
        fields = msgspec.to_builtins(line)
        kind = fields.pop("type")
        at_ms = fields.pop("t_offset_ms", None)
        position = len(self.operations)
        self.loose.append(LooseEvent(kind=kind, position=position, fields=fields, at_ms=at_ms, line=number))

    def finish(self) -> NormalTrace:
        if self.header is None:
            raise InputError("golden is not readable: it is empty", where=Where(self.path), next_step="record it again")
        if self.end is None:
            raise InputError(
                "golden is not readable: there is no trace_end",
                where=Where(self.path),
                next_step=REPAIR.format(path=self.path),
            )
        start = self.header
        states = None if start.states is None else tuple(start.states)
        return NormalTrace(
            header=Header(
                start.scenario_id, start.seed, start.description, start.profile, start.profile_hash, states,
                tuple(start.accepts or ()), start.backoff, start.seen,
            ),
            operations=self.operations,
            loose=self.loose,
            outcome=self.end.outcome,
            stop_reason=self.end.stop_reason,
            path=self.path,
            has_turns=self.turn > 0,
            has_times=self.has_times,
            is_golden=True,
            end_line=self.end_line,
            end_ms=self.end.t_offset_ms,
        )  # fmt: skip


REPAIR: Final = "repair it, or record it again; then run: goldentrace fmt --check {path}"
