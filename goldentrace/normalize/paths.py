"""Folders of one machine: the recorded working, home and temporary folder become `<cwd>`, `<home>`, `<tmp>`.

They are replaced inside strings too, at path boundaries, the longest first. The first component below the temporary
folder is an id of kind `tmp`: its name is drawn anew in each run. This module must not touch the file system.
"""

import re
from collections.abc import Mapping

from goldentrace.model.event import TraceStart
from goldentrace.model.profile import Paths
from goldentrace.normalize.text import Segments, Token, split_by

_COMPONENT = re.compile(r"/([^/\s\"'`:;,)\]}>]+)")


class PathStep:
    """Makes tokens of the known folders in text."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        """roots: name -> absolute folder; the root folder itself and relative names are left out."""
        usable = {name: folder.rstrip("/") for name, folder in roots.items() if len(folder.rstrip("/")) > 1}
        self._names = {folder: name for name, folder in reversed(usable.items())}
        longest_first = sorted(self._names, key=lambda folder: (-len(folder), folder))
        self.folders: tuple[str, ...] = tuple(longest_first)
        self._pattern = (
            re.compile(rf"(?<![0-9A-Za-z_.-])(?:{'|'.join(map(re.escape, longest_first))})(?![0-9A-Za-z_.-])")
            if longest_first
            else None
        )

    def split(self, segments: Segments) -> Segments:
        """Return the segments with folders made tokens, and what follows `<tmp>` made an id."""
        if self._pattern is None:
            return segments
        return split_by(segments, self._find)

    def _find(self, text: str) -> list[tuple[int, int, Token]]:
        assert self._pattern is not None
        found: list[tuple[int, int, Token]] = []
        for match in self._pattern.finditer(text):
            name = self._names[match[0]]
            found.append((match.start(), match.end(), Token("path", name, match[0], f"paths/{name}")))
            below = _COMPONENT.match(text, match.end()) if name == "tmp" else None
            if below is not None:
                token = Token("tmp", f"tmp:{below[1]}", below[1], "ids/tmp")
                found.append((below.start(1), below.end(1), token))
        return found


def path_step(start: TraceStart, settings: Paths) -> PathStep:
    """Return the step for one trace: its recorded folders, as far as the profile wants them, and the profile's own."""
    recorded = {"cwd": start.cwd, "home": start.home, "tmp": start.tmp}
    wanted = {name: folder for name, folder in recorded.items() if folder and getattr(settings, name)}
    return PathStep({**settings.also, **wanted})
