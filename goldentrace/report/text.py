"""The report for a person at a terminal: per trace its changes in blocks, then the suite, last the counts and commands.

The end is what people read, so it holds the verdict, the exit code and the exact commands. A single trace has no suite
view.
"""

from collections import Counter
from typing import Final

from goldentrace.model.change import Change, Comparison
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.profile import SEVERITIES
from goldentrace.model.report import Report, TraceReport
from goldentrace.report.advice import add_allowing, add_masking, as_arguments
from goldentrace.report.block import EXPLAINED, add_change, add_finding
from goldentrace.report.cells import command_lines, measure
from goldentrace.report.json_document import MISSING, count_events, counted, next_command, summary
from goldentrace.report.page import Page, table
from goldentrace.report.values import plural
from goldentrace.report.view import View, subject

MAX_BLOCKS: Final = 20
"""Blocks of one trace without -v; of a run that went another way altogether the first ones tell what happened."""
MAX_LISTED: Final = 3
MAX_ACCEPTED: Final = 4
"""Scenarios that the command to accept names; of more of them the command that lists them is named."""


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:
    """Return the report as text. verbosity: -1 the suite and the end, 0 what changed, 1 the clean traces and all."""
    page = Page(width, color=color)
    is_suite = len(report.traces) > 1
    for trace in report.traces:
        if verbosity >= 0 and (not is_suite or verbosity > 0 or _word(trace, report) != "CLEAN" or counted(trace)):
            _add_trace(page, trace, report, is_full=verbosity > 0)
            page.blank()
    if is_suite or verbosity < 0:
        _add_suite(page, report, is_full=verbosity > 0)
        page.blank()
    for note in report.notes:
        page.wrapped(f"note: {note}", indent=6)
    _add_end(page, report)
    return page.text()


def _word(trace: TraceReport, report: Report) -> str:
    """The verdict about one trace in one word."""
    status = trace.status(report.fail_on)
    if status == "changed":
        return "CHANGED" if trace.comparison is not None and trace.comparison.changes else "DEFECTS"
    return {
        "clean": "CLEAN",
        "missing-golden": "MISSING",
        "missing-candidate": "MISSING",
        "unreadable": "BROKEN",
        "not-comparable": "NO VERDICT",
    }[status]


def _style(word: str) -> str:
    return "good" if word == "CLEAN" else "bad"


def _counts(trace: TraceReport) -> str:
    words = [plural(count, severity) for severity in SEVERITIES if (count := trace.count(severity))]
    return ", ".join(words) or "no change"


# -- one trace -----------------------------------------------------------------------------------------------------


def _add_trace(page: Page, trace: TraceReport, report: Report, *, is_full: bool) -> None:
    word = _word(trace, report)
    counts = _counts(trace) if trace.comparison is not None or trace.lint is not None else ""
    if counts == "no change" and trace.comparison is None:
        counts = "no finding"
    name = page.fit(trace.name, len(word) + len(counts) + 4)
    page.line((name, "bold"), "  ", (word, _style(word)), *(("  ", counts) if counts else ()))
    if trace.missing is not None:
        page.wrapped(MISSING[trace.missing])
        _add_paths(page, trace)
        _add_command(page, "next", next_command(trace, report.options))
        return
    if trace.problem is not None:
        _add_problem(page, trace)
    if trace.comparison is not None:
        _add_paths(page, trace)
        _add_changes(page, trace.comparison, is_full=is_full)
        _add_limits_of_comparison(page, trace.comparison)
    if trace.lint is not None:
        _add_lint(page, trace.lint, is_full=is_full, is_alone=trace.comparison is None)


def _add_problem(page: Page, trace: TraceReport) -> None:
    problem = trace.problem
    assert problem is not None
    page.wrapped(problem.what)
    place = problem.path + (f":{problem.line}" if problem.line is not None else "")
    if problem.pointer not in (None, "", "$"):
        place += f" {problem.pointer}"
    if place:
        page.line("  ", page.fit(place, 2))
    for step in problem.next_step.split("\n") if problem.next_step else ():
        page.wrapped(step)


def _add_paths(page: Page, trace: TraceReport) -> None:
    comparison = trace.comparison
    for name, path, side in (
        ("golden", trace.golden_path, comparison.golden if comparison is not None else None),
        ("now", trace.candidate_path, comparison.candidate if comparison is not None else None),
    ):
        shown = path or (side.path if side is not None else None)
        if shown is None:
            continue
        counts = f"  {plural(len(side.operations), 'call')}, {count_events(side)} events" if side is not None else ""
        page.line(f"  {name.ljust(6)}  ", page.fit(shown, 10 + len(counts)), (counts, "dim"))


def _add_changes(page: Page, comparison: Comparison, *, is_full: bool) -> None:
    changes = comparison.changes
    if not changes:
        return
    view = View.of(comparison)
    shown = changes if is_full else _first_blocks(changes)
    seen: set[int] = set()
    for change in shown:
        page.blank()
        place = view.place(change)
        add_change(page, change, view, has_context=place is None or place not in seen)
        if place is not None and change.caused_by is None:
            seen.add(place)
    if len(shown) < len(changes):
        left = Counter(
            f"{change.code} {change.name}" for change in changes if not any(change is kept for kept in shown)
        )
        page.blank()
        words = ", ".join(f"{name} x{count}" for name, count in sorted(left.items()))
        page.wrapped(f"{plural(len(changes) - len(shown), 'more change')}: {words} (-v shows all)", indent=0)


def _first_blocks(changes: list[Change]) -> list[Change]:
    """The first blocks in reading order, errors before what gates nothing."""
    if len(changes) <= MAX_BLOCKS:
        return changes
    rank = {severity: n for n, severity in enumerate(SEVERITIES)}
    ranked = sorted(enumerate(changes), key=lambda item: (rank[item[1].severity], not item[1].is_root, item[0]))
    kept = sorted(place for place, _ in ranked[:MAX_BLOCKS])
    return [changes[place] for place in kept]


def _add_limits_of_comparison(page: Page, comparison: Comparison) -> None:
    if comparison.not_comparable or comparison.coverage or comparison.is_approximate:
        page.blank()
    for why in comparison.not_comparable:
        page.wrapped(why, indent=18, first="  not comparable: ")
    for what in comparison.coverage:
        page.wrapped(what, indent=16, style="dim", first="  not compared: ")
    if comparison.is_approximate:
        page.wrapped(
            "these traces are too long and too different to be aligned exactly; there may be fewer changes than shown",
            indent=16,
            first="  approximate:  ",
        )


# -- rules ---------------------------------------------------------------------------------------------------------


def _add_lint(page: Page, lint: LintResult, *, is_full: bool, is_alone: bool) -> None:
    accepted = [finding for finding in lint.findings if finding.accepted is not None]
    for finding in lint.findings:
        if is_full or finding.accepted is None:
            page.blank()
            add_finding(page, finding, lint.path)
    if accepted and not is_full:
        page.blank()
        _add_accepted(page, [finding.accepted or "" for finding in accepted])
    if lint.could_not_check or is_full or is_alone:
        page.blank()
        add_coverage_of_rules(page, lint, is_full=is_full)
    for note in lint.notes:
        page.wrapped(note, indent=8, style="dim", first="  note: ")


def _add_accepted(page: Page, reasons: list[str]) -> None:
    """Add how many findings are not shown: accepted by somebody, or accounted for by a change."""
    codes = [reason.removeprefix(EXPLAINED).split(" ")[0] for reason in reasons if reason.startswith(EXPLAINED)]
    if codes:
        causes = ", ".join(sorted(set(codes)))
        page.line(("  " + f"{plural(len(codes), 'finding')} explained by {causes} (-v shows more)", "dim"))
    if len(codes) < len(reasons):
        page.line(("  " + f"{plural(len(reasons) - len(codes), 'accepted finding')} (-v shows them)", "dim"))


def add_coverage_of_rules(page: Page, lint: LintResult, *, is_full: bool) -> None:
    """Add how many rules ran and, in full, per reason which could not: a rule never passes in silence."""
    total = len(lint.checked) + len(lint.could_not_check)
    why = " (-v: why not the others)" if lint.could_not_check and not is_full else ""
    page.line(f"  {len(lint.checked)} of {plural(total, 'rule')} checked{why}")
    if not is_full:
        return
    by_reason: dict[str, list[str]] = {}
    for code, why in sorted(lint.could_not_check.items()):
        by_reason.setdefault(why, []).append(code)
    for why, codes in by_reason.items():
        page.wrapped(f"{', '.join(codes)}: {why}", indent=19, style="dim", first="  could not check: ")


# -- suite and end -------------------------------------------------------------------------------------------------


def _add_suite(page: Page, report: Report, *, is_full: bool) -> None:
    config = f", {report.config_path}" if report.config_path else ""
    page.line(
        (f"goldentrace {report.command}", "bold"), f"  {plural(len(report.traces), 'trace')}", page.fit(config, 40)
    )
    rows: list[tuple[str, list[str]]] = []
    hidden = 0
    for trace in report.traces:
        word = _word(trace, report)
        if word == "CLEAN" and not counted(trace) and not is_full:
            hidden += 1
            continue
        rows.append((word, [word, trace.name, _gist(trace)]))
    name_width = max((measure(cells[1]) for _, cells in rows), default=0)
    name_width = min(name_width, page.width // 2)
    word_width = max((len(word) for word, _ in rows), default=0)
    for word, (_, name, gist) in rows:
        fitted = page.fit(name, page.width - name_width)
        blanks = " " * (name_width - measure(fitted))
        taken = 2 + word_width + 2 + name_width + 2
        page.line("  ", (word.ljust(word_width), _style(word)), "  ", fitted, blanks, "  ", page.fit(gist, taken))
    if hidden:
        more = " more" if rows else ""
        page.line("  ", (f"{hidden}{more} clean (-v lists them)", "dim"))
    by_rule = summary(report)["by_rule"]
    if by_rule:
        page.blank()
        names = {found.code: found.name for trace in report.traces for found in counted(trace)}
        for cells in table([[code, str(count), names[code]] for code, count in by_rule.items()], frozenset({1})):
            page.line("  ", "  ".join(cells))


def _gist(trace: TraceReport) -> str:
    """What to say of a trace in one line."""
    if trace.missing is not None:
        return MISSING[trace.missing]
    if trace.problem is not None:
        place = f"line {trace.problem.line}: " if trace.problem.line is not None else ""
        return place + trace.problem.what
    if trace.comparison is not None and trace.comparison.not_comparable:
        return trace.comparison.not_comparable[0]
    found = Counter(f"{subject.code} {subject.name}" for subject in counted(trace))
    words = [name if count == 1 else f"{name} x{count}" for name, count in found.most_common()]
    rest = f", {len(words) - MAX_LISTED} more" if len(words) > MAX_LISTED else ""
    return ", ".join(words[:MAX_LISTED]) + rest


def _add_end(page: Page, report: Report) -> None:
    counts = summary(report)
    severities = ", ".join(plural(counts[f"{severity}s"], severity) for severity in SEVERITIES)
    verdict = _verdict_words(report)
    style = {"clean": "good", "changed": "bad", "no-verdict": "bad"}[report.verdict]
    if len(report.traces) > 1:
        words = [("clean", "clean"), ("changed", "changed"), ("missing", "missing"), ("unreadable", "unreadable")]
        words.append(("not_comparable", "not comparable"))
        shown = ", ".join(f"{counts[key]} {word}" for key, word in words if counts[key] or key == "clean")
        page.wrapped(f"{plural(counts['traces'], 'trace')}: {shown}", indent=0)
    end = f"{verdict} (exit {report.exit_code})"
    if measure(severities) + 2 + measure(end) <= page.width:
        page.line(severities + ": ", (end, style))
    else:
        page.line(severities)
        page.wrapped(end, indent=0, style=style)
    _add_next_steps(page, report)


def _verdict_words(report: Report) -> str:
    if not report.traces:
        return "nothing was selected: no verdict"
    if report.verdict == "no-verdict":
        return "no verdict"
    has_comparison = any(trace.comparison is not None for trace in report.traces)
    if report.verdict == "clean":
        for severity in SEVERITIES:
            if any(trace.count(severity) for trace in report.traces):
                return f"passes; --fail-on {severity} would not"
        return "behaves the same" if has_comparison else "no defect"
    words = {_word(trace, report) for trace in report.traces}
    return "behaviour changed" if "CHANGED" in words else "structural defect"


def _add_next_steps(page: Page, report: Report) -> None:
    told = [trace for trace in report.traces if counted(trace)]
    changed = [trace for trace in told if trace.status(report.fail_on) != "clean"] or told
    first = _first_subject(changed)
    if first is None:
        return
    if isinstance(first, Change):
        _add_start(page, first, changed, is_suite=len(report.traces) > 1)
    add_masking(page, changed, report.options)
    if report.command != "lint":  # a golden or a check gates on them from now on
        add_allowing(page, changed)
    _add_command(page, "explain", ["goldentrace", "explain", first.code])
    pending = [trace.name for trace in changed if _is_pending(trace, report)]
    if len(pending) > 1 and report.command != "diff":
        _add_command(page, "review", ["goldentrace", "diff", *report.options])
    elif len(pending) > MAX_ACCEPTED:
        _add_command(page, "review", ["goldentrace", "pending", *report.options])
    if 1 <= len(pending) <= MAX_ACCEPTED:
        _add_command(page, "accept", ["goldentrace", "accept", *report.options, *as_arguments(pending)])
    elif len(changed) == 1 and _is_recorded(changed[0], report):
        assert changed[0].candidate_path is not None
        names = as_arguments([changed[0].name])
        words = ["goldentrace", "record", *report.options, "--from", changed[0].candidate_path, *names]
        _add_command(page, "record", words)


def _add_start(page: Page, first: Change, changed: list[TraceReport], *, is_suite: bool) -> None:
    changes = [change for trace in changed if trace.comparison is not None for change in trace.comparison.changes]
    followers = sum(change.caused_by is first for change in changes)
    if len(changes) < 2:
        return
    tail = f"; {followers} more follow{'s' if followers == 1 else ''} from it" if followers else ""
    where = f" of {changed[0].name}" if is_suite else ""
    page.wrapped(f"{first.code} {first.name} at {subject(first)}{where}{tail}", indent=11, first="  start    ")


def _is_pending(trace: TraceReport, report: Report) -> bool:
    """Is there a pending golden to be accepted? Only a scenario's own run leaves one, not two files that were named."""
    return trace.is_pending and report.can_accept and _word(trace, report) == "CHANGED"


def _is_recorded(trace: TraceReport, report: Report) -> bool:
    """Is the golden a file that the candidate, a file too, could replace?"""
    comparison = trace.comparison
    if report.command == "record":  # refused: it is no golden yet
        return False
    if comparison is None or _word(trace, report) != "CHANGED" or trace.candidate_path in (None, "-"):
        return False
    return comparison.golden.payloads is None and comparison.golden.header.scenario_id == trace.name


def _first_subject(changed: list[TraceReport]) -> Change | Finding | None:
    """Where to start reading: the first root of the highest severity of the first trace that has any."""
    for trace in changed:
        if trace.comparison is not None and trace.comparison.first is not None:
            return trace.comparison.first
        found = counted(trace)
        if found:
            return min(found, key=lambda finding: SEVERITIES.index(finding.severity))
    return None


def _add_command(page: Page, name: str, words: list[str]) -> None:
    lead = f"  {name.ljust(7)}  "
    first, *rest = command_lines(words, page.width, len(lead))
    page.raw(lead + first)
    for line in rest:
        page.raw(line)
