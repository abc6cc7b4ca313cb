"""Goldens on disk: made from a trace, re-recorded so that only changed lines change, checked for canonical form.

A golden is written whole, atomically, under a lock, and never appended to. This module must not run anything or ask
anybody.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.codec.golden import encode_golden, is_golden, read_golden
from goldentrace.codec.trace import BOM
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.errors import InputError, Where
from goldentrace.model.change import Comparison
from goldentrace.model.config import Scenario
from goldentrace.model.normal import NormalTrace
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.normalize.redact import Redactor
from goldentrace.sources.bytestream import read_file
from goldentrace.store.atomic import hold_lock, write_atomically
from goldentrace.store.layout import Layout
from goldentrace.store.profiles import LoadedProfile
from goldentrace.store.sides import kind_of


@dataclass(frozen=True, slots=True)
class NewGolden:
    """A golden that is to be written.

    data: its bytes; normal: the run it was made of, with what was masked; old: the bytes that it replaces, None where
    there are none; comparison: old golden with the run, None where there was none to compare with; note: why not.
    """

    data: bytes
    normal: NormalTrace
    golden: NormalTrace
    old: bytes | None = None
    comparison: Comparison | None = None
    note: str | None = None

    @property
    def changed_lines(self) -> int:
        """How many lines of the file are new or other than before."""
        before = set((self.old or b"").split(b"\n"))
        return sum(line not in before for line in self.data.split(b"\n"))


def make_golden(
    trace: Trace,
    loaded: LoadedProfile,
    *,
    name: str,
    scenario: Scenario,
    path: Path,
    shown: str,
    constants: Collection[str] = (),
) -> NewGolden:
    """Return the golden of a run, in place of the one at `path`: labels and unchanged lines of that one are kept.

    A golden there that cannot be read, or that was made under another profile, is replaced as a whole. Raises:
    InputError where arguments are no JSON. constants: written leaves that further runs had too, so that they are
    values.
    """
    old = read_bytes(path, shown)
    before, note = _old_golden(old, shown, loaded)
    known = {*constants, *(before.values() if before is not None else ())}
    normal = normalize(trace, loaded.profile, loaded.hash, key=loaded.key, constants=known, is_explained=True)
    seed = scenario.seed if scenario.seed is not None else normal.header.seed
    normal = msgspec.structs.replace(normal, header=msgspec.structs.replace(normal.header, scenario_id=name, seed=seed))
    if before is None:
        fresh = as_golden(normal, loaded.profile, description=scenario.description)
        return NewGolden(encode_golden(fresh), normal, fresh, old, note=note)
    comparison = compare(before, normal, loaded.profile, backoff=scenario.backoff)
    sticky = rerecord(comparison, loaded.profile)
    header = msgspec.structs.replace(sticky.header, scenario_id=name, seed=seed)
    if scenario.description is not None:
        header = msgspec.structs.replace(header, description=scenario.description)
    sticky = msgspec.structs.replace(sticky, header=header)
    return NewGolden(encode_golden(sticky), normal, sticky, old, comparison)


def _old_golden(old: bytes | None, shown: str, loaded: LoadedProfile) -> tuple[NormalTrace | None, str | None]:
    """The golden that a new one is compared with, else why there is none."""
    if old is None:
        return None, None
    try:
        before = read_golden(old, shown)
    except InputError as error:
        return None, f"the old golden could not be read ({error.what})"
    if before.header.profile_hash != loaded.hash:
        return None, f"the old golden was made with another profile ({before.header.profile})"
    return before, None


def read_bytes(path: Path, shown: str | None = None) -> bytes | None:
    """Return what a file holds, None where it is not there. Raises: InputError where it cannot be read."""
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"the golden cannot be read: {error.strerror}", where=Where(shown or str(path)), next_step="check the file"
        ) from None


def write_golden(layout: Layout, path: Path, data: bytes) -> None:
    """Write a golden; the caller holds the lock. Raises: InfrastructureError, ConfigError for a path out of the
    project."""
    write_atomically(layout.make_room(path), data)


@contextmanager
def goldens_lock(layout: Layout, purpose: str) -> Iterator[None]:
    """Hold the lock of all goldens. purpose: what for, as a second program will read it. Raises:
    InfrastructureError."""
    layout.make_local()
    with hold_lock(layout.lock, purpose=purpose):
        yield


# -- canonical form --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Formatted:
    """A file and its canonical form. problems: what formatting cannot repair, each (line, what)."""

    shown: str
    data: bytes
    canonical: bytes
    problems: tuple[tuple[int, str], ...] = ()

    @property
    def is_canonical(self) -> bool:
        return self.data == self.canonical


def format_golden(data: bytes, shown: str, redactor: Redactor | None = None) -> Formatted:
    """Return the canonical form of a golden: key order, number form, no blank lines. Nothing is renumbered.

    Raises: InputError where it is no golden, or damaged (a conflict marker, a torn line), naming the line.
    """
    if not is_golden(data) and _is_trace(data):
        raise InputError(
            "this is a trace, no golden",
            where=Where(shown, 1),
            next_step="goldentrace record NAME --from FILE makes one",
        )
    normal = read_golden(data, shown)
    canonical = encode_golden(normal, kind=kind_of(data))
    return Formatted(shown, data, canonical, tuple(_secrets(data, redactor or Redactor())))


def _is_trace(data: bytes) -> bool:
    try:
        first = decode(data.removeprefix(BOM).lstrip().partition(b"\n")[0])
    except JsonError:
        return False
    return isinstance(first, dict) and first.get("type") == "trace_start"


def _secrets(data: bytes, redactor: Redactor) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = line.decode("utf-8", "replace")
        if redactor.is_suspect(text):
            for _, _, token in redactor.find(text):
                if token.rule != "redact/already":
                    yield number, f"a secret in clear ({token.rule.removeprefix('redact/')})"
