"""`goldentrace stats`: figures of runs, per tool and per run. Thin: read, sum up, print."""

from typing import TYPE_CHECKING, Any, Final

import click

from goldentrace.cli.options import output_options, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.runs import runs_of
from goldentrace.cli.terminal import is_colored, width_of
from goldentrace.errors import GoldentraceError
from goldentrace.exitcodes import NO_VERDICT, OK
from goldentrace.normalize.offsets import place_in_time
from goldentrace.report.page import Page, table
from goldentrace.report.values import brief_wait, plural
from goldentrace.store.sides import Reading, normal_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from goldentrace.scale.stats import Figures, RunStats, Stats

GOLDEN: Final = "this is a golden: it tells no times and no results", "give a trace"
LISTED = 30
"""Runs that the text lists; JSON has all."""


@click.command()
@click.argument("files", nargs=-1, metavar="FILE…", required=True)
@reading_options
@project_options
@output_options()
def stats(files: tuple[str, ...], project: Project, reading: Reading, output: Output) -> int:
    """Sum up traces, per tool and per run.

    Success, latency, attempts, 429s, time-outs, unknown outcomes, limits that fired, kinds of repeats. FILE: a trace of
    any known format, or several in one file; - for standard input. A file that cannot be read is said, the others are
    summed up, and the exit code is 3.
    """
    from goldentrace.scale.stats import stats_of

    runs: list[RunStats] = []
    problems: list[GoldentraceError] = []
    for file in files:
        try:
            runs += list(_runs(file, project, reading, output))
        except GoldentraceError as error:
            if len(files) == 1:
                raise
            problems.append(error)
    found = stats_of(runs)
    if output.format == "json":
        output.put_json(_as_json(found, problems))
    else:
        page = Page(width_of(output.width), color=is_colored(output.color))
        _fill(page, found, is_full=output.verbosity > 0)
        output.put(page.text())
    for problem in problems:
        output.say(f"not counted: {_said(problem)}", level=-1)
    return NO_VERDICT if problems else OK


def _runs(file: str, project: Project, reading: Reading, output: Output) -> "Iterator[RunStats]":
    from goldentrace.rules.subject import Subject
    from goldentrace.scale.stats import stats_of_run

    loaded = project.profiles.load(project.profile_name())
    is_full = output.verbosity > 0
    for side, place in runs_of(file, reading, GOLDEN, lambda text: output.say(f"note: {text}"), is_full=is_full):
        assert side.trace is not None, "goldens are refused"
        normal = normal_of(side, loaded)
        place_in_time(normal, side.trace)
        yield stats_of_run(Subject(side.trace, normal, loaded.profile, {}, loaded.profile.rules), place)


# --- text -----------------------------------------------------------------------------------------------------------


def _fill(page: Page, found: "Stats", *, is_full: bool) -> None:
    total = found.total
    head = f"{plural(len(found.runs), 'run')}, {plural(total.calls, 'call')}"
    if len(found.runs) == 1:
        head += f", {found.runs[0].outcome or 'cut off'}"
    page.line((head, "bold"))
    page.blank()
    _add_figures(page, "tool", [*found.tools.items(), *([("all", total)] if len(found.tools) > 1 else [])])
    _add_attempts(page, found)
    _add_repeats(page, total)
    _add_limits(page, total)
    if total.untold:
        page.blank()
        page.wrapped(
            f"success is not known of {plural(total.untold, 'call')}: the source does not tell failed calls from "
            "successful ones; name `error_patterns` in the profile's tools", indent=0, style="dim",
        )  # fmt: skip
    if total.unknown_access:
        names = ", ".join(name for name, figures in found.tools.items() if figures.unknown_access)
        page.blank()
        page.wrapped(f"unknown outcomes not judged: the access of {names} is not declared", indent=0, style="dim")
    if len(found.runs) > 1:
        page.blank()
        shown = found.runs if is_full else found.runs[:LISTED]
        place = _common_place([run.name for run in shown])
        named = [(run.name[len(place) :], run.total) for run in shown]
        if place:
            page.line("runs in ", page.fit(place, 8))
        _add_figures(page, "run", named, [run.outcome or "cut off" for run in shown])
        if len(shown) < len(found.runs):
            page.line(f"  and {plural(len(found.runs) - len(shown), 'more run')}; -v lists them")


def _add_figures(
    page: Page, kind: str, entries: "list[tuple[str, Figures]]", outcomes: list[str] | None = None
) -> None:
    rows = [["calls", "ok", "p50", "p95", "p99", "429", "t/o", "unk.", *(["outcome"] if outcomes is not None else [])]]
    for number, (_, figures) in enumerate(entries):
        rate = figures.success_rate
        known = figures.percentiles_ms()
        rows.append(
            [
                str(figures.calls),
                "-" if rate is None else f"{rate:.1%}" if rate < 1 else "100%",
                *(["-"] * 3 if known is None else [_brief(ms) for ms in known.values()]),
                *(str(count) if figures.has_failures else "-" for count in _counts(figures)),
                *([outcomes[number]] if outcomes is not None else []),
            ]
        )
    _add_named(page, [kind, *(name for name, _ in entries)], rows, frozenset(range(8)))


def _add_named(page: Page, names: list[str], rows: list[list[str]], right: frozenset[int] = frozenset()) -> None:
    """Rows behind their names, which take what room the rows leave them."""
    padded = ["  ".join(row) for row in table(rows, right)]
    taken = max(map(len, padded)) + 4
    shown = table([[page.fit(name, taken), row] for name, row in zip(names, padded, strict=True)])
    for name, row in shown:
        page.line("  ", name, "  ", row)


def _counts(figures: "Figures") -> tuple[int, int, int]:
    return figures.rate_limited, figures.timeouts, figures.unknown_outcomes


def _brief(ms: float) -> str:
    return brief_wait(round(ms)) if ms >= 10 else brief_wait(ms)


def _add_attempts(page: Page, found: "Stats") -> None:
    total = found.total
    if not any(count > 1 for count in total.attempts):
        return
    page.blank()
    page.line("attempts per call")
    entries = [*found.tools.items(), ("all", total)]
    told = [(name, figures.attempts) for name, figures in entries if any(count > 1 for count in figures.attempts)]
    rows = [[", ".join(f"{count}: {calls}" for count, calls in sorted(attempts.items()))] for _, attempts in told]
    _add_named(page, [name for name, _ in told], rows)


def _add_repeats(page: Page, total: "Figures") -> None:
    from goldentrace.scale.stats import LABELS

    if not total.repeats:
        return
    page.blank()
    page.line(f"calls that equal an earlier one, of {plural(total.asks, 'call')} by the model")
    rows = [[label, str(total.repeats[label]), f"{total.rate(label) or 0:.1%}"] for label in LABELS]
    for row in table(rows, frozenset({1, 2})):
        page.line("  ", "  ".join(row))


def _add_limits(page: Page, total: "Figures") -> None:
    if total.limits:
        page.blank()
        said = ", ".join(f"{name} {count}" for name, count in sorted(total.limits.items()))
        page.wrapped(f"limits fired: {said}", indent=0)


def _common_place(names: list[str]) -> str:
    """The folder that all files stand in, with a slash at its end, or the one file of all runs; empty for neither."""
    common: list[str] = []
    for parts in zip(*(name.split("/")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    folder = "/".join(common) + "/" if any(common) else ""
    heads = {name[len(folder) :].partition(" ")[:2] for name in names}
    file, space = heads.pop()
    return f"{folder}{file} " if not heads and space else folder


# --- JSON -----------------------------------------------------------------------------------------------------------


def _as_json(found: "Stats", problems: list[GoldentraceError]) -> dict[str, Any]:
    return {
        "command": "stats",
        "total": _figures(found.total),
        "tools": {name: _figures(figures) for name, figures in found.tools.items()},
        "runs": [
            {
                "name": run.name,
                "outcome": run.outcome,
                "stop_reason": run.stop_reason,
                **_figures(run.total),
                "tools": {name: _figures(figures) for name, figures in run.tools.items()},
            }
            for run in found.runs
        ],
        "not_counted": [_said(problem) for problem in problems],
    }


def _said(problem: GoldentraceError) -> str:
    return problem.what if problem.where is None else f"{problem.where}: {problem.what}"


def _figures(figures: "Figures") -> dict[str, Any]:
    from goldentrace.scale.stats import LABELS

    known = figures.percentiles_ms()
    rate = figures.success_rate
    return {
        "calls": figures.calls,
        "ok": figures.ok,
        "failed": figures.failed,
        "without_result": figures.open,
        "status_not_recorded": figures.untold,
        "success_rate": None if rate is None else round(rate, 6),
        "latency_ms": None if known is None else {f"p{percent}": round(ms, 3) for percent, ms in known.items()},
        "latencies": len(figures.latencies_ms),
        "attempts": {str(count): calls for count, calls in sorted(figures.attempts.items())},
        "rate_limited": figures.rate_limited if figures.has_failures else None,
        "timeouts": figures.timeouts if figures.has_failures else None,
        "unknown_outcomes": figures.unknown_outcomes if figures.has_failures else None,
        "unknown_outcomes_undeclared": figures.unknown_access if figures.has_failures else None,
        "limits": dict(sorted(figures.limits.items())),
        "calls_by_model": figures.asks,
        "repeats": {
            label: {
                "calls": figures.repeats[label],
                "rate": round(figures.rate(label) or 0, 6) if figures.asks else None,
            }
            for label in LABELS
        },
    }
