"""Writes the JSON Schemas that ship in the package from the types that read the files: `python ci/write_schemas.py`.

The types say what is accepted, the table below says what it means; a field without a sentence here is an error, so that
no schema goes out with a gap. The schema of the report is written by hand. A test compares the files with what this
makes.
"""

import json
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import NODEFAULT, Raw

from goldentrace.match.backoff import JITTER_KINDS, POLICY_NAMES, RETRY_AFTER_MODES
from goldentrace.model.config import Config
from goldentrace.model.event import AnyEvent
from goldentrace.model.golden import AnyGoldenLine
from goldentrace.model.profile import Profile

FOLDER = Path(__file__).parent.parent / "goldentrace" / "report" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/{name}"

COMMON = {
    "type": "What kind of event this is.",
    "seq": "The writer's order, from 0 or 1, without gaps within one file.",
    "ts": "RFC 3339, UTC, microseconds.",
    "mono_ns": "Monotonic clock of the recording process in ns; waits use it where both ends have it.",
    "turn": "1-based number of the turn: one response of the model and what it caused.",
    "agent": "Role or type of the agent, with a number where there are several; never a random id.",
    "extra": "What a source knew and the format has no field for.",
}
TRACE: dict[str, dict[str, str]] = {
    "Usage": {
        "input_tokens": "Tokens of the request.",
        "output_tokens": "Tokens of the response.",
        "cached_tokens": "Tokens of the request that were read from a cache.",
        "cost_usd": "What the turn cost.",
    },
    "TraceStart": {
        "format": "The version of this format.",
        "trace_id": "Name of this run.",
        "scenario_id": "Which scenario was run.",
        "seed": "Seed of the run.",
        "source": "Recorder or importer, with its version.",
        "states": "Decision kinds that this source can state; absent means all.",
        "cwd": "Working folder of the run; becomes <cwd>.",
        "home": "Home folder of the run; becomes <home>.",
        "tmp": "Temporary folder of the run; becomes <tmp>.",
        "attributes": "More about the run; `inputs` holds the scenario's inputs.",
    },
    "ModelTurn": {
        "model": "Name of the model.",
        "finish_reason": "Why the model stopped, in the provider's words.",
        "usage": "Tokens and cost.",
        "input_call_ids": "Calls whose results were in the request.",
    },
    "ToolCall": {
        "call_id": "Joins a call with its result.",
        "tool_name": "Name of the tool.",
        "args": "The arguments, any JSON.",
        "args_raw": "The arguments as sent, where they did not parse or are not canonical.",
        "attempt": "Which execution of the call this is, from 1.",
        "op_id": "Joins the attempts of one operation; default: its own call_id.",
        "origin": "Who asked for it.",
        "batch": "Calls with an equal value were proposed together.",
        "parent": "The call that this one ran within.",
        "access": "Does the tool read or write?",
        "resource": "What it touches.",
        "idempotency_key": "The key by which a server tells a repeat.",
    },
    "ToolResult": {
        "call_id": "The call that it answers.",
        "status": "How the attempt ended.",
        "attempt": "Which attempt it answers.",
        "error_class": "What kind of failure it was, in one vocabulary for all sources.",
        "http_status": "HTTP status, where there was one.",
        "owed_ms": "The wait that Retry-After asks for, in ms from receipt.",
        "sent": "Did the request leave?",
        "result": "What the tool returned, any JSON.",
        "result_hash": "Digest of the result, where its value may not be stored.",
        "result_bytes": "Size of the result.",
    },
    "Decision": {
        "decision": "What was decided.",
        "call_id": "The call it is about; absent: the run.",
        "by": "Who decided.",
        "reason": "Why, in a word.",
        "delay_ms": "The wait that it asked for.",
        "inferred": "Was it derived from calls rather than stated?",
    },
    "Approval": {
        "call_id": "The call it is about.",
        "verdict": "Was the call allowed?",
        "by": "Who decided: a person or a policy.",
    },
    "Message": {
        "role": "Who speaks.",
        "text": "What is said; never compared.",
        "text_hash": "Digest of the text, where it may not be stored.",
    },
    "Effect": {"name": "What happened.", "key": "By which the tool tells effects apart.", "value": "Any JSON."},
    "Limit": {"limit": "Which limit fired.", "value": "The value reached.", "max": "The maximum."},
    "TraceEnd": {
        "outcome": "How the run ended.",
        "stop_reason": "Why it stopped.",
        "events": "How many events stand before this one.",
        "sha256": "Of all earlier bytes of the file.",
        "incomplete": "Why the recording is not whole; no verdict is passed on it then.",
    },
}
OFFSET = {"t_offset_ms": "Offset since the start of the trace; in normalized traces, never in goldens."}
LABEL = {"call": "Label of the operation, `tool#n` or `agent/tool#n`: a name, not a count.", **OFFSET}
GOLDEN: dict[str, dict[str, str]] = {
    "GoldenStart": {
        "format": "The version of this format.",
        "kind": "A golden, or a normalized trace with offsets.",
        "profile": "Name and number of the profile that it was made with.",
        "profile_hash": "Digest of what in the profile alters normalization.",
        "scenario_id": "Which scenario it is of.",
        "seed": "Seed of the run.",
        "description": "Why this golden exists.",
        "states": "Decision kinds that its source could state; absent means all.",
        "accepts": "Accepted findings, each with its reason.",
        "backoff": "The policy by which waits are judged; outranks every other.",
        "seen": "How many runs of the baseline took this variant.",
    },
    "GoldenTurn": {"agent": COMMON["agent"]},
    "GoldenCall": {
        **LABEL,
        "attempt": TRACE["ToolCall"]["attempt"],
        "origin": TRACE["ToolCall"]["origin"],
        "agent": COMMON["agent"],
        "tool_name": "Name of the tool; on the first attempt.",
        "access": TRACE["ToolCall"]["access"],
        "parent": "Label of the call that this one ran within.",
        "batch": "Number of the batch within its turn; absent for a serial call.",
        "args_hash": "Digest of the map of arguments with placeholders reduced.",
        "args": 'JSON Pointer of a leaf -> type, length and digest; a placeholder; or {"value": …} where it is kept.',
        "uses": "Labels of the calls whose results gave argument values.",
        "gap_ms": "Wait since the end of the attempt before.",
        "after_model_turn": "Did a model turn ask for this attempt, so that the gap holds its latency?",
    },
    "GoldenResult": {
        **LABEL,
        "status": TRACE["ToolResult"]["status"],
        "attempt": TRACE["ToolResult"]["attempt"],
        "error_class": TRACE["ToolResult"]["error_class"],
        "http_status": TRACE["ToolResult"]["http_status"],
        "owed_ms": TRACE["ToolResult"]["owed_ms"],
        "result": "The compared form of the result, as the profile asks for: JSON Pointer -> what stands there.",
    },
    "GoldenDecision": {
        **LABEL,
        "call": "Label of the call it is about; absent: the run.",
        "agent": COMMON["agent"],
        "decision": TRACE["Decision"]["decision"],
        "by": TRACE["Decision"]["by"],
        "reason": TRACE["Decision"]["reason"],
        "delay_ms": TRACE["Decision"]["delay_ms"],
        "inferred": TRACE["Decision"]["inferred"],
    },
    "GoldenApproval": {**LABEL, "verdict": TRACE["Approval"]["verdict"], "by": TRACE["Approval"]["by"]},
    "GoldenEffect": {
        **OFFSET,
        "name": TRACE["Effect"]["name"],
        "agent": COMMON["agent"],
        "key": "Its key, a placeholder where that is an id.",
        "value": "The leaves of its value.",
    },
    "GoldenLimit": {**OFFSET, "limit": TRACE["Limit"]["limit"], "agent": COMMON["agent"], "max": TRACE["Limit"]["max"]},
    "GoldenEnd": {
        **OFFSET,
        "outcome": TRACE["TraceEnd"]["outcome"],
        "stop_reason": TRACE["TraceEnd"]["stop_reason"],
    },
}
BACKOFF_WORDS = "How the client waits between attempts, and how exactly a run has to keep to it."
PROFILE: dict[str, dict[str, str]] = {
    "Profile": {
        "name": "Name and number, `shop@1`.",
        "extends": "The profile whose keys hold where this one says nothing.",
        "ids": "Which values are ids.",
        "paths": "Which recorded folders become placeholders.",
        "time": "Which times are behaviour.",
        "arguments": "How arguments are compared.",
        "results": "How results are compared.",
        "redact": "Which values are secrets.",
        "tools": "What is known of each tool, by its name.",
        "rules": "Options of rules by code, and `suppressions`.",
        "compare": "What counts, and how much.",
        "backoff": BACKOFF_WORDS,
    },
    "Ids": {
        "kinds": "The list of shapes that count as random, or none.",
        "keys": "Key names or pointer globs whose values are ids, whatever their shape.",
        "ignore_keys": "Key names or pointer globs whose values never are.",
    },
    "Paths": {
        "cwd": "The working folder becomes <cwd>.",
        "home": "The home folder becomes <home>.",
        "tmp": "The temporary folder becomes <tmp>.",
        "also": "More folders: name -> absolute folder.",
    },
    "Time": {
        "keep": "Which offsets a golden holds: waits before retries, of every event, or none.",
        "relative": "Pointer globs of dates that follow the clock.",
    },
    "Arguments": {
        "equivalence": "strict, or semantic: numbers equal numeric strings, strings are trimmed.",
        "ignore": "Pointer globs that are left out.",
        "keep": "Pointer globs that a golden holds in clear.",
        "order_free": "Pointer globs of lists without an order.",
        "max_leaves": "Leaves of one call that a golden holds before containers collapse into one digest.",
        "key_env": "The environment variable that holds the key of the digests (HMAC-SHA-256).",
    },
    "Results": {"compare": "Only the status, the shape, digests, or values."},
    "Redact": {"builtin": "Use the built-in detectors.", "rules": "More secrets, and exceptions."},
    "RedactionRule": {
        "name": "How the rule is called where it applied.",
        "pattern": "A regular expression: what it matches is a secret.",
        "allow": "A regular expression: what it matches is none.",
    },
    "Tool": {
        "access": "Does the tool read or write? Undeclared counts as write.",
        "destructive": "Does it destroy what cannot be restored?",
        "resource": "What it touches: a template over the arguments.",
        "idempotent": "Does a repeat have the effect of one call?",
        "polling": "Is it meant to be called again and again?",
        "schema": "JSON Schema of its arguments.",
        "output_schema": "JSON Schema of its results.",
        "requires": "Calls that must have succeeded before it.",
        "reconciles": "Writes whose unknown outcome a call of it looks up.",
        "fallback_for": "Tools that it stands in for.",
        "escalates": "Does a call of it hand the task to a person?",
        "error_patterns": "Regular expressions over the text of an ok result that mean failure.",
        "terminal_errors": "Error classes after which the same call is pointless.",
        "cursor": "Pointer of the cursor in its results.",
        "ignore": "Pointer globs of its arguments that are left out.",
        "keep": "Pointer globs of its arguments that a golden holds in clear.",
        "results": "How its results are compared.",
        "order_free": "Pointer globs of its lists without an order.",
        "backoff": BACKOFF_WORDS,
    },
    "Compare": {
        "parallel_order": "any: a batch is a set; strict: its order counts.",
        "severities": "Code of a change -> its severity.",
    },
}
LIMIT = "Maximum; null: no limit, 0: none allowed."
CONFIG: dict[str, dict[str, str]] = {
    "Config": {
        "goldens": "Folder of the goldens.",
        "profile": "Normalizer profile; without a number its newest.",
        "limits": "What is enforced while a scenario runs.",
        "environments": "What differs where the scenarios run elsewhere, by name (`--environment NAME`).",
        "scenarios": "The runs that are recorded and compared, by name.",
        "record": "What may be stored at all.",
        "fail_on": "The lowest severity that gives exit code 2.",
        "jobs": "How many scenarios run at a time.",
        "max_bytes": "The largest file that is read.",
        "runs": "How many runs of a scenario are recorded or compared.",
    },
    "Limits": {
        "max_model_turns": LIMIT + " Responses of the model.",
        "max_tool_calls": LIMIT + " Calls by the model, failed ones included.",
        "max_executions": LIMIT + " Everything, retries of all layers included.",
        "max_attempts": LIMIT + " Attempts of one operation.",
        "max_wall_ms": LIMIT + " From start to end of the run.",
        "max_writes": LIMIT + " Calls of tools that write.",
        "max_destructive": LIMIT + " Calls of tools that destroy.",
        "max_tokens": LIMIT + " Tokens of all turns.",
        "max_cost_usd": LIMIT + " Cost of all turns.",
        "per_tool": "Limits by tool name; `default` for those that are not named.",
    },
    "ToolLimits": {
        "max_calls": LIMIT + " Operations of the tool.",
        "max_elapsed_ms": LIMIT + " Of one operation, from its first start to its last end.",
    },
    "Environment": {
        "limits": "Limits there.",
        "runs": "How many runs there.",
        "env": "Variables for the commands there.",
    },
    "Scenario": {
        "suite": "Folder of its golden below the goldens.",
        "description": "Why it exists.",
        "command": "A program and its arguments; no shell.",
        "faults": "Fault plan: its server is started for the run.",
        "model": "Script of the model, in place of a provider.",
        "seed": "Seed, in GOLDENTRACE_SEED.",
        "env": "Variables for the command.",
        "backoff": BACKOFF_WORDS,
        "budgets": "What is checked after the run (GT1006).",
        "limits": "What is enforced while it runs.",
        "profile": "Its normalizer profile.",
    },
    "Budgets": {
        "tool_calls": "Calls by the model.",
        "attempts": "Attempts of all calls.",
        "wall_ms": "From start to end of the run.",
        "tokens": "Tokens of all turns.",
        "cost_usd": "Cost of all turns.",
        "writes": "Calls of tools that write.",
        "destructive": "Calls of tools that destroy.",
        "tools": "Calls by tool name.",
    },
    "RecordPolicy": {
        "results": "Store result bodies, or only their digests.",
        "messages": "Store message texts, or none.",
    },
}
MS = {"type": "number", "minimum": 0}
BACKOFF = {
    "type": "object",
    "description": BACKOFF_WORDS + " Wait k is min(cap_ms, base_ms * factor ** (k - 1)), spread by jitter.",
    "additionalProperties": False,
    "properties": {
        "policy": {"enum": list(POLICY_NAMES), "description": "The client, `custom` with its numbers, or none."},
        "base_ms": {**MS, "description": "The first wait."},
        "factor": {"type": "number", "exclusiveMinimum": 0, "description": "By which waits grow."},
        "cap_ms": {"type": ["number", "null"], "minimum": 0, "description": "The longest wait; null: none."},
        "first_zero": {"type": "boolean", "description": "Is the first retry immediate?"},
        "jitter": {
            "type": "object",
            "description": "How waits are spread.",
            "additionalProperties": False,
            "properties": {
                "kind": {"enum": list(JITTER_KINDS), "description": "Below, around or above, or anything up to it."},
                "amount": {**MS, "description": "A ratio of 0 to 1 (down, symmetric), or ms (additive)."},
            },
        },
        "retry_after": {
            "type": "object",
            "description": "What the client does with Retry-After.",
            "additionalProperties": False,
            "properties": {
                "mode": {"enum": list(RETRY_AFTER_MODES), "description": "Wait for it, ignore it, or stop."},
                "abort_above_ms": {
                    "type": ["number", "null"],
                    "minimum": 0,
                    "description": "No further attempt where more is owed; null: always wait.",
                },
                "jitter": {**MS, "description": "Ratio that may be added to what is owed."},
            },
        },
        "late_ms": {**MS, "description": "Scheduling slack after a wait."},
        "early_ms": {**MS, "description": "How much too early still counts as kept."},
        "absolute_ms": {
            "type": ["number", "null"],
            "minimum": 0,
            "description": "The plain form: this far from the golden's wait.",
        },
        "relative": {
            "type": ["number", "null"],
            "minimum": 0,
            "description": "The plain form: this share of the golden's wait.",
        },
    },
}


def write() -> None:
    """Write the generated schemas."""
    for name, schema in generate().items():
        (FOLDER / f"{name}.schema.json").write_text(text_of(schema))


def text_of(schema: dict[str, Any]) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def generate() -> dict[str, dict[str, Any]]:
    """Return the generated schemas by name."""
    trace = lines(AnyEvent, TRACE, "event", "One line of a recorded trace, `goldentrace/1`", COMMON)
    trace["$defs"]["TraceStart"]["properties"]["format"] |= {"const": "goldentrace/1"}
    return {
        "trace": trace,
        "golden": lines(AnyGoldenLine, GOLDEN, "line", "One line of a golden or normalized trace, `goldentrace/1`", {}),
        "config": document(Config, CONFIG, "The configuration of a project, goldentrace.yaml"),
        "profile": document(Profile, PROFILE, "A normalizer profile, normalizers/NAME@N.yaml"),
    }


Words = dict[str, dict[str, str]]
"""Name of a type -> field -> sentence."""


def lines(union: Any, words: Words, noun: str, title: str, common: dict[str, str]) -> dict[str, Any]:
    """Return the schema of one line: exactly one of the types of a union, told apart by `type`."""
    kinds = get_args(union)
    defs = definitions(kinds, words, common)
    names = [kind.__name__ for kind in kinds]
    return {
        "$schema": DRAFT,
        "title": title,
        "description": f"The file is JSON Lines: one {noun} per line, UTF-8, LF.",
        "type": "object",
        "required": ["type"],
        "oneOf": [{"$ref": REF.format(name=name)} for name in names],
        "$defs": defs,
    }


def document(root: type[Any], words: Words, title: str) -> dict[str, Any]:
    """Return the schema of a whole document."""
    defs = definitions((root,), words, {})
    return {"$schema": DRAFT, "title": title, **defs.pop(root.__name__), "$defs": defs}


def definitions(roots: tuple[Any, ...], words: Words, common: dict[str, str]) -> dict[str, Any]:
    """Return the definitions of the types and of those that they hold, every field with its sentence."""
    # `type` is the tag; msgspec writes no default of a Raw, so a copy of the type without it is described
    copies = [without_raw(root) for root in roots]
    _, defs = msgspec.json.schema_components(copies, ref_template=REF)
    missing: list[str] = []
    for name, schema in defs.items():
        known = {"type": "What kind of event this is.", **common, **words.get(name, {})}
        for field, inner in schema["properties"].items():
            if field not in known:
                missing.append(f"{name}.{field}")
                continue
            schema["properties"][field] = described(field, inner, known[field])
        schema["description"] = " ".join(schema.get("description", "").partition("\n\n")[0].split())
        schema.pop("title")
    if missing:
        sys.exit("no sentence for: " + ", ".join(missing))
    unused = [f"{name}.{field}" for name in words for field in words[name] if field not in defs[name]["properties"]]
    if unused:
        sys.exit("a sentence for no field: " + ", ".join(unused))
    if any(has_backoff(schema) for schema in defs.values()):
        defs["Backoff"] = BACKOFF
    return dict(sorted(defs.items()))


def described(field: str, schema: dict[str, Any], sentence: str) -> dict[str, Any]:
    """Return the schema of a field with its sentence, and with what the type alone cannot say."""
    if field == "type":
        schema = {"const": schema["enum"][0]}
    elif field == "backoff":
        is_optional = schema.get("default", {}) is None or "anyOf" in schema
        reference = {"$ref": REF.format(name="Backoff")}
        schema = {"anyOf": [reference, {"type": "null"}]} if is_optional else dict(reference)
    elif field == "severities":
        schema = {**schema, "propertyNames": {"pattern": "^GT[0-9]{3,4}$"}}
    schema = shortened(schema)
    if field in ("attempt", "turn", "batch") and "integer" in schema.get("type", ()):
        schema["minimum"] = 1
    return {"description": sentence, **schema}


def shortened(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with a choice of plain types as a list of types, and without a default that is null."""
    schema = {key: value for key, value in schema.items() if key != "default" or value is not None}
    choices = schema.get("anyOf")
    if choices and all(choice.keys() == {"type"} for choice in choices):
        del schema["anyOf"]
        schema["type"] = [choice["type"] for choice in choices]
    return schema


def has_backoff(schema: dict[str, Any]) -> bool:
    """Does a definition hold a backoff policy?"""
    return "backoff" in schema["properties"]


def without_raw(kind: Any) -> Any:
    """Return a copy of a Struct in which Raw, any JSON, has no default; the type itself where it holds none."""
    fields = msgspec.structs.fields(kind)
    if not any(field.type is Raw for field in fields):
        return kind
    config = kind.__struct_config__
    copied = [copy_of(field) for field in fields]
    made = msgspec.defstruct(
        kind.__name__, copied, tag=config.tag, tag_field=config.tag_field, kw_only=True,
        forbid_unknown_fields=config.forbid_unknown_fields,
    )  # fmt: skip
    made.__doc__ = kind.__doc__
    return made


def copy_of(field: Any) -> tuple[Any, ...]:
    """Return a field as `defstruct` takes it."""
    if field.type is Raw:
        return (field.name, Any, msgspec.UNSET)
    if field.default is not NODEFAULT:
        return (field.name, field.type, field.default)
    if field.default_factory is not NODEFAULT:
        return (field.name, field.type, msgspec.field(default_factory=field.default_factory))
    return (field.name, field.type)


if __name__ == "__main__":
    write()
