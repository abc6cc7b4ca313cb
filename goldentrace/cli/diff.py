"""`goldentrace diff`: candidates against goldens, or two files."""

import os

import click

from goldentrace.cli.comparisons import Request, all_notes, compare_files, compare_scenarios
from goldentrace.cli.options import compare_options, fail_on_option, output_options, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Chosen, Project
from goldentrace.diff.differ import CompareOptions
from goldentrace.errors import ConfigError
from goldentrace.model.profile import Severity
from goldentrace.model.report import Report
from goldentrace.store.sides import Reading


@click.command()
@click.argument("sides", nargs=-1, metavar="[SCENARIO…] | GOLDEN CANDIDATE")
@compare_options
@fail_on_option
@reading_options
@project_options
@output_options(has_reports=True)
def diff(
    sides: tuple[str, ...], project: Project, reading: Reading, output: Output, *, allow_incomplete: bool,
    allow_narrower: bool, fail_on: Severity | None,
) -> int:  # fmt: skip
    """Compare runs with their goldens.

    SCENARIO names scenarios, suites or patterns; without any, all are compared. GOLDEN and CANDIDATE are two files,
    each a golden or a trace of any known format, `-` for standard input.
    """
    request = Request(project, reading, CompareOptions(allow_incomplete, allow_narrower))
    files = file_pair(sides, project)
    if files is not None:
        golden, candidate, chosen = files
        traces = [compare_files(request, golden, candidate, chosen)]
    else:
        traces = compare_scenarios(request, project.select(sides))
        if project.ci.reason is not None:
            output.say(f"goldens are not written: {project.ci.reason}")
    report = Report("diff", traces, fail_on or project.loaded.config.fail_on, project.loaded.path)
    report.notes += all_notes(request)
    report.can_accept, report.options = project.can_accept, project.layout.options
    return output.write(report)


def file_pair(sides: tuple[str, ...], project: Project) -> tuple[str, str, Chosen | None] | None:
    """Return golden, candidate and scenario where the arguments are two files, or a scenario and a file; else None.

    Raises: ConfigError where one is a file and the arguments are not two.
    """
    declared = project.loaded.config.scenarios
    is_pair = len(sides) == 2 and not declared
    files = [side for side in sides if not project.is_meant(side) and (is_pair or _looks_like_file(side))]
    if sides == ("-", "-"):
        raise ConfigError("standard input cannot be both sides", next_step="name a file for one of them")
    if len(sides) == 2 and len(files) == 2:
        return sides[0], sides[1], None
    if len(sides) == 2 and files == [sides[1]] and sides[0] in declared:
        chosen = Chosen(sides[0], declared[sides[0]])
        return project.shown(project.layout.golden(chosen.name, chosen.suite)), sides[1], chosen
    if files:
        raise ConfigError(
            f"{files[0]} is a file: two files are needed", next_step="name GOLDEN and CANDIDATE, or scenarios alone"
        )
    return None


def _looks_like_file(side: str) -> bool:
    return side == "-" or os.sep in side or "." in side or os.path.lexists(side)
