"""`goldentrace serve`: servers that a run needs around its agent. Thin: parse, call, say where it listens."""

import json
import sys
from pathlib import Path
from typing import Any, Literal

import click

from goldentrace.errors import InfrastructureError
from goldentrace.exitcodes import CHANGED, OK


@click.group()
def serve() -> None:
    """Start a server that an agent can be run against."""


@serve.command()
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.yaml")
@click.option("--host", default="127.0.0.1", show_default=True, help="Only 127.0.0.1 is bound.")
@click.option("--port", default=0, show_default=True, help="Port of the tools; 0 takes a free one.")
@click.option("--admin-port", default=0, show_default=True, help="Port of the admin interface; 0 takes a free one.")
@click.option("--stdio", is_flag=True, help="Speak MCP over stdin and stdout instead of HTTP.")
@click.option("--run-id", default="run", show_default=True, help="The run that requests without an id belong to.")
@click.option("--seed", type=click.IntRange(min=0), help="Takes the place of the plan's seed.")
@click.option("--journal", type=click.Path(path_type=Path), help="Write the events of the run to this file.")
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as one JSON line on stdout.")
@click.option("--outlive-parent", is_flag=True, help="Go on when the process that started it has ended.")
def faults(
    plan: Path,
    host: str,
    port: int,
    admin_port: int,
    run_id: str,
    seed: int | None,
    journal: Path | None,
    **flags: bool,
) -> int:
    """Serve tools that fail as a fault plan says, until stopped.

    Exit code: 0 if the ledger holds what the plan expects, 2 if not, 3 if a request matched no tool or ran past the
    steps.
    """
    from goldentrace.faults.server import ServerOptions, announce_on_stderr
    from goldentrace.faults.server import serve as serve_plan
    from goldentrace.faults.verify import verify

    transport: Literal["http", "stdio"] = "stdio" if flags["stdio"] else "http"
    options = ServerOptions(
        port=port, admin_port=None if flags["stdio"] else admin_port, transport=transport, run_id=run_id,
        journal_path=journal, outlives_parent=flags["outlive_parent"],
    )  # fmt: skip
    announce = _announce_json if flags["as_json"] and not flags["stdio"] else announce_on_stderr
    server = serve_plan(plan, options, host=host, seed=seed, announce=announce)
    run = server.engine.main
    if run.failures:
        first = run.failures[0]
        raise InfrastructureError(first.what, next_step=first.next_step)
    verdict = verify(server.engine.plan.effects, [(entry.name, entry.value) for entry in run.ledger.effects])
    for item in verdict.differences:
        click.echo(f"effect {item.name}: expected {item.expected}, got {item.actual}", err=True)
    return OK if verdict.is_ok else CHANGED


def _announce_json(urls: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(urls) + "\n")
    sys.stdout.flush()
