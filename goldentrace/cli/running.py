"""Runs of scenarios as the commands `run`, `record` and `check` share them: what to start, and how it is told.

Must not judge a run.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from goldentrace.cli.output import Output
from goldentrace.cli.project import Chosen, Project
from goldentrace.codec.config import split_command
from goldentrace.errors import ConfigError, GoldentraceError
from goldentrace.model.pointer import escape

SHELL_WORDS: Final = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"})
"""Words that only a shell gives a meaning to."""

if TYPE_CHECKING:
    from goldentrace.runner.job import Job, RunResult

    Runs = dict[str, RunResult | GoldentraceError]
    OnEnd = Callable[[str, RunResult | GoldentraceError], None]


def job_of(project: Project, chosen: Chosen, command: tuple[str, ...] = ()) -> "Job":
    """Return what is to be started for a scenario. command: in place of the configured one.

    Raises: ConfigError where no command is known, or its profile cannot be used.
    """
    from goldentrace.runner.job import Job

    scenario = chosen.scenario
    words = command or tuple(split_command(scenario.command or []))
    if not words:
        raise ConfigError(
            f"scenario {chosen.name!r} has no command",
            where=project.loaded.where(f"/scenarios/{escape(chosen.name)}"),
            next_step=f"add `command: …` to it, or give one: {project.layout.command('record', chosen.name)} -- CMD",
        )
    folder, layout = project.layout.folder, project.layout
    environment = project.loaded.config.environments.get(project.environment or "")
    return Job(
        name=chosen.name,
        command=words,
        folder=folder,
        trace=layout.candidate(chosen.name, chosen.suite),
        log=layout.log(chosen.name, chosen.suite),
        env={**(environment.env if environment is not None else {}), **scenario.env},
        seed=scenario.seed,
        limits=project.limits(scenario),
        profile=project.profiles.load(project.profile_name(scenario)).profile,
        storage=project.loaded.config.record,
        faults=None if scenario.faults is None else Path(layout.shown(folder / scenario.faults)),
        model=None if scenario.model is None else Path(layout.shown(folder / scenario.model)),
        base=layout.base,
    )


def run_scenarios(
    project: Project,
    chosen: Sequence[Chosen],
    output: Output,
    *,
    jobs: int = 1,
    command: tuple[str, ...] = (),
    on_end: "OnEnd | None" = None,
) -> "Runs":
    """Run scenarios and return what came of each, by name; a failure of one does not stop the others.

    on_end: is told of each, in order, as it ends; default: a line on stderr.
    Raises: ConfigError where a scenario cannot be run at all: nothing has been started then.
    """
    from goldentrace.runner.run import run_jobs

    runs: Runs = {}
    plan = [job_of(project, one, command) for one in chosen]
    for job in plan:
        project.layout.make_room(job.trace)
        marks = [word for word in job.command if word in SHELL_WORDS]
        if marks:
            output.say(
                f"{job.name}: note: no shell reads the command, so {marks[0]!r} is passed on as a word; "
                "where a shell is meant, write: sh -c '…'"
            )
    for job, result in run_jobs(plan, count=jobs, on_look=_follower(output) if command else None):
        runs[job.name] = result
        if on_end is not None:
            on_end(job.name, result)
        elif isinstance(result, GoldentraceError):
            output.say(f"{job.name}: failed: {result.what}")
        else:
            output.say(f"{job.name}: {summary(result)}")
            tell_notes(result, output)
    return runs


def tell_notes(result: "RunResult", output: Output) -> None:
    """Write what a person should know of a run to stderr."""
    for note in result.notes:
        output.say(f"  note: {note}", level=-1 if result.unknown_types else 0)
    if result.log_lines:
        output.say(f"  its log ends ({result.job.shown(result.job.log)}):")
        output.say("\n".join(f"  | {line}" for line in result.log_lines))


def _follower(output: Output) -> Any:
    """Show the agent's own output while it runs, line by line."""
    places: dict[str, int] = {}

    def follow(job: "Job") -> None:
        with job.log.open("rb") as log:
            log.seek(places.get(job.name, 0))
            data = log.read()
        whole = data[: data.rfind(b"\n") + 1]
        places[job.name] = places.get(job.name, 0) + len(whole)
        if whole:
            output.say(whole.decode("utf-8", "replace").rstrip("\n"))

    return follow


def summary(result: "RunResult") -> str:
    """Return how a run ended, one clause."""
    text = f"{result.events} events, {result.wall_ms / 1000:.1f} s"
    if result.breach is not None:
        about = f" of {result.breach.tool_name}" if result.breach.tool_name else ""
        reached = f"{result.breach.limit}{about} is {result.breach.maximum:g}, reached {result.breach.value:g}"
        return f"{text}, stopped: {reached}"
    if result.signal is not None:
        return f"{text}, ended by {result.signal}"
    if result.exit_code:
        return f"{text}, its exit code was {result.exit_code}"
    return text


def run_document(name: str, result: "RunResult | GoldentraceError", project: Project) -> dict[str, Any]:
    """Return what came of a run as plain values, for JSON."""
    if isinstance(result, GoldentraceError):
        where = None if result.where is None else str(result.where)
        return {"scenario": name, "error": {"what": result.what, "where": where, "next_step": result.next_step}}
    breach = result.breach
    return {
        "scenario": name,
        "trace": project.shown(result.job.trace),
        "log": project.shown(result.job.log),
        "events": result.events,
        "wall_ms": round(result.wall_ms),
        "exit_code": result.exit_code,
        "signal": result.signal,
        "limit": None if breach is None else {"limit": breach.limit, "value": breach.value, "max": breach.maximum},
        "notes": list(result.notes),
    }


def tell_failure(name: str, error: GoldentraceError, output: Output) -> None:
    """Write a failure in full to stderr."""
    lines = str(error).split("\n")
    output.say("\n".join([f"goldentrace: {name}: {lines[0]}", *lines[1:]]), level=-1)
