"""Aligns sequences that are too long for the bit-parallel alignment, with git's diff on a key-per-line file.

`git diff --no-index --minimal` took 0.07 s for 100,000 keys and 0.9 s for 1,000,000 with 1 % edits; on unrelated
sequences of few distinct keys `--minimal` is quadratic, so after ten seconds it runs again without, and the result is
marked. Without git, or when git fails, None: the caller then has its own fallback. This module must not look at a
repository.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MINIMAL_WITHIN_S: Final = 10
GIVE_UP_S: Final = 120
_HUNK: Final = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_COMMAND: Final = ("git", "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "-U0")


def align_far(golden: Sequence[int], candidate: Sequence[int]) -> tuple[list[tuple[int, int]], bool] | None:
    """Return the pairs of the alignment and whether it is minimal; None where git cannot do it."""
    with tempfile.TemporaryDirectory(prefix="goldentrace-") as folder:
        left, right = Path(folder, "golden"), Path(folder, "candidate")
        left.write_bytes(_lines(golden))
        right.write_bytes(_lines(candidate))
        for options, limit_s, is_exact in ((("--minimal",), MINIMAL_WITHIN_S, True), ((), GIVE_UP_S, False)):
            try:
                done = subprocess.run(
                    [*_COMMAND, *options, "--", str(left), str(right)],
                    capture_output=True, timeout=limit_s, check=False, cwd=folder,
                    env={"PATH": _path(), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": folder},
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                continue
            except OSError:
                return None
            if done.returncode not in (0, 1) or done.stderr:
                return None
            return _pairs(done.stdout, len(golden), len(candidate)), is_exact
    return None


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


def _lines(keys: Sequence[int]) -> bytes:
    return ("\n".join(map(str, keys)) + "\n").encode() if keys else b""


def _pairs(output: bytes, golden: int, candidate: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    g = c = 0
    for match in _HUNK.finditer(output):
        g_start, g_count = int(match[1]), 1 if match[2] is None else int(match[2])
        c_start, c_count = int(match[3]), 1 if match[4] is None else int(match[4])
        g_begin = g_start - 1 if g_count else g_start  # an empty side is named by the line before it
        c_begin = c_start - 1 if c_count else c_start
        pairs.extend(zip(range(g, g_begin), range(c, c_begin), strict=True))
        g, c = g_begin + g_count, c_begin + c_count
    pairs.extend(zip(range(g, golden), range(c, candidate), strict=True))
    return pairs
