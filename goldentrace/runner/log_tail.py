"""The end of a command's log, as it is shown where a run came to nothing: the reason mostly stands there.

A log is the agent's own text: redacted as its trace is, and cut. Whoever prints it makes it safe.
This module must not judge what it reads.
"""

import os
from pathlib import Path
from typing import Final

from goldentrace.model.profile import Redact
from goldentrace.normalize.redact import Redactor

MAX_LINES: Final = 10
MAX_LINE_CHARS: Final = 200
MAX_BYTES: Final = 16 << 10
"""From the end of the log: ten lines are found in it, however much the command wrote."""


def last_lines(log: Path, redact: Redact) -> list[str]:
    """Return up to MAX_LINES last lines that hold anything, redacted and cut; none where there is no log."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_BYTES))
            data = file.read()
    except OSError:
        return []
    if size > MAX_BYTES:  # what the cut went through could be half a secret
        data = data.partition(b"\n")[2]
    text = Redactor(redact).redact_text(data.decode("utf-8", "replace"), {})
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return [line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + "..." for line in lines[-MAX_LINES:]]
