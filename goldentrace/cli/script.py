"""`goldentrace script`: scripts for the scripted model."""

import sys
from pathlib import Path

import click

from goldentrace.errors import ConfigError, InputError, Where
from goldentrace.exitcodes import OK


@click.group()
def script() -> None:
    """Make scripts for the scripted model."""


@script.command("from-trace")
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", metavar="OUT", default="-", help="File to write; default: standard output.")
@click.option("--format", "format_name", metavar="NAME", help="Format of FILE; default: detected by content.")
@click.option("--trace", "trace_id", metavar="ID", help="Which trace, where FILE holds several.")
@click.option("--name", metavar="NAME", default="", help="Name of the script; default: the scenario's.")
@click.option(
    "--references/--no-references",
    default=True,
    help="Write ids that came from earlier results as references to them (default), or as they were.",
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Limit on the size of FILE.")
def from_trace(
    file: str,
    output: str,
    format_name: str | None,
    trace_id: str | None,
    name: str,
    references: bool,  # noqa: FBT001 (click passes it by name)
    max_bytes: int | None,
) -> int:
    """Turn a recorded run into a script: the model asks again for what it asked for then.

    FILE: a trace of any known format, - for standard input. What could not be carried over is said on stderr.
    """
    from goldentrace.model.trace import Trace
    from goldentrace.replay.from_trace import script_from_trace
    from goldentrace.replay.script_file import parse_script, write_script
    from goldentrace.report.sanitise import terminal as printable
    from goldentrace.sources.choice import left_out_note, one_trace
    from goldentrace.sources.document import MAX_BYTES, open_document
    from goldentrace.store.atomic import write_atomically
    from goldentrace.store.storage import Storage

    document = open_document(file, max_bytes=max_bytes or MAX_BYTES)
    run = one_trace(document, trace_id, format_name)
    events = Storage().events(run.events)  # a script is committed
    clean = Trace(events, run.path, incomplete=run.incomplete, format=run.format)
    conversion = script_from_trace(clean, name=name, has_references=references)
    text = write_script(conversion.script)
    try:
        parse_script(text, output)
    except ConfigError as error:
        raise InputError(
            f"the run makes no script: {error.what}", where=Where(file), next_step="take a shorter part of the run"
        ) from None
    if output == "-":
        sys.stdout.write(text)
    else:
        write_atomically(Path(output), text.encode())
        click.echo(
            f"{printable(output)}: {sum(len(agent.turns) for agent in conversion.script.agents)} turns", err=True
        )
    for note in (*conversion.notes, *filter(None, [left_out_note(document)])):
        click.echo(f"note: {printable(note)}", err=True)
    return OK
