"""`goldentrace schema`: the JSON Schema of a file format."""

import importlib.resources

import click

from goldentrace.cli.options import output_options
from goldentrace.cli.output import Output
from goldentrace.codec.yaml_document import suggest
from goldentrace.errors import ConfigError
from goldentrace.exitcodes import OK

SUFFIX = ".schema.json"


@click.command()
@click.argument("name", metavar="NAME", required=False)
@output_options()
def schema(name: str | None, output: Output) -> int:
    """Print the JSON Schema of a file format.

    NAME: trace, golden, config, profile, report, …; without it the names are listed.
    """
    folder = importlib.resources.files("goldentrace.report") / "schemas"
    known = {entry.name.removesuffix(SUFFIX): entry for entry in folder.iterdir() if entry.name.endswith(SUFFIX)}
    if name is None:
        output.put_lines(sorted(known))
        return OK
    if name not in known:
        raise ConfigError(f"no schema {name!r}", next_step=suggest(name, known))
    output.put(known[name].read_text("utf-8"))
    return OK
