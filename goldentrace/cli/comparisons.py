"""Comparisons of scenarios and files as the commands `diff`, `check` and `accept` share them.

Errors of one scenario become its problem, so that the others are still compared. Must not print.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from goldentrace.cli.output import problem_of
from goldentrace.cli.project import Chosen, Project
from goldentrace.diff.differ import CompareOptions
from goldentrace.errors import GoldentraceError
from goldentrace.model.change import Comparison
from goldentrace.model.report import TraceReport
from goldentrace.store.profiles import LoadedProfile
from goldentrace.store.reader_notes import reader_notes
from goldentrace.store.sides import Reading, Side, Terms, compare_sides, normal_of, read_side

if TYPE_CHECKING:
    from goldentrace.model.finding import LintResult
    from goldentrace.rules.acceptance import Acceptance


class Request(msgspec.Struct, frozen=True):
    """How to compare. reading: of the candidate, and of a golden that is a trace; has_lint: the rules judge it too;
    known: findings that somebody accepted; notes: filled here with what is to be said beside the reports; others:
    filled with (profile of the golden, profile asked for, who asks) -> scenarios."""

    project: Project
    reading: Reading
    options: CompareOptions | None = None
    has_lint: bool = False
    known: "tuple[Acceptance, ...]" = ()
    notes: list[str] = msgspec.field(default_factory=list)
    others: dict[tuple[str, str, str], list[str]] = msgspec.field(default_factory=dict)


def terms_of(request: Request, chosen: Chosen | None) -> Terms:
    """Return the terms of a comparison: the scenario's, where there is one."""
    project = request.project
    scenario = chosen.scenario if chosen is not None else None
    return Terms(
        project.profiles,
        project.profile_name(scenario),
        scenario.backoff if scenario is not None else None,
        request.options,
        project.layout.command("record", chosen.name if chosen is not None else "SCENARIO"),
    )


def compare_files(request: Request, golden: str, candidate: str, chosen: Chosen | None = None) -> TraceReport:
    """Return the report of two files. Raises: GoldentraceError where there is no verdict."""
    reading = msgspec.structs.replace(request.reading, is_pair=True)
    left, right = read_side(golden, reading), read_side(candidate, reading)
    declared = request.project.loaded.config.scenarios
    named = left.golden.header.scenario_id if left.golden is not None else None
    if chosen is None and named in declared:
        chosen = Chosen(str(named), declared[str(named)])
    for side in (left, right):
        if side.trace is not None:
            request.notes.extend(f"{side.path}: {note}" for note in reader_notes(side.trace.notes))
        if side.left_out is not None:
            request.notes.append(side.left_out)
    if chosen is not None or request.project.is_profile_asked:
        _note_profile(request, chosen, left)
    comparison, _ = compare_sides(left, right, terms_of(request, chosen))
    if comparison.changes:
        from goldentrace.store.values import ValueStore, show_values

        values = ValueStore(request.project.layout) if request.project.layout.values.is_dir() else None
        show_values(comparison, values)
    header = comparison.golden.header
    name = chosen.name if chosen is not None else header.scenario_id or left.path
    return TraceReport(name, left.path, right.path, comparison)


def compare_scenarios(
    request: Request, chosen: Sequence[Chosen], *, failed: dict[str, TraceReport] | None = None
) -> list[TraceReport]:
    """Return the reports of scenarios, in order. failed: those whose run already came to nothing."""
    failed = failed or {}
    return [failed[one.name] if one.name in failed else compare_scenario(request, one) for one in chosen]


def compare_scenario(request: Request, chosen: Chosen) -> TraceReport:
    """Compare a scenario's latest run with its golden; leave a pending golden where they differ."""
    layout = request.project.layout
    golden, candidate = layout.golden(chosen.name, chosen.suite), layout.candidate(chosen.name, chosen.suite)
    report = TraceReport(chosen.name, layout.shown(golden), layout.shown(candidate))
    if not golden.exists():
        report.missing = "missing-golden"
    elif not candidate.exists():
        report.missing = "missing-candidate"
    try:
        if candidate.exists():
            right = read_side(candidate, Reading(max_bytes=request.reading.max_bytes), shown=report.candidate_path)
            if report.missing is None:
                _compare(request, chosen, report, golden, right)
            if request.has_lint and right.trace is not None:
                report.lint = _lint(request, chosen, right, report.comparison)
    except GoldentraceError as error:
        report.problem = problem_of(error)
    return report


def _compare(request: Request, chosen: Chosen, report: TraceReport, golden: Path, right: Side) -> None:
    left = read_side(golden, Reading(max_bytes=request.reading.max_bytes), shown=report.golden_path)
    _note_profile(request, chosen, left)
    comparison, loaded = compare_sides(left, right, terms_of(request, chosen))
    report.is_pending = _keep(request, chosen, comparison, loaded)
    report.comparison = comparison


def _note_profile(request: Request, chosen: Chosen | None, golden: Side) -> None:
    """Keep in mind that a golden was made with another profile than the one asked for: the golden's counts."""
    if golden.golden is None:
        return
    project, made = request.project, golden.golden.header.profile
    try:
        asked = project.profiles.newest(project.profile_name(chosen.scenario if chosen is not None else None))
    except GoldentraceError:
        return  # the golden's own profile decides; where the other one is needed, it is refused there
    if asked != made:
        who = "--profile asks for" if project.is_profile_asked else "configured is"
        name = chosen.name if chosen is not None else golden.golden.header.scenario_id or "NAME"
        request.others.setdefault((made, asked, who), []).append(name)


def all_notes(request: Request) -> list[str]:
    """Return what is to be said beside the reports of a request, each thing once."""
    told = []
    for (made, asked, who), names in request.others.items():
        option = ("--profile", asked) if who.startswith("--") else ()
        what = "golden was" if len(names) == 1 else f"{len(names)} goldens were"
        again = request.project.layout.command("record", *names, options=option)
        told.append(f"{what} made with {made}, {who} {asked}: {again}")
    return [*request.notes, *told]


def _lint(request: Request, chosen: Chosen, right: Side, comparison: Comparison | None) -> "LintResult":
    """What the rules say of the run, under the profile that it was compared with, if it was."""
    project = request.project
    assert right.trace is not None, "asked of traces only"
    name = comparison.golden.header.profile if comparison is not None else project.profile_name(chosen.scenario)
    loaded = project.profiles.load(name)
    normal = comparison.candidate if comparison is not None else normal_of(right, loaded)
    from goldentrace.cli.linting import accepted, explained, lint_trace

    lint = lint_trace(right.trace, normal, loaded.profile, chosen.scenario)
    if request.known:
        from goldentrace.cli.linting import today
        from goldentrace.rules.acceptance import accept

        lint = accept(lint, request.known, today())
    if comparison is None:
        return lint
    return explained(accepted(lint, comparison.golden.header.accepts), comparison)


def _keep(request: Request, chosen: Chosen, comparison: Comparison, loaded: LoadedProfile) -> bool:
    """Remember the values of the run, show those that are known, propose a golden where something changed; was one
    proposed?"""
    from goldentrace.diff.rerecord import rerecord
    from goldentrace.store.pending import PendingStore
    from goldentrace.store.values import ValueStore, show_values

    layout = request.project.layout
    values, pending = ValueStore(layout), PendingStore(layout)
    values.remember(comparison.candidate)
    show_values(comparison, values)
    if comparison.changes and not comparison.not_comparable:
        proposed = rerecord(comparison, loaded.profile)
        candidate = layout.candidate(chosen.name, chosen.suite)
        return pending.propose(chosen.name, chosen.suite, comparison, proposed, candidate) is not None
    pending.drop(chosen.name, chosen.suite)
    return False


def no_verdict(name: str, error: GoldentraceError) -> TraceReport:
    """Return the report of a scenario that came to nothing."""
    return TraceReport(name, problem=problem_of(error))
