"""Golden files: told apart from runs, and read whole or not at all. `golden_lines` writes them.

This module must not compare, and must not repair anything: a damaged golden is an error that names its line.
"""

from typing import Final

import msgspec

from goldentrace.codec.golden_lines import encode_golden, golden_lines, operation_lines
from goldentrace.codec.trace import BOM, read_line
from goldentrace.errors import InputError, Where
from goldentrace.model.golden import (
    KINDS,
    AnyGoldenLine,
    GoldenApproval,
    GoldenCall,
    GoldenDecision,
    GoldenEnd,
    GoldenLine,
    GoldenResult,
    GoldenStart,
    GoldenTurn,
)
from goldentrace.model.normal import Header, NormalTrace
from goldentrace.model.operation import BEFORE_TURNS, ApprovalStep, Attempt, DecisionStep, LooseEvent, Operation

__all__ = ["encode_golden", "golden_lines", "is_golden", "operation_lines", "read_golden"]

REPAIR: Final = "repair it, or record it again; then run: goldentrace fmt --check {path}"
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
        self.awaited: dict[str, int] = {}
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
            self.operation(line.call, number, is_opening=True).steps.append(
                DecisionStep(
                    decision=line.decision, by=line.by, reason=line.reason, delay_ms=line.delay_ms,
                    inferred=line.inferred, at_ms=line.t_offset_ms, line=number,
                )
            )  # fmt: skip
        elif isinstance(line, GoldenApproval):
            operation = self.operation(line.call, number, is_opening=True)
            is_early = any((line.call, attempt.number) in self.open for attempt in operation.attempts[-1:])
            step = ApprovalStep(
                verdict=line.verdict, is_early=is_early, by=line.by, at_ms=line.t_offset_ms, line=number
            )  # fmt: skip
            operation.steps.append(step)
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
            self.awaited[label] = number
        return found

    def add_call(self, line: GoldenCall, number: int) -> None:
        attempt = Attempt(
            number=line.attempt,
            origin=line.origin,
            gap_ms=line.gap_ms,
            after_model_turn=line.after_model_turn,
            started_ms=line.t_offset_ms,
            call_line=number,
        )
        self.has_times = self.has_times or line.gap_ms is not None or line.t_offset_ms is not None
        found = self.by_label.get(line.call)
        if line.attempt == 1:
            if found is not None and line.call not in self.awaited:
                raise self._error(f"a second first attempt of {line.call}", number)
            if line.tool_name is None:
                raise self._error("a call without its tool_name", number)
            found = self.operation(line.call, number, is_opening=True)
            del self.awaited[line.call]
            found.tool_name, found.agent, found.parent = line.tool_name, line.agent, line.parent
            found.turn = self.turns.get(line.agent)
            found.batch, found.access = line.batch, line.access
            found.args, found.args_hash, found.uses = line.args or {}, line.args_hash, tuple(line.uses or ())
        else:
            found = self.operation(line.call, number)
            if line.call in self.awaited:
                raise self._error(f"no line before this one opens the call {line.call}", number)
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

    def add_loose(self, line: GoldenLine, number: int) -> None:
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
        for label, number in self.awaited.items():
            raise self._error(f"no line opens the call {label}", number)
        for operation in self.operations:
            if operation.turn is None and operation.agent in self.turns:
                operation.turn = BEFORE_TURNS
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
