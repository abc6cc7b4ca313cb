"""`goldentrace rules`: every rule and every code of a change."""

import click

from goldentrace.cli.linting import known_rules
from goldentrace.cli.options import output_options
from goldentrace.cli.output import Output
from goldentrace.cli.terminal import columns, width_of
from goldentrace.diff.codes import CODES
from goldentrace.exitcodes import OK


@click.command()
@output_options()
def rules(output: Output) -> int:
    """List the codes of changes (`diff`) and the rules (`lint`): code, name, default severity, what it finds."""
    changes = [(code.code, code.name, code.severity, code.summary) for code in CODES.values()]
    found = [*changes, *known_rules()]
    if output.format == "json":
        keys = ("code", "name", "severity", "summary")
        output.put_json({"command": "rules", "rules": [dict(zip(keys, row, strict=True)) for row in found]})
        return OK
    output.put("".join(f"{line}\n" for line in columns(found, width=width_of(output.width))))
    return OK
