"""A cache of what tools returned: look up, keep, and let go of what a write has made old.

Only what is declared a read is kept, unless `include` says otherwise; a call that may write lets go of what it may have
touched. Wrapping functions is `wrap`'s. This module must not call a tool.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import msgspec
from cachetools import Cache, TLRUCache

from goldentrace.cache.keys import call_key
from goldentrace.cache.wrap import copy_of, describe, says_error, wrap_function, wrap_registry
from goldentrace.codec.canonical import digest, encode
from goldentrace.errors import ConfigError
from goldentrace.model.event import Access
from goldentrace.model.profile import Profile, Tool
from goldentrace.rules.arguments import fill
from goldentrace.store.clock import Clock

Function = TypeVar("Function", bound=Callable[..., Any])
CacheOutcome: TypeAlias = Literal["hit", "miss", "bypass"]
KEY_DIGITS: Final = 16
MAX_ENTRIES: Final = 1024
"""Default of `max_entries`: more than one run of an agent asks for, little enough to forget about."""
ROLE: Final = "cache"
"""Role of the messages that tell hits and misses in a trace."""


class Recording(Protocol):
    """What a cache needs of a `Recorder`."""

    def message(self, role: str, content: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """One look at the cache. key: digest of the canonical call, None where it has none; age_ms: of the entry that was
    given, None without a hit; reason: why the cache was passed by."""

    outcome: CacheOutcome
    tool_name: str
    key: str | None = None
    age_ms: float | None = None
    reason: str | None = None


@dataclass(slots=True)
class CacheCounts:
    """What a cache did so far. invalidated: entries that writes made old; evicted ones are not counted."""

    hits: int = 0
    misses: int = 0
    bypassed: int = 0
    stored: int = 0
    invalidated: int = 0


class Entry:
    """What one call returned. value: its result; stored_ms: when, by the cache's clock."""

    __slots__ = ("resource", "stored_ms", "tool_name", "value")

    def __init__(self, tool_name: str, value: Any, stored_ms: float, resource: str | None) -> None:
        self.tool_name = tool_name
        self.value = value
        self.stored_ms = stored_ms
        self.resource = resource


class Look:
    """What the cache says of a call that is about to be made. entry: the answer, None where the tool has to be called;
    key: under which its result may be kept, None for one that may not; is_stale: a write came while it was running."""

    __slots__ = ("entry", "is_stale", "is_write", "key", "resource", "tool_name")

    def __init__(self, tool_name: str, resource: str | None) -> None:
        self.tool_name = tool_name
        self.resource = resource
        self.key: bytes | None = None
        self.entry: Entry | None = None
        self.is_write = False
        self.is_stale = False


class ToolResultCache:
    """Keeps what tools returned and gives it again for an equal call. Safe in threads and tasks.

    ttl_s: how long an entry counts, None for ever; tool_ttl_s: the same for some tools; max_entries: the least recently
    used goes first. include: names or patterns (`search_*`) of tools of undeclared access to keep, as if they were
    declared reads; exclude: of tools never to keep. bypass: (tool name, arguments) -> True for a call that goes past
    the cache. tools: what is declared of tools, as in a profile; undeclared: what a call of a tool that nobody declares
    counts as, `write` lets go of everything. recorder: writes hits and misses into its trace; on_event: is told of them
    too. clock: has `monotonic_ns()`. Raises: ConfigError for settings that are wrong.
    """

    def __init__(  # noqa: PLR0913 - what a person sets once, each with a default
        self,
        ttl_s: float | None = None,
        max_entries: int = MAX_ENTRIES,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        bypass: Callable[[str, Any], bool] | None = None,
        tool_ttl_s: Mapping[str, float | None] | None = None,
        tools: Mapping[str, Tool | Mapping[str, Any]] | None = None,
        profile: Profile | None = None,
        undeclared: Access = "write",
        recorder: Recording | None = None,
        on_event: Callable[[CacheEvent], None] | None = None,
        clock: Clock = time,
    ) -> None:
        self._ttl_s = _checked_ttl("ttl_s", ttl_s)
        self._tool_ttl_s = {
            name: _checked_ttl(f"tool_ttl_s[{name!r}]", ttl) for name, ttl in (tool_ttl_s or {}).items()
        }
        if isinstance(max_entries, bool) or max_entries < 1:
            raise ConfigError(f"max_entries is {max_entries!r}", next_step="it is a number from 1 on")
        self._include = _names("include", include)
        self._exclude = _names("exclude", exclude)
        self._bypass = bypass
        self._profile = profile or Profile(name="cache")
        self._undeclared = undeclared
        self._recorder = recorder
        self._on_event = on_event
        self._clock = clock
        self._lock = threading.RLock()
        self._entries: TLRUCache[bytes, Entry] = TLRUCache(max_entries, ttu=self._expiry, timer=self.now_ms)
        self._running: set[Look] = set()
        self.counts = CacheCounts()
        for name, tool in (tools or {}).items():
            self.declare(name, tool)

    # --- what is declared -------------------------------------------------------------------------------------------

    def declare(self, tool_name: str, tool: Tool | Mapping[str, Any]) -> None:
        """Say what is known of a tool: access, resource, polling, idempotent, as in a profile. Raises: ConfigError."""
        if not isinstance(tool, Tool):
            try:
                tool = msgspec.convert(dict(tool), Tool)
            except msgspec.ValidationError as error:
                raise ConfigError(f"tool {tool_name!r}: {error}", next_step="see `tools:` of a profile") from None
        self._profile = msgspec.structs.replace(self._profile, tools={**self._profile.tools, tool_name: tool})

    def known(self, tool_name: str) -> Tool:
        """Return what is declared of a tool."""
        return self._profile.tool(tool_name)

    def why_not(self, tool_name: str) -> str | None:
        """Return why results of a tool are not kept; None where they are."""
        tool = self.known(tool_name)
        if _matches(tool_name, self._exclude):
            return "excluded"
        if tool.access == "write" or tool.destructive:
            return "write"
        if tool.polling:
            return "polling"
        if tool.idempotent is False:
            return "not idempotent"
        if tool.access is None and not _matches(tool_name, self._include):
            return "undeclared"
        return None

    # --- looking up and keeping -------------------------------------------------------------------------------------

    def look_up(self, tool_name: str, arguments: Any, *, resource: str | None = None) -> Look:
        """Return what the cache holds for a call that is about to be made. Whoever asks and makes the call ends with
        `store` or `drop`, whatever came of it; a write lets go of entries here and there. resource: what the call
        touches, where that is known better than by the tool's template."""
        template = self.known(tool_name).resource
        if resource is None and template is not None:
            resource = fill(template, arguments)
        look = Look(tool_name, resource)
        reason = self.why_not(tool_name)
        if reason is None and self._bypass is not None and self._bypass(tool_name, arguments):
            reason = "bypass"
        key = call_key(tool_name, arguments, self._profile) if reason is None else None
        if reason is None and key is None:
            reason = "arguments are no JSON"
        look.is_write = self._is_write(tool_name)
        with self._lock:
            if key is not None:
                look.key = key
                look.entry = self._entries.get(key)
            if look.entry is None:
                self._running.add(look)
            if look.is_write:
                self._invalidate(look.resource)
            event = self._event(look, reason)
        self._tell(event)
        return look

    def store(self, look: Look, value: Any) -> bool:
        """Keep what a call returned, unless it may not be kept or a write came meanwhile; return whether it was."""
        with self._lock:
            self._running.discard(look)
            if look.is_write:
                self._invalidate(look.resource)
            if look.key is None or look.is_stale:
                return False
            self._entries[look.key] = Entry(look.tool_name, value, self.now_ms(), look.resource)
            self.counts.stored += look.key in self._entries
            return look.key in self._entries

    def drop(self, look: Look) -> None:
        """End a call that failed: nothing is kept; a failed write may have taken effect all the same."""
        with self._lock:
            self._running.discard(look)
            if look.is_write:
                self._invalidate(look.resource)

    def invalidate(self, resource: str | None = None) -> int:
        """Let go of what a change of a resource makes old: its entries and those of unknown resource; of everything for
        None. Return how many entries went."""
        with self._lock:
            return self._invalidate(resource)

    def clear(self) -> None:
        """Let go of everything."""
        self.invalidate()

    def now_ms(self) -> float:
        """Return what the cache's clock shows."""
        return self._clock.monotonic_ns() / 1e6

    def __len__(self) -> int:
        with self._lock:
            self._entries.expire()
            return len(self._entries)

    def _invalidate(self, resource: str | None) -> int:
        for look in self._running:
            if resource is None or look.resource is None or look.resource == resource:
                look.is_stale = True
        touched = [key for key in list(self._entries) if self._is_touched(key, resource)]
        for key in touched:
            self._entries.pop(key, None)
        self.counts.invalidated += len(touched)
        return len(touched)

    def _is_touched(self, key: bytes, resource: str | None) -> bool:
        """Asked past the order of use: being looked over by a write does not make an entry recently used."""
        own: str | None = Cache.__getitem__(self._entries, key).resource
        return resource is None or own is None or own == resource

    def _is_write(self, tool_name: str) -> bool:
        tool = self.known(tool_name)
        if tool.access is not None or tool.destructive:
            return tool.access != "read"
        return self._undeclared == "write" and not tool.polling and not _matches(tool_name, self._include)

    def _expiry(self, _key: bytes, entry: Entry, now_ms: float) -> float:
        ttl_s = self._tool_ttl_s.get(entry.tool_name, self._ttl_s)
        return float("inf") if ttl_s is None else now_ms + ttl_s * 1000

    # --- what is told -----------------------------------------------------------------------------------------------

    def _event(self, look: Look, reason: str | None) -> CacheEvent:
        key = None if look.key is None else digest(look.key, KEY_DIGITS)
        if reason is not None:
            self.counts.bypassed += 1
            return CacheEvent("bypass", look.tool_name, key, reason=reason)
        if look.entry is None:
            self.counts.misses += 1
            return CacheEvent("miss", look.tool_name, key)
        self.counts.hits += 1
        return CacheEvent("hit", look.tool_name, key, age_ms=round(self.now_ms() - look.entry.stored_ms, 3))

    def _tell(self, event: CacheEvent) -> None:
        if self._recorder is not None and event.outcome != "bypass":
            told = {"outcome": event.outcome, "tool_name": event.tool_name, "key": event.key, "age_ms": event.age_ms}
            text = encode({name: value for name, value in told.items() if value is not None}).decode()
            self._recorder.message(ROLE, text)
        if self._on_event is not None:
            self._on_event(event)

    # --- wrapping ---------------------------------------------------------------------------------------------------

    def wrap_tools(self, tools: Mapping[str, Any]) -> dict[str, Any]:
        """Return a registry whose tools are answered from the cache: name -> callable, or dict or object that holds one
        and says about it (access, resource, polling, idempotent, MCP's annotations).

        A recorder goes around it: `rec.wrap_tools(cache.wrap_tools(TOOLS))`. Raises: ConfigError for wrong metadata,
        TypeError for an entry that is no tool.
        """
        for name, entry in tools.items():
            stated = describe(entry)
            if stated:
                known = msgspec.structs.asdict(self.known(name))
                self.declare(name, {**known, **stated})
        return wrap_registry(self, tools)

    def tool(
        self,
        *,
        name: str | None = None,
        access: Access = "read",
        resource: str | None = None,
        polling: bool = False,
    ) -> Callable[[Function], Function]:
        """Decorate a function as a tool, a read unless said otherwise. name: default the function's; resource: template
        over its arguments, `order:{order_id}`."""

        def decorate(function: Function) -> Function:
            tool_name = name or str(getattr(function, "__name__", type(function).__name__))
            self.declare(tool_name, Tool(access=access, resource=resource, polling=polling))
            return wrap_function(self, tool_name, function)  # type: ignore[return-value] # of the same signature

        return decorate

    def keep(self, look: Look, value: Any) -> None:
        """Keep a copy of what a tool returned; what cannot be copied, or says that it is an error, is not kept."""
        kept, is_copied = copy_of(value) if look.key is not None and not says_error(value) else (None, False)
        if is_copied:
            self.store(look, kept)
        else:
            self.drop(look)


def _checked_ttl(name: str, ttl_s: float | None) -> float | None:
    if ttl_s is not None and (isinstance(ttl_s, bool) or not ttl_s > 0):
        raise ConfigError(f"{name} is {ttl_s!r}", next_step="it is a number of seconds above 0, or None for ever")
    return ttl_s


def _names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ConfigError(f"{what} is a text", next_step=f"write a list: {what}=[{names!r}]")
    return tuple(names)


def _matches(tool_name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool_name, pattern) for pattern in patterns)
