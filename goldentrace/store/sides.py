"""The two sides of a comparison, each a golden or a trace of any known format, from file to `Comparison`.

One way for the command line, the test plugin and whoever else compares files, so that all give the same verdict. This
module must not decide what a difference means.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from goldentrace.codec.canonical import decode
from goldentrace.codec.golden import is_golden, read_golden
from goldentrace.codec.trace import BOM
from goldentrace.diff.differ import CompareOptions, as_golden, compare
from goldentrace.errors import InputError, NotComparableError, Where
from goldentrace.model.change import Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time
from goldentrace.normalize.pipeline import ArgumentCache, normalize
from goldentrace.sources.bytestream import Progress
from goldentrace.sources.choice import left_out_note, one_trace
from goldentrace.sources.document import MAX_BYTES, Document, open_document
from goldentrace.sources.native import matches as is_native
from goldentrace.store.profiles import LoadedProfile, Profiles

PLACED_WHOLE: int = 2_000
"""Operations up to which every one is placed in time."""
SHOWN_AROUND: int = 5
"""Operations before and after a changed one whose times a report may show."""

Bar = Callable[[str], AbstractContextManager[Progress | None]]
"""Shows how much of the file of that path is read, while the context is open."""


def no_bar(_path: str) -> AbstractContextManager[None]:
    """Show nothing."""
    return nullcontext()


class Reading(msgspec.Struct, frozen=True):
    """How files are read.

    format: name of the foreign format, None to detect it; goldentrace's own files are known without it; trace: which
    one, where a file holds several; is_pair: of two files compared, one may hold a single trace of another name;
    bar: what shows the progress.
    """

    format: str | None = None
    trace: str | None = None
    max_bytes: int = MAX_BYTES
    is_pair: bool = False
    bar: Bar = no_bar


class Side(msgspec.Struct, frozen=True):
    """One file. golden: what it holds if it is a golden, else trace; sha256: of its bytes, kind: of its header, where
    it is a golden; left_out: what to say of members of an archive without a run."""

    path: str
    golden: NormalTrace | None = None
    trace: Trace | None = None
    sha256: str | None = None
    kind: str | None = None
    left_out: str | None = None


def read_side(path: str | Path, reading: Reading | None = None, *, shown: str | None = None) -> Side:
    """Return what a file holds, `-` for standard input.

    shown: the path as people know it. Raises: InputError for what cannot be read, holds no trace, or holds several
    while none is named.
    """
    reading = reading or Reading()
    with reading.bar(str(path)) as on_progress:
        return _side(open_document(path, max_bytes=reading.max_bytes, on_progress=on_progress), reading, shown)


def _side(document: Document, reading: Reading, shown: str | None) -> Side:
    if shown is not None:
        document.name = shown
    _refuse_conflict(document)
    if is_golden(document.head.data):
        data = document.read()
        golden = read_golden(data, document.name)
        return Side(document.name, golden=golden, sha256=hashlib.sha256(data).hexdigest(), kind=kind_of(data))
    format_name = None if is_native(document.head) else reading.format
    trace = one_trace(document, reading.trace, format_name, may_be_other=reading.is_pair)
    return Side(trace.path, trace=trace, left_out=left_out_note(document))


def kind_of(data: bytes) -> str:
    """Return what the header of a golden says that it is: `golden` or `normalized`. data: of one that was read."""
    first = data.removeprefix(BOM).lstrip().partition(b"\n")[0]
    return str(decode(first)["kind"])


def _refuse_conflict(document: Document) -> None:
    """A merge that was not resolved is said to be one, before its lines are taken for an unknown format."""
    data = document.head.data
    if b"<<<<<<< " not in data or document.head.archive is not None:
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"<<<<<<< "):
            raise InputError(
                "conflict marker",
                where=Where(document.name, number),
                next_step="resolve the merge; then run: goldentrace fmt --check",
            )


class Terms(msgspec.Struct, frozen=True):
    """On which terms sides are compared.

    profile: for two traces that name none; backoff: of the scenario; record: the command that records the golden again.
    """

    profiles: Profiles
    profile: str = "default"
    backoff: Mapping[str, Any] | None = None
    options: CompareOptions | None = None
    record: str = "goldentrace record SCENARIO"


def compare_sides(golden: Side, candidate: Side, terms: Terms) -> tuple[Comparison, LoadedProfile]:
    """Return what differs between two files, and the profile they were compared under.

    The golden's profile counts, else the candidate's if that is a golden, else the one of the terms. Raises:
    NotComparableError where a golden's profile is gone or says something else, or two goldens were made with two
    profiles; InputError where arguments are no JSON.
    """
    loaded = profile_of(golden, candidate, terms)
    cache = ArgumentCache()
    first = normal_of(golden, loaded, cache)
    second = normal_of(candidate, loaded, cache, first.values() if first.is_golden else ())
    options = msgspec.structs.replace(terms.options or CompareOptions(), far=_align_far)
    comparison = compare(first, second, loaded.profile, backoff=terms.backoff, options=options)
    is_long = len(comparison.pairs) > PLACED_WHOLE
    near = comparison.near_changes(SHOWN_AROUND) if is_long else (None, None)
    for normal, side, only in ((first, golden, near[0]), (second, candidate, near[1])):
        if comparison.changes and side.trace is not None:
            place_in_time(normal, side.trace, only)
    return comparison, loaded


def _align_far(golden: Sequence[int], candidate: Sequence[int]) -> tuple[list[tuple[int, int]], bool] | None:
    """The aligner of very long runs, imported when there is one."""
    from goldentrace.store.far_alignment import align_far

    return align_far(golden, candidate)


def profile_of(golden: Side, candidate: Side, terms: Terms) -> LoadedProfile:
    """Return the profile that both sides are normalized with."""
    headed = [side for side in (golden, candidate) if side.golden is not None]
    if not headed:
        return terms.profiles.load(terms.profile)
    found = [_profile_of_golden(side, terms) for side in headed]
    if found[0].hash != found[-1].hash:
        raise NotComparableError(
            f"the two goldens were made with two profiles: {found[0].profile.name} and {found[-1].profile.name}",
            where=Where(headed[-1].path, 1, "$.profile_hash"), next_step=f"record one of them again: {terms.record}",
        )  # fmt: skip
    return found[0]


def _profile_of_golden(side: Side, terms: Terms) -> LoadedProfile:
    assert side.golden is not None, "asked of goldens only"
    return terms.profiles.of_golden(side.golden.header, side.path, record=terms.record)


def normal_of(
    side: Side, loaded: LoadedProfile, cache: ArgumentCache | None = None, constants: Collection[str] = ()
) -> NormalTrace:
    """Return the normalized form of a file: a golden's as it is, a trace's under the profile. constants: what the
    golden that it is compared with holds as values."""
    if side.golden is not None:
        return side.golden
    assert side.trace is not None, "a side is a golden or a trace"
    return normalize(side.trace, loaded.profile, loaded.hash, key=loaded.key, cache=cache, constants=constants)


__all__ = [
    "CompareOptions",
    "Reading",
    "Side",
    "Terms",
    "as_golden",
    "compare_sides",
    "normal_of",
    "read_side",
]
