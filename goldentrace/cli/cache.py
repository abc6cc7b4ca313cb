"""`goldentrace cache`: what a cache of tool results would have saved. Thin: parse, replay, print."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from goldentrace.cli.options import output_options, packed, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.terminal import is_colored, width_of
from goldentrace.errors import ConfigError, InputError, Where
from goldentrace.exitcodes import OK
from goldentrace.normalize.offsets import place_in_time
from goldentrace.report.page import Page, table
from goldentrace.report.values import brief_wait, plural
from goldentrace.store.sides import Reading, normal_of, read_side

if TYPE_CHECKING:
    from goldentrace.cache.simulation import Hit, Settings, Simulation, TokenSum

LISTED = 20
"""Hits of one kind that the text names; JSON has all."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The cache to simulate; see `goldentrace.cache.simulation.Settings`."""

    ttl_s: float | None
    max_entries: int
    tools: tuple[str, ...]
    undeclared: Literal["read", "write"]


@click.group("cache")
def cache() -> None:
    """Show what a cache of tool results would have saved."""


@cache.command()
@click.argument("file", metavar="FILE")
@packed(
    "asked",
    Asked,
    click.option(
        "--ttl-s", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Seconds; default: for ever."
    ),
    click.option("--max-entries", type=click.IntRange(min=1), default=1024, metavar="N", help="Default: 1024."),
    click.option("--tool", "tools", multiple=True, metavar="NAME", help="Only this tool, or `search_*`; repeatable."),
    click.option(
        "--undeclared",
        type=click.Choice(("read", "write")),
        default="read",
        help="What tools of undeclared access do; default: read.",
    ),
)
@reading_options
@project_options
@output_options()
def simulate(file: str, project: Project, reading: Reading, output: Output, asked: Asked) -> int:
    """Replay a trace against a cache: calls, time, tokens and cost before and after, and wrong answers.

    FILE: a trace of any known format, - for standard input. Writes, polling tools and tools that the profile calls not
    idempotent are never kept.
    """
    from goldentrace.cache.simulation import Settings
    from goldentrace.cache.simulation import simulate as replay
    from goldentrace.rules.subject import Subject

    side = read_side(file, reading)
    if side.trace is None:
        raise InputError("this is a golden: it holds no results", where=Where(side.path), next_step="give a trace")
    loaded = project.profiles.load(project.profile_name())
    normal = normal_of(side, loaded)
    place_in_time(normal, side.trace)
    if asked.ttl_s is not None and not normal.has_times:
        raise InputError(
            "the trace records no times, so nobody knows when an entry expires", where=Where(side.path),
            next_step="leave out --ttl-s",
        )  # fmt: skip
    settings = Settings(asked.ttl_s, asked.max_entries, asked.tools, asked.undeclared)
    found = replay(Subject(side.trace, normal, loaded.profile), settings)
    _check_tools(asked.tools, found)
    if output.format == "json":
        output.put_json(_as_json(side.path, settings, found) | {"incomplete": side.trace.incomplete})
    else:
        page = Page(width_of(output.width), color=is_colored(output.color))
        _fill(page, side.path, settings, found, is_full=output.verbosity > 0)
        if side.trace.incomplete is not None:
            page.blank()
            page.wrapped(side.trace.incomplete, indent=12, style="warning", first="incomplete: ")
        output.put(page.text())
    return OK


def _check_tools(patterns: tuple[str, ...], found: "Simulation") -> None:
    from fnmatch import fnmatchcase

    names = [tool.tool_name for tool in found.tools]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            listed = ", ".join(sorted(names)[:8]) or "none"
            raise ConfigError(f"--tool {pattern!r}: the trace calls no such tool", next_step=f"it calls {listed}")


# --- text -----------------------------------------------------------------------------------------------------------


def _fill(page: Page, path: str, settings: "Settings", found: "Simulation", *, is_full: bool) -> None:
    ttl = "for ever" if settings.ttl_s is None else brief_wait(settings.ttl_s * 1000)
    tail = f"  cache: ttl {ttl}, {plural(settings.max_entries, 'entry', 'entries')}"
    page.line((page.fit(path, len(tail)), "bold"), tail)
    page.blank()
    _add_rows(page, _before_and_after(found), right=frozenset({1, 2, 3}))
    _add_notes_of_tokens(page, found)
    page.blank()
    rows = [["", "calls", "hits", "wrong", "?", "saved", ""]]
    for tool in found.tools:
        saved = brief_wait(round(tool.saved_ms)) if tool.timed else ""
        counts = [str(number) for number in (tool.calls, tool.hits, tool.wrong, tool.unverified)]
        word = "" if tool.is_declared else "access not declared"
        word = word if tool.why_not is None else f"not kept: {tool.why_not}"
        rows.append([page.fit(tool.tool_name, 48), *counts, saved, word])
    _add_rows(page, rows, right=frozenset({1, 2, 3, 4, 5}))
    _add_hits(page, "would have been wrong", found.wrong, "error", is_full=is_full)
    _add_hits(page, "cannot be told right or wrong (?)", found.unverified, "warning", is_full=is_full)
    page.blank()
    if found.hits and not found.wrong:
        checked = len(found.hits) - len(found.unverified)
        page.line((f"{checked} of {plural(len(found.hits), 'hit')} checked, none wrong", "ok" if checked else "bold"))
    elif not found.hits:
        page.line("no hits")


def _before_and_after(found: "Simulation") -> list[list[str]]:
    from goldentrace.cache.simulation import sums_of

    hits = len(found.hits)
    rows = [["", "before", "after", "saved"], ["tool calls", str(found.calls), str(found.calls - hits), str(hits)]]
    before_ms, after_ms = sums_of(found.tools)
    if before_ms is not None and after_ms is not None:
        rows.append(["tool seconds", *(f"{ms / 1000:.3f}" for ms in (before_ms, after_ms, before_ms - after_ms))])
    run, repeats = found.all_turns, found.repeat_turns
    for name, whole, part, form in (
        ("input tokens", run.input_tokens, repeats.input_tokens, "{:,}"),
        ("output tokens", run.output_tokens, repeats.output_tokens, "{:,}"),
        ("cost, USD", run.cost_usd, repeats.cost_usd, "{:.4f}"),
    ):
        if whole is not None:
            low, high = form.format(whole - (part or 0)), form.format(whole)
            saved = form.format(part or 0)
            rows.append([name, high, f"{low} to {high}" if low != high else high, f"0 to {saved}" if part else "0"])
    return rows


def _add_notes_of_tokens(page: Page, found: "Simulation") -> None:
    run, repeats = found.all_turns, found.repeat_turns
    if run.input_tokens is None and run.output_tokens is None and run.cost_usd is None:
        page.wrapped("tokens and cost: the trace records no usage", indent=2, style="dim")
        return
    if repeats.turns:
        page.wrapped(
            f"tokens, cost: a cache saves none by itself, the model still asks and reads. The lower numbers leave out "
            f"{plural(repeats.turns, 'turn')} that asked only for what the cache held.", indent=2, style="dim",
        )  # fmt: skip
    if repeats.uncached_input_tokens is not None and repeats.input_tokens is not None:
        page.wrapped(
            f"input of these turns: {repeats.uncached_input_tokens:,} tokens without, {repeats.input_tokens:,} with "
            "those that the provider had cached", indent=2, style="dim",
        )  # fmt: skip
    if run.known < run.turns:
        page.wrapped(f"usage is known of {run.known} of {plural(run.turns, 'turn')}", indent=2, style="dim")


def _add_hits(page: Page, what: str, hits: "list[Hit]", style: str, *, is_full: bool) -> None:
    if not hits:
        return
    page.blank()
    page.line((f"{plural(len(hits), 'hit')} {what}", style))
    shown = hits if is_full else hits[:LISTED]
    for hit in shown:
        age = f", {brief_wait(round(hit.age_ms))} old" if hit.age_ms is not None else ""
        page.wrapped(
            f"line {hit.line} {hit.label}: the result of {hit.first_label} (line {hit.first_line}){age}; {hit.why}",
            indent=4, first="  ",
        )  # fmt: skip
    if len(shown) < len(hits):
        page.line(f"  and {len(hits) - len(shown)} more; -v lists them")


def _add_rows(page: Page, rows: list[list[str]], right: frozenset[int]) -> None:
    for row in table(rows, right):
        page.line("  ", "  ".join(row))


# --- JSON -----------------------------------------------------------------------------------------------------------


def _as_json(path: str, settings: "Settings", found: "Simulation") -> dict[str, Any]:
    from dataclasses import asdict

    from goldentrace.cache.simulation import sums_of

    before_ms, after_ms = sums_of(found.tools)
    hits = len(found.hits)
    return {
        "command": "cache simulate",
        "path": path,
        "settings": asdict(settings),
        "calls": {"before": found.calls, "after": found.calls - hits},
        "tool_ms": {"before": before_ms, "after": after_ms},
        "tokens": {
            "input": _range(found.all_turns.input_tokens, found.repeat_turns.input_tokens),
            "output": _range(found.all_turns.output_tokens, found.repeat_turns.output_tokens),
        },
        "cost_usd": _range(found.all_turns.cost_usd, found.repeat_turns.cost_usd),
        "turns": {"all": _turns(found.all_turns), "repeats": _turns(found.repeat_turns)},
        "hits": {
            "count": hits,
            "wrong": [asdict(hit) for hit in found.wrong],
            "unverified": [asdict(hit) for hit in found.unverified],
        },
        "tools": [asdict(tool) for tool in found.tools],
    }


def _range(whole: float | None, part: float | None) -> dict[str, float] | None:
    """Before, and between which two numbers it lies after; None where the trace does not tell."""
    return None if whole is None else {"before": whole, "after_low": round(whole - (part or 0), 9), "after_high": whole}


def _turns(sum_of_turns: "TokenSum") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(sum_of_turns)
