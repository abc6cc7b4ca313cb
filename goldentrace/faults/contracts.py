"""JSON Schemas of tools: are they schemas, and does a value keep to them? References to other documents are never
followed.

This module must not decide what follows from a violation.
"""

from collections.abc import Iterator
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from goldentrace.codec.json_schema import NOT_BOUNDED, is_bounded, make_validator
from goldentrace.errors import ConfigError

MAX_VIOLATIONS: Final = 10
"""How many violations an answer lists."""


class ContractError(ValueError):
    """Not a usable schema. at: the path inside it."""

    def __init__(self, what: str, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(what)
        self.at = at


class Contract:
    """A compiled schema (draft 2020-12)."""

    def __init__(self, schema: Any, *, is_own: bool = False) -> None:
        """is_own: one that ships and is checked by the tests; checking it again would cost 40 ms at every start.

        Raises: ContractError for what is no schema, or refers to anything outside itself.
        """
        try:
            if not is_own:
                Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise ContractError(_clause(error), tuple(error.absolute_path)) from None
        except RecursionError:
            raise ContractError("nested too deeply") from None
        if not is_bounded(schema):
            raise ContractError(NOT_BOUNDED)
        self._validator = make_validator(Draft202012Validator, schema)
        root = DRAFT202012.create_resource(schema)
        resolver = Registry().resolver_with_root(root)
        for at, reference in _references(schema, ()):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                raise ContractError(f"the reference {reference!r} leads nowhere", at) from None

    def errors(self, value: Any) -> Iterator[ValidationError]:
        """Yield the library's errors for a value, in its order."""
        yield from self._validator.iter_errors(value)

    def violations(self, value: Any) -> list[dict[str, str]]:
        """Return up to MAX_VIOLATIONS of `{"path": JSON Pointer, "message": clause}`, sorted by path; empty if it keeps
        to it."""
        try:
            found = [{"path": _pointer(error), "message": _clause(error)} for error in self.errors(value)]
        except RecursionError:
            return [{"path": "", "message": "nested too deeply"}]
        except ConfigError as error:  # a pattern that takes too long over what an agent sent
            return [{"path": "", "message": error.what}]
        return sorted(found, key=lambda item: (item["path"], item["message"]))[:MAX_VIOLATIONS]


def _references(schema: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield (*at, key), value
            elif key not in ("const", "enum", "default", "examples"):
                yield from _references(value, (*at, key))
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from _references(value, (*at, number))


def _pointer(error: ValidationError) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.absolute_path)


def _clause(error: ValidationError | SchemaError) -> str:
    """The library's message, which quotes the value, bounded."""
    text = error.message
    return text if len(text) <= 200 else text[:197] + "..."
