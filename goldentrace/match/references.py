"""Is the id that the candidate used the one that the golden's placeholder means?

After alignment a placeholder is a reference: it is evaluated in the candidate, at that place of the paired operation,
and equals if the value found there is the candidate's. If the place is gone, the same paired operation suffices.
Between two golden files, which hold no values, the placeholders are compared through the mapping. Comparing "first
seen" names alone alarmed on an inserted twin read, on swapped reads and on a dropped duplicate field.
"""

import re
from enum import Enum
from typing import Final

import msgspec

from goldentrace.model.normal import NormalTrace
from goldentrace.model.placeholder import Placeholder, parse_leaf

_ELEMENT: Final = re.compile(r"\{(\d+):([0-9a-f]+)\}")


class Relation(Enum):
    """How a leaf of the candidate relates to the golden's."""

    SAME = "same"
    CHANGED = "changed"
    OTHER_ID = "other id"
    UNKNOWN = "unknown"
    UNSAID = "unsaid"
    """The golden does not say where the id came from: nothing to compare, and no agreement."""


class References(msgspec.Struct):
    """Evaluates leaves of paired operations. to_candidate: golden operation -> candidate operation."""

    golden: NormalTrace
    candidate: NormalTrace
    to_candidate: dict[int, int] = msgspec.field(default_factory=dict)
    secrets: dict[str, str] = msgspec.field(default_factory=dict)
    _labels: dict[bool, dict[str, int]] = msgspec.field(default_factory=dict)
    """Is it the golden? -> label -> operation; made when first asked for, because many runs pass no id on."""
    _twins: dict[tuple[str, str, str | None], list[int]] = msgspec.field(default_factory=dict)

    def _labels_of(self, *, is_golden: bool) -> dict[str, int]:
        found = self._labels.get(is_golden)
        if found is None:
            side = self.golden if is_golden else self.candidate
            found = self._labels[is_golden] = {operation.label: n for n, operation in enumerate(side.operations)}
        return found

    def golden_index(self, label: str) -> int | None:
        """Return the golden operation of a label, None where no operation has it."""
        return self._labels_of(is_golden=True).get(label)

    def candidate_index(self, label: str) -> int | None:
        """Return the candidate operation of a label, None where no operation has it."""
        return self._labels_of(is_golden=False).get(label)

    def resolved(self, written: str, to_golden: dict[int, int] | None) -> tuple[object, ...]:
        """Return a leaf's references as golden operations where they are paired, for the keys of the second alignment.

        to_golden: candidate operation -> golden operation, where the leaf is the candidate's; None where the golden's.
        """
        shape, found = parse_leaf(written)
        names: list[object] = [shape]
        for reference in found:
            if reference.kind not in ("result", "args"):
                names.append(reference.kind)
            elif to_golden is None:
                names.append(self._labels_of(is_golden=True).get(reference.label, reference.label))
            else:
                index = self._labels_of(is_golden=False).get(reference.label, -1)
                names.append(to_golden.get(index, f"candidate {index}"))
        return tuple(names)

    def relate(self, written: str, actual: str, candidate: int, pointer: str, attempt: int) -> Relation:
        """Compare one written leaf of the golden with the candidate's. candidate: operation; attempt: 0-based."""
        if "<" not in written and "<" not in actual:
            return Relation.SAME if written == actual else Relation.CHANGED
        payloads = self.candidate.payloads
        ids = () if payloads is None else payloads.argument_ids(candidate, pointer, attempt)
        return self._relate_leaf(written, actual, ids, candidate)

    def relate_effect(self, written: str, actual: str, event: int, place: str) -> Relation:
        """Compare one written leaf of the golden's ledger with the candidate's.

        event: index of the candidate's effect; place: `key` or `value` with the pointer in it. Where the call is gone
        that the golden takes an id from, that is told of it, and nothing is known of the id.
        """
        if "<" not in written and "<" not in actual:
            return Relation.SAME if written == actual else Relation.CHANGED
        payloads = self.candidate.payloads
        ids = () if payloads is None else payloads.effect_ids(event, place)
        relation = self._relate_leaf(written, actual, ids, len(self.candidate.operations))
        if relation is Relation.OTHER_ID:
            sources = [self.golden_index(one.label) for one in parse_leaf(written)[1] if one.label]
            if any(source is None or source not in self.to_candidate for source in sources):
                return Relation.UNSAID
        return relation

    def _relate_leaf(self, written: str, actual: str, ids: tuple[str, ...], before: int) -> Relation:
        """ids: those that the placeholders of the candidate's leaf stand for; before: operations that may supply
        them."""
        shape, expected = parse_leaf(written)
        other_shape, found = parse_leaf(actual)
        if shape != other_shape or len(expected) != len(found):
            return Relation.CHANGED
        nth_id = 0
        worst = Relation.SAME
        for one, other in zip(expected, found, strict=True):
            relation = self._relate_one(one, other, ids[nth_id : nth_id + 1], before)
            nth_id += other.kind not in ("clock", "secret")
            if relation is Relation.CHANGED:
                return relation
            if relation is not Relation.SAME and worst is not Relation.OTHER_ID:
                worst = relation
        return worst

    def _relate_one(self, expected: Placeholder, found: Placeholder, ids: tuple[str, ...], before: int) -> Relation:
        if "clock" in (expected.kind, found.kind):
            return Relation.SAME if expected.text == found.text else Relation.CHANGED
        if "secret" in (expected.kind, found.kind):
            return self._relate_secrets(expected, found)
        if expected.kind == "unknown":
            return Relation.UNSAID
        if found.kind == "unknown":
            return Relation.UNKNOWN
        if "new" in (expected.kind, found.kind):  # no result and no call before this one held the id
            return Relation.SAME if expected.text == found.text else Relation.OTHER_ID
        if self.candidate.payloads is None:
            return self._relate_names(expected, found)
        return self._relate_values(expected, ids, before)

    def _relate_secrets(self, expected: Placeholder, found: Placeholder) -> Relation:
        if expected.kind != found.kind:
            return Relation.CHANGED
        forward = self.secrets.setdefault("golden " + expected.text, found.text)
        backward = self.secrets.setdefault("candidate " + found.text, expected.text)
        return Relation.SAME if (forward, backward) == (found.text, expected.text) else Relation.OTHER_ID

    def _relate_names(self, expected: Placeholder, found: Placeholder) -> Relation:
        """Two golden files: the labels through the mapping, the places by the digests of elements, else by their
        indexes."""
        if (expected.kind, expected.attempt) != (found.kind, found.attempt):
            return Relation.OTHER_ID
        if not _is_same_place(expected.place, found.place):
            return Relation.OTHER_ID
        source = self.golden_index(expected.label)
        mapped = self.to_candidate.get(source) if source is not None else None
        is_same = mapped is not None and mapped == self.candidate_index(found.label)
        return Relation.SAME if is_same else Relation.OTHER_ID

    def _relate_values(self, expected: Placeholder, ids: tuple[str, ...], before: int) -> Relation:
        source = self.golden_index(expected.label)
        if source is None or not ids:
            return Relation.OTHER_ID
        mapped = self.to_candidate.get(source)
        sources = [mapped] if mapped is not None else self._twins_of(source)
        earlier = [one for one in sources if one < before]  # what runs later supplied nothing
        return Relation.SAME if any(self._holds(one, expected, ids[0]) for one in earlier) else Relation.OTHER_ID

    def _twins_of(self, source: int) -> list[int]:
        """Candidate operations paired with golden operations that ask for exactly what a missing one asked for."""
        if not self._twins:
            for index, operation in enumerate(self.golden.operations):
                self._twins.setdefault(operation.key, []).append(index)
        twins = self._twins[self.golden.operations[source].key]
        return [self.to_candidate[twin] for twin in twins if twin in self.to_candidate]

    def _holds(self, operation: int, expected: Placeholder, value: str) -> bool:
        payloads = self.candidate.payloads
        assert payloads is not None
        if expected.kind == "args":
            attempt = (expected.attempt or 1) - 1
            found = payloads.argument_ids(operation, expected.place, attempt)
            pointer, _, nth = expected.place.rpartition("~")
            if not found and nth.isdigit():  # the n-th id of a text
                found = payloads.argument_ids(operation, pointer, attempt)[int(nth) - 1 : int(nth)]
            return value in found
        found = payloads.result_ids(operation, expected.place, expected.attempt)
        return value in found if found else payloads.has_id(operation, value)


def _is_same_place(one: str, other: str) -> bool:
    """The digest of an element decides; where another stands there, its content may be what changed: the index does."""
    if _ELEMENT.sub("{}", one) != _ELEMENT.sub("{}", other):
        return False
    elements = zip(_ELEMENT.findall(one), _ELEMENT.findall(other), strict=True)
    return all(digest == its_digest or index == its_index for (index, digest), (its_index, its_digest) in elements)
