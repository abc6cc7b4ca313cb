"""Waits of a pair: taken out of the operations, judged by `match.waits`, reported as changes.

Which policy holds: the golden's header, else the scenario's (both given by the caller), else the tool's, else the
profile's.
"""

from typing import Any

from goldentrace.diff.scene import Scene
from goldentrace.match.backoff import Policy
from goldentrace.match.waits import Wait, WaitVerdict, compare_waits
from goldentrace.model.change import Tolerance
from goldentrace.model.operation import Attempt, DecisionStep, Operation


def compare_operation_waits(scene: Scene, golden: int, candidate: int) -> None:
    """Add one change per code for the waits between the attempts of a pair; what cannot be compared is said."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    before, now = waits_of(one, has_times=scene.golden.has_times), waits_of(other, has_times=scene.candidate.has_times)
    if not before or not now:
        return
    verdicts = compare_waits(before, now, _policy(scene, one.tool_name))
    by_code: dict[str, list[WaitVerdict]] = {}
    for verdict in verdicts:
        if verdict.code is not None:
            by_code.setdefault(verdict.code, []).append(verdict)
        elif verdict.coverage:
            scene.note(verdict.coverage)
    for code, found in by_code.items():
        _add(scene, golden, candidate, code, found)


def _add(scene: Scene, golden: int, candidate: int, code: str, found: list[WaitVerdict]) -> None:
    worst = max(found, key=lambda verdict: (verdict.severity == "no-verdict", abs(verdict.deviation_ms)))
    label = scene.golden.operations[golden].label
    if worst.severity == "no-verdict":
        scene.refuse(f"{label}: {worst.message}")
    is_bounded = worst.lo_ms is not None or worst.hi_ms is not None
    severity = "error" if worst.severity == "no-verdict" else worst.severity
    scene.change(
        code, f"{label}: {worst.message}", golden=golden, candidate=candidate, severity=severity,
        expected=worst.golden_ms, actual=worst.now_ms, attempt=worst.index + 2,
        tolerance=Tolerance(worst.lo_ms or 0.0, worst.hi_ms, worst.deviation_ms, worst.source) if is_bounded else None,
    )  # fmt: skip


def _policy(scene: Scene, tool_name: str) -> Policy:
    tool = scene.profile.tool(tool_name)
    mapping: Any = scene.backoff or tool.backoff or scene.profile.backoff
    return Policy.from_mapping(mapping or {"policy": "none"})


def waits_of(operation: Operation, *, has_times: bool) -> list[Wait]:
    """Return the waits before the second, third, … attempt, with what was announced and what was owed."""
    waits: list[Wait] = []
    before: Attempt | None = None
    announced: float | None = None
    tries = operation.attempts
    for step in operation.steps:
        if isinstance(step, DecisionStep) and step.decision == "retry":
            announced = step.delay_ms
        if not isinstance(step, Attempt):
            continue
        if before is not None:
            waits.append(
                Wait(
                    gap_ms=step.gap_ms,
                    why_missing=None if step.gap_ms is not None else _why_missing(before, has_times=has_times),
                    delay_ms=announced,
                    owed_ms=before.owed_ms,
                    origin=step.origin,
                    after_model_turn=step.after_model_turn,
                    is_last=step is tries[-1],
                )
            )
        before, announced = step, None
    return waits


def _why_missing(before: Attempt, *, has_times: bool) -> str:
    if not has_times:
        return "the source records no times"
    if before.status is None:
        return "the attempt before it has no end"
    return "the end of the attempt before it has no time on the same clock"
