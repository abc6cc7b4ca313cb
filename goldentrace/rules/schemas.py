"""JSON Schemas of tools, compiled once: does a value keep to one, and where not?

The schema library is imported when a trace or profile has a schema: it costs 60 ms. References to other documents are
never followed. A message never quotes the value. Must not decide what follows.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from goldentrace.codec.canonical import JsonError, canonical, decode
from goldentrace.errors import ConfigError
from goldentrace.model.pointer import escape

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


class SchemaError(ValueError):
    """Not a usable schema."""


def violations(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """Return (JSON Pointer, clause) for each way in which a value breaks a schema, sorted; empty where it keeps to it.

    Raises: SchemaError for what is no schema, or refers to anything outside itself, or has a pattern that cannot be run
    in bounded time; ConfigError where such a pattern stands in the profile.
    """
    from jsonschema.exceptions import UndefinedTypeCheck
    from referencing.exceptions import Unresolvable

    validator = _validator(canonical(schema))
    try:
        return sorted((_pointer(error), _clause(error)) for error in validator.iter_errors(value))
    except ConfigError as error:
        if error.where is not None:
            raise
        raise SchemaError(error.what) from None
    except (Unresolvable, UndefinedTypeCheck, RecursionError) as error:
        raise SchemaError(f"the schema cannot be followed: {type(error).__name__}") from None


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse what is no schema. Raises: SchemaError."""
    _validator(canonical(schema))


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> "Validator":
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError as NoSchema
    from jsonschema.validators import validator_for

    from goldentrace.codec.json_schema import NOT_BOUNDED, is_bounded, make_validator

    value = decode(schema)
    kind = validator_for(value, default=Draft202012Validator)
    try:
        kind.check_schema(value)
    except (NoSchema, RecursionError):
        raise SchemaError("no valid JSON Schema") from None
    if not is_bounded(value):
        raise SchemaError(NOT_BOUNDED)
    return make_validator(kind, value)


def _pointer(error: Any) -> str:
    return "".join(f"/{escape(str(part))}" for part in error.absolute_path)


def _clause(error: Any) -> str:
    """What is broken, in the schema's words."""
    if error.validator in ("required", "dependentRequired"):
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"lacks {', '.join(missing)}" if isinstance(error.validator_value, list) else "lacks a required property"
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        return (
            f"has unknown properties: {', '.join(sorted(name for name in error.instance if name not in known))[:100]}"
        )
    if error.validator == "type":
        wanted = error.validator_value
        return f"is not of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}"
    shown = str(error.validator_value)
    return f"breaks {error.validator}: {shown if len(shown) <= 60 else shown[:57] + '...'}"


def structured(value: Any) -> tuple[bool, Any]:
    """Return whether a result is structured, and its value: MCP's `structuredContent`, the JSON in its one text block,
    or the JSON in a text."""
    if isinstance(value, dict):
        if "structuredContent" in value:
            return True, value["structuredContent"]
        content = value.get("content")
        if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict) and "text" in content[0]:
            return structured(content[0]["text"])
        return True, value
    if isinstance(value, str):
        try:
            return True, decode(value)
        except JsonError:
            return False, value
    return True, value
