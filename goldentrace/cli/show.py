"""`goldentrace show`: the timeline of one trace, with what the rules found and where it stopped."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goldentrace.cli.linting import lint_trace
from goldentrace.cli.options import option, output_options, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.terminal import is_colored, width_of
from goldentrace.codec.canonical import JsonError, decode
from goldentrace.codec.golden_lines import golden_lines
from goldentrace.errors import ConfigError
from goldentrace.exitcodes import OK
from goldentrace.model.finding import Finding
from goldentrace.model.normal import NormalTrace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.store.sides import Reading, Side, normal_of, read_side

if TYPE_CHECKING:
    from goldentrace.normalize.redact import Redactor

FOLLOW_S = 0.3
"""Between two looks at a trace that is being written."""
BRIEF = 200
"""Characters of a line of the source that are shown without -v."""


@click.command()
@click.argument("file", metavar="FILE")
@option("--follow", is_flag=True, help="Go on showing a trace while it is being written.")
@option("--native", is_flag=True, help="Show each line of the file above what was made of it; more of it with -v.")
@reading_options
@project_options
@output_options()
def show(file: str, project: Project, reading: Reading, output: Output, *, follow: bool, native: bool) -> int:
    """Show the timeline of one trace: offset, turn, event, call, what came of it, waits.

    What the rules find in a trace stands below the events concerned (not with --follow); of a run that stopped the last
    line says in or after which call, and by which limit. FILE: a golden or a trace of any known format, - for standard
    input, or the name of a scenario: its latest run, else its golden. An incomplete recording is shown as far as it
    goes, and says so.
    """
    file = _file_of(file, project)
    side = read_side(file, reading)
    if side.left_out is not None:
        output.say(f"note: {side.left_out}")
    if output.format == "json":
        output.put_json(_as_json(side, project))
        return OK
    lines = _native(file, side, project, output) if native else {}
    shown = _timeline(side, project, output, has_findings=not follow, native=lines)
    output.put(shown)
    if native and not lines:
        output.say("no lines to show: the file is one document, or standard input")
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


def _native(file: str, side: Side, project: Project, output: Output) -> dict[int, str]:
    """Line -> its text without secrets, for the lines that events were read from; none of one JSON document."""
    from goldentrace.normalize.redact import Redactor

    if side.trace is None or file == "-" or side.trace.lines == []:
        return {}
    wanted = {side.trace.line_of(index) for index in range(len(side.trace.events))} - {0}
    redactor = Redactor(project.profiles.load(project.profile_name()).profile.redact)
    found: dict[int, str] = {}
    if wanted:
        for number, data in _lines(file, side):
            if number in wanted:
                text = _without_secrets(data.decode("utf-8", "replace").strip(), redactor)
                found[number] = text if output.verbosity > 0 or len(text) <= BRIEF else f"{text[:BRIEF]} ..."
    return found


def _lines(file: str, side: Side) -> Iterator[tuple[int, bytes]]:
    """The lines of the file, or of the member of an archive, that a trace is in."""
    from goldentrace.sources.document import open_document

    document = open_document(file)
    if side.path == document.name:
        yield from document.lines()
        return
    from goldentrace.sources.archive import members

    for member in members(document):
        if member.name == side.path:
            yield from member.lines()


def _without_secrets(line: str, redactor: "Redactor") -> str:
    """A line as it stands where it holds no secret; keys of JSON tell of some."""
    try:
        value = decode(line)
    except JsonError:
        return redactor.redact_text(line, {})
    clean = redactor.redact_value(value, {})
    return line if clean == value else json.dumps(clean, ensure_ascii=False)


def _timeline(
    side: Side, project: Project, output: Output, *, has_findings: bool, native: dict[int, str] | None = None
) -> str:
    """has_findings: of a trace that is still being written, the rules would find what is only not there yet."""
    from goldentrace.report.timeline import render_timeline

    normal = _normal(side, project)
    return render_timeline(
        normal,
        side.trace,
        findings=_findings(side, normal, project) if has_findings else (),
        native=native,
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
                "lines": [line for line in finding.lines if line],
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
