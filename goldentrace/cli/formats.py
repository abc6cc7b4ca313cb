"""`goldentrace formats`: what can be read."""

import click

from goldentrace.cli.options import output_options
from goldentrace.cli.output import Output
from goldentrace.cli.terminal import width_of
from goldentrace.exitcodes import OK

ARCHIVES = "A file may be compressed (gzip, bzip2, xz, zstd); of an archive (zip, tar) every member is read."
"""How files of all formats may be wrapped."""


@click.command()
@output_options()
def formats(output: Output) -> int:
    """List the formats that can be read: name, what it is, what it cannot say."""
    from goldentrace.report.page import Page, table
    from goldentrace.sources.registry import sources

    known = sources()
    if output.format == "json":
        output.put_json([{"name": s.name, "title": s.title, "states": list(s.states), "notes": s.notes} for s in known])
        return OK
    page = Page(width_of(output.width))
    for name, title, notes in table([[source.name, source.title, source.notes] for source in known]):
        page.wrapped(title.rstrip(), indent=len(name) + 2, first=name)
        if output.verbosity > 0 and notes:
            page.wrapped(notes, indent=len(name) + 4)
    page.blank()
    page.wrapped(ARCHIVES, indent=0)
    output.put(page.text())
    return OK
