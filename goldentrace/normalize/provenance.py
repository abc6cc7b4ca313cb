"""Where an id came from, so that a new id and a wrong id can be told apart.

An id first seen in a result is `<get_order#1/id>`; first seen in arguments `<new:uuid>`, in a later operation
`<charge_card#1.args/idempotency_key>` (of a later attempt: `<charge_card#1.args@2/idempotency_key>`). A random-looking
value that a user or system message held before any result did is a literal and stays an ordinary value. Where an
earlier result was not recorded, nothing can be said: `<unknown:uuid>`.
"""

import msgspec

from goldentrace.model.placeholder import escape_place
from goldentrace.normalize.elements import reduce_name
from goldentrace.normalize.ids import is_content_address
from goldentrace.normalize.text import Token


class Reference(msgspec.Struct, frozen=True):
    """A placeholder: as written in a golden, and reduced to tool and pointer for the alignment key."""

    written: str
    reduced: str


class NewIds(msgspec.Struct):
    """Ids that one operation was the first to hold: value -> its placeholder, and the place where it stood.

    attempt: from 1, the one whose arguments are being written; places: value -> (attempt, pointer).
    """

    attempt: int = 1
    references: dict[str, Reference] = msgspec.field(default_factory=dict)
    places: dict[str, tuple[int, str]] = msgspec.field(default_factory=dict)
    counts: dict[str, int] = msgspec.field(default_factory=dict)

    def name(self, token: Token, pointer: str, kind: str) -> Reference:
        found = self.references.get(token.value)
        if found is None:
            count = self.counts[kind] = self.counts.get(kind, 0) + 1
            text = f"<{kind}>" if count == 1 else f"<{kind}:{count}>"
            found = self.references[token.value] = Reference(text, text)
            self.places[token.value] = self.attempt, pointer
        return found


class Provenance:
    """The ids of one trace as they become known, in canonical order."""

    def __init__(self, literals: frozenset[str], constants: frozenset[str] = frozenset()) -> None:
        """literals: comparable forms of the ids that messages or the scenario's inputs held before any result;
        constants: those that are the same in every run, though no result supplies them."""
        self._literals = literals
        self._constants = constants
        self._known: dict[str, Reference] = {}
        self._secrets: dict[str, int] = {}
        self.is_blind = False
        """Was an earlier result left out by the source, so that an unknown id may have come from it?"""

    def is_known(self, value: str) -> bool:
        return value in self._known

    def name(self, token: Token, pointer: str, new: NewIds) -> Reference | None:
        """Return the placeholder of an id in arguments; None where it is an ordinary value."""
        if token.value in self._literals:
            return None
        found = self._known.get(token.value)
        if found is not None:
            return found
        if is_content_address(token) or token.value in self._constants:
            return None
        return new.name(token, pointer, f"unknown:{token.kind}" if self.is_blind else f"new:{token.kind}")

    def name_secret(self, token: Token) -> Reference:
        """Return `<secret:n>`, n by first appearance."""
        number = self._secrets.setdefault(token.value, len(self._secrets) + 1)
        return Reference(f"<secret:{number}>", "<secret>")

    def keep_new(self, new: NewIds, label: str, tool: str) -> None:
        """From here on, the ids that an operation was the first to hold are known by its arguments."""
        for value, (attempt, pointer) in new.places.items():
            place = escape_place(pointer)
            source = "" if attempt == 1 else f"@{attempt}"
            self._known.setdefault(value, Reference(f"<{label}.args{source}{place}>", f"<{tool}.args{place}>"))

    def keep_result(self, places: dict[str, str], label: str, tool: str, attempt: int | None = None) -> None:
        """From here on, the ids of a result are known by their place in it. The first result that holds an id
        names it."""
        source = "" if attempt is None else f"@{attempt}"
        for value, name in places.items():
            place = escape_place(name)
            self._known.setdefault(value, Reference(f"<{label}{source}{place}>", f"<{tool}{reduce_name(place)}>"))
