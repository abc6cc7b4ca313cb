"""Runs the modules `bench_*.py` of this folder, prints a table and writes every run with the machine and the versions.

Started by `ci/bench/run`. Exit code 0 when everything ran, whatever the times; 1 when something did not run.
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

from timing import Result, measure

FOLDER = Path(__file__).parent
HEADER = f"{'':<44}{'median':>12}{'reference':>12}{'ratio':>9}{'CPU':>10}{'peak':>10}  target"


def main(arguments: list[str] | None = None, folder: Path = FOLDER) -> int:
    """Run the benchmarks that are named, or all, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="bench_NAME.py; default: all")
    parser.add_argument("--repeat", type=int, help="runs of each row after its warm-up; default: as the row says")
    parser.add_argument("--results", type=Path, default=FOLDER / "results", help="folder of the results file")
    options = parser.parse_args(arguments)
    modules = {path.stem.removeprefix("bench_"): path for path in sorted(folder.glob("bench_*.py"))}
    if unknown := set(options.names) - set(modules):
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(modules)}", file=sys.stderr)
        return 1
    report: dict[str, object] = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    rows: list[dict[str, object]] = []
    failures = 0
    for name in options.names or modules:
        module = load(modules[name])
        print(f"\n{name}: {(module.__doc__ or '').strip().splitlines()[0]}\n{HEADER}", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as inputs:
            try:
                for result in results(module, Path(inputs), options.repeat):
                    print(line(result), flush=True)
                    rows.append({"benchmark": name, **result.to_json()})
            except (OSError, RuntimeError) as error:
                failures += 1
                print(f"{name} did not run: {error}", file=sys.stderr)
    print(f"\n{write({**report, 'rows': rows}, options.results)}")
    return 1 if failures else 0


def load(path: Path) -> ModuleType:
    """Return the benchmark module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def results(module: ModuleType, inputs: Path, repeat: int | None) -> Iterator[Result]:
    """Yield the measured rows of a module, each as soon as it is there."""
    for row in module.rows(inputs):
        yield measure(row, repeat)


def line(result: Result) -> str:
    """Return one row as text: seconds, ratio, MB, and each target as met or missed."""
    values = result.values
    cells = [
        f"{result.row.name[:43]:<44}",
        f"{duration(values['seconds']):>12}",
        f"{duration(values['reference_s']) if 'reference_s' in values else '':>12}",
        f"{values['ratio']:>8.2f}×" if "ratio" in values else f"{'':>9}",
        f"{duration(values['cpu_s']):>10}",
        f"{values['peak_mb']:>7.0f} MB" if "peak_mb" in values else f"{'':>10}",
    ]
    verdicts = [
        f"{name} ≤ {bound:g} {'met' if values[name] <= bound else 'MISSED'}"
        for name, bound in result.row.targets.items()
    ]
    if "per_second" in values:
        verdicts.append(f"{values['per_second']:,.0f} {result.row.unit}/s")
    return "".join(cells) + "  " + ", ".join(verdicts)


def duration(seconds: float) -> str:
    """Return a time with a unit that leaves three or four digits."""
    return (
        f"{seconds:.2f} s"
        if seconds >= 1
        else f"{seconds * 1e3:.1f} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.1f} µs"
    )


def machine() -> dict[str, object]:
    """Return what the times depend on: processor, cores, memory, system, Python, installed versions, commit."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_000_000,
        "load": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {
            found.name: found.version for found in sorted(distributions(), key=lambda found: found.name.lower())
        },
        "commit": commit.stdout.strip(),
    }


def processor() -> str:
    """Return the name of the processor, as Linux knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((text.partition(":")[2].strip() for text in lines if text.startswith("model name")), platform.machine())


def write(report: dict[str, object], folder: Path) -> Path:
    """Write a results file named for its time and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
