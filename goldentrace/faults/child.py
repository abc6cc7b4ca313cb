"""The server process that `start_faults` starts: options as one JSON argument, one JSON line on stdout once it listens.

An error of the plan or a port goes to the same line, so that the parent raises what the user should see.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from goldentrace.errors import ConfigError, GoldentraceError
from goldentrace.faults.server import ServerOptions, serve


def run(argument: str) -> int:
    """Serve as the parent asks; returns the exit code."""
    given: dict[str, Any] = json.loads(argument)
    journal = given.pop("journal_path")
    plan, seed = Path(given.pop("plan")), given.pop("seed")
    options = ServerOptions(
        journal_path=Path(journal) if journal is not None else None, parent_pipe=sys.stdin.fileno(), **given
    )
    try:
        serve(plan, options, seed=seed, announce=_say)
    except GoldentraceError as error:
        where = error.where
        place = None if where is None else [where.path, where.line, where.pointer, where.byte]
        kind = "config" if isinstance(error, ConfigError) else "infrastructure"
        _say({"error": {"kind": kind, "what": error.what, "where": place, "next_step": error.next_step}})
        return 3
    return 0


def _say(line: dict[str, Any]) -> None:
    os.write(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
