"""`goldentrace formats`: what can be read."""

import click

from goldentrace.cli.options import output_options
from goldentrace.cli.output import Output
from goldentrace.cli.terminal import columns
from goldentrace.exitcodes import OK


@click.command()
@output_options()
def formats(output: Output) -> int:
    """List the formats that can be read: name, what it is, what it cannot say."""
    from goldentrace.sources.registry import sources

    known = sources()
    if output.format == "json":
        output.put_json([{"name": s.name, "title": s.title, "states": list(s.states), "notes": s.notes} for s in known])
        return OK
    output.put("".join(f"{line}\n" for line in columns([(source.name, source.title) for source in known])))
    if output.verbosity > 0:
        output.put_lines(f"{source.name}: {source.notes}" for source in known if source.notes)
    return OK
