"""How well the rules find the redundant steps that people labelled: the metric of RedundancyBench, version 1.

Per task G is the set of labelled message indexes and P the set of predicted ones; tp, fp and fn are summed over the
tasks of the annotation file (a task without predictions predicts nothing); precision, recall and F1 come from the
sums. A flagged call predicts two indexes, the message of the call and that of its result; calls of the simulated user
are never predicted. Accuracy is the share of tasks with P = G, trajectory accuracy of those where both or neither are
empty.
Source: RedundancyBench (arXiv 2605.29893), evaluate.py, in own words. Must not know what a rule looks for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.errors import InputError, Where
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.registry import judge
from goldentrace.rules.subject import Subject

RULES: Final = ("GT1001", "GT1002", "GT1004", "GT1005", "GT1101", "GT1102", "GT1103")
"""The rules whose findings are redundant calls. GT1003 is not among them: a re-read may be of use."""
USER_AGENT: Final = "user"


@dataclass(frozen=True, slots=True)
class Annotation:
    """The labels of one task: message index -> type of step."""

    task_id: str
    steps: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Score:
    """The metric. by_type: type of step -> (labelled indexes found, labelled indexes)."""

    tasks: int
    tp: int
    fp: int
    fn: int
    exact: int
    agreeing: int
    by_type: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        return _ratio(2 * self.precision * self.recall, self.precision + self.recall)

    @property
    def accuracy(self) -> float:
        return _ratio(self.exact, self.tasks)

    @property
    def trajectory_accuracy(self) -> float:
        return _ratio(self.agreeing, self.tasks)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def read_annotations(data: bytes, path: str) -> list[Annotation]:
    """Return the labels of a file: version 1 (lists of indexes) or 2 (lists of [call, result]).

    Raises: InputError naming the entry for anything else, or a task that stands twice.
    """
    try:
        value = decode(data)
    except JsonError as error:
        raise InputError(str(error), where=Where(path), next_step="give the benchmark's annotation file") from None
    if not isinstance(value, list):
        raise InputError("no list of annotations", where=Where(path), next_step="give the benchmark's annotation file")
    found: dict[str, Annotation] = {}
    for number, entry in enumerate(value):
        annotation = _annotation(entry, Where(path, None, f"$[{number}]"))
        if annotation.task_id in found:
            raise InputError(
                f"task {annotation.task_id!r} stands twice", where=Where(path, None, f"$[{number}]"),
                next_step="keep one entry per task",
            )  # fmt: skip
        found[annotation.task_id] = annotation
    return list(found.values())


def _annotation(entry: Any, where: Where) -> Annotation:
    task_id = entry.get("task_id") if isinstance(entry, dict) else None
    indexes = entry.get("redundant_step_idx") if isinstance(entry, dict) else None
    if not isinstance(task_id, str | int) or not isinstance(indexes, list):
        raise InputError(
            "no annotation: task_id and redundant_step_idx are needed",
            where=where,
            next_step="see the benchmark's format",
        )
    types = entry.get("redundant_step_type")
    types = types if isinstance(types, list) else []
    steps: dict[int, str] = {}
    for place, index in enumerate(indexes):
        kind = types[place] if place < len(types) and isinstance(types[place], str) else "unlabelled"
        for each in index if isinstance(index, list) else [index]:
            if not isinstance(each, int) or isinstance(each, bool) or each < 0:
                raise InputError(
                    f"redundant_step_idx holds {each!r}", where=where, next_step="message indexes are integers from 0"
                )
            steps[each] = kind
    return Annotation(str(task_id), steps)


def predict(trace: Trace, profile: Profile, *, select: Iterable[str] = RULES, patterns: Iterable[str] = ()) -> set[int]:
    """Return the message indexes of the calls that rules flag, and of their results.

    patterns: regular expressions over an ok text that mean failure, for every tool; for formats without a flag.
    """
    profile = _with_patterns(profile, trace, list(patterns))
    normal = normalize(trace, profile, "h:eval")
    subject = Subject(trace, normal, profile, {}, profile.rules)
    judge(subject, select=select)
    found: set[int] = set()
    for operation, attempt in subject.attempts:
        if attempt.call_index in subject.claimed and operation.agent != USER_AGENT:
            for index in (attempt.call_index, attempt.result_index):
                place = None if index is None else (trace.events[index].extra or {}).get("message_index")
                if isinstance(place, int):
                    found.add(place)
    return found


def _with_patterns(profile: Profile, trace: Trace, patterns: list[str]) -> Profile:
    if not patterns:
        return profile
    tools = dict(profile.tools)
    for name in {call.tool_name for call in trace.calls()}:
        own = profile.tool(name)
        tools[name] = msgspec.structs.replace(own, error_patterns=[*own.error_patterns, *patterns])
    return msgspec.structs.replace(profile, tools=tools)


def task_of(trace: Trace, known: Iterable[str]) -> str | None:
    """Return the task of a trace as the annotations name it: by its id, its task_id, or its scenario."""
    start = trace.start
    scenario = start.scenario_id
    names = (
        start.trace_id,
        (start.attributes or {}).get("task_id"),
        scenario,
        scenario.removeprefix("task-") if scenario is not None else None,
    )
    known = frozenset(known)
    return next((str(name) for name in names if name is not None and str(name) in known), None)


def score(annotations: Iterable[Annotation], predictions: Mapping[str, Iterable[int]]) -> Score:
    """Return the metric over all annotated tasks. predictions: task -> message indexes."""
    tasks = tp = fp = fn = exact = agreeing = 0
    by_type: dict[str, tuple[int, int]] = {}
    for annotation in annotations:
        labelled, predicted = set(annotation.steps), set(predictions.get(annotation.task_id, ()))
        tasks += 1
        tp += len(labelled & predicted)
        fp += len(predicted - labelled)
        fn += len(labelled - predicted)
        exact += labelled == predicted
        agreeing += bool(labelled) == bool(predicted)
        for index, kind in annotation.steps.items():
            hits, of = by_type.get(kind, (0, 0))
            by_type[kind] = (hits + (index in predicted), of + 1)
    return Score(tasks, tp, fp, fn, exact, agreeing, dict(sorted(by_type.items())))
