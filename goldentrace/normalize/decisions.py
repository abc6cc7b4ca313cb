"""Decisions that a source does not state but its calls show. Each is marked as inferred; nothing else can be derived
from real traces without guessing.

`retry`: a joined later attempt. Where the profile declares it of a tool: `reconcile` (a read after a write of unknown
outcome), `fallback` (another tool after a failed one), `escalate`.
"""

from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt, DecisionStep, LooseEvent, Operation
from goldentrace.model.profile import Profile

UNKNOWN_OUTCOME = frozenset({"timeout", "unfinished", "cancelled"})
"""Statuses that leave open whether a write took effect, where the request may have left."""


def infer_retries(normal: NormalTrace, states: list[str] | None) -> None:
    """Add an inferred `retry` before each later attempt that no stated decision explains, where the source cannot state
    them; `by` is the attempt's origin. states: the kinds that the source says it states, None for all."""
    if _can_state(states, "retry"):
        return
    for operation in normal.operations:
        if sum(type(step) is Attempt for step in operation.steps) < 2:
            continue
        steps: list[object] = []
        is_explained = True
        for step in operation.steps:
            if isinstance(step, DecisionStep) and step.decision == "retry":
                is_explained = True
            if type(step) is Attempt:
                if not is_explained:
                    steps.append(
                        DecisionStep(
                            decision="retry", by=step.origin, inferred=True, index=step.call_index, line=step.call_line
                        )
                    )
                is_explained = False
            steps.append(step)
        operation.steps = steps  # type: ignore[assignment]


def infer_decisions(normal: NormalTrace, profile: Profile, states: list[str] | None) -> None:
    """Add the decisions that the profile's tools declare, where the source cannot state them."""
    declared = {n: t for n, t in profile.tools.items() if t.reconciles or t.fallback_for or t.escalates}
    if not declared:
        return
    open_writes: dict[str, Operation] = {}
    failed: dict[str, Operation] = {}
    for index, operation in enumerate(normal.operations):
        tool = declared.get(operation.tool_name)
        if tool is not None:
            if tool.escalates and not _can_state(states, "escalate"):
                normal.loose.append(_loose_decision("escalate", index, operation))
            for kind, names, source in (
                ("reconcile", tool.reconciles, open_writes),
                ("fallback", tool.fallback_for, failed),
            ):
                for name in [names] if isinstance(names, str) else names or []:
                    about = source.pop(name, None)
                    if about is not None and not _can_state(states, kind):
                        about.steps.append(_decision(kind, operation))
        last = operation.last
        if last.status in UNKNOWN_OUTCOME and last.sent is not False and not operation.is_read:
            open_writes[operation.tool_name] = operation
        if last.status not in ("ok", None):
            failed[operation.tool_name] = operation
        else:
            failed.pop(operation.tool_name, None)
    normal.loose.sort(key=lambda event: (event.position, event.index))


def _can_state(states: list[str] | None, kind: str) -> bool:
    return states is None or kind in states


def _decision(kind: str, by: Operation) -> DecisionStep:
    first = by.first
    return DecisionStep(
        decision=kind, by=first.origin, reason=None, inferred=True, index=first.call_index, line=first.call_line  # type: ignore[arg-type]
    )  # fmt: skip


def _loose_decision(kind: str, position: int, by: Operation) -> LooseEvent:
    first = by.first
    fields = {"decision": kind, "by": first.origin, "inferred": True}
    return LooseEvent(kind="decision", position=position, fields=fields, index=first.call_index, line=first.call_line)
