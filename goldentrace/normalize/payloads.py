"""The values behind a normalized run: what an argument was, which id stands where in a result, who used whose values.

Only a run has them; a golden file holds no value. So a verdict may ask them about the candidate alone, and about the
golden only for what is shown. Decoded lazily: most operations are never asked about.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from goldentrace.codec.canonical import MAX_DEPTH, JsonError, decode
from goldentrace.model import pointer as pointers
from goldentrace.model.event import ABSENT, ToolCall
from goldentrace.normalize.elements import ResultDocument
from goldentrace.normalize.ids import id_values
from goldentrace.normalize.leaves import Flat, LeafReader, Mixed
from goldentrace.normalize.operations import Group, Try

Scalar: TypeAlias = tuple[type, Any]
_CACHED_BYTES = 200
"""Values of documents up to this size are kept: small results repeat, large ones do not."""
_SMALL = 10
_SHORT = 3
"""A value this small is shared by chance: |number| < 10 and strings under 3 characters name no source."""


class RunPayloads:
    """Implements `model.normal.Payloads` over the recorded operations of one trace."""

    def __init__(
        self,
        reader: LeafReader,
        groups: list[Group],
        members: list[int],
        argument_ids: Mapping[int, Mapping[str, tuple[str, ...]]],
    ) -> None:
        """groups: in canonical order; members: number of the canonical unit (batch or serial call) of each;
        argument_ids: index of a call's or effect's event -> place -> the ids that placeholders stand for."""
        self._reader = reader
        self._groups = groups
        self._members = members
        self._argument_ids = argument_ids
        self._documents: dict[int, list[ResultDocument | None]] = {}
        self._ids: dict[int, set[str]] = {}
        self._uses: list[tuple[int, ...]] | None = None
        self._scalars: dict[bytes, set[Scalar]] = {}

    def argument(self, operation: int, pointer: str) -> tuple[bool, Any]:
        """Return whether a value stands at that leaf of the first attempt's arguments, and which, secrets redacted."""
        call = self._groups[operation].first.call
        if pointer == "#idempotency_key":
            return call.idempotency_key is not None, self._shown(call.idempotency_key)
        if pointer == "#raw":
            return call.args_raw is not None, self._shown(call.args_raw)
        try:
            value = _decoded(call.args)
        except JsonError:
            return False, None
        for key in pointers.segments(pointer.partition("#")[0].rpartition("~~")[0] or pointer.partition("#")[0]):
            if isinstance(value, str):
                try:
                    value = decode(value)
                except JsonError:
                    return False, None
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            else:
                return False, None
        return True, self._shown(value, pointer.rpartition("/")[2])

    def _shown(self, value: Any, key: str | None = None) -> Any:
        return self._reader.redactor.redact_value(value, {}, key)

    def argument_ids(self, operation: int, pointer: str, attempt: int = 0) -> tuple[str, ...]:
        """Return the ids that one argument leaf has placeholders for, in order, in comparable form.

        attempt: 0-based.
        """
        tries = self._groups[operation].tries()
        index = tries[min(attempt, len(tries) - 1)].call_index
        return self._argument_ids.get(index, {}).get(pointer, ())

    def effect_ids(self, event: int, place: str) -> tuple[str, ...]:
        """Return the ids that one leaf of an effect has placeholders for, in order, in comparable form."""
        return self._argument_ids.get(event, {}).get(place, ())

    def documents(self, operation: int) -> list[ResultDocument | None]:
        """Return the decoded result of each attempt of an operation, None where there is none."""
        found = self._documents.get(operation)
        if found is None:
            values = [result_value(attempt) for attempt in self._groups[operation].tries()]
            found = [None if value is None else ResultDocument(value, self._reader) for value in values]
            self._documents[operation] = found
        return found

    def result_ids(self, operation: int, pointer: str, attempt: int | None = None) -> tuple[str, ...]:
        """Return the ids at a named place of the last result, or of that attempt's (from 1); none where it is gone."""
        documents = self.documents(operation)
        document = documents[-1] if attempt is None else documents[attempt - 1] if attempt <= len(documents) else None
        return document.ids_at(pointer) if document is not None else ()

    def has_id(self, operation: int, value: str) -> bool:
        """Does any result of the operation hold this id?"""
        found = self._ids.get(operation)
        if found is None:
            found = set()
            for attempt in self._groups[operation].tries():
                if attempt.result is not None:
                    found |= id_values(bytes(attempt.result.result))
            self._ids[operation] = found
        return value in found or any(
            document is not None and document.places({value}) for document in self.documents(operation)
        )

    def uses(self, operation: int) -> tuple[int, ...]:
        """Return the operations whose results hold values of this operation's arguments, ascending."""
        if self._uses is None:
            self._uses = list(self._find_uses())
        return self._uses[operation]

    def argument_values(self, operation: int) -> set[Scalar]:
        """Return the values of the operation's arguments that can name their source."""
        return self._scalars_of(self._groups[operation].first.call.args)

    def result_values(self, operation: int) -> set[Scalar]:
        """Return the values that the operation's ok results hold; echoes of its own arguments do not count."""
        found: set[Scalar] = set()
        for attempt in self._groups[operation].tries():
            if attempt.result is not None and attempt.result.status == "ok":
                found |= self._scalars_of(attempt.result.result)
        return found - self.argument_values(operation) if found else found

    def _scalars_of(self, raw: Any) -> set[Scalar]:
        data = bytes(raw)
        if len(data) > _CACHED_BYTES:
            return set(telling_scalars(_decoded_or_none(raw)))
        found = self._scalars.get(data)
        if found is None:
            found = self._scalars[data] = set(telling_scalars(_decoded_or_none(raw)))
        return found

    def _find_uses(self) -> Iterator[tuple[int, ...]]:
        """For each argument leaf, the latest earlier ok result that holds an equal value."""
        latest: dict[Scalar, int] = {}
        pending: list[int] = []
        for index in range(len(self._groups)):
            if pending and self._members[pending[-1]] != self._members[index]:
                for done in pending:
                    for value in self.result_values(done):
                        latest[value] = done
                pending = []
            yield tuple(sorted({latest[value] for value in self.argument_values(index) if value in latest}))
            pending.append(index)


def flatten_call(reader: LeafReader, call: ToolCall, tool: Any) -> Flat:
    """Return the leaves of a call's arguments: the value, or the text as sent where it did not parse, and the key."""
    raw = bytes(call.args)
    flat = reader.flatten(decode(raw), tool) if raw not in (b"", b"{}") else Flat()
    if not raw and call.args_raw is not None:
        _add_text(reader, flat, "#raw", call.args_raw)
    if call.idempotency_key is not None:
        _add_text(reader, flat, "#idempotency_key", call.idempotency_key)
    return flat


def _add_text(reader: LeafReader, flat: Flat, pointer: str, text: str) -> None:
    segments = reader.text(text, pointer)
    if (len(segments) == 1 and isinstance(segments[0], str)) or not segments:
        flat.leaves[pointer] = reader.describe(text)
    else:
        flat.leaves[pointer] = Mixed(segments)
        flat.specials.append(pointer)


def result_value(attempt: Try) -> Any:
    """Return an attempt's result as a value, None where there is none or it does not parse."""
    return None if attempt.result is None else _decoded_or_none(attempt.result.result)


def _decoded(raw: Any) -> Any:
    data = bytes(raw)
    return decode(data) if data else {}


def _decoded_or_none(raw: Any) -> Any:
    if raw is ABSENT or not bytes(raw):
        return None
    try:
        return decode(raw)
    except JsonError:
        return None


def telling_scalars(value: Any, depth: int = 0) -> Iterator[Scalar]:
    """Yield the values that can name their source: not null, boolean, empty, |number| < 10 or under 3 characters."""
    kind = type(value)
    if kind is str:
        if len(value) >= _SHORT:
            yield (str, value)
            if value[:1] in ("{", "[") and value[-1:] in ("}", "]"):
                try:
                    inner = decode(value, MAX_DEPTH - depth)
                except JsonError:
                    return
                if isinstance(inner, dict | list):
                    yield from telling_scalars(inner, depth)
    elif kind is int or kind is float:
        if abs(value) >= _SMALL:
            yield (float, value)
    elif kind is dict:
        for item in value.values():
            yield from telling_scalars(item, depth + 1)
    elif kind is list:
        for item in value:
            yield from telling_scalars(item, depth + 1)
