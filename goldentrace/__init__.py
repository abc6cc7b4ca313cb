"""Golden-trace record-and-diff regression tests for agents that call tools.

Importing the package must stay free: the command line starts with it, and so does every recorded agent.
"""

__version__ = "0.1.0"
