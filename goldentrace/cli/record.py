"""`goldentrace record`: runs scenarios and writes their goldens, or makes one from a file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from goldentrace.cli.child_command import CommandWithChild
from goldentrace.cli.linting import accepted, lint_trace
from goldentrace.cli.options import jobs_option, option, output_options, packed, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Chosen, Project
from goldentrace.cli.recording import Draft, constants, draft, repeat, unstable, with_accepted
from goldentrace.cli.running import run_scenarios
from goldentrace.cli.terminal import is_colored, printable, width_of
from goldentrace.errors import ConfigError, GoldentraceError, InputError, Where
from goldentrace.exitcodes import CHANGED, NO_VERDICT, OK
from goldentrace.model.finding import Finding
from goldentrace.model.report import Report, TraceReport
from goldentrace.model.trace import Trace
from goldentrace.store.goldens import goldens_lock, read_bytes, write_golden
from goldentrace.store.pending import PendingStore
from goldentrace.store.reader_notes import reader_notes, unknown_types
from goldentrace.store.sides import Reading, read_side
from goldentrace.store.values import ValueStore


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. source: FILE of --from; verify: how many more runs."""

    source: str | None
    suite: str | None
    description: str | None
    verify: int | None
    jobs: int | None
    allow_incomplete: bool
    allow_defects: bool


@click.command(cls=CommandWithChild)
@click.argument("scenarios", nargs=-1, metavar="SCENARIO…", required=True)
@packed(
    "request",
    Request,
    option("--from", "source", metavar="FILE", help="Make the golden from a trace of any known format."),
    option("--suite", metavar="NAME", help="Suite of a scenario that the configuration does not have."),
    option("--description", metavar="TEXT", help="Why the golden exists, for its header."),
    option("--verify", type=click.IntRange(1, 100), metavar="N", help="Run N more times; refuse what is not stable."),
    option("--allow-incomplete", is_flag=True, help="Record what is there of a run that was cut off."),
    option("--allow-defects", is_flag=True, help="Record a run with defects, accepted in the header."),
    jobs_option,
)
@reading_options
@project_options
@output_options()
@click.pass_obj
def record(
    command: tuple[str, ...],
    scenarios: tuple[str, ...],
    request: Request,
    project: Project,
    reading: Reading,
    output: Output,
) -> int:
    """Run scenarios and write their goldens.

    SCENARIO names scenarios, suites or patterns. CMD, after --, is run in place of the configured command. With --from
    FILE nothing is run, and the scenario need not be in the configuration. A golden is rewritten as a whole; lines of
    which nothing changed stay as they are.
    """
    project.ci.guard("goldens are not recorded")
    chosen = _chosen(project, scenarios, request, command)
    session = _Session(project, output, request, command)
    if request.source is not None:
        traces: dict[str, Trace | GoldentraceError] = {
            chosen[0].name: session.read(chosen[0].name, request.source, reading)
        }
    else:
        traces = session.run(chosen)
    return session.record_all(chosen, traces)


def _chosen(project: Project, names: tuple[str, ...], request: Request, command: tuple[str, ...]) -> list[Chosen]:
    if request.source is None and not command:
        found = project.select(names)
    elif len(names) != 1:
        raise ConfigError(f"one scenario is needed, {len(names)} are named", next_step="record them one after another")
    elif request.source is not None and command:
        raise ConfigError("--from FILE and a command were both given", next_step="leave one of them out")
    else:
        found = [project.choose(names[0], request.suite)]
    if request.source is not None and request.verify is not None:
        raise ConfigError("--verify runs the scenario, --from does not", next_step="leave one of them out")
    if request.description is None:
        return found
    return [
        msgspec.structs.replace(one, scenario=msgspec.structs.replace(one.scenario, description=request.description))
        for one in found
    ]


def _candidate(project: Project, chosen: Chosen) -> Trace:
    path = project.layout.candidate(chosen.name, chosen.suite)
    side = read_side(path, Reading(), shown=project.shown(path))
    assert side.trace is not None, "a run leaves a trace"
    return side.trace


class _Session:
    """One call of `record`: what is written, what is refused, and the code that follows."""

    def __init__(self, project: Project, output: Output, request: Request, command: tuple[str, ...]) -> None:
        self.project = project
        self.output = output
        self.request = request
        self.command = command
        self.documents: list[dict[str, Any]] = []
        self.refused: list[TraceReport] = []
        self.code = OK
        self.left_out: dict[str, tuple[str, ...]] = {}
        self.notes: dict[str, tuple[str, ...]] = {}

    def read(self, name: str, source: str, reading: Reading) -> Trace:
        """Return the trace of a file that was given; keep what the reader had to say of it."""
        side = read_side(source, reading)
        if side.trace is None:
            raise InputError(
                "this is a golden already: values are not in it", where=Where(side.path),
                next_step="record from the trace that it was made of",
            )  # fmt: skip
        left_out = () if side.left_out is None else (side.left_out,)
        self.notes[name] = (*reader_notes(side.trace.notes), *left_out)
        self.left_out[name] = tuple(unknown_types(side.trace.notes))
        return side.trace

    def run(self, chosen: Sequence[Chosen]) -> dict[str, Trace | GoldentraceError]:
        """Run scenarios once and read what they left."""
        jobs = self.request.jobs or self.project.loaded.config.jobs
        runs = run_scenarios(self.project, chosen, self.output, jobs=jobs, command=self.command)
        traces: dict[str, Trace | GoldentraceError] = {}
        for one in chosen:
            result = runs[one.name]
            if isinstance(result, GoldentraceError):
                traces[one.name] = result
                continue
            self.notes[one.name], self.left_out[one.name] = result.notes, result.unknown_types
            traces[one.name] = _candidate(self.project, one)
        return traces

    def record_all(self, chosen: Sequence[Chosen], traces: dict[str, Trace | GoldentraceError]) -> int:
        errors: list[GoldentraceError] = []
        for one in chosen:
            trace = traces[one.name]
            try:
                if isinstance(trace, GoldentraceError):
                    raise trace
                self.record_one(one, trace)
            except GoldentraceError as error:
                if len(chosen) == 1:
                    raise
                errors.append(error)
                self.output.say(f"goldentrace: {one.name}: {error}", level=-1)
                self.documents.append({"scenario": one.name, "status": "failed", "what": error.what})
        if self.refused:
            self.code = self._show_refused()
        if errors:
            self.code = NO_VERDICT
        if self.output.format == "json" and not self.refused:
            self.output.put_json({"command": "record", "goldens": self.documents, "exit_code": self.code})
        return self.code

    def record_one(self, chosen: Chosen, trace: Trace) -> None:
        one = self._draft(chosen, trace)
        shown = self.project.shown(one.path)
        if self.request.source is not None:  # a run's notes were told when it ended
            for note in self.notes.get(one.chosen.name, ()):
                self.output.say(f"  note: {note}", level=-1)
        self._check_calls(one)
        defects = self._defects(one)
        if defects and not self.request.allow_defects:
            return
        known: tuple[str, ...] = ()
        if self.request.verify:
            found = self._constants(one)
            if found is None:
                return
            known = found
        with goldens_lock(self.project.layout, "goldens are being recorded"):
            if known or read_bytes(one.path) != one.new.old:  # another program wrote it in between
                one = self._draft(chosen, trace, known)
            if defects:
                one = with_accepted(one, defects)
            write_golden(self.project.layout, one.path, one.new.data)
        ValueStore(self.project.layout).remember(one.new.normal)
        PendingStore(self.project.layout).drop(chosen.name, chosen.suite)
        for defect in defects:
            about = f" of {defect.tool_name}" if defect.tool_name is not None else ""
            self.output.say(
                f"{chosen.name}: {defect.code} {defect.name}{about} is accepted in the golden's header", level=-1
            )
        self._tell(one, shown)

    def _draft(self, chosen: Chosen, trace: Trace, known: tuple[str, ...] = ()) -> Draft:
        may_be_incomplete = self.request.allow_incomplete
        return draft(self.project, chosen, trace, may_be_incomplete=may_be_incomplete, constants=known)

    def _check_calls(self, one: Draft) -> None:
        """Refuse a golden without calls whose run held events that nobody knows; say of any other that it has none.

        Raises: InputError.
        """
        if one.new.normal.operations:
            return
        left_out = self.left_out.get(one.chosen.name, ())
        if left_out:
            names = ", ".join(repr(name) for name in left_out)
            raise InputError(
                f"{one.chosen.name}: the golden would have no call, and events of unknown types were left out: {names}",
                where=Where(one.trace.path),
                next_step="correct the types that the agent writes; `goldentrace schema trace` prints the format",
            )
        self.output.say(f"{one.chosen.name}: warning: the golden has no call, only how the run ended", level=-1)

    def _defects(self, one: Draft) -> list[Finding]:
        """Return the structural defects that the rules find and nobody accepted; refuse the run that has any, if it was
        not allowed. A golden of one would demand it from then on."""
        lint = lint_trace(one.trace, one.new.normal, one.loaded.profile, one.chosen.scenario)
        lint = accepted(lint, one.new.golden.header.accepts)
        found = [finding for finding in lint.findings if finding.severity == "error" and finding.accepted is None]
        if found and not self.request.allow_defects:
            self.refused.append(TraceReport(one.chosen.name, candidate_path=one.trace.path, lint=lint))
            what = "not recorded: it has defects (--allow-defects accepts them in the golden's header)"
            self.output.say(f"{one.chosen.name}: {what}", level=-1)
        return found

    def _constants(self, one: Draft) -> tuple[str, ...] | None:
        """Run N more times; return what looked random and was the same in every run, None where one differed."""
        traces: list[Trace] = []
        for number in range(self.request.verify or 0):
            result = self.run([one.chosen])[one.chosen.name]
            if isinstance(result, GoldentraceError):
                raise result
            comparison = repeat(one, result)
            if comparison.changes or comparison.not_comparable:
                self.refused.append(unstable(one, comparison, number + 2))
                self.output.say(
                    f"{one.chosen.name}: not recorded: run {number + 2} differs from the first one", level=-1
                )
                return None
            traces.append(result)
        found = constants(one, traces)
        for label, pointer, _ in found:
            self.output.say(
                f"{one.chosen.name}: {label} {pointer} was the same in all {len(traces) + 1} runs: kept as a value"
            )
        return tuple(leaf for _, _, leaf in found)

    def _show_refused(self) -> int:
        report = Report("record", self.refused, config_path=self.project.loaded.path)
        names = [one.name for one in self.refused if one.comparison is not None]
        if names:
            again = self.project.layout.command("record", *names, options=("--verify", str(self.request.verify)))
            report.notes.append(f"no golden was written; make the runs repeat (see the hints), then: {again}")
        self.output.write(report)
        return report.exit_code if report.exit_code != OK else CHANGED

    def _tell(self, one: Draft, shown: str) -> None:
        lines = one.new.data.count(b"\n")
        new = one.new
        changed = f", {new.changed_lines} changed" if one.word == "rewritten" else ""
        if new.note is not None:
            self.output.say(f"{one.chosen.name}: {new.note}; it was replaced as a whole")
        if self.output.format == "json":
            notes = list(self.notes.get(one.chosen.name, ()))
            self.documents.append({**_document(one, shown, lines), "notes": notes})
            return
        from goldentrace.report.masked import render_masked_summary

        self.output.put(
            f"{printable(one.chosen.name)}  {one.word.upper()}  {printable(shown)}  {lines} lines{changed}\n"
        )
        width, color = width_of(self.output.width), is_colored(self.output.color)
        if self.output.verbosity >= 0:
            self.output.put(render_masked_summary(new.normal, width=width, color=color))


def _document(one: Draft, shown: str, lines: int) -> dict[str, Any]:
    normal = one.new.normal
    made_up = [
        {"call": operation.label, "pointer": pointer, "written": leaf}
        for operation in normal.operations
        for pointer, leaf in sorted(operation.args.items())
        if isinstance(leaf, str) and "<new:" in leaf
    ]
    return {
        "scenario": one.chosen.name,
        "status": one.word,
        "golden": shown,
        "lines": lines,
        "changed_lines": one.new.changed_lines if one.new.old is not None else lines,
        "profile": one.loaded.profile.name,
        "masked": dict(Counter(masked.rule for masked in normal.masked)),
        "new_ids": made_up,
    }
