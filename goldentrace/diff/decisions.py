"""Decisions: which kind, by whom, for which reason, after which attempt. They have no tolerance.

Compared on the kinds that both sources can state; what a golden holds and the candidate's source could not have stated
is no verdict, because silence would pass as agreement.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from goldentrace.diff.scene import Scene
from goldentrace.match.sequences import align
from goldentrace.model.event import DECISION_KINDS
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Attempt, DecisionStep, LooseEvent, Operation
from goldentrace.model.profile import Profile


class Made(NamedTuple):
    """A decision as it is compared. place: the attempt it followed, or the number of paired operations before it."""

    kind: str
    by: str | None
    reason: str | None
    is_inferred: bool
    place: int
    line: int
    agent: str | None = None


def comparable_kinds(golden: NormalTrace, candidate: NormalTrace, profile: Profile) -> frozenset[str]:
    """Return the decision kinds that both sides can state or show."""
    return _known_kinds(golden, profile) & _known_kinds(candidate, profile)


def unobservable(golden: NormalTrace, candidate: NormalTrace, profile: Profile) -> list[str]:
    """Return the kinds that the golden holds and the candidate's source could not have stated, with their counts."""
    known = _known_kinds(candidate, profile)
    if known.issuperset(DECISION_KINDS):
        return []
    counts = Counter(d.decision for o in golden.operations if len(o.steps) > 1 for d in o.decisions)
    counts.update(e.fields["decision"] for e in golden.loose if e.kind == "decision")
    return [f"{kind} ({counts[kind]} in the golden)" for kind in DECISION_KINDS if counts[kind] and kind not in known]


def _known_kinds(trace: NormalTrace, profile: Profile) -> frozenset[str]:
    states = trace.header.states
    if states is None:
        return frozenset(DECISION_KINDS)
    declared = {"retry"}
    for tool in profile.tools.values():
        declared |= {"reconcile"} if tool.reconciles else set()
        declared |= {"fallback"} if tool.fallback_for else set()
        declared |= {"escalate"} if tool.escalates else set()
    return frozenset(states) | declared


def compare_decisions(scene: Scene, golden: int, candidate: int) -> None:
    """Add at most one each of GT202, GT203 and GT204 for the decisions about a pair."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    before, now = _made(one, scene.kinds), _made(other, scene.kinds)
    if [_core(d) for d in before] == [_core(d) for d in now] and not _differences(before, now):
        return
    _report(scene, before, now, golden, candidate, one.label)


def compare_loose_decisions(scene: Scene, anchors: tuple[Sequence[int], Sequence[int]]) -> None:
    """Compare the decisions about no call. anchors: per side, how many paired operations stand before each position."""
    before = _loose(scene.golden.loose, anchors[0], scene.kinds)
    now = _loose(scene.candidate.loose, anchors[1], scene.kinds)
    if before != now:
        _report(scene, before, now, None, None, "the run")


def _made(operation: Operation, kinds: frozenset[str]) -> list[Made]:
    found: list[Made] = []
    number = 0
    for step in operation.steps:
        if isinstance(step, Attempt):
            number = step.number
        elif isinstance(step, DecisionStep) and step.decision in kinds:
            found.append(Made(step.decision, step.by, step.reason, step.inferred, number, step.line))
    return found


def _loose(events: list[LooseEvent], anchors: Sequence[int], kinds: frozenset[str]) -> list[Made]:
    found: list[Made] = []
    for event in events:
        if event.kind == "decision" and event.fields["decision"] in kinds:
            fields = event.fields
            is_inferred = bool(fields.get("inferred"))
            place = anchors[min(event.position, len(anchors) - 1)]
            by, reason, agent = (fields.get(name) for name in ("by", "reason", "agent"))
            found.append(Made(fields["decision"], by, reason, is_inferred, place, event.line, agent))
    return found


def _core(made: Made) -> tuple[Any, ...]:
    return (made.kind, made.place)


def _differences(before: list[Made], now: list[Made]) -> bool:
    return any(_is_other(one, other) for one, other in zip(before, now, strict=True))


def _is_other(one: Made, other: Made) -> bool:
    """Another decision of the same kind: who and why count where both sides say so and neither was inferred."""
    if (one.kind, one.place, one.agent) != (other.kind, other.place, other.agent):
        return True
    if one.by is not None and other.by is not None and one.by != other.by:
        return True
    if one.is_inferred or other.is_inferred or one.reason is None or other.reason is None:
        return False
    return one.reason != other.reason


def _report(
    scene: Scene, before: list[Made], now: list[Made], golden: int | None, candidate: int | None, about: str
) -> None:
    pairs = _pairs(before, now)
    left = [n for n in range(len(before)) if n not in {g for g, _ in pairs}]
    right = [n for n in range(len(now)) if n not in {c for _, c in pairs}]
    replaced = list(zip(left, right, strict=False))
    changed = [(g, c) for g, c in sorted([*replaced, *pairs]) if (g, c) in replaced or _is_other(before[g], now[c])]
    if changed:
        g, c = changed[0]
        one, other = before[g], now[c]
        before_words, now_words = _words(one), _words(other)
        if before_words == now_words and one.place == other.place:
            before_words, now_words = f"{before_words} as decision {g + 1}", f"{now_words} as decision {c + 1}"
        elif before_words == now_words:
            before_words, now_words = before_words + _place(one, golden), now_words + _place(other, golden)
        scene.change(
            "GT202", f"{about}: decided {before_words}, now {now_words}", golden=golden, candidate=candidate,
            expected=before_words, actual=now_words, lines=(one.line or None, other.line or None),
        )  # fmt: skip
    gone, come = left[len(replaced) :], right[len(replaced) :]
    if gone:
        text = ", ".join(_words(before[n]) for n in gone)
        scene.change(
            "GT203", f"{about}: did not decide {text}", golden=golden, candidate=candidate, expected=text,
            lines=(before[gone[0]].line or None, _line_of(scene, candidate)),
        )  # fmt: skip
    if come:
        text = ", ".join(_words(now[n]) for n in come)
        scene.change(
            "GT204", f"{about}: decided {text} in addition", golden=golden, candidate=candidate, actual=text,
            lines=(_golden_line(scene, golden), now[come[0]].line or None),
        )  # fmt: skip


def _pairs(before: list[Made], now: list[Made]) -> list[tuple[int, int]]:
    """Decisions of one kind at one place first, then those of one kind in the gaps that these leave."""
    anchors, _ = align([_core(d) for d in before], [_core(d) for d in now])
    pairs: list[tuple[int, int]] = []
    start = (0, 0)
    for g, c in [*anchors, (len(before), len(now))]:
        inner, _ = align([d.kind for d in before[start[0] : g]], [d.kind for d in now[start[1] : c]])
        pairs.extend((start[0] + one, start[1] + other) for one, other in inner)
        if g < len(before):
            pairs.append((g, c))
        start = g + 1, c + 1
    return pairs


def _line_of(scene: Scene, candidate: int | None) -> int | None:
    return None if candidate is None else scene.candidate.operations[candidate].first.call_line


def _golden_line(scene: Scene, golden: int | None) -> int | None:
    return None if golden is None else scene.golden.operations[golden].first.call_line


def _place(made: Made, golden: int | None) -> str:
    """Where a decision was made, in words: the attempt it followed, or how many calls that both sides have."""
    return f" after attempt {made.place}" if golden is not None else f" after {made.place} calls that both sides have"


def _words(made: Made) -> str:
    parts = [made.kind]
    if made.reason is not None:
        parts.append(f"({made.reason})")
    if made.by is not None:
        parts.append(f"by the {made.by}")
    if made.agent is not None:
        parts.append(f"of {made.agent}")
    return " ".join(parts)
