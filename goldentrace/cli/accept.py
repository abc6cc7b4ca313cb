"""`goldentrace accept`: makes pending goldens the goldens."""

from pathlib import Path
from typing import Any

import click

from goldentrace.cli.options import option, output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.pending import hash_now
from goldentrace.cli.project import Project
from goldentrace.codec.yaml_document import suggest
from goldentrace.diff.codes import CODES
from goldentrace.errors import ConfigError, GoldentraceError
from goldentrace.exitcodes import NO_VERDICT, OK
from goldentrace.model.change import Change
from goldentrace.report.values import plural
from goldentrace.store.goldens import goldens_lock, write_golden
from goldentrace.store.partial import accept_part
from goldentrace.store.pending import PendingRecord, PendingStore
from goldentrace.store.sides import Terms

KINDS = {"calls": "GT1", "attempts": "GT2", "results": "GT3", "waits": "GT4", "end": "GT5", "agents": "GT6"}
"""KIND -> what its codes begin with."""


@click.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO…]")
@option("--all", "is_all", is_flag=True, help="Accept everything that is pending.")
@option("--code", "codes", multiple=True, metavar="CODE", help="Accept only changes of this code; repeatable.")
@option("--kind", "kinds", multiple=True, type=click.Choice(tuple(KINDS)), help="Accept only this kind; repeatable.")
@project_options
@output_options()
def accept(
    scenarios: tuple[str, ...],
    project: Project,
    output: Output,
    *,
    is_all: bool,
    codes: tuple[str, ...],
    kinds: tuple[str, ...],
) -> int:
    """Make pending goldens the goldens.

    SCENARIO names what `goldentrace pending` lists. Refused where the golden, its profile or goldentrace itself is no
    longer what the diff saw.
    """
    project.ci.guard("goldens are not accepted")
    store = PendingStore(project.layout)
    records = _chosen(list(store.all()), scenarios, is_all=is_all)
    prefixes = _prefixes(codes, kinds)
    rows: list[dict[str, Any]] = []
    errors: list[GoldentraceError] = []
    with goldens_lock(project.layout, "goldens are being accepted"):
        for record in records:
            try:
                store.check_fresh(record, hash_now(project, record))
                rows.append(_accept(project, store, record, prefixes))
            except GoldentraceError as error:
                if len(records) == 1:
                    raise
                errors.append(error)
                rows.append({"scenario": record.scenario, "status": "refused", "what": error.what})
    code = NO_VERDICT if errors else OK
    if output.format == "json":
        output.put_json({"command": "accept", "accepted": rows, "exit_code": code})
        return code
    for failure in errors:
        lines = str(failure).split("\n")
        output.say("\n".join([f"goldentrace: {lines[0]}", *lines[1:]]), level=-1)
    output.put_lines(f"{row['scenario']}  {row['status'].upper()}  {row['what']}" for row in rows)
    return code


def _chosen(records: list[PendingRecord], names: tuple[str, ...], *, is_all: bool) -> list[PendingRecord]:
    """Return the proposals that are meant. Raises: ConfigError where nothing is, or a name is not pending."""
    known = [record.scenario for record in records]
    if names and is_all:
        raise ConfigError("--all and scenarios were both given", next_step="leave one of them out")
    if not names and not is_all:
        listed = f"pending: {', '.join(known)}" if known else "nothing is pending"
        raise ConfigError("nothing selected", next_step=f"name scenarios, or pass --all ({listed})")
    if is_all and not records:
        raise ConfigError("nothing is pending", next_step="goldentrace diff leaves what it finds changed")
    for name in names:
        if name not in known:
            step = (
                suggest(name, known) if known else "nothing is pending; goldentrace diff leaves what it finds changed"
            )
            raise ConfigError(f"nothing is pending for {name!r}", next_step=step)
    return [record for record in records if is_all or record.scenario in names]


def _prefixes(codes: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[str, ...]:
    names = {code.name: code.code for code in CODES.values()}
    found = []
    for code in codes:
        plain = names.get(code.lower(), code.upper())
        if plain not in CODES:
            raise ConfigError(f"no change has the code {code!r}", next_step=suggest(code.upper(), CODES))
        found.append(plain)
    return (*found, *(KINDS[kind] for kind in kinds))


def _accept(project: Project, store: PendingStore, record: PendingRecord, prefixes: tuple[str, ...]) -> dict[str, Any]:
    layout = project.layout
    path = layout.golden(record.scenario, record.suite)
    if not prefixes:
        data, left = store.proposed(record), 0
    else:
        data, left = _part(project, record, prefixes)
    write_golden(layout, path, data)
    store.drop(record.scenario, record.suite)
    what = layout.shown(path)
    if left:
        what += f"; {plural(left, 'change')} left: {layout.command('diff', record.scenario)}"
    return {"scenario": record.scenario, "status": "accepted", "golden": layout.shown(path), "left": left, "what": what}


def _part(project: Project, record: PendingRecord, prefixes: tuple[str, ...]) -> tuple[bytes, int]:
    def is_taken(change: Change) -> bool:
        return change.code.startswith(prefixes)

    scenario = project.loaded.config.scenarios.get(record.scenario)
    terms = Terms(
        project.profiles,
        backoff=scenario.backoff if scenario is not None else None,
        record=project.layout.command("record", record.scenario),
    )
    golden = project.layout.golden(record.scenario, record.suite)
    candidate = project.layout.folder / Path(record.candidate)
    return accept_part(record, golden, candidate, terms, is_taken, project.layout)
