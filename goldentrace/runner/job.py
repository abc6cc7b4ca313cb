"""What is to be run, and what came of it. Values only."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from goldentrace.model.config import DEFAULT_LIMITS, Limits, RecordPolicy
from goldentrace.model.event import StopReason
from goldentrace.model.profile import Profile


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a scenario.

    command: words, no shell; folder: absolute, where it runs; trace, log: absolute, files to be made; env: variables
    beside this process's own; profile: says which tools write and destroy, and what is redacted; faults, model: plan
    and script.
    """

    name: str
    command: tuple[str, ...]
    folder: Path
    trace: Path
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    limits: Limits = DEFAULT_LIMITS
    profile: Profile = Profile(name="")  # noqa: RUF009 - a frozen value
    storage: RecordPolicy = RecordPolicy()  # noqa: RUF009 - a frozen value
    faults: Path | None = None
    model: Path | None = None
    base: Path | None = None

    def shown(self, path: Path) -> str:
        """Return a path as people are to read it: relative to `base`, where they stand."""
        return str(path) if self.base is None else os.path.relpath(path, self.base)


@dataclass(frozen=True, slots=True)
class Breach:
    """An enforced limit that a run passed: its name, the value reached, the maximum, what trace_end says then."""

    limit: str
    value: float
    maximum: float
    stop_reason: StopReason
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. exit_code: of the command, None where a signal ended it; notes: what a person should know;
    unknown_types: event types that the agent wrote and nobody knows: what they tell is not in the trace;
    log_lines: the end of the log, redacted, of a command that failed."""

    job: Job
    events: int
    wall_ms: float
    exit_code: int | None
    signal: str | None = None
    breach: Breach | None = None
    notes: tuple[str, ...] = ()
    unknown_types: tuple[str, ...] = ()
    log_lines: tuple[str, ...] = ()

    @property
    def ending(self) -> Literal["finished", "stopped", "failed"]:
        """Did the command end by itself with 0, was it stopped at a limit, or did it fail?"""
        if self.breach is not None:
            return "stopped"
        return "finished" if self.exit_code == 0 else "failed"
