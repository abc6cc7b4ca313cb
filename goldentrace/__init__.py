"""Golden-trace record-and-diff regression tests for agents that call tools.

Importing the package must stay free: the command line starts with it, and so does every recorded agent. What an agent
needs is loaded when it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldentrace.record.limits import LimitReached as LimitReached
    from goldentrace.record.recorder import Recorder as Recorder

__version__ = "0.1.0"
__all__ = ["LimitReached", "Recorder", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Recorder":
        from goldentrace.record.recorder import Recorder

        return Recorder
    if name == "LimitReached":
        from goldentrace.record.limits import LimitReached

        return LimitReached
    raise AttributeError(f"module 'goldentrace' has no attribute {name!r}")
