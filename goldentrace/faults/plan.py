"""The fault plan: what the tool server does, call by call. Values only, and the reading of a plan file.

`load_plan` checks the file against `plan.schema.json` and then what a schema cannot say; every error names file, line
and key. This module must not open a socket or decide anything about a call.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from goldentrace.codec.yaml_document import YamlDocument, read_yaml
from goldentrace.errors import ConfigError, Where
from goldentrace.faults.kinds import KINDS, Phase
from goldentrace.model.event import Access
from goldentrace.sources.bytestream import read_file

AfterSteps: TypeAlias = Literal["error", "repeat", "ok"]
SCHEMA_NAME: Final = "plan.schema.json"
MAX_BYTES: Final = 1 << 20
MAX_VALUES: Final = 50_000
"""Of a plan file, aliases expanded."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to `times` calls in a row. params: the keys that the fault takes (kinds.KINDS), as written."""

    fault: str = "none"
    phase: Phase = "after_commit"
    times: int = 1
    params: dict[str, Any] = field(default_factory=dict)


NONE: Final = Step()


@dataclass(frozen=True, slots=True)
class Idempotency:
    """key: JSON Pointer into the arguments; header: name; an int is the HTTP status of the refusal."""

    key: str | None = None
    header: str | None = None
    missing: int | Literal["allow"] = 400
    in_flight: int | Literal["wait"] = 409
    mismatch: int | Literal["replay"] = 422
    replay_errors: bool = True


@dataclass(frozen=True, slots=True)
class Pages:
    """JSON Pointers: items and cursor into the result, argument into the arguments; size: items of an ordinary page."""

    items: str
    cursor: str
    argument: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Chaos:
    """rate: share of calls that meet a fault; faults: (step, weight)."""

    rate: float
    faults: tuple[tuple[Step, float], ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. result and effect_record hold templates; lookup: the tool from whose ledger this one answers."""

    name: str
    description: str = ""
    access: Access | None = None
    is_destructive: bool | None = None
    route: str | None = None
    schema: Any = None
    output_schema: dict[str, Any] | None = None
    idempotency: Idempotency | None = None
    result: Any = None
    effect_record: dict[str, Any] = field(default_factory=dict)
    pages: Pages | None = None
    steps: tuple[Step, ...] = ()
    after_steps: AfterSteps = "error"
    chaos: Chaos | None = None
    lookup: str | None = None
    by: tuple[str, ...] = ()
    not_found: int | Literal["ok"] = 404


@dataclass(frozen=True, slots=True)
class Limits:
    """The first two end a run, the third refuses a connection, the rest only bound what one client can hold."""

    max_tool_calls: int | None = None
    max_wall_ms: float | None = None
    max_connections: int = 64
    max_body_bytes: int = 10 * 1024 * 1024
    header_ms: float = 10_000
    idle_ms: float = 60_000
    max_hang_ms: float = 120_000


@dataclass(frozen=True, slots=True)
class ConnectFault:
    """A fault of the client's next `times` connections (faults/shim.py)."""

    fault: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan. effects: name -> expected count, or the list of expected values; path: the file, as people know
    it."""

    name: str
    tools: dict[str, Tool]
    path: str
    description: str = ""
    seed: int = 0
    mcp_revision: str = "auto"
    mcp_reply: Literal["json", "sse"] = "json"
    connect: tuple[ConnectFault, ...] = ()
    limits: Limits = Limits()
    effects: dict[str, int | list[Any]] = field(default_factory=dict)


def schema_text() -> str:
    """Return the JSON Schema of fault plans, as it ships."""
    return (Path(__file__).parent / SCHEMA_NAME).read_text("utf-8")


def load_plan(path: Path, *, seed: int | None = None) -> Plan:
    """Return the plan that a file holds. seed: takes the place of the plan's own.

    Raises: ConfigError naming file, line and key.
    """
    try:
        data = read_file(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(
            f"the fault plan cannot be read: {(error.strerror or 'unknown error').lower()}", where=Where(str(path)),
            next_step="name an existing file",
        ) from None  # fmt: skip
    return read_plan(data, str(path), seed=seed)


def read_plan(data: bytes, path: str, *, seed: int | None = None) -> Plan:
    """Return the plan that the bytes of a YAML file hold. Raises: ConfigError naming file, line and key."""
    from goldentrace.faults.plan_check import check_plan

    document = read_yaml(data, path, max_bytes=MAX_BYTES, max_values=MAX_VALUES)
    check_plan(document)
    return _plan(document, seed)


def _plan(document: YamlDocument, seed: int | None) -> Plan:
    value = document.value
    chosen = value.get("seed", 0) if seed is None else seed
    common = _chaos(value.get("chaos"), chosen)
    return Plan(
        name=value["plan"],
        tools={name: _tool(name, tool or {}, common, chosen) for name, tool in value["tools"].items()},
        path=document.path,
        description=value.get("description", ""),
        seed=chosen,
        mcp_revision=value.get("mcp_revision", "auto"),
        mcp_reply=value.get("mcp_reply", "json"),
        connect=tuple(ConnectFault(**fault) for fault in value.get("connect", ())),
        limits=Limits(**value.get("limits", {})),
        effects={
            name: expected if isinstance(expected, int) else expected["values"]
            for name, expected in value.get("expect", {}).get("effects", {}).items()
        },
    )


def _tool(name: str, value: dict[str, Any], common: Chaos | None, seed: int) -> Tool:
    own = value.get("chaos")
    if "lookup" in value:
        value = {"access": "read", **value}
    plain = ("description", "access", "route", "schema", "output_schema", "result", "effect_record", "after_steps",
             "lookup", "not_found")  # fmt: skip
    return Tool(
        name,
        **{key: value[key] for key in plain if key in value},
        is_destructive=value.get("destructive"),
        idempotency=Idempotency(**value["idempotency"]) if "idempotency" in value else None,
        pages=Pages(**value["pages"]) if "pages" in value else None,
        steps=tuple(_step(step) for step in value.get("steps", ())),
        chaos=common if own is None else _chaos(own, seed) if own else None,
        by=tuple(value.get("by", ())),
    )


def _step(value: dict[str, Any]) -> Step:
    fault = value["fault"]
    params = {key: item for key, item in value.items() if key not in ("fault", "phase", "times", "weight")}
    return Step(fault, value.get("phase", KINDS[fault].phases[0]), value.get("times", 1), params)


def _chaos(value: dict[str, Any] | None, seed: int) -> Chaos | None:
    if not value:
        return None
    faults = tuple((_step(step), float(step.get("weight", 1))) for step in value["faults"])
    return Chaos(float(value["rate"]), faults, value.get("seed", seed))
