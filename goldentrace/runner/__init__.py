"""Runs a scenario: starts what it needs, runs its command, enforces its limits, collects its trace."""
