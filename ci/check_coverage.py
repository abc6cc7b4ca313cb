"""Fail unless the tests reach 95 % of the statements and of the branches of every pure layer.

The pure layers hold the verdict, so that an untested branch there is a verdict that nobody checked. The other layers
are reported, not judged. Reads the data of the last test run (`COVERAGE_FILE`); measures nothing itself.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath

PURE_LAYERS = ("model", "match", "normalize", "diff", "rules")
MIN_BRANCH_PERCENT = 95.0
PACKAGE = Path("goldentrace")


def main() -> int:
    """Print one line per layer and return 1 when a pure one falls short, else 0."""
    measured = subprocess.run(["coverage", "json", "-q", "-o", "-"], check=False, capture_output=True, text=True)
    if measured.returncode != 0:
        print(f"no coverage to judge: {measured.stdout}{measured.stderr}".strip())
        return 1
    layers = totals(json.loads(measured.stdout)["files"])
    missed = []
    print(f"{'layer':<16}{'statements':>12}{'branches':>12}")
    for layer in sorted(layers):
        statements, branches = layers[layer]["statements"], layers[layer]["branches"]
        is_short = layer in PURE_LAYERS and min(percent(statements), percent(branches)) < MIN_BRANCH_PERCENT
        missed += [layer] if is_short else []
        print(
            f"{layer:<16}{percent(statements):>10.1f} %{percent(branches):>10.1f} %{'  below 95 %' if is_short else ''}"
        )
    unmeasured = [layer for layer in PURE_LAYERS if any((PACKAGE / layer).glob("*.py")) and layer not in layers]
    for layer in unmeasured:
        print(f"{layer:<16} no test imports it")
    return 1 if missed or unmeasured else 0


def totals(files: dict[str, dict]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return (covered, all) per kind and layer: the folder below the package, or the package itself."""
    sums: dict[str, dict[str, list[int]]] = defaultdict(lambda: {"statements": [0, 0], "branches": [0, 0]})
    for name, measured in files.items():
        parts = PurePosixPath(name).parts
        layer = parts[parts.index(PACKAGE.name) + 1] if len(parts) > parts.index(PACKAGE.name) + 2 else PACKAGE.name
        summary = measured["summary"]
        for kind, covered, count in (
            ("statements", summary["covered_lines"], summary["num_statements"]),
            ("branches", summary["covered_branches"], summary["num_branches"]),
        ):
            sums[layer][kind][0] += covered
            sums[layer][kind][1] += count
    return {layer: {kind: (pair[0], pair[1]) for kind, pair in kinds.items()} for layer, kinds in sums.items()}


def percent(covered_of: tuple[int, int]) -> float:
    """Return how much was reached, 100 where there was nothing to reach."""
    covered, count = covered_of
    return 100.0 if count == 0 else 100.0 * covered / count


if __name__ == "__main__":
    sys.exit(main())
