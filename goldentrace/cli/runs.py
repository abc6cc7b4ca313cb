"""The runs of one file, each with its place, for commands that take them one after another."""

from collections.abc import Callable, Iterator

import msgspec

from goldentrace.errors import InputError, Where
from goldentrace.store.sides import Reading, Side, no_bar, read_side


def runs_of(
    file: str, reading: Reading, refusal: tuple[str, str], tell: Callable[[str], None], *, is_full: bool
) -> Iterator[tuple[Side, str]]:
    """Yield the runs of a file with their places, or the one that was asked for; nothing but one stands in memory.

    refusal: what is wrong with a golden here, and what to give instead; tell: is told what was left out, with every
    name where is_full. Raises: InputError for a golden.
    """
    from goldentrace.codec.golden import is_golden
    from goldentrace.sources.choice import left_out_note, with_places
    from goldentrace.sources.document import open_document
    from goldentrace.sources.registry import document_traces

    with reading.bar(file) as on_progress:
        document = open_document(file, max_bytes=reading.max_bytes, on_progress=on_progress)
        if is_golden(document.head.data):
            what, next_step = refusal
            raise InputError(what, where=Where(document.name), next_step=next_step)
        has_conflict = b"<<<<<<< " in document.head.data and document.head.archive is None
        if reading.trace is not None or has_conflict:
            side = read_side(file, msgspec.structs.replace(reading, bar=no_bar))
            yield side, side.path
            left_out = side.left_out
        else:
            for trace, place in with_places(document_traces(document, reading.format)):
                yield Side(trace.path, trace=trace), place
            left_out = left_out_note(document, is_full=is_full)
        if left_out is not None:
            tell(left_out)
