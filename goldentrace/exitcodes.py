"""The exit codes, which are the contract with CI. No other code is ever returned (a signal aside)."""

from typing import Final

OK: Final = 0
"""Both sides were read and behave the same; no structural defect."""
CHANGED: Final = 2
"""Both sides were read, and behaviour changed or a rule found a structural defect."""
NO_VERDICT: Final = 3
"""Unreadable or invalid input, a bad option, a missing golden or run, something that could not be compared or decided,
a failure of the infrastructure, an internal error. Wins over CHANGED, which wins over OK."""
