"""Waits of a pair: taken out of the operations, judged by `match.waits`, reported as changes.

Which policy holds: the golden's header, else the scenario's (both given by the caller), else the tool's, else the
profile's.
"""

from typing import Any

from goldentrace.diff.scene import Scene
from goldentrace.match.backoff import Policy
from goldentrace.match.waits import Wait, WaitVerdict, compare_waits
from goldentrace.model.change import JudgedWait, Tolerance
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
        for note in verdict.notes:
            scene.note(f"{one.label}: {note}")
    for code, found in by_code.items():
        _add(scene, (golden, candidate), code, found, verdicts)


def _add(scene: Scene, pair: tuple[int, int], code: str, found: list[WaitVerdict], verdicts: list[WaitVerdict]) -> None:
    worst = max(found, key=lambda verdict: (verdict.severity == "no-verdict", abs(verdict.deviation_ms)))
    label = scene.golden.operations[pair[0]].label
    if worst.severity == "no-verdict":
        scene.refuse(f"{label}: {worst.message}")
    change = scene.change(
        code, f"{label}: {worst.message}", golden=pair[0], candidate=pair[1],
        severity="error" if worst.severity == "no-verdict" else worst.severity,
        expected=worst.golden_ms, actual=worst.now_ms, attempt=worst.index + 2, tolerance=_tolerance(worst),
    )  # fmt: skip
    change.waits = tuple(
        JudgedWait(v.index + 1, v.measure, v.golden_ms, v.now_ms, _tolerance(v), v.code == code) for v in verdicts
    )


def _tolerance(verdict: WaitVerdict) -> Tolerance | None:
    if verdict.lo_ms is None and verdict.hi_ms is None:
        return None
    return Tolerance(verdict.lo_ms or 0.0, verdict.hi_ms, verdict.deviation_ms, verdict.source)


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
