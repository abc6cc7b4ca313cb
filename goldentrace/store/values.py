"""Remembered values: digest -> value of runs on this machine, so that a diff can print `49.99 → 499.99`.

A golden holds digests only. The values lie under `.goldentrace/values/`, which git ignores; they were redacted before
they came here, are bounded in size and number, and are read for display alone: no verdict may depend on them. Lines are
appended in one write each, so that several programs may write at once; a line that was lost or torn costs a display,
nothing else.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode, encode
from goldentrace.diff.collapse import COLLAPSED
from goldentrace.errors import GoldentraceError
from goldentrace.model.change import Change, Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.store.atomic import write_atomically
from goldentrace.store.layout import Layout

MAX_VALUE_BYTES: Final = 2_048
MAX_FILE_BYTES: Final = 512 << 10
MAX_PER_RUN: Final = 5_000
"""A display shows what a person reads: longer values and the tail of huge runs are not kept. 16 files, 8 MB in all."""

MAX_SHOWN: Final = 8
"""Arguments of one change that are looked up: more are not shown anywhere."""
_CODES_WITH_ARGUMENTS: Final = frozenset({"GT101", "GT103"})

_DIGEST: Final = re.compile(r"[a-z]+(?:\[\d+\])? h:([0-9a-f]{12})")
"""A written leaf without placeholders."""


class ValueStore:
    """The remembered values of one project. Failures to write are nobody's concern: the store is a convenience."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._read: dict[str, bytes] = {}

    def remember(self, normal: NormalTrace) -> None:
        """Keep the argument values of a run. Values of a golden read from its file are not known and cost nothing."""
        if normal.payloads is None:
            return
        fresh: dict[str, list[bytes]] = {}
        count = 0
        for leaf, value in _leaves(normal):
            digest = _DIGEST.fullmatch(leaf)
            if digest is None or count >= MAX_PER_RUN:
                continue
            line = _line(leaf, value)
            count += 1
            place = digest[1][0]
            known = fresh.setdefault(place, [])
            if line is not None and line not in known and line not in self._file(place):
                known.append(line)
        self._append({place: lines for place, lines in fresh.items() if lines})

    def find(self, leaf: str) -> tuple[bool, Any]:
        """Return whether the value of a written leaf is remembered, and the value."""
        digest = _DIGEST.fullmatch(leaf)
        if digest is None:
            return False, None
        start = encode({"leaf": leaf})[:-1] + b","
        for line in self._file(digest[1][0]).split(b"\n"):
            if line.startswith(start):
                try:
                    return True, decode(line)["value"]
                except (JsonError, KeyError, TypeError):
                    continue
        return False, None

    def _file(self, place: str) -> bytes:
        found = self._read.get(place)
        if found is None:
            try:
                found = self._path(place).read_bytes()
            except OSError:
                found = b""
            self._read[place] = found
        return found

    def _path(self, place: str) -> Path:
        return self._layout.values / f"{place}.jsonl"

    def _append(self, fresh: dict[str, list[bytes]]) -> None:
        try:
            for place, lines in fresh.items():
                path = self._layout.make_room(self._path(place))
                data = b"".join(line + b"\n" for line in lines)
                before = self._file(place)
                if len(before) + len(data) > MAX_FILE_BYTES:
                    kept = before[-MAX_FILE_BYTES // 2 : before.rfind(b"\n") + 1].partition(b"\n")[2]
                    write_atomically(path, kept + data)
                else:
                    _append_once(path, data if not before or before.endswith(b"\n") else b"\n" + data)
                self._read.pop(place, None)
        except (OSError, GoldentraceError):
            return


def _append_once(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _line(leaf: str, value: Any) -> bytes | None:
    try:
        line = encode({"leaf": leaf, "value": value})
    except JsonError:
        return None
    return line if len(line) <= MAX_VALUE_BYTES else None


def _leaves(normal: NormalTrace) -> Iterable[tuple[str, Any]]:
    assert normal.payloads is not None
    for index, operation in enumerate(normal.operations):
        for pointer, leaf in operation.args.items():
            if isinstance(leaf, str) and "<" not in leaf and not leaf.startswith(COLLAPSED):
                is_there, value = normal.payloads.argument(index, pointer)
                if is_there:
                    yield leaf, value


def show_values(comparison: Comparison, store: ValueStore | None) -> None:
    """Put the golden's values in place of its digests in the changes, where they are known: from the run that was given
    as golden, else from the store."""
    for change in comparison.changes:
        if isinstance(change.expected, str) and _DIGEST.fullmatch(change.expected) is not None:
            is_there, value = _known(comparison, change, store)
            if is_there:
                change.expected = value
        if store is not None and change.code in _CODES_WITH_ARGUMENTS:
            change.golden_values = _golden_values(comparison, change, store)


def _golden_values(comparison: Comparison, change: Change, store: ValueStore) -> dict[str, Any]:
    """The arguments of the golden's call that are remembered, as many as a report shows."""
    if comparison.golden.payloads is not None or change.golden_index is None or change.attempt:
        return {}
    leaves = comparison.golden.operations[change.golden_index].args
    found: dict[str, Any] = {}
    for pointer in (change.pointers or tuple(leaves))[:MAX_SHOWN]:
        leaf = leaves.get(pointer)
        is_there, value = store.find(leaf) if isinstance(leaf, str) else (False, None)
        if is_there:
            found[pointer] = value
    return found


def _known(comparison: Comparison, change: Change, store: ValueStore | None) -> tuple[bool, Any]:
    payloads, index = comparison.golden.payloads, change.golden_index
    if payloads is not None and index is not None and change.pointers and not change.attempt:
        return payloads.argument(index, change.pointers[0])
    return store.find(change.expected) if store is not None else (False, None)
