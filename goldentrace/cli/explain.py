"""`goldentrace explain`: the documentation of a code."""

import click

from goldentrace.cli.options import output_options
from goldentrace.cli.output import Output
from goldentrace.cli.terminal import is_colored, width_of
from goldentrace.exitcodes import OK


@click.command()
@click.argument("code", metavar="CODE")
@output_options()
def explain(code: str, output: Output) -> int:
    """Explain a code of a change or a rule: what it finds, why it matters, what it is not, its options.

    CODE: as in GT101, or its name, argument-changed.
    """
    from goldentrace.report import explain as explain_code

    if output.format == "json":
        output.put_json({"command": "explain", "code": code, "text": explain_code(code, width=80)})
        return OK
    output.put(explain_code(code, width=width_of(output.width), color=is_colored(output.color)))
    return OK
