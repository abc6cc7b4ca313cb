"""Does the ledger hold what the plan expects? Counts without tolerance; the same answer from the server and from a
trace."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from goldentrace.codec.canonical import canonical
from goldentrace.faults.journal import value_of
from goldentrace.model.event import AnyEvent, Effect


@dataclass(frozen=True, slots=True)
class EffectDifference:
    """One effect that is not as expected. expected and actual: a count, or the sorted values where values are
    expected."""

    name: str
    expected: Any
    actual: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """counts: name -> how often each effect happened; differences: sorted by name, empty if all is as expected."""

    counts: dict[str, int]
    differences: tuple[EffectDifference, ...]

    @property
    def is_ok(self) -> bool:
        return not self.differences


def verify(expected: Mapping[str, int | list[Any]], effects: Iterable[tuple[str, Any]]) -> Verdict:
    """Compare effects with what is expected of them.

    expected: name -> count, or the values in any order; effects: (name, value). An effect that nothing is said about is
    not judged here; the diff compares it with the golden's.
    """
    found: dict[str, list[Any]] = {}
    for name, value in effects:
        found.setdefault(name, []).append(value)
    differences = []
    for name in sorted(expected):
        want, values = expected[name], found.get(name, [])
        if isinstance(want, int):
            if len(values) != want:
                differences.append(EffectDifference(name, want, len(values)))
        elif _counted(values) != _counted(want):
            differences.append(EffectDifference(name, _sorted(want), _sorted(values)))
    return Verdict({name: len(values) for name, values in sorted(found.items())}, tuple(differences))


def effects_of(events: Iterable[AnyEvent]) -> list[tuple[str, Any]]:
    """Return (name, value) of the effect events, in order; value None where the event has none."""
    return [(event.name, value_of(event.value)) for event in events if isinstance(event, Effect)]


def _counted(values: list[Any]) -> Counter[bytes]:
    return Counter(canonical(value) for value in values)


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=canonical)
