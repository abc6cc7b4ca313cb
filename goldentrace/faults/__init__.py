"""Failures on demand: a tool server on 127.0.0.1 that fails as its plan says, and remembers what took effect.

The names below are loaded when they are used: the server process pays for none that it does not need.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldentrace.faults.keys import idempotency_key
    from goldentrace.faults.merge import merge_journal
    from goldentrace.faults.process import FaultsHandle, start_faults
    from goldentrace.faults.shim import connect_faults

__all__ = ["FaultsHandle", "connect_faults", "idempotency_key", "merge_journal", "start_faults"]

_HOMES = {
    "FaultsHandle": "process", "connect_faults": "shim", "idempotency_key": "keys", "merge_journal": "merge",
    "start_faults": "process",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(f"goldentrace.faults.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
