"""A normalized trace to the lines of a golden: fixed key order, defaults left out, one event per line.

Written for the person who reviews it in git. A turn is opened by a bare `model_turn` line, members of a batch carry its
number within the turn, an operation's lines stand together. This module must not decide what is behaviour: it writes
what the normalized trace holds.
"""

from typing import Any, Final

from goldentrace.codec.canonical import encode
from goldentrace.model.event import FORMAT
from goldentrace.model.normal import Header, NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep, LooseEvent, Operation


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
    result: list[dict[str, Any]] = []
    for step in operation.steps:
        if not (isinstance(step, ApprovalStep) and step.is_early):
            lines.extend(result)
            result = []
        if isinstance(step, Attempt):
            lines.append(_call_line(operation, step, uses, is_timed=is_timed))
            if step.status is not None:
                result = [_result_line(operation, step, is_timed=is_timed)]
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
    return lines + result


def _call_line(operation: Operation, attempt: Attempt, uses: tuple[str, ...], *, is_timed: bool) -> dict[str, Any]:
    is_first = attempt.number == 1
    args = (operation.args or None) if is_first else attempt.args  # a later attempt without args has the earlier's
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
            "args": None if args is None else dict(sorted(args.items())),
            "uses": (list(uses) or None) if is_first else None,
            "gap_ms": _ms(attempt.gap_ms),
            "after_model_turn": attempt.after_model_turn or None,
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
