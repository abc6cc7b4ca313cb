"""A bar on stderr while a large file is read: only where stderr is a terminal, gone when the file is read."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from goldentrace.sources.bytestream import Progress

MIN_BYTES: Final = 16_000_000
"""A smaller file is read in less time than a person needs to see a bar."""


@contextmanager
def reading_bar(path: str, *, is_quiet: bool = False) -> Iterator[Progress | None]:
    """Show how much of a file is read while the block runs; gives what `open_document` tells its progress to.

    None where there is nothing to show: stderr is no terminal, the user wants quiet, the file is small, or standard
    input. Of a compressed file more bytes come out than it has; then only their number is shown.
    """
    size_bytes = 0 if path == "-" else _size_bytes(Path(path))
    if is_quiet or size_bytes < MIN_BYTES or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    shown = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bar(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=size_bytes)

        def tell(read_bytes: int) -> None:
            if read_bytes > size_bytes:
                bar.tasks[0].total = None
            bar.update(task, completed=read_bytes)

        yield tell


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever opens it says what is wrong
