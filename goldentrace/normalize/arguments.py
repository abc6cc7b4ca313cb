"""Arguments as a golden writes them: leaves named by provenance, and the hash over their reduced form.

Arguments without ids, secrets or clock values depend on nothing else in the trace, so their leaves are made once per
distinct text (`ArgumentCache`). This module must not decide in which order operations are named.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from goldentrace.codec.canonical import ARGS_DIGITS, JsonError, canonical, digest
from goldentrace.errors import InputError, Where
from goldentrace.model.event import Event
from goldentrace.model.normal import Masked
from goldentrace.model.operation import LeafMap, WrittenLeaf
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.leaves import Flat, Leaf, LeafReader, Mixed, Moment
from goldentrace.normalize.moments import moment_placeholder
from goldentrace.normalize.operations import Try
from goldentrace.normalize.payloads import flatten_call
from goldentrace.normalize.provenance import NewIds, Provenance
from goldentrace.normalize.text import Token


class ArgumentCache(msgspec.Struct):
    """Leaves and hash per distinct argument text, shared by both sides of a comparison under one profile.

    is_used False computes everything anew: the output must be the same.
    """

    is_used: bool = True
    plain: dict[tuple[str, bytes], tuple[LeafMap, str | None]] = msgspec.field(default_factory=dict)


class ArgumentWriter:
    """Writes the arguments of one trace's attempts. masked: where every replaced value is listed, None where
    unwanted."""

    def __init__(
        self, trace: Trace, profile: Profile, reader: LeafReader, cache: ArgumentCache, masked: list[Masked] | None
    ) -> None:
        self.trace = trace
        self.profile = profile
        self.reader = reader
        self.cache = cache
        self.masked = masked
        self.flats: dict[int, Flat] = {}
        self.ids: dict[int, dict[str, tuple[str, ...]]] = {}
        """Index of a call's or effect's event -> place -> the ids that the placeholders there stand for, in order."""
        self.provenance = Provenance(frozenset())

    def prepare(self, attempt: Try) -> Flat | None:
        """Flatten an attempt's arguments once: to what is written, where that is certain, else to leaves (returned)."""
        call = attempt.call
        is_cachable = self.cache.is_used and call.idempotency_key is None and call.args_raw is None
        name: tuple[str, bytes] | None = None
        if is_cachable:
            name = (call.tool_name if call.tool_name in self.profile.tools else "", bytes(call.args))
            attempt.plain = self.cache.plain.get(name)
            if attempt.plain is not None:
                return None
        flat = self._flatten(attempt)
        if flat.specials:
            self.flats[attempt.call_index] = flat
            return flat
        attempt.plain = (flat.leaves, _hash_of(flat.leaves))  # type: ignore[assignment]
        if name is not None:
            self.cache.plain[name] = attempt.plain  # type: ignore[assignment]
        return None

    def _flatten(self, attempt: Try) -> Flat:
        try:
            return flatten_call(self.reader, attempt.call, self.profile.tools.get(attempt.call.tool_name))
        except JsonError as error:
            where = Where(self.trace.path, self.trace.line_of(attempt.call_index), "$.args")
            raise InputError(str(error), where=where, next_step="put what is no JSON in `args_raw`, as text") from None

    def leaves(self, attempt: Try) -> Iterable[Leaf]:
        """Return the leaves of an attempt that are not written yet."""
        flat = self.flats.get(attempt.call_index)
        return () if flat is None else [flat.leaves[pointer] for pointer in flat.specials]

    def written(self, attempt: Try, new: NewIds, label: str | None) -> tuple[LeafMap, str | None]:
        """The written leaf map of an attempt and the hash over its reduced form."""
        if attempt.plain is not None:
            return attempt.plain
        call = attempt.call
        flat = self.flats[attempt.call_index]
        written: LeafMap = {}
        reduced: dict[str, Any] = {}
        for pointer in sorted(flat.leaves, key=_place):  # names count, and the order of keys says nothing
            leaf = flat.leaves[pointer]
            if isinstance(leaf, Mixed):
                written[pointer], reduced[pointer], ids = self.name_mixed(leaf, pointer, new, label)
                self.ids.setdefault(attempt.call_index, {})[pointer] = ids
            elif isinstance(leaf, Moment):
                written[pointer] = reduced[pointer] = self.name_moment(leaf, call, pointer, label)
            else:
                written[pointer] = reduced[pointer] = leaf
        for places in reversed(flat.unordered):
            self._settle(places, written, reduced, attempt.call_index, new)
        return written, _hash_of(reduced)

    def _settle(self, places: list[str], written: LeafMap, reduced: dict[str, Any], index: int, new: NewIds) -> None:
        """Put elements without an order into that of what they are written as, since their ids have names now."""
        short, full = _elements(reduced, places), _elements(written, places)
        order = sorted(places, key=lambda place: (canonical(short[place]), canonical(full[place])))
        if order == places:
            return
        ids = self.ids.get(index, {})
        for leaves in (written, reduced, ids):
            elements = _elements(leaves, places)
            for place in places:
                for rest in elements[place]:
                    del leaves[place + rest]
            for place, before in zip(places, order, strict=True):
                leaves.update({place + rest: leaf for rest, leaf in elements[before].items()})
        moved = dict(zip(order, places, strict=True))
        start = _start(places)
        for value, (attempt, pointer) in new.places.items():
            place, rest = _element(pointer, start)
            if attempt == new.attempt and place in moved:
                new.places[value] = attempt, moved[place] + rest

    def name_mixed(
        self, leaf: Mixed, pointer: str, new: NewIds, label: str | None
    ) -> tuple[WrittenLeaf, WrittenLeaf, tuple[str, ...]]:
        """Return a leaf as written, as reduced for the key, and the ids that its placeholders stand for.

        One that is one placeholder is written as that; a mixed one as the digest of its template and placeholders.
        """
        template: list[Any] = []
        written: list[str] = []
        reduced: list[str] = []
        ids: list[str] = []
        for segment in leaf.segments:
            if isinstance(segment, str):
                template.append(segment)
                continue
            if segment.kind == "path":
                template.append({"path": segment.value})
                self._explain(label, pointer, segment, f"<{segment.value}>")
                continue
            place = pointer if len(leaf.segments) == 1 else f"{pointer}~{len(ids) + 1}"
            found = (
                self.provenance.name_secret(segment)
                if segment.kind == "secret"
                else self.provenance.name(segment, place, new)
            )
            if found is None:
                template.append(segment.text)
                continue
            template.append({})
            if segment.is_id:
                ids.append(segment.value)
            written.append(found.written)
            reduced.append(found.reduced)
            self._explain(label, pointer, segment, found.written)
        template = _merged(template)
        if template == [{}]:
            return written[0], reduced[0], tuple(ids)
        if all(isinstance(part, str) for part in template):
            plain = self.reader.describe("".join(template))
            return plain, plain, ()
        length = sum(
            len(part) if isinstance(part, str) else len(part.get("path", "")) + 2 for part in template if part != {}
        )
        shape = f"str[{length}] {self.reader.digest(template)}"
        return " ".join((shape, *written)), " ".join((shape, *reduced)), tuple(ids)

    def name_moment(self, leaf: Moment, event: Event, pointer: str, label: str | None) -> WrittenLeaf:
        """Return a leaf that may be the clock's as written: by its distance from the clock of its event."""
        placeholder = moment_placeholder(leaf, event)
        if placeholder is None:
            return leaf.written
        self._explain(label, pointer, Token("now", "", str(leaf.at_ms), "time/now"), placeholder)
        return placeholder

    def _explain(self, label: str | None, pointer: str, token: Token, placeholder: str) -> None:
        if self.masked is not None and label is not None:
            shown = "(secret)" if token.kind == "secret" else token.text
            self.masked.append(Masked(label, pointer, shown, placeholder, token.rule))


def _hash_of(leaves: Mapping[str, Any]) -> str | None:
    """The digest over a reduced leaf map; None for no arguments at all."""
    return digest(canonical(leaves), ARGS_DIGITS) if leaves else None


_END: Final = re.compile(r"[/#~]|$")


def _start(places: list[str]) -> int:
    """Where the names of elements begin in pointers of their container."""
    return places[0].rindex("/") + 1


def _element(pointer: str, start: int) -> tuple[str, str]:
    """A pointer as the place of the element that it is in, and the rest."""
    match = _END.search(pointer, min(start, len(pointer)))
    end = match.start() if match is not None else len(pointer)
    return pointer[:end], pointer[end:]


def _elements(leaves: Mapping[str, Any], places: list[str]) -> dict[str, dict[str, Any]]:
    """Place of an element -> what stands in it, by the rest of its pointers."""
    found: dict[str, dict[str, Any]] = {place: {} for place in places}
    start = _start(places)
    for pointer, leaf in leaves.items():
        place, rest = _element(pointer, start)
        if place in found:
            found[place][rest] = leaf
    return found


def _place(pointer: str) -> list[str]:
    """Pointers in the order of their keys, elements of a list by number."""
    return [part.zfill(10) if part.isdigit() else part for part in pointer.split("/")]


def _merged(template: list[Any]) -> list[Any]:
    merged: list[Any] = []
    for part in template:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged
