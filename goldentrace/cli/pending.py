"""`goldentrace pending`: the goldens that a diff proposes."""

from collections import Counter

import click
import msgspec

from goldentrace.cli.options import output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.terminal import columns
from goldentrace.errors import GoldentraceError
from goldentrace.exitcodes import OK
from goldentrace.store.pending import PendingRecord, PendingStore


@click.command()
@project_options
@output_options()
def pending(project: Project, output: Output) -> int:
    """List the goldens that a diff proposes, with what each would change."""
    store = PendingStore(project.layout)
    records = list(store.all())
    stale = {record.scenario: store.staleness(record, hash_now(project, record)) for record in records}
    if output.format == "json":
        rows = [{**msgspec.to_builtins(record), "stale": stale[record.scenario]} for record in records]
        output.put_json({"command": "pending", "pending": rows})
        return OK
    if not records:
        output.put("nothing is pending\n")
        return OK
    lines = [(record.scenario, _words(record), _state(stale[record.scenario])) for record in records]
    output.put("".join(f"{line}\n" for line in columns(lines)))
    command = project.layout.command
    output.say(f"look at them: {command('diff')}")
    output.say(f"take them: {command('accept', 'SCENARIO')}, or all: {command('accept', options=('--all',))}")
    return OK


def _words(record: PendingRecord) -> str:
    counts = Counter(f"{change.code} {change.name}" for change in record.changes if change.is_root)
    return ", ".join(f"{name} x{count}" for name, count in sorted(counts.items())) or "no change"


def _state(stale: str | None) -> str:
    return "" if stale is None else f"stale: {stale}"


def hash_now(project: Project, record: PendingRecord) -> str | None:
    """Return the digest that a proposal's profile has now, None where it is gone or cannot be read."""
    try:
        return project.profiles.load(record.profile).hash
    except GoldentraceError:
        return None
