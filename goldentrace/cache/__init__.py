"""Results of tools kept and given again: `ToolResultCache` for an agent, and a replay of a trace that shows what one
would have saved.

The names below are loaded when they are used. Must not decide whether a repeat is a defect: the rules do.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldentrace.cache.results import CacheCounts, CacheEvent, ToolResultCache

__all__ = ["CacheCounts", "CacheEvent", "ToolResultCache"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from goldentrace.cache import results

        return getattr(results, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
