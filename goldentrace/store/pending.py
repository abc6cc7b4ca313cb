"""Pending goldens: what a diff proposes, kept until a person accepts it, and bound to what it was compared with.

Beside each proposed golden stands a record with the SHA-256 of the golden it would replace, the digest of the profile
and the version of goldentrace. Where one of them is no longer what it was, the proposal is stale and is refused: nobody
reviewed what it would do now. This module must not compare or render anything.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

import goldentrace
from goldentrace.codec.golden import encode_golden
from goldentrace.errors import ConfigError, InputError, NotComparableError, Where
from goldentrace.model.change import Comparison
from goldentrace.model.normal import NormalTrace
from goldentrace.store.atomic import write_atomically
from goldentrace.store.layout import Layout

RECORD_SUFFIX: Final = ".json"


class PendingChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change that the proposal takes in."""

    code: str
    name: str
    severity: str
    message: str
    label: str | None = None
    is_root: bool = True


class PendingRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a proposal is bound to. Paths are relative to the project folder where they lie in it."""

    scenario: str
    golden: str
    golden_sha256: str
    proposed_sha256: str
    profile: str
    profile_hash: str
    tool_version: str
    candidate: str
    candidate_sha256: str
    suite: str | None = None
    changes: list[PendingChange] = []


def sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of a file in hex, None where it is not there."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


class PendingStore:
    """The proposals of a project."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def propose(
        self, name: str, suite: str | None, comparison: Comparison, proposed: NormalTrace, candidate: Path
    ) -> Path | None:
        """Keep a proposal for a scenario; return its file, None where it would change nothing.

        Raises: InfrastructureError where it cannot be written.
        """
        golden = self._layout.golden(name, suite)
        data = encode_golden(proposed)
        golden_sha256, candidate_sha256 = sha256_of(golden), sha256_of(candidate)
        if golden_sha256 is None or candidate_sha256 is None:
            return None
        proposed_sha256 = hashlib.sha256(data).hexdigest()
        self.drop(name, suite)
        if proposed_sha256 == golden_sha256:
            return None
        path = self._layout.make_room(self._layout.pending(name, suite))
        record = PendingRecord(
            scenario=name,
            suite=suite,
            golden=self._relative(golden),
            golden_sha256=golden_sha256,
            proposed_sha256=proposed_sha256,
            profile=proposed.header.profile,
            profile_hash=proposed.header.profile_hash,
            tool_version=goldentrace.__version__,
            candidate=self._relative(candidate),
            candidate_sha256=candidate_sha256,
            changes=[
                PendingChange(
                    code=change.code, name=change.name, severity=change.severity, message=change.message,
                    label=change.label, is_root=change.is_root,
                )
                for change in comparison.changes
            ],
        )  # fmt: skip
        write_atomically(path, data)
        write_atomically(
            path.with_suffix(RECORD_SUFFIX), msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
        )
        return path

    def drop(self, name: str, suite: str | None) -> None:
        """Forget the proposal for a scenario, if there is one."""
        path = self._layout.pending(name, suite)
        path.with_suffix(RECORD_SUFFIX).unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    def all(self) -> Iterator[PendingRecord]:
        """Yield every proposal, by suite and name."""
        folder = self._layout.pending_folder
        found = (
            sorted({*folder.glob(f"*{RECORD_SUFFIX}"), *folder.glob(f"*/*{RECORD_SUFFIX}")}) if folder.is_dir() else []
        )
        for path in found:
            if path.with_suffix(".jsonl").is_file():
                yield self._read(path)

    def find(self, name: str, suite: str | None) -> PendingRecord | None:
        """Return the proposal for a scenario, None where there is none."""
        path = self._layout.pending(name, suite)
        record = path.with_suffix(RECORD_SUFFIX)
        return self._read(record) if record.is_file() and path.is_file() else None

    def proposed(self, record: PendingRecord) -> bytes:
        """Return the bytes of the proposed golden. Raises: InputError where it is not what was proposed."""
        path = self._layout.pending(record.scenario, record.suite)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(
                f"the pending golden cannot be read: {error.strerror}", where=Where(self._layout.shown(path)),
                next_step=f"make it again: {self._layout.command('diff', record.scenario)}",
            ) from None  # fmt: skip
        if hashlib.sha256(data).hexdigest() != record.proposed_sha256:
            raise InputError(
                "the pending golden was changed after the diff", where=Where(self._layout.shown(path)),
                next_step=f"make it again: {self._layout.command('diff', record.scenario)}",
            )  # fmt: skip
        return data

    def staleness(self, record: PendingRecord, profile_hash: str | None) -> str | None:
        """Return why a proposal no longer holds, None if it does. profile_hash: that of its profile now, None if
        gone."""
        if record.tool_version != goldentrace.__version__:
            return f"it was made by goldentrace {record.tool_version}, this is {goldentrace.__version__}"
        if profile_hash != record.profile_hash:
            return f"the profile {record.profile} is not what it was"
        if sha256_of(self._layout.golden(record.scenario, record.suite)) != record.golden_sha256:
            return "the golden is not the one that it was compared with"
        return None

    def check_fresh(self, record: PendingRecord, profile_hash: str | None) -> None:
        """Refuse a stale proposal. Raises: NotComparableError with the command that makes a new one."""
        why = self.staleness(record, profile_hash)
        if why is not None:
            raise NotComparableError(
                f"the pending golden of {record.scenario} is stale: {why}",
                where=Where(self._layout.shown(self._layout.pending(record.scenario, record.suite))),
                next_step=f"compare again, and look at what it says: {self._layout.command('diff', record.scenario)}",
            )

    def _relative(self, path: Path) -> str:
        folder = self._layout.folder
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)

    def _read(self, path: Path) -> PendingRecord:
        try:
            return msgspec.json.decode(path.read_bytes(), type=PendingRecord)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"the record of a pending golden cannot be read: {error}", where=Where(self._layout.shown(path)),
                next_step=f"remove the file, then run: {self._layout.command('diff')}",
            ) from None  # fmt: skip
