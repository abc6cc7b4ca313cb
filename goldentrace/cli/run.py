"""`goldentrace run`: runs scenarios and keeps their traces as candidates."""

import click

from goldentrace.cli.options import jobs_option, output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.running import run_document, run_scenarios, summary, tell_failures
from goldentrace.cli.terminal import table
from goldentrace.errors import GoldentraceError
from goldentrace.exitcodes import NO_VERDICT, OK


@click.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO…]")
@jobs_option
@project_options
@output_options()
def run(scenarios: tuple[str, ...], project: Project, output: Output, *, jobs: int | None) -> int:
    """Run scenarios and keep their traces as candidates.

    SCENARIO names scenarios, suites or patterns; without any, all are run. Limits are enforced, and the agent's own
    output is kept in a log beside the trace. Exit code: 0 if all ran, whatever they did; 3 if one could not be run.
    """
    chosen = project.select(scenarios)
    runs = run_scenarios(project, chosen, output, jobs=jobs or project.loaded.config.jobs)
    failures = [result for result in runs.values() if isinstance(result, GoldentraceError)]
    code = NO_VERDICT if failures else OK
    if output.format == "json":
        documents = [run_document(name, result, project) for name, result in runs.items()]
        output.put_json({"command": "run", "runs": documents, "exit_code": code})
        return code
    if len(runs) == 1 and failures:
        raise failures[0]
    tell_failures(runs, output)
    rows = [
        ("FAILED", name, result.what)
        if isinstance(result, GoldentraceError)
        else ("ran", name, f"{summary(result)}  {project.shown(result.job.trace)}")
        for name, result in runs.items()
    ]
    output.put(table(rows))
    if not failures and output.verbosity >= 0:
        output.say("compare them with their goldens: goldentrace diff")
    return code
