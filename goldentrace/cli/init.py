"""`goldentrace init`: the first files of a project. Never overwrites one."""

import importlib.resources
from pathlib import Path

import click

from goldentrace.cli.options import option, output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.cli.templates import AGENT, ATTRIBUTES, CONFIG, SCHEMA_FILE, WORKFLOW
from goldentrace.codec.config import CONFIG_NAME
from goldentrace.exitcodes import OK
from goldentrace.store.atomic import write_atomically
from goldentrace.store.layout import Layout, make_folder

EXAMPLE = "goldentrace_example.py"


@click.command()
@option("--with-ci", is_flag=True, help="Write a workflow for GitHub Actions too.")
@project_options
@output_options()
def init(project: Project, output: Output, *, with_ci: bool) -> int:
    """Write goldentrace.yaml, an example scenario and .gitattributes into this folder.

    A file that is there is left as it is.
    """
    layout = project.layout
    is_fresh = not (layout.folder / CONFIG_NAME).exists()
    rows = [_write(layout, layout.folder / CONFIG_NAME, CONFIG)]
    if is_fresh:
        rows.append(_write(layout, layout.folder / EXAMPLE, AGENT))
    rows.append(_attributes(layout))
    if with_ci:
        rows.append(_write(layout, layout.folder / ".github" / "workflows" / "goldentrace.yml", WORKFLOW))
    layout.make_local()
    write_atomically(layout.local / SCHEMA_FILE, _schema())
    if output.format == "json":
        output.put_json({"command": "init", "files": [dict(zip(("path", "status"), row, strict=True)) for row in rows]})
        return OK
    output.put_lines(f"{status}  {path}" for path, status in rows)
    if with_ci and rows[-1][1] == "written":
        output.say(f"{rows[-1][0]}: say in its step `Install goldentrace` where goldentrace comes from")
    if is_fresh:
        output.say("next: goldentrace record example && goldentrace check")
    return OK


def _write(layout: Layout, path: Path, text: str) -> tuple[str, str]:
    if path.exists():
        return layout.shown(path), "left as it is"
    make_folder(path.parent)
    write_atomically(path, text.encode())
    return layout.shown(path), "written"


def _attributes(layout: Layout) -> tuple[str, str]:
    """Add the lines for goldens to .gitattributes, where it has none; what it holds stays."""
    path = layout.folder / ".gitattributes"
    before = path.read_text("utf-8") if path.exists() else ""
    if any(line.startswith(f"{layout.goldens}/") for line in before.splitlines()):
        return layout.shown(path), "left as it is"
    gap = "" if not before or before.endswith("\n") else "\n"
    write_atomically(path, (before + gap + ATTRIBUTES.format(goldens=layout.goldens)).encode())
    return layout.shown(path), "lines added" if before else "written"


def _schema() -> bytes:
    return (importlib.resources.files("goldentrace.report") / "schemas" / "config.schema.json").read_bytes()
