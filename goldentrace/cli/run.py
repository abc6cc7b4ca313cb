"""`goldentrace run`: runs scenarios and keeps their traces as candidates."""

from typing import TYPE_CHECKING

import click

from goldentrace.cli.options import jobs_option, output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.running import run_document, run_scenarios, summary, tell_failure, tell_notes
from goldentrace.errors import GoldentraceError
from goldentrace.exitcodes import NO_VERDICT, OK

if TYPE_CHECKING:
    from goldentrace.runner.job import RunResult


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

    def tell(name: str, result: "RunResult | GoldentraceError") -> None:
        if isinstance(result, GoldentraceError):
            if len(chosen) > 1:
                tell_failure(name, result, output)
            return
        if output.format != "json":
            output.put_lines([f"{name}  {summary(result)}  {project.shown(result.job.trace)}"])
        tell_notes(result, output)

    runs = run_scenarios(project, chosen, output, jobs=jobs or project.loaded.config.jobs, on_end=tell)
    failures = [result for result in runs.values() if isinstance(result, GoldentraceError)]
    code = NO_VERDICT if failures else OK
    if output.format == "json":
        documents = [run_document(name, result, project) for name, result in runs.items()]
        output.put_json({"command": "run", "runs": documents, "exit_code": code})
    elif len(chosen) == 1 and failures:
        raise failures[0]
    elif not failures:
        output.say(f"compare with the goldens: {project.layout.command('diff')}")
    return code
