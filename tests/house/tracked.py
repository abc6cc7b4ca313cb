"""The files of the project as git sees them: tracked, or new and not ignored."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def tracked(pattern: str = "*") -> tuple[Path, ...]:
    """Return the paths, relative to the root and sorted, whose name or path matches a glob of git's."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return tuple(
        sorted(path for name in set(listed.split("\0")) if name and (path := Path(name)) and (ROOT / path).is_file())
    )
