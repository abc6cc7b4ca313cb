"""`goldentrace check`: run, lint and diff with one exit code."""

import click

from goldentrace.cli.comparisons import Request, all_notes, compare_scenarios, no_verdict
from goldentrace.cli.linting import read_known
from goldentrace.cli.options import (
    compare_options,
    fail_on_option,
    jobs_option,
    max_bytes_option,
    option,
    output_options,
    project_options,
)
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.running import run_scenarios
from goldentrace.diff.differ import CompareOptions
from goldentrace.errors import GoldentraceError
from goldentrace.model.profile import Severity
from goldentrace.model.report import Report
from goldentrace.sources.document import MAX_BYTES
from goldentrace.store.sides import Reading


@click.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO…]")
@jobs_option
@compare_options
@option("--known", metavar="FILE", help="Accept the findings that this file lists, by rule, tool and field.")
@fail_on_option
@max_bytes_option
@project_options
@output_options(has_reports=True)
def check(
    scenarios: tuple[str, ...],
    project: Project,
    output: Output,
    *,
    jobs: int | None,
    known: str | None,
    max_bytes: int | None,
    fail_on: Severity | None,
    **allow: bool,
) -> int:
    """Run scenarios, lint their traces, compare them with their goldens: what CI calls.

    SCENARIO names scenarios, suites or patterns; without any, all are checked. Nothing under the goldens is written.
    """
    accepted = tuple(read_known(known)) if known is not None else ()
    chosen = project.select(scenarios)
    if project.ci.reason is not None:
        output.say(f"goldens are not written: {project.ci.reason}")
    runs = run_scenarios(project, chosen, output, jobs=jobs or project.loaded.config.jobs)
    failed = {name: no_verdict(name, result) for name, result in runs.items() if isinstance(result, GoldentraceError)}
    options = CompareOptions(allow["allow_incomplete"], allow["allow_narrower"])
    request = Request(project, Reading(max_bytes=max_bytes or MAX_BYTES), options, has_lint=True, known=accepted)
    traces = compare_scenarios(request, chosen, failed=failed)
    report = Report("check", traces, fail_on or project.loaded.config.fail_on, project.loaded.path)
    report.notes += all_notes(request)
    report.can_accept, report.options = project.can_accept, project.layout.options
    if {output.format, *(name for name, _ in output.reports)} & {"json", "jsonl"}:  # people read them on stderr
        for name, result in runs.items():
            if not isinstance(result, GoldentraceError):
                report.notes += [f"{name}: {note}" for note in result.notes]
    return output.write(report)
