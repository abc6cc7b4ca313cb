"""What a foreign format is to the registry: a name, how its files are recognised, how they are read."""

from collections.abc import Callable, Iterator

import msgspec

from goldentrace.model.trace import Trace
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head


class Source(msgspec.Struct, frozen=True):
    """name: as `--format` takes it; title: one line for `formats`.

    matches: whether the first bytes are of this format, by content alone, true for no file of another format;
    may_match: asked only where no format matches: whether they can be read as this one;
    read: yields every trace of the file, raises InputError;
    states: the decision kinds that the format itself states (most state none, retries are then inferred);
    notes: what the format cannot say, for `formats`.
    """

    name: str
    title: str
    matches: Callable[[Head], bool]
    read: Callable[[Document], Iterator[Trace]]
    may_match: Callable[[Head], bool] | None = None
    states: tuple[str, ...] = ()
    notes: str = ""
