"""The configuration of a project: `goldentrace.yaml`, as values. This module must not read files or the environment.

`UNSET` where a key was not written, because null says something: in limits, null is no limit and 0 allows none.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from goldentrace.model.profile import Severity

MOST: Final = 10**12
"""Of anything that is counted or measured: in ms it is 31 years, and what the system takes for a time-out is not far
beyond."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MOST)]
AtLeastOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Jobs: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=256)]
MaxCount: TypeAlias = Count | UnsetType | None
MaxAmount: TypeAlias = Amount | UnsetType | None


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A mapping of the configuration."""


class ToolLimits(_Section, frozen=True, kw_only=True):
    """Limits of one tool. max_calls: operations; max_elapsed_ms: of one operation, from its first start to its last
    end."""

    max_calls: MaxCount = UNSET
    max_elapsed_ms: MaxAmount = UNSET


class Limits(_Section, frozen=True, kw_only=True):
    """What is enforced while a scenario runs.

    max_tool_calls: calls by the model, failed ones included; max_executions: everything, retries of all layers;
    max_attempts: per operation; per_tool: by tool name, `default` for those that are not named.
    """

    max_model_turns: MaxCount = UNSET
    max_tool_calls: MaxCount = UNSET
    max_executions: MaxCount = UNSET
    max_attempts: MaxCount = UNSET
    max_wall_ms: MaxAmount = UNSET
    max_writes: MaxCount = UNSET
    max_destructive: MaxCount = UNSET
    max_tokens: MaxCount = UNSET
    max_cost_usd: MaxAmount = UNSET
    per_tool: dict[str, ToolLimits] = {}

    def over(self, other: "Limits") -> "Limits":
        """Return these limits, with the other's where these say nothing."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        merged = {name: getattr(other, name) if value is UNSET else value for name, value in fields.items()}
        tools = dict(other.per_tool)
        for name, mine in self.per_tool.items():
            theirs = tools.get(name, ToolLimits())
            both = {key: getattr(mine, key) for key in mine.__struct_fields__}
            tools[name] = ToolLimits(**{k: getattr(theirs, k) if v is UNSET else v for k, v in both.items()})
        return Limits(**{**merged, "per_tool": tools})

    def value(self, name: str) -> float | None:
        """Return the maximum of a limit, None where there is none."""
        found = getattr(self, name)
        return None if found is UNSET else found


DEFAULT_LIMITS = Limits(max_wall_ms=600_000)
"""What holds where nothing is configured: a run that hangs must end by itself, ten minutes is beyond any scripted
run."""


class Budgets(_Section, frozen=True, kw_only=True):
    """What is checked after a run (GT1006); tools: calls by tool name."""

    tool_calls: Count | None = None
    attempts: Count | None = None
    wall_ms: Amount | None = None
    tokens: Count | None = None
    cost_usd: Amount | None = None
    writes: Count | None = None
    destructive: Count | None = None
    tools: dict[str, Count] = {}


class RecordPolicy(_Section, frozen=True, kw_only=True):
    """What may be stored at all: result bodies or only their digests, message texts or none."""

    results: Literal["keep", "hash"] = "keep"
    messages: Literal["keep", "drop"] = "keep"


class Environment(_Section, frozen=True, kw_only=True):
    """What differs where the scenarios run elsewhere (`--environment NAME`)."""

    limits: Limits = Limits()
    runs: AtLeastOne | None = None
    env: dict[str, str] = {}


class Scenario(_Section, frozen=True, kw_only=True):
    """One run that is recorded and compared.

    command: a program and its arguments, no shell; faults, model: files of the project; env: variables for the command.
    """

    suite: str | None = None
    description: str | None = None
    command: str | list[str] | None = None
    faults: str | None = None
    model: str | None = None
    seed: int | None = None
    env: dict[str, str] = {}
    backoff: dict[str, Any] | None = None
    budgets: Budgets = Budgets()
    limits: Limits = Limits()
    profile: str | None = None


class Config(_Section, frozen=True, kw_only=True):
    """A whole configuration.

    fail_on, jobs, max_bytes, runs: defaults of the options of those names.
    """

    goldens: str = "goldens"
    profile: str = "default"
    limits: Limits = Limits()
    environments: dict[str, Environment] = {}
    scenarios: dict[str, Scenario] = {}
    record: RecordPolicy = RecordPolicy()
    fail_on: Severity = "error"
    jobs: Jobs = 1
    max_bytes: AtLeastOne | None = None
    runs: AtLeastOne | None = None

    def limits_of(self, scenario: Scenario, environment: str | None = None) -> Limits:
        """Return the limits of a scenario's run: its own, then those of the environment, the project and the
        defaults."""
        found = self.limits.over(DEFAULT_LIMITS)
        if environment is not None:
            found = self.environments[environment].limits.over(found)
        return scenario.limits.over(found)
