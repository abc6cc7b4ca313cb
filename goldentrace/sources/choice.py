"""Which trace of a file is meant, and what to say of those that could be.

A trace is called what its source calls it, or its id; in an archive also the member that it is in, alone or before its
name. Must not know what a trace is asked for.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

from goldentrace.errors import InputError, Where
from goldentrace.model.trace import Trace
from goldentrace.sources.document import MEMBER_MARK, Document
from goldentrace.sources.registry import document_traces, trace_name

LISTED: Final = 5
"""How many traces of a file, or members of an archive, a message names."""


def with_places(traces: Iterable[Trace]) -> Iterator[tuple[Trace, str]]:
    """Yield each trace with the path that it is from, before its name where several are from one."""
    for path, group in groupby(traces, key=attrgetter("path")):
        rest = iter(group)
        first, second = next(rest), next(rest, None)
        if second is None:
            yield first, path
            continue
        for trace in chain((first, second), rest):
            yield trace, f"{path} {trace_name(trace)}"


def told_apart(traces: Iterable[Trace], document: Document) -> Iterator[tuple[Trace, str]]:
    """Yield each trace of a document with its name; in an archive that is the member's, before its own where that holds
    several."""
    if document.head.archive is None:
        yield from ((trace, trace_name(trace)) for trace in traces)
        return
    for trace, place in with_places(traces):
        yield trace, _member(place, document) or trace_name(trace)


def one_trace(
    document: Document, wanted: str | None = None, format_name: str | None = None, *, may_be_other: bool = False
) -> Trace:
    """Return the trace of a document, or the one that is called so.

    may_be_other: or the only one, whatever it is called. Raises: InputError that lists what is there where the choice
    is open, or none is called so.
    """
    found: dict[str, Trace] = {}
    only: Trace | None = None
    names: list[str] = []
    for trace, name in told_apart(document_traces(document, format_name), document):
        names.append(name)
        only = trace if may_be_other and len(names) == 1 else None
        if wanted is None or wanted in _all_names(trace, name, document):
            found.setdefault(name, trace)
        open_names = names if wanted is None else list(found)
        if len(open_names) > 1:
            called = "" if wanted is None else f" called {wanted!r}"
            raise InputError(
                f"holds several traces{called}", where=Where(document.name),
                next_step=f"name one with --trace ({', '.join(open_names)}, …), or split it with import -o DIR/",
            )  # fmt: skip
    chosen = next(iter(found.values()), only)
    if chosen is None:
        raise InputError(f"holds no trace {wanted!r}", where=Where(document.name), next_step=f"it holds {_few(names)}")
    return chosen


def left_out_note(document: Document, *, is_full: bool = False) -> str | None:
    """Return what to say of the members of an archive that hold no run, None where all do. is_full: with all names."""
    names = document.left_out
    if not names:
        return None
    count = "1 member" if len(names) == 1 else f"{len(names)} members"
    return f"{document.name}: no run found in {count}: {', '.join(names) if is_full else _few(names)}"


def _all_names(trace: Trace, name: str, document: Document) -> tuple[str | None, ...]:
    """All that a trace may be called. name: by which it is told apart."""
    member, own = _member(trace.path, document), (trace_name(trace), trace.start.trace_id)
    return (name, *own, *(() if member is None else (member, *(f"{member} {each}" for each in own))))


def _member(path: str, document: Document) -> str | None:
    """The member of an archive that is at that path, None for the document itself."""
    start = document.name + MEMBER_MARK
    return path.removeprefix(start) if path.startswith(start) else None


def _few(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
