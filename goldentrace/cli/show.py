"""`goldentrace show`: the timeline of one trace, with what the rules found and where it stopped."""

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from goldentrace.cli.linting import lint_trace
from goldentrace.cli.options import option, output_options, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.terminal import is_colored, width_of
from goldentrace.codec.golden_lines import golden_lines
from goldentrace.errors import ConfigError
from goldentrace.exitcodes import OK
from goldentrace.model.finding import Finding
from goldentrace.model.normal import NormalTrace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.store.sides import Reading, Side, normal_of, read_side

FOLLOW_S = 0.3
"""Between two looks at a trace that is being written."""


@click.command()
@click.argument("file", metavar="FILE")
@option("--follow", is_flag=True, help="Go on showing a trace while it is being written.")
@reading_options
@project_options
@output_options()
def show(file: str, project: Project, reading: Reading, output: Output, *, follow: bool) -> int:
    """Show the timeline of one trace: offset, turn, event, call, what came of it, waits.

    What the rules find in a trace stands below the events concerned (not with --follow); of a run that stopped the last
    line says in or after which call, and by which limit. FILE: a golden or a trace of any known format, - for standard
    input, or the name of a scenario: its latest run, else its golden. An incomplete recording is shown as far as it
    goes, and says so.
    """
    file = _file_of(file, project)
    side = read_side(file, reading)
    if output.format == "json":
        output.put_json(_as_json(side, project))
        return OK
    shown = _timeline(side, project, output, has_findings=not follow)
    output.put(shown)
    while follow and side.trace is not None and side.trace.incomplete is not None and file != "-":
        size = Path(file).stat().st_size
        time.sleep(FOLLOW_S)
        if Path(file).stat().st_size != size:
            side = read_side(file, reading)
            longer = _timeline(side, project, output, has_findings=False)
            output.put(_what_is_new(shown, longer))
            shown = longer
    return OK


def _file_of(name: str, project: Project) -> str:
    """The file that is meant: one of that name, else the latest run of that scenario, else its golden."""
    if name == "-" or os.path.lexists(name):
        return name
    try:
        chosen = project.choose(name)
    except ConfigError:
        return name  # no name of a scenario: whoever opens it says that it is not there
    layout = project.layout
    for path in (layout.candidate(chosen.name, chosen.suite), layout.golden(chosen.name, chosen.suite)):
        if path.exists():
            return project.shown(path)
    return name


def _timeline(side: Side, project: Project, output: Output, *, has_findings: bool) -> str:
    """has_findings: of a trace that is still being written, the rules would find what is only not there yet."""
    from goldentrace.report.timeline import render_timeline

    normal = _normal(side, project)
    return render_timeline(
        normal,
        side.trace,
        findings=_findings(side, normal, project) if has_findings else (),
        width=width_of(output.width),
        color=is_colored(output.color),
    )


def _findings(side: Side, normal: NormalTrace, project: Project) -> list[Finding]:
    """What the rules say of a trace, nothing of a golden."""
    if side.trace is None:
        return []
    profile = project.profiles.load(project.profile_name()).profile
    scenario = project.loaded.config.scenarios.get(normal.header.scenario_id or "")
    return lint_trace(side.trace, normal, profile, scenario).findings


def _as_json(side: Side, project: Project) -> dict[str, Any]:
    from goldentrace.report.stops import stop_of

    normal = _normal(side, project)
    stop = stop_of(normal, side.trace) if side.trace is not None else None
    return {
        "command": "show",
        "path": side.path,
        "events": golden_lines(normal, kind=side.kind or "normalized"),
        "findings": [
            {
                "rule": finding.code,
                "name": finding.name,
                "severity": finding.severity,
                "message": finding.message,
                "lines": list(finding.lines),
                "labels": list(finding.labels),
                "accepted": finding.accepted,
            }
            for finding in _findings(side, normal, project)
        ],
        "stopped": None if stop is None else asdict(stop),
    }


def _normal(side: Side, project: Project) -> NormalTrace:
    if side.golden is not None:
        return side.golden
    assert side.trace is not None, "a side is a golden or a trace"
    normal = normal_of(side, project.profiles.load(project.profile_name()))
    place_in_time(normal, side.trace)
    return normal


def _what_is_new(before: str, after: str) -> str:
    """The lines that a longer timeline has behind those that were shown."""
    known = before.splitlines(keepends=True)
    return "".join(line for line in after.splitlines(keepends=True) if line not in known)
