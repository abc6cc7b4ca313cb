"""Checks a plan's YAML values: first against `plan.schema.json`, then what a schema cannot say.

Messages are written for the person who wrote the plan: what, file and line, the key, the nearest known word. Kept apart
from plan.py because only this needs the schema library.
"""

import difflib
import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from jsonschema.exceptions import ValidationError

from goldentrace.codec.yaml_document import YamlDocument, suggest
from goldentrace.errors import ConfigError, Where
from goldentrace.faults.contracts import Contract, ContractError
from goldentrace.faults.kinds import CONNECT_KINDS, KINDS, RESULT_KINDS
from goldentrace.faults.plan import schema_text
from goldentrace.faults.template import TemplateError, check_template
from goldentrace.model.pointer import escape

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the root of the plan."""

PRINT_SCHEMA: Final = "`goldentrace schema faults` prints the format"
_TYPES: Final = {
    "object": "a mapping", "array": "a list", "string": "text", "integer": "a whole number", "number": "a number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip

_BOUNDS: Final = {
    "minimum": "less than", "maximum": "more than", "exclusiveMinimum": "not more than", "minItems": "fewer items than",
    "maxItems": "more items than",
}  # fmt: skip


def check_plan(document: YamlDocument) -> None:
    """Raise ConfigError for the first thing, from the top of the file, that makes the plan unusable."""
    if document.value is None:
        raise ConfigError("the file is empty", where=document.where(), next_step=PRINT_SCHEMA)
    contract = Contract(json.loads(schema_text()), is_own=True)
    found = [_refine(error) for error in contract.errors(document.value)]
    if found:
        first = min(found, key=lambda error: (_unknown_key(error) is None, _where(document, _at(error)).line or 0))
        raise _explained(document, first)
    for name, tool in document.value["tools"].items():
        _check_tool(document, ("tools", name), tool or {})
    _check_routes(document)


def _where(document: YamlDocument, at: Path) -> Where:
    return document.where("".join(f"/{escape(str(part))}" for part in at))


def _at(error: ValidationError) -> Path:
    """Where the offending key stands: for a key that should not be there, the key itself."""
    at: Path = tuple(error.absolute_path)
    unknown = _unknown_key(error)
    return at if unknown is None else (*at, unknown)


def _refine(error: ValidationError) -> ValidationError:
    """The innermost cause that tells a person more than "none of these alternatives"."""
    while error.context:
        deepest = max(error.context, key=lambda inner: (len(inner.absolute_path), inner.validator != "type"))
        if len(deepest.absolute_path) <= len(error.absolute_path) and error.validator in ("oneOf", "anyOf"):
            return error
        error = deepest
    return error


def _facts(error: ValidationError) -> tuple[str, Any, Any]:
    """The keyword that failed, what it wants, and the value that fails it."""
    wanted: Any = error.validator_value
    return str(error.validator), wanted, error.instance


def _unknown_key(error: ValidationError) -> str | None:
    """The key that should not be there: not known at all, not for this fault, or in place of one that is missing."""
    known = list(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []
    rule, wanted, value = _facts(error)
    if rule == "additionalProperties" and wanted is False:
        return next((key for key in value if key not in known), None)
    if rule in ("enum", "not", "pattern") and "propertyNames" in error.absolute_schema_path:
        return str(value)
    if rule == "required":
        missing = [name for name in wanted if name not in value]
        return next(
            (key for key in value if known and key not in known and difflib.get_close_matches(key, missing)), None
        )
    return None


def _explained(document: YamlDocument, error: ValidationError) -> ConfigError:
    at = _at(error)
    what, next_step = _message(error, at)
    return ConfigError(what, where=_where(document, at), next_step=next_step)


def _message(error: ValidationError, at: Path) -> tuple[str, str]:
    rule, wanted, value = _facts(error)
    key = next((str(part) for part in reversed(at) if isinstance(part, str)), "plan")
    unknown = _unknown_key(error)
    if unknown is not None:
        return _unknown_message(error, unknown)
    if rule == "enum" and value in CONNECT_KINDS:
        return f"{value!r} is no step: the server never sees it", "put it in the plan's `connect:` list"
    if rule == "enum":
        return f"{key}: {_shown(value)} is none of the known words", suggest(str(value), [str(word) for word in wanted])
    if rule == "required":
        return f"the key {next(name for name in wanted if name not in value)!r} is missing", PRINT_SCHEMA
    if rule == "dependentRequired":
        there = next(name for name in wanted if name in value)
        return f"{there!r} needs {wanted[there][0]!r} beside it", PRINT_SCHEMA
    if rule == "type":
        kinds = [wanted] if isinstance(wanted, str) else wanted
        return f"{key}: {_shown(value)} is not {' or '.join(_TYPES[kind] for kind in kinds)}", PRINT_SCHEMA
    if rule in _BOUNDS:
        return f"{key}: {_shown(value)} is {_BOUNDS[rule]} {wanted}", PRINT_SCHEMA
    expected = error.schema.get("description") if isinstance(error.schema, dict) else None
    return f"{key}: {_shown(value)} is not allowed here", f"expected {expected}" if expected else PRINT_SCHEMA


def _unknown_message(error: ValidationError, key: str) -> tuple[str, str]:
    schema = error.schema if isinstance(error.schema, dict) else {}
    rule, wanted, _ = _facts(error)
    if rule == "enum":
        known = [word for word in wanted if word != "weight"]
        return f"this fault takes no {key!r}", f"it takes {', '.join(known)}"
    if rule == "not":
        return f"{key!r} has no meaning here", PRINT_SCHEMA
    if rule == "pattern":
        return f"the name {_shown(key)} is not allowed", f"expected {schema.get('description', 'another name')}"
    return f"unknown key {key!r}", suggest(key, list(schema.get("properties", {})))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_tool(document: YamlDocument, at: Path, tool: dict[str, Any]) -> None:
    for key in ("schema", "output_schema"):
        if key in tool:
            try:
                Contract(tool[key])
            except ContractError as error:
                raise ConfigError(
                    f"{key} is no JSON Schema: {error}", where=_where(document, (*at, key, *error.at)),
                    next_step="write a schema of draft 2020-12 without references to other documents",
                ) from None  # fmt: skip
    for place, value in _templates(tool):
        try:
            check_template(value)
        except TemplateError as error:
            raise ConfigError(
                str(error), where=_where(document, (*at, *place, *error.at)),
                next_step="{/pointer} is an argument; {new_id}, {new_uuid}, {n}, {key}, {now} are made; {{ is a brace",
            ) from None  # fmt: skip
    _check_references(document, at, tool)
    for number, step in enumerate(tool.get("steps", ())):
        _check_step(document, (*at, "steps", number), step, tool)


def _templates(tool: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key in ("result", "effect_record"):
        if key in tool:
            yield (key,), tool[key]
    for number, step in enumerate(tool.get("steps", ())):
        for key in ("result", "body"):
            if key in step:
                yield ("steps", number, key), step[key]


def _check_references(document: YamlDocument, at: Path, tool: dict[str, Any]) -> None:
    target = tool.get("lookup")
    tools = document.value["tools"]
    if target is not None and target not in tools:
        raise ConfigError(
            f"lookup: there is no tool {target!r}", where=_where(document, (*at, "lookup")),
            next_step=suggest(target, list(tools)),
        )  # fmt: skip
    for key in ("result", "effect_record") if target is not None else ():
        if key in tool:
            raise ConfigError(
                f"a tool that looks up has no {key} of its own", where=_where(document, (*at, key)),
                next_step="drop it: the answer is the stored result of the other tool",
            )  # fmt: skip
    if "effect_record" in tool and tool.get("access") == "read":
        raise ConfigError(
            "a tool with effects is no read", where=_where(document, (*at, "access")), next_step="write `access: write`"
        )
    if "after_steps" in tool and not tool.get("steps"):
        raise ConfigError(
            "after_steps without steps", where=_where(document, (*at, "after_steps")),
            next_step="a tool without steps always answers; drop the line or add steps",
        )  # fmt: skip


def _check_step(document: YamlDocument, at: Path, step: dict[str, Any], tool: dict[str, Any]) -> None:
    fault = step["fault"]
    if fault == "truncated_page" and "pages" not in tool:
        raise ConfigError(
            "truncated_page needs the tool's `pages`", where=_where(document, (*at, "fault")),
            next_step="say where items, cursor and the cursor argument stand: pages: {items: /items, ...}",
        )  # fmt: skip
    latencies = [key for key in ("delay_ms", "uniform_ms", "lognormal_ms") if key in step]
    if fault == "slow" and len(latencies) != 1:
        raise ConfigError(
            "slow takes one of delay_ms, uniform_ms, lognormal_ms", where=_where(document, at), next_step=PRINT_SCHEMA
        )
    if "result" in step and (tool.get("lookup") or fault not in RESULT_KINDS):
        raise ConfigError(
            "this step has no result of its own", where=_where(document, (*at, "result")), next_step="drop the line"
        )
    if step.get("phase") == "before_read" and step.get("saved"):
        raise ConfigError(
            "an answer before the request was read cannot be saved: its key is not known yet",
            where=_where(document, (*at, "saved")), next_step="use the phase before_commit",
        )  # fmt: skip
    assert step.get("phase", KINDS[fault].phases[0]) in KINDS[fault].phases, "the schema lists the phases of each fault"


def _check_routes(document: YamlDocument) -> None:
    seen: dict[str, str] = {}
    for name, tool in document.value["tools"].items():
        route = (tool or {}).get("route")
        if route is None:
            continue
        if route in seen:
            raise ConfigError(
                f"{seen[route]!r} has the same route", where=_where(document, ("tools", name, "route")),
                next_step="give each tool its own route",
            )  # fmt: skip
        seen[route] = name
