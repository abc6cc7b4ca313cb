"""What a benchmark states and how it is measured: alternately with its reference, several times, after a warm-up.

Absolute times drift between machines and hours; the ratio of two medians of one run holds. Nothing here judges.
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
"""getrusage(2): ru_maxrss is in kilobytes on Linux, in bytes on macOS."""


@dataclass(frozen=True)
class Command:
    """A process to measure. codes: the exit codes that mean that it did its work."""

    argv: Sequence[str | os.PathLike[str]]
    codes: tuple[int, ...] = (0,)
    cwd: Path | None = None
    env: dict[str, str] | None = None


Work = Command | Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    name: unique in its module; work and reference: what is measured and what with; amount and unit: how much one run
    does, for a rate; targets: upper bounds, by the name in `Result.values` (`ratio`, `seconds`, `cpu_s`, `peak_mb`).
    """

    name: str
    work: Work
    reference: Work | None = None
    reference_name: str = ""
    repeat: int = 7
    amount: float | None = None
    unit: str = ""
    targets: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One run: wall seconds, CPU seconds of the process with its children, peak memory in MB (None for a function)."""

    seconds: float
    cpu_s: float
    peak_mb: float | None


@dataclass(frozen=True)
class Result:
    """All runs of a row, in order."""

    row: Row
    work: list[Sample]
    reference: list[Sample]

    @property
    def values(self) -> dict[str, float]:
        """Medians of the work, and the ratio of both medians where there is a reference."""
        values = {"seconds": median(self.work, "seconds"), "cpu_s": median(self.work, "cpu_s")}
        if all(sample.peak_mb is not None for sample in self.work):
            values["peak_mb"] = median(self.work, "peak_mb")
        if self.reference:
            values["reference_s"] = median(self.reference, "seconds")
            values["ratio"] = values["seconds"] / values["reference_s"]
        if self.row.amount:
            values["per_second"] = self.row.amount / values["seconds"]
        return values

    def to_json(self) -> dict[str, object]:
        """Return what a results file holds of this row."""
        return {
            "name": self.row.name,
            "reference_name": self.row.reference_name,
            "targets": self.row.targets,
            "unit": self.row.unit,
            **self.values,
            "runs": [asdict(sample) for sample in self.work],
            "reference_runs": [asdict(sample) for sample in self.reference],
        }


def median(samples: list[Sample], name: str) -> float:
    """Return the median of one value over the runs."""
    return statistics.median(getattr(sample, name) for sample in samples)


def measure(row: Row, repeat: int | None = None) -> Result:
    """Run the work and its reference alternately, `repeat` times after one warm-up of each.

    Raises: RuntimeError when a command ends with a code that is not one of its own.
    """
    works = [work for work in (row.work, row.reference) if work is not None]
    samples: list[list[Sample]] = [[], []]
    for work in works:
        sample(work)
    for _ in range(repeat or row.repeat):
        for index, work in enumerate(works):
            samples[index].append(sample(work))
    return Result(row, samples[0], samples[1])


def sample(work: Work) -> Sample:
    """Run once."""
    return sample_command(work) if isinstance(work, Command) else sample_function(work)


def sample_function(work: Callable[[], object]) -> Sample:
    """Run a function once, with the garbage of earlier runs gone."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Sample(time.perf_counter() - wall, time.process_time() - cpu, None)


def sample_command(command: Command) -> Sample:
    """Run a process once; its output goes to a file, as a pipe that nobody reads would stop it."""
    with tempfile.TemporaryFile() as output:
        wall = time.perf_counter()
        process = subprocess.Popen(
            list(command.argv),
            cwd=command.cwd,
            env=None if command.env is None else os.environ | command.env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - wall
        code = process.returncode = os.waitstatus_to_exitcode(status)
        if code not in command.codes:
            output.seek(0)
            tail = output.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(map(str, command.argv))} ended with {code}, not {command.codes}\n{tail}")
    return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT_BYTES / 1e6)
