"""The sample of findings on real runs, as tests/rules/precision/README.md fixes it."""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from goldentrace.model.finding import Finding
from goldentrace.model.profile import Profile
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.registry import run_rules
from goldentrace.sources.registry import read_traces, trace_name

FOLDER = Path(__file__).parent


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return loaded


def findings(corpus: Path) -> dict[str, list[tuple[str, Finding]]]:
    """Return code -> (name of the finding, finding), in the order of the procedure."""
    found: dict[str, list[tuple[str, Finding]]] = defaultdict(list)
    for file, index, trace in _traces(corpus):
        profile = Profile(name="default@1")
        normal = normalize(trace, profile, "h:precision")
        place_in_time(normal, trace)
        for finding in run_rules(trace, normal, profile).findings:
            short = file.removesuffix(".json")
            name = f"{short} {trace_name(trace)} {finding.labels[0]} {finding.labels[-1]}"
            found[finding.code].append((name.replace(" trace ", " ") if index == 0 else name, finding))
    return dict(sorted(found.items()))


def sample(items: list[tuple[str, Finding]]) -> list[tuple[str, Finding]]:
    rules = load("thresholds.yaml")
    if len(items) <= rules["sample"]:
        return items
    places = sorted(random.Random(rules["seed"]).sample(range(len(items)), rules["sample"]))
    return [items[place] for place in places]


def _traces(corpus: Path) -> Iterator[tuple[str, int, Any]]:
    files = sorted(path for path in (corpus / "toolathlon").glob("*.json") if path.name != "MANIFEST.json")
    for file in [*files, corpus / "tau_bench" / "gpt-4o-airline.json"]:
        for index, trace in enumerate(read_traces(file)):
            yield file.name, index, trace
