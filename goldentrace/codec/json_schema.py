"""JSON Schema with the patterns of users run in bounded time; see codec.patterns.

The library searches with Python's own `re` in four keywords. Three are given here; the fourth, `unevaluatedProperties`
beside `patternProperties`, cannot be told what to search with, and is refused. Imports the library, which costs 60 ms:
import this module where a schema is used. It must not decide what a violation means.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry

from goldentrace.codec.patterns import compile_pattern

NOT_BOUNDED = "unevaluatedProperties and patternProperties in one schema: no bound can be put on its patterns"


def make_validator(kind: type[Validator], schema: Any) -> Validator:
    """Return a validator of one draft whose patterns are run in bounded time; it raises ConfigError beyond it.

    References to other documents lead nowhere: the library's default would fetch them from the network. The schema is
    taken as checked, and `is_bounded`.
    """
    made: Validator = _bounded(kind)(_in_one_dialect(schema), registry=Registry())
    return made


@lru_cache(maxsize=16)
def _bounded(kind: type[Validator]) -> Any:
    additional = kind.VALIDATORS["additionalProperties"]

    def additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        patterns = [compile_pattern(text) for text in schema.get("patternProperties", ())]
        if patterns and validator.is_type(instance, "object"):
            instance = {k: v for k, v in instance.items() if not any(pattern.is_found(k) for pattern in patterns)}
            schema = {key: part for key, part in schema.items() if key != "patternProperties"}
        yield from additional(validator, value, instance, schema)

    keywords = {
        "pattern": _pattern, "patternProperties": _pattern_properties, "additionalProperties": additional_properties,
    }  # fmt: skip
    return extend(kind, keywords)  # type: ignore[no-untyped-call]


def _in_one_dialect(schema: Any) -> Any:
    """The schema without `$schema`, for which the library would take a validator of its own in the middle."""
    if isinstance(schema, dict):
        return {
            key: part if key in ("const", "enum") else _in_one_dialect(part)
            for key, part in schema.items()
            if key != "$schema" or not isinstance(part, str)
        }
    return [_in_one_dialect(part) for part in schema] if isinstance(schema, list) else schema


def is_bounded(schema: Any) -> bool:
    """Can the patterns of a schema be run in bounded time?"""
    return not {"unevaluatedProperties", "patternProperties"} <= set(_keys(schema))


def patterns_in(schema: Any) -> Iterator[str]:
    """Yield the patterns of a schema, wherever it has them."""
    for part in _parts(schema):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        if isinstance(part.get("patternProperties"), dict):
            yield from part["patternProperties"]


def _pattern(validator: Any, text: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not compile_pattern(text).is_found(instance):
        yield ValidationError(f"{instance!r} does not match {text!r}")


def _pattern_properties(validator: Any, schemas: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for text, schema in schemas.items():
            pattern = compile_pattern(text)
            for key, value in instance.items():
                if pattern.is_found(key):
                    yield from validator.descend(value, schema, path=key, schema_path=text)


def _keys(value: Any) -> Iterator[str]:
    for part in _parts(value):
        yield from part


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping within a value."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
