"""From a run to its golden, step by step, each of which may refuse: incomplete, defective, unstable.

What `record` decides, without printing or choosing scenarios.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from goldentrace.cli.project import Chosen, Project
from goldentrace.codec.golden import encode_golden
from goldentrace.diff.differ import compare
from goldentrace.errors import InputError, Where
from goldentrace.model.change import Change, Comparison
from goldentrace.model.finding import Finding
from goldentrace.model.report import TraceReport
from goldentrace.model.trace import Trace
from goldentrace.normalize.leaves import LeafReader
from goldentrace.normalize.paths import PathStep
from goldentrace.normalize.pipeline import normalize
from goldentrace.rules.acceptance import entries_accepting
from goldentrace.store.goldens import NewGolden, make_golden
from goldentrace.store.profiles import LoadedProfile

ALLOWED: Final = "recorded with --allow-defects"
"""The reason that a golden's header gives for a defect of the run that it was made of."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A golden that is not written yet."""

    chosen: Chosen
    loaded: LoadedProfile
    new: NewGolden
    path: Path
    trace: Trace

    @property
    def word(self) -> str:
        """new, rewritten or unchanged."""
        if self.new.old is None:
            return "new"
        return "unchanged" if self.new.old == self.new.data else "rewritten"


def draft(
    project: Project, chosen: Chosen, trace: Trace, *, may_be_incomplete: bool, constants: Collection[str] = ()
) -> Draft:
    """Return the golden that a run would become. constants: written leaves that further runs had too.

    Raises: InputError for a run that is incomplete or did nothing; ConfigError for the profile.
    """
    if trace.incomplete is not None and not may_be_incomplete:
        raise InputError(
            f"the run is incomplete: {trace.incomplete}",
            where=Where(trace.path),
            next_step="record a whole run, or pass --allow-incomplete",
        )
    scenario, layout = chosen.scenario, project.layout
    loaded = project.profiles.load(project.profile_name(scenario))
    path = layout.golden(chosen.name, chosen.suite)
    new = make_golden(
        trace, loaded, name=chosen.name, scenario=scenario, path=path, shown=layout.shown(path), constants=constants
    )
    return Draft(chosen, loaded, new, path, trace)


def with_accepted(one: Draft, defects: Sequence[Finding]) -> Draft:
    """Return the golden with the defects of its run accepted in its header, where a reviewer sees them: what was
    recorded on purpose is no news to `check`."""
    golden = one.new.golden
    accepts = (*golden.header.accepts, *entries_accepting(defects, ALLOWED))
    golden = msgspec.structs.replace(golden, header=msgspec.structs.replace(golden.header, accepts=accepts))
    return replace(one, new=replace(one.new, golden=golden, data=encode_golden(golden)))


def repeat(one: Draft, trace: Trace) -> Comparison:
    """Compare a further run with the golden that is to be written. Raises: InputError."""
    loaded = one.loaded
    normal = normalize(trace, loaded.profile, loaded.hash, key=loaded.key, constants=one.new.golden.values())
    return compare(one.new.golden, normal, loaded.profile, backoff=one.chosen.scenario.backoff)


def constants(one: Draft, traces: Sequence[Trace]) -> list[tuple[str, str, str]]:
    """Return (label, pointer, written leaf) of what looks like an id that no result supplied and was the same in every
    run: it is a value."""
    loaded = one.loaded
    runs = [normalize(trace, loaded.profile, loaded.hash, key=loaded.key) for trace in (one.trace, *traces)]
    reader = LeafReader(loaded.profile, PathStep({}), loaded.key)
    found: list[tuple[str, str, str]] = []
    for index, operation in enumerate(runs[0].operations):
        for pointer, leaf in operation.args.items():
            if isinstance(leaf, str) and _NEW.fullmatch(leaf):
                values = [run.payloads.argument(index, pointer) if run.payloads else (False, None) for run in runs]
                if values[0][0] and all(value == values[0] for value in values):
                    found.append((operation.label, pointer, reader.describe(values[0][1])))
    return found


_NEW = re.compile(r"<new:[^<>]+>")

SETTINGS = {
    "GT101": "arguments: {{ignore: [{pointer}]}} in the profile, if the value does not matter",
    "GT104": "tools: {{{tool}: {{access: read}}}} in the profile, if it only reads",
    "GT106": "compare: {{parallel_order: any}} in the profile",
    "GT108": "results: {{compare: status}} in the profile",
    "GT109": "ids: {{ignore_keys: [{pointer}]}} in the profile, if this is no id",
    "GT401": "backoff: {{policy: …}} in the scenario, with the retry policy that the agent uses",
    "GT402": "backoff: {{policy: …}} in the scenario, with the retry policy that the agent uses",
    "GT404": "backoff: {{policy: …}} in the scenario, with the retry policy that the agent uses",
}
"""Code of a change -> the setting under which it would be none."""

NO_SETTING = "no setting covers this: script the model and the tools (`model:`, `faults:`), so that runs repeat"


def setting_for(change: Change) -> str:
    """Return the setting that would cover a change between two runs of unchanged code."""
    if change.hint is not None:
        return change.hint
    form = SETTINGS.get(change.code)
    pointer = change.pointers[0] if change.pointers else "…"
    return NO_SETTING if form is None else form.format(pointer=pointer, tool=change.tool_name or "TOOL")


def with_settings(comparison: Comparison) -> Comparison:
    """Return a comparison whose changes each name the setting that would cover them."""
    for change in comparison.changes:
        change.hint = setting_for(change)
    return comparison


def unstable(one: Draft, comparison: Comparison, number: int) -> TraceReport:
    """Return the report of runs that differ. number: of the run that is not as run 1; no golden was written of it."""
    kept = msgspec.structs.replace(with_settings(comparison))
    return TraceReport(one.chosen.name, "run 1", f"run {number}", kept)
