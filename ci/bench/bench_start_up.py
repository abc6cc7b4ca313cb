"""Start-up of the command line, against an interpreter that does nothing."""

import sys
from collections.abc import Iterator
from pathlib import Path

from timing import Command, Row

GOLDENTRACE = Path(sys.executable).with_name("goldentrace")
NOTHING = Command([sys.executable, "-c", "pass"])


def rows(folder: Path) -> Iterator[Row]:
    """Yield the commands that a person or a shell waits for most often."""
    for arguments in (["--version"], ["--help"]):
        yield Row(
            f"goldentrace {' '.join(arguments)}",
            Command([GOLDENTRACE, *arguments], cwd=folder),
            NOTHING,
            "python -c pass",
            repeat=15,
        )
