"""The pieces of a string: plain text and the tokens that a step of the pipeline recognised in it.

A step takes segments and returns segments; it looks only at the plain text that earlier steps left. This module must
not know what a secret, a path or an id looks like.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Token(NamedTuple):
    """Something recognised inside a string.

    kind: `secret`, `path`, or the kind of an id (`uuid`, `hex`, `ulid`, `tmp`, `key`, a listed prefix); value: the
    form in which two of them are compared; text: as it stood; rule: what recognised it.
    """

    kind: str
    value: str
    text: str
    rule: str

    @property
    def is_id(self) -> bool:
        return self.kind not in ("secret", "path")


Segments: TypeAlias = tuple[str | Token, ...]
TextStep: TypeAlias = Callable[[Segments], Segments]


def split_by(segments: Segments, find: Callable[[str], list[tuple[int, int, Token]]]) -> Segments:
    """Return the segments with every span that `find` reports in plain text made a token; spans ascend, none
    overlap."""
    parts: list[str | Token] = []
    for segment in segments:
        if isinstance(segment, Token):
            parts.append(segment)
            continue
        done = 0
        for start, end, token in find(segment):
            if start > done:
                parts.append(segment[done:start])
            parts.append(token)
            done = end
        if done < len(segment):
            parts.append(segment[done:])
    return tuple(parts)


def join(segments: Segments) -> str:
    """Return the text as it stood."""
    return "".join(segment if isinstance(segment, str) else segment.text for segment in segments)
