"""Are the edits the fewest? Counted by plain code on the same files, beside what difflib makes of them.

A row's work fails where the differ's number is another than the least one, so a wrong count cannot look like a time.
"""

import difflib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from big_traces import duplicated, least_edits, write_pair
from timing import Row


def rows(folder: Path) -> Iterator[Row]:
    """Yield one row per kind; the work is the count itself."""
    for kind, calls in (("mixed", 20_000), ("eight", 20_000), ("equal", 20_000)):
        pair = write_pair(folder / kind, calls, kind)
        least = least_edits(*pair)
        yield Row(f"{kind}: {least} edits are the least", _same(pair, least), _difflib(pair), "difflib", repeat=1)
    for calls, place in ((200, 190), (200_000, 100_000)):
        pair = duplicated(folder / f"duplicate-{calls}", calls, place)
        yield Row(f"one duplicate at call {place} is one change", _same(pair, 1), repeat=1)


def _same(pair: tuple[Path, Path], least: int) -> Callable[[], object]:
    def check() -> None:
        found = count_edits(pair)
        if found != least:
            raise AssertionError(f"{found} edits reported, {least} are the least")

    return check


def count_edits(pair: tuple[Path, Path]) -> int:
    """Return added + removed + 2 x (moved + changed arguments + changed tool), as the JSON report says."""
    goldentrace = Path(sys.executable).with_name("goldentrace")
    done = subprocess.run(
        [goldentrace, "diff", *pair, "--output-format", "json"], capture_output=True, text=True, check=False
    )
    weights = {"GT102": 1, "GT103": 1, "GT101": 2, "GT104": 2, "GT105": 2}
    findings = json.loads(done.stdout)["traces"][0]["findings"]
    return sum(weights.get(finding["rule"], 0) for finding in findings)


def _difflib(pair: tuple[Path, Path]) -> Callable[[], object]:
    keys = [
        [line.partition('"tool_name"')[2] for line in path.read_text().splitlines() if '"tool_call"' in line]
        for path in pair
    ]
    return lambda: difflib.SequenceMatcher(None, *keys).get_opcodes()
