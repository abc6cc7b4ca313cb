"""`goldentrace normalize`: what a trace looks like to a comparison."""

from pathlib import Path

import click
import msgspec

from goldentrace.cli.options import option, output_options, project_options, reading_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.terminal import is_colored, width_of
from goldentrace.codec.golden import encode_golden
from goldentrace.exitcodes import OK
from goldentrace.model.normal import NormalTrace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import normalize as normalize_trace
from goldentrace.store.atomic import write_atomically
from goldentrace.store.sides import Reading, read_side


@click.command()
@click.argument("file", metavar="FILE")
@option("--explain", is_flag=True, help="List every masked value with the rule that masked it.")
@option("-o", "--output", "target", metavar="OUT", help="File to write; default: standard output.")
@reading_options
@project_options
@output_options()
def normalize(
    file: str, project: Project, reading: Reading, output: Output, *, explain: bool, target: str | None
) -> int:
    """Print the normalized form of a trace, with `t_offset_ms` since its start.

    FILE: a trace of any known format, - for standard input; a golden is printed as it is.
    """
    side = read_side(file, reading)
    if side.trace is None:
        assert side.golden is not None, "a side is a golden or a trace"
        normal = side.golden
    else:
        loaded = project.profiles.load(project.profile_name())
        normal = normalize_trace(side.trace, loaded.profile, loaded.hash, key=loaded.key, is_explained=explain)
        place_in_time(normal, side.trace)
    if explain:
        return _explain(normal, output)
    data = encode_golden(normal, kind=side.kind or "normalized")
    if target in (None, "-"):
        output.put_bytes(data)
    else:
        write_atomically(Path(str(target)), data)
    return OK


def _explain(normal: NormalTrace, output: Output) -> int:
    if output.format == "json":
        masked = [msgspec.structs.asdict(one) for one in normal.masked]
        output.put_json({"command": "normalize", "masked": masked})
        return OK
    from goldentrace.report.masked import render_masked

    output.put(render_masked(normal, width=width_of(output.width), color=is_colored(output.color)))
    return OK
