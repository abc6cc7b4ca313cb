"""A profile: how traces are normalized and compared, as read from YAML.

Structs with unknown fields forbidden, so that a misspelt key is an error. What alters normalization is in
`Profile.normalizing`, whose digest goldens carry; severities, tolerances and rule options are not, so that changing
them leaves goldens valid. This module must not read files.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from goldentrace.model.event import Access

Equivalence: TypeAlias = Literal["strict", "semantic"]
ResultsMode: TypeAlias = Literal["status", "shape", "digest", "keep"]
Severity: TypeAlias = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""Worst first."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A mapping of the profile."""


class Ids(_Section, frozen=True, kw_only=True):
    """kinds: the versioned list of random shapes; keys: key names or pointer globs whose values are ids whatever their
    shape; ignore_keys: those that never are."""

    kinds: Literal["ids/1", "none"] = "ids/1"
    keys: list[str] = []
    ignore_keys: list[str] = []


class Paths(_Section, frozen=True, kw_only=True):
    """Which recorded folders become placeholders; also: name -> absolute folder."""

    cwd: bool = True
    home: bool = True
    tmp: bool = True
    also: dict[str, str] = {}


class Time(_Section, frozen=True, kw_only=True):
    """keep: which offsets a golden holds; relative: pointers of dates that follow the clock."""

    keep: Literal["backoff", "all", "none"] = "backoff"
    relative: list[str] = []


class Arguments(_Section, frozen=True, kw_only=True):
    """ignore, keep, order_free: pointer globs; max_leaves: how many the written map holds; key_env: HMAC key's
    variable."""

    equivalence: Equivalence = "strict"
    ignore: list[str] = []
    keep: list[str] = []
    order_free: list[str] = []
    max_leaves: Annotated[int, msgspec.Meta(ge=1)] = 64
    key_env: str | None = None


class Results(_Section, frozen=True, kw_only=True):
    """compare: status only, the shape (pointers and types), the digests, or the values."""

    compare: ResultsMode = "status"


class RedactionRule(_Section, frozen=True, kw_only=True):
    """A user's own secret (pattern) or an exception to the built-in detectors (allow), both regular expressions."""

    name: str
    pattern: str | None = None
    allow: str | None = None


class Redact(_Section, frozen=True, kw_only=True):
    builtin: bool = True
    rules: list[RedactionRule] = []


class Tool(_Section, frozen=True, kw_only=True):
    """What is known of one tool. `reconciles` and `fallback_for` name the tools it stands in for; `resource` is a
    template over the arguments; `error_patterns` are regular expressions over an ok text that mean failure."""

    access: Access | None = None
    destructive: bool = False
    resource: str | None = None
    idempotent: bool | None = None
    polling: bool = False
    schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    requires: list[Any] = []
    reconciles: str | list[str] | None = None
    fallback_for: str | list[str] | None = None
    escalates: bool = False
    error_patterns: list[str] = []
    terminal_errors: list[str] = []
    cursor: str | None = None
    ignore: list[str] = []
    keep: list[str] = []
    results: ResultsMode | None = None
    order_free: list[str] = []
    backoff: dict[str, Any] | None = None


class Suppression(_Section, frozen=True, kw_only=True):
    """A finding that is accepted, with its reason; until: ISO date."""

    code: str
    reason: str
    tool: str | None = None
    until: str | None = None


class Compare(_Section, frozen=True, kw_only=True):
    parallel_order: Literal["any", "strict"] = "any"
    severities: dict[str, Severity] = {}


class Profile(_Section, frozen=True, kw_only=True):
    """A whole profile; see normalizers/README.md for each key."""

    name: str
    extends: str | None = None
    ids: Ids = Ids()
    paths: Paths = Paths()
    time: Time = Time()
    arguments: Arguments = Arguments()
    results: Results = Results()
    redact: Redact = Redact()
    tools: dict[str, Tool] = {}
    rules: dict[str, Any] = {}
    compare: Compare = Compare()
    backoff: dict[str, Any] = {}

    def tool(self, name: str) -> Tool:
        """What is known of a tool; an empty record where nothing is."""
        return self.tools.get(name, UNKNOWN_TOOL)

    def normalizing(self) -> dict[str, Any]:
        """What alters normalization, as plain values: `profile_hash` is the digest of this."""
        tools = {
            name: {key: value for key, value in msgspec.to_builtins(tool).items() if key in _NORMALIZING_TOOL_KEYS}
            for name, tool in self.tools.items()
        }
        sections = {
            "ids": self.ids, "paths": self.paths, "time": self.time, "arguments": self.arguments,
            "results": self.results, "redact": self.redact,
        }  # fmt: skip
        return {
            **{name: msgspec.to_builtins(section) for name, section in sections.items()},
            "tools": {name: known for name, known in sorted(tools.items()) if known},
            "lists": [self.ids.kinds, SECRETS_LIST, FORMAT_OF_DIGESTS],
        }


UNKNOWN_TOOL = Tool()
SECRETS_LIST = "secrets/1"
FORMAT_OF_DIGESTS = "digests/1"
"""Versions of the built-in secret detectors and of the way digests are made; a change of either is a new number."""
_NORMALIZING_TOOL_KEYS = frozenset(
    {"ignore", "keep", "results", "order_free", "error_patterns", "reconciles", "fallback_for", "escalates"}
)
