"""Arguments of a pair: which leaf has another value (GT101), which id is another (GT109).

Values are shown where they are known: the candidate's always, the golden's only from a kept leaf or from the local
store that the caller gives; the verdict never depends on them. A list with one element more is one change, at the list.
"""

from typing import Any

from goldentrace.diff.collapse import collapse_like
from goldentrace.diff.scene import Scene
from goldentrace.match.references import Relation
from goldentrace.model import pointer as pointers
from goldentrace.model.change import Change
from goldentrace.model.operation import LeafMap, Operation
from goldentrace.normalize.ids import find_ids


def compare_arguments(scene: Scene, golden: int, candidate: int) -> None:
    """Add at most one GT101 and one GT109 for the pair, all attempts together."""
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    changed: dict[str, tuple[Any, Any, int]] = {}
    moved_ids: dict[str, tuple[Any, Any, int]] = {}
    for number, (expected, full) in enumerate(_maps(one, other)):
        if expected is full:
            continue
        actual = collapse_like(full, expected)
        for pointer in sorted(expected.keys() | actual.keys()):
            relation = _relate(scene, expected, actual, candidate, pointer, number)
            if relation is Relation.UNSAID:
                scene.note("ids of unknown provenance in the golden, which was recorded without results")
            if relation in (Relation.SAME, Relation.UNSAID):
                continue
            found = (expected.get(pointer), actual.get(pointer), number)
            if relation is Relation.UNKNOWN:
                scene.refuse(
                    f"{one.label} {pointer}: the golden takes this id from {expected[pointer]}, "
                    "and the candidate's source left out results that it may have come from"
                )
            elif relation is Relation.OTHER_ID:
                moved_ids.setdefault(pointer, found)
            else:
                changed.setdefault(pointer, found)
    if changed:
        _add_changed(scene, golden, candidate, changed)
    if moved_ids:
        _add_other_ids(scene, golden, candidate, moved_ids)


def _maps(one: Operation, other: Operation) -> list[tuple[LeafMap, LeafMap]]:
    """The argument maps of attempt k on both sides, for as many attempts as both have; a map is not repeated."""
    left, right = _attempt_maps(one), _attempt_maps(other)
    return list(zip(left, right, strict=False))


def _attempt_maps(operation: Operation) -> list[LeafMap]:
    maps: list[LeafMap] = []
    for attempt in operation.attempts:
        if not maps:
            maps.append(operation.args)
        else:
            maps.append(maps[-1] if attempt.args is None else attempt.args)
    return maps


def _relate(scene: Scene, expected: LeafMap, actual: LeafMap, candidate: int, pointer: str, attempt: int) -> Relation:
    one, other = expected.get(pointer), actual.get(pointer)
    if isinstance(one, str) and isinstance(other, str):
        return scene.references.relate(one, other, candidate, pointer, attempt)
    return Relation.SAME if one == other and pointer in expected and pointer in actual else Relation.CHANGED


def _add_changed(scene: Scene, golden: int, candidate: int, changed: dict[str, tuple[Any, Any, int]]) -> Change:
    one, other = scene.golden.operations[golden], scene.candidate.operations[candidate]
    places = list_changes(one.args, other.args, list(changed))
    first = places[0]
    expected, actual, number = changed.get(first, (None, None, 0))
    lengths = _lengths(one.args), _lengths(other.args)
    is_container = first in lengths[0] or first in lengths[1]
    shown = None if is_container else _shown_argument(scene, candidate, first, number)
    if is_container:
        expected, actual = (
            _shown_container(side.args, first, of) for side, of in zip((one, other), lengths, strict=True)
        )
    message = _count_message(places, one, other)
    return scene.change(
        "GT101", message, golden=golden, candidate=candidate, pointers=tuple(places),
        expected=_display(expected), actual=shown if shown is not None else _display(actual),
        attempt=number + 1 if number else None, hint=_hint(scene, changed, candidate),
    )  # fmt: skip


def _count_message(places: list[str], one: Operation, other: Operation) -> str:
    total = len(one.args.keys() | other.args.keys())
    if len(places) == 1:
        return f"{one.label}: argument {places[0] or '(the whole value)'} differs"
    return f"{one.label}: {len(places)} of {total} arguments differ"


def list_changes(expected: LeafMap, actual: LeafMap, changed: list[str]) -> list[str]:
    """Return the changed pointers with those inside a list whose length differs replaced by the list's own."""
    lengths = None
    places: dict[str, None] = {}
    for pointer in changed:
        place = pointer
        parts = pointer.partition("#")[0].split("/")
        for depth in range(1, len(parts)):
            if not parts[depth].isdigit():
                continue
            lengths = lengths or (_lengths(expected), _lengths(actual))
            container = "/".join(parts[:depth])
            if lengths[0].get(container, 0) != lengths[1].get(container, 0):
                place = container
                break
        places[place] = None
    return list(places)


def _lengths(leaves: LeafMap) -> dict[str, int]:
    """How many elements each list has, told by the leaves; -1 for what has other keys than numbers."""
    heads: dict[str, set[str]] = {}
    for pointer in leaves:
        container, *rest = pointer.split("/")
        for segment in rest:
            heads.setdefault(container, set()).add(segment.partition("#")[0].partition("~")[0])
            container += f"/{segment}"
    return {container: len(keys) if all(key.isdigit() for key in keys) else -1 for container, keys in heads.items()}


def _shown_container(leaves: LeafMap, container: str, lengths: dict[str, int]) -> Any:
    """What stands where one side at least has a list: how long it is, for the values of a golden are not known."""
    length = lengths.get(container)
    if length is None:
        leaf = leaves.get(container)
        return "0 elements" if leaf == "[]" else _display(leaf)
    return "an object" if length < 0 else f"{length} element{'s' if length != 1 else ''}"


def _add_other_ids(scene: Scene, golden: int, candidate: int, found: dict[str, tuple[Any, Any, int]]) -> Change:
    one = scene.golden.operations[golden]
    places = tuple(found)
    expected, actual, number = found[places[0]]
    what = f"{len(places)} ids come" if len(places) > 1 else "an id comes"
    return scene.change(
        "GT109", f"{one.label}: {what} from elsewhere at {', '.join(places)}", golden=golden, candidate=candidate,
        pointers=places, expected=expected, actual=actual, attempt=number + 1 if number else None,
    )  # fmt: skip


def _shown_argument(scene: Scene, candidate: int, pointer: str, attempt: int) -> Any:
    payloads = scene.candidate.payloads
    if payloads is None or attempt:
        return None
    is_there, value = payloads.argument(candidate, pointer)
    return value if is_there else None


def _display(leaf: Any) -> Any:
    return leaf["value"] if isinstance(leaf, dict) and set(leaf) == {"value"} else leaf


def _hint(scene: Scene, changed: dict[str, tuple[Any, Any, int]], candidate: int) -> str | None:
    """The `ids.keys` line that would mask a value which looks generated: a mix of letters and digits of some length."""
    for pointer, (expected, _, number) in changed.items():
        actual = _shown_argument(scene, candidate, pointer, number)
        if not isinstance(expected, str) or not expected.startswith("str[") or not isinstance(actual, str):
            continue
        if expected.startswith(f"str[{len(actual)}] ") and looks_generated(actual):
            key = pointers.segments(pointer.partition("#")[0])[-1] if "/" in pointer else pointer
            return f"if this value is drawn anew in each run, add to the profile: ids: {{keys: [{key}]}}"
    return None


def looks_generated(text: str) -> bool:
    """Might a program have drawn this text at random? At least eight characters, letters and digits mixed, no blank."""
    if len(text) < 8 or not text.replace("-", "").replace("_", "").isalnum() or find_ids(text):
        return False
    return sum(char.isdigit() for char in text) >= 2 and sum(char.isalpha() for char in text) >= 2
