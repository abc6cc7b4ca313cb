"""What a scenario needs beside its command: the fault-injecting tool server and the scripted model.

Both are other rooms' and are imported only when a scenario asks for them. This module must not know their protocols.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from goldentrace.errors import InfrastructureError, Where
from goldentrace.model.event import AnyEvent
from goldentrace.runner.job import Job

if TYPE_CHECKING:
    from goldentrace.faults.process import FaultsHandle
    from goldentrace.replay.process import ScriptHandle


@dataclass(slots=True)
class Services:
    """The servers of one run. A context manager: leaving it stops them. folder: for their journals."""

    job: Job
    folder: Path
    faults: "FaultsHandle | None" = None
    script: "ScriptHandle | None" = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Start what the scenario asks for. Raises: ConfigError for a wrong plan or script, InfrastructureError."""
        job = self.job
        try:
            if job.faults is not None:
                from goldentrace.faults.process import start_faults

                self.faults = start_faults(
                    job.faults, journal_path=self.folder / "tools.jsonl", seed=job.seed, scenario_id=job.name
                )
                self._stack.callback(self.faults.stop)
            if job.model is not None:
                from goldentrace.replay.process import start_script

                self.script = start_script(
                    job.model, seed=job.seed, journal_path=self.folder / "model.jsonl", scenario_id=job.name
                )
                self._stack.enter_context(self.script)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def environment(self) -> dict[str, str]:
        """Return the variables by which the command finds the servers."""
        found: dict[str, str] = {}
        if self.faults is not None:
            found |= self.faults.environment()
        if self.script is not None:
            found |= self.script.environment
        return found

    def stop(self) -> None:
        """Stop the servers; what they saw can be asked for afterwards."""
        self._stack.close()

    def check(self) -> list[str]:
        """Return what a person should know of how the servers were used.

        Raises: InfrastructureError where a server says that the run has no verdict: a request that the plan does not
        know, a script that ran out.
        """
        notes: list[str] = []
        if self.faults is not None:
            self.faults.check()
            for difference in self.faults.verify().differences:
                notes.append(f"effect {difference.name}: expected {difference.expected}, was {difference.actual}")
        if self.script is not None:
            report = self.script.report()
            if report.failure is not None or report.is_exhausted:
                raise InfrastructureError(
                    f"the scripted model had no answer: {report.failure or 'its script ran out of turns'}",
                    where=Where(str(self.job.model)),
                    next_step="correct the script, or find out why the agent asks for more",
                )  # fmt: skip
            notes += report.notes
            notes += [
                f"{self.job.model}:{use.line}: a turn of the script was never asked for" for use in report.unused_turns
            ]
        return notes

    def tool_events(self) -> list[AnyEvent]:
        """Return the tool server's side of the run."""
        return [] if self.faults is None else self.faults.events()

    def model_events(self) -> list[AnyEvent]:
        """Return the model's side of the run."""
        return [] if self.script is None else self.script.events()
