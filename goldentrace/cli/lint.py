"""`goldentrace lint`: traces against the rules."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from goldentrace.cli.linting import idle_entries, lint_trace, read_known, today, write_known
from goldentrace.cli.options import fail_on_option, option, output_options, packed, project_options, reading_options
from goldentrace.cli.output import Output, problem_of
from goldentrace.cli.project import Project
from goldentrace.cli.runs import runs_of
from goldentrace.cli.terminal import columns, width_of
from goldentrace.errors import GoldentraceError
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.profile import Severity
from goldentrace.model.report import Report, TraceReport
from goldentrace.store.reader_notes import reader_notes
from goldentrace.store.sides import Reading, Side, normal_of

if TYPE_CHECKING:
    from goldentrace.rules.acceptance import Acceptance

GOLDEN: Final = "this is a golden: rules need the recorded values", "lint a trace"


@dataclass(frozen=True, slots=True)
class Asked:
    """What to check. known: file of known findings; write_known: file to write them to; is_checklist: answer the
    questions of a tool loop instead of listing findings."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    known: str | None = None
    write_known: str | None = None
    is_checklist: bool = False


@click.command()
@click.argument("files", nargs=-1, metavar="FILE…", required=True)
@packed(
    "asked",
    Asked,
    option("--select", multiple=True, metavar="CODE", help="Only these rules, by code or its beginning; repeatable."),
    option("--ignore", multiple=True, metavar="CODE", help="All but these rules; repeatable."),
    option("--known", metavar="FILE", help="Accept the findings that this file lists, by rule, tool and field."),
    option("--write-known", metavar="FILE", help="Write today's findings to a file for --known."),
    option("--checklist", "is_checklist", is_flag=True, help="Answer the questions of a tool loop, in order."),
)
@fail_on_option
@reading_options
@project_options
@output_options(has_reports=True)
def lint(
    files: tuple[str, ...],
    project: Project,
    reading: Reading,
    output: Output,
    asked: Asked,
    *,
    fail_on: Severity | None,
) -> int:
    """Check traces against the rules; an incomplete recording is checked as far as it goes.

    FILE: a trace of any known format, or several in one file; - for standard input.
    """
    known = read_known(asked.known) if asked.known is not None else []
    traces: list[TraceReport] = []
    notes: list[str] = []
    for file in files:
        try:
            sides = runs_of(file, reading, GOLDEN, notes.append, is_full=output.verbosity > 0)
            traces += [_lint(side, place, project, asked, known) for side, place in sides]
        except GoldentraceError as error:
            if len(files) == 1:
                raise
            traces.append(TraceReport(file, candidate_path=file, problem=problem_of(error)))
    results = [trace.lint for trace in traces if trace.lint is not None]
    report = Report("lint", traces, fail_on or project.loaded.config.fail_on, project.loaded.path)
    profile = project.profiles.load(project.profile_name()).profile
    report.notes += [*notes, *idle_entries(results, profile, known)]
    if asked.write_known is not None:
        count = write_known(asked.write_known, results)
        output.say(f"{asked.write_known}: {count} known findings; lint with --known {asked.write_known}")
    if asked.is_checklist:
        _show_checklists(results, output)
        return report.exit_code
    return output.write(report)


def _lint(side: Side, place: str, project: Project, asked: Asked, known: "list[Acceptance]") -> TraceReport:
    assert side.trace is not None, "goldens are refused"
    loaded = project.profiles.load(project.profile_name())
    normal = normal_of(side, loaded)
    scenario = project.loaded.config.scenarios.get(normal.header.scenario_id or "")
    result = lint_trace(side.trace, normal, loaded.profile, scenario, select=asked.select, ignore=asked.ignore)
    if known:
        from goldentrace.rules.acceptance import accept

        result = accept(result, known, today())
    result = msgspec.structs.replace(result, notes=(*reader_notes(side.trace.notes), *result.notes))
    return TraceReport(place, candidate_path=side.path, lint=result)


def _show_checklists(results: list[LintResult], output: Output) -> None:
    from goldentrace.rules.checklist import answers, first_broken

    if output.format == "json":
        output.put_json({"command": "lint", "checklists": [_checklist(result) for result in results]})
        return
    for result in results:
        found = answers(result)
        first = first_broken(found)
        output.put_lines([result.path])
        for number, answer in enumerate(found, start=1):
            said = ["look here first"] if answer is first else []
            said += [f"{f.code} {f.message}{_place(f)}" for f in answer.findings[:3]]
            if len(answer.findings) > 3:
                said.append(f"and {len(answer.findings) - 3} more")
            if answer.state != "no" or output.verbosity > 0:
                said += [f"could not check {reason}" for reason in answer.reasons]
            rows = [(f"  {answer.state:<8}{number:>2}.", answer.question), *(("", text) for text in said)]
            output.put_lines(columns(rows, gap=" ", width=width_of(output.width)))


def _place(finding: Finding) -> str:
    return "" if finding.line is None else f" (line {finding.line})"


def _checklist(result: LintResult) -> dict[str, Any]:
    from goldentrace.rules.checklist import answers, first_broken

    found = answers(result)
    first = first_broken(found)
    return {
        "path": result.path,
        "first_broken": None if first is None else found.index(first) + 1,
        "questions": [
            {
                "question": answer.question,
                "codes": list(answer.codes),
                "answer": answer.state,
                "findings": [{"rule": f.code, "message": f.message, "lines": list(f.lines)} for f in answer.findings],
                "could_not_check": list(answer.reasons),
            }
            for answer in found
        ],
    }
