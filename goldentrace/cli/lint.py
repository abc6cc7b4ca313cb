"""`goldentrace lint`: traces against the rules."""

import click

from goldentrace.cli.linting import lint_trace
from goldentrace.cli.options import fail_on_option, option, output_options, project_options, reading_options
from goldentrace.cli.output import Output, problem_of
from goldentrace.cli.project import Project
from goldentrace.errors import GoldentraceError, InputError, Where
from goldentrace.model.profile import Severity
from goldentrace.model.report import Report, TraceReport
from goldentrace.store.sides import Reading, normal_of, read_side


@click.command()
@click.argument("files", nargs=-1, metavar="FILE…", required=True)
@option("--select", multiple=True, metavar="CODE", help="Only these rules, by code or its beginning; repeatable.")
@option("--ignore", multiple=True, metavar="CODE", help="All but these rules; repeatable.")
@fail_on_option
@reading_options
@project_options
@output_options(has_reports=True)
def lint(
    files: tuple[str, ...],
    project: Project,
    reading: Reading,
    output: Output,
    *,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: Severity | None,
) -> int:
    """Check traces against the rules; an incomplete recording is checked as far as it goes.

    FILE: a trace of any known format, - for standard input.
    """
    traces: list[TraceReport] = []
    for file in files:
        try:
            traces.append(_lint(file, project, reading, select, ignore))
        except GoldentraceError as error:
            if len(files) == 1:
                raise
            traces.append(TraceReport(file, candidate_path=file, problem=problem_of(error)))
    return output.write(Report("lint", traces, fail_on or project.loaded.config.fail_on, project.loaded.path))


def _lint(
    file: str, project: Project, reading: Reading, select: tuple[str, ...], ignore: tuple[str, ...]
) -> TraceReport:
    side = read_side(file, reading)
    if side.trace is None:
        raise InputError(
            "this is a golden: rules need the recorded values", where=Where(side.path), next_step="lint a trace"
        )
    loaded = project.profiles.load(project.profile_name())
    normal = normal_of(side, loaded)
    scenario = project.loaded.config.scenarios.get(normal.header.scenario_id or "")
    result = lint_trace(side.trace, normal, loaded.profile, scenario, select=select, ignore=ignore)
    return TraceReport(side.path, candidate_path=side.path, lint=result)
