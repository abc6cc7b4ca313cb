"""`goldentrace config`: the configuration in effect, and where each value comes from."""

import json

import click

from goldentrace.cli.options import option, output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.terminal import columns
from goldentrace.codec.config import settings
from goldentrace.exitcodes import OK


@click.command()
@option("--show-origin", is_flag=True, help="Say where each value comes from.")
@project_options
@output_options()
def config(project: Project, output: Output, *, show_origin: bool) -> int:
    """Print the configuration in effect.

    Precedence, highest first: options, GOLDENTRACE_OPT_NAME, goldentrace.yaml, [tool.goldentrace] in pyproject.toml.
    """
    found = list(settings(project.loaded))
    if output.format == "json":
        rows = [{"name": name, "value": value, "origin": origin} for name, value, origin in found]
        output.put_json({"command": "config", "settings": rows})
        return OK
    lines = [
        (name, json.dumps(value, ensure_ascii=False), *((origin,) if show_origin else ()))
        for name, value, origin in found
    ]
    output.put("".join(f"{line}\n" for line in columns(lines)))
    return OK
