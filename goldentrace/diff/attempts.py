"""What happened to a pair: attempts, statuses, errors, approvals, results. Counts and order have no tolerance."""

from goldentrace.diff.payload import describe_differences, rebuild
from goldentrace.diff.scene import Scene
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, LeafMap, Operation


def compare_attempts(scene: Scene, golden: int, candidate: int) -> None:
    """Add GT201 where a retry was added or is missing, or somebody else asked for it."""
    one, other = scene.golden.operations[golden].attempts, scene.candidate.operations[candidate].attempts
    label = scene.golden.operations[golden].label
    if len(one) != len(other):
        what = (
            "a retry more"
            if len(other) == len(one) + 1
            else "a retry less"
            if len(other) == len(one) - 1
            else "retries"
        )
        point = min(len(one), len(other)) + 1
        scene.change(
            "GT201", f"{label}: {what}, attempts {len(one)} -> {len(other)}", golden=golden, candidate=candidate,
            expected=len(one), actual=len(other), attempt=point,
        )  # fmt: skip
        return
    for number, (before, now) in enumerate(zip(one, other, strict=True), start=1):
        if before.origin != now.origin:
            scene.change(
                "GT201", f"{label}: attempt {number} was asked for by the {now.origin}, not by the {before.origin}",
                golden=golden, candidate=candidate, expected=before.origin, actual=now.origin, attempt=number,
            )  # fmt: skip
            return


def compare_statuses(scene: Scene, golden: int, candidate: int) -> None:
    """Add GT301 for the first attempt that ended otherwise, else GT302 for the first whose error is another."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    tries = _numbered_pairs(one, other)
    for number, before, now in tries:
        if (before.status is None and not _tells_results(scene.golden)) or (
            now.status is None and not _tells_results(scene.candidate)
        ):
            if before.status is not now.status:
                scene.note("results of some attempts: one side has none")
            continue
        if before.status != now.status:
            scene.change(
                "GT301", f"{one.label}: {_ended(before)}, now {_ended(now)}", golden=golden, candidate=candidate,
                expected=_ended(before), actual=_ended(now), attempt=number,
            )  # fmt: skip
            return
    for number, before, now in tries:
        is_other_class = None not in (before.error_class, now.error_class) and before.error_class != now.error_class
        is_other_code = None not in (before.http_status, now.http_status) and before.http_status != now.http_status
        if is_other_class or is_other_code:
            scene.change(
                "GT302", f"{one.label}: {_ended(before)}, now {_ended(now)}", golden=golden, candidate=candidate,
                expected=_ended(before), actual=_ended(now), attempt=number,
            )  # fmt: skip
            return


def _tells_results(trace: NormalTrace) -> bool:
    """Does a call without a result stand for one that was never answered? A recorder's trace says what there was."""
    return trace.header.states is None and trace.incomplete is None


def _numbered_pairs(one: Operation, other: Operation) -> list[tuple[int, Attempt, Attempt]]:
    """Attempts to compare: by number; where one side has more, the last of both stand for how it ended."""
    left, right = one.attempts, other.attempts
    if len(left) == len(right):
        return [(n, a, b) for n, (a, b) in enumerate(zip(left, right, strict=True), start=1)]
    shared = min(len(left), len(right))
    pairs = [(n, left[n - 1], right[n - 1]) for n in range(1, shared)]
    return [*pairs, (shared, left[-1], right[-1])]


def _ended(attempt: Attempt) -> str:
    parts: list[str] = [attempt.status or "no result"]
    if attempt.status != "ok":
        parts += [str(part) for part in (attempt.error_class, attempt.http_status) if part is not None]
    return " ".join(parts)


def compare_approvals(scene: Scene, golden: int, candidate: int) -> None:
    """Add GT205 where an approval is another, missing or new."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    before, now = _approvals(one), _approvals(other)
    people = [step.by for step in one.approvals], [step.by for step in other.approvals]
    if before == now:
        changed = [(was, by) for was, by in zip(*people, strict=True) if None not in (was, by) and was != by]
        if not changed:
            return
        before, now = ([f"{verdict} by {by}" for verdict in before] for by in changed[0])
    lines = (
        one.approvals[0].line if before else one.first.call_line,
        other.approvals[0].line if now else other.first.call_line,
    )
    change = scene.change(
        "GT205", f"{one.label}: approval {', '.join(before) or 'none'}, now {', '.join(now) or 'none'}",
        golden=golden, candidate=candidate, expected=before or None, actual=now or None,
    )  # fmt: skip
    change.golden_line, change.candidate_line = lines


def _approvals(operation: Operation) -> list[str]:
    """Verdicts in order, each with the attempt after whose result it came: what has run already is another thing."""
    found: list[str] = []
    attempts = 0
    for step in operation.steps:
        if isinstance(step, Attempt):
            attempts = step.number
        elif isinstance(step, ApprovalStep):
            done = attempts - step.is_early
            found.append(step.verdict if not done else f"{step.verdict} after attempt {done}")
    return found


def compare_results(scene: Scene, golden: int, candidate: int) -> None:
    """Add GT108 where the profile compares results and one differs."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    for number, before, now in _numbered_pairs(one, other):
        if before.result is None and now.result is None:
            continue
        if before.result is None or now.result is None:
            scene.note("results: one side does not hold them")
            continue
        if before.status != now.status or before.result == now.result:
            continue
        places = [
            pointer
            for pointer in sorted(before.result.keys() | now.result.keys())
            if before.result.get(pointer) != now.result.get(pointer)
        ]
        details = describe_differences(rebuild(before.result), rebuild(now.result)) if _is_kept(before.result) else []
        message = f"{one.label}: the result differs at {', '.join(places[:3])}{' and more' if len(places) > 3 else ''}"
        scene.change(
            "GT108", message, golden=golden, candidate=candidate, pointers=tuple(places), attempt=number,
            expected=before.result.get(places[0]), actual=now.result.get(places[0]),
            hint="; ".join(details) or None,
        )  # fmt: skip
        return


def _is_kept(result: LeafMap) -> bool:
    return any(isinstance(leaf, dict) for leaf in result.values())
