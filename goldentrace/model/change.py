"""A change: how a candidate differs from its golden, at one operation, under one code."""

from typing import Any, Literal

import msgspec

from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import SEVERITIES, Severity


class Tolerance(msgspec.Struct, frozen=True):
    """The interval that a wait had to lie in, ms; hi_ms None: no upper bound; deviation_ms: how far outside; source:
    the setting that set it."""

    lo_ms: float
    hi_ms: float | None
    deviation_ms: float
    source: str


class JudgedWait(msgspec.Struct, frozen=True):
    """One wait of an operation as it was judged.

    retry: which retry it stands before, from 1; measure: the observed gap, the delay that was announced, or several
    waits together; golden_ms, now_ms: None where unknown; tolerance: None where nothing bounds it; is_wrong: does the
    change speak of it.
    """

    retry: int
    measure: Literal["gap", "delay", "sum"]
    golden_ms: float | None
    now_ms: float | None
    tolerance: Tolerance | None
    is_wrong: bool


class Change(msgspec.Struct, eq=False):
    """One difference.

    label: the operation's name in the golden, in the candidate where it was added, None for the run as a whole;
    pointers: the argument leaves concerned; expected, actual: shown values (never a secret); golden_line,
    candidate_line: 1-based lines of the two files; golden_index, candidate_index: operations; caused_by: the change
    that this one follows from. hint: what to do, where that can be told (the `ids.keys` line that would mask a value).
    """

    code: str
    name: str
    severity: Severity
    message: str
    label: str | None = None
    tool_name: str | None = None
    pointers: tuple[str, ...] = ()
    expected: Any = None
    actual: Any = None
    tolerance: Tolerance | None = None
    golden_line: int | None = None
    candidate_line: int | None = None
    golden_index: int | None = None
    candidate_index: int | None = None
    attempt: int | None = None
    caused_by: "Change | None" = None
    hint: str | None = None
    waits: tuple[JudgedWait, ...] = ()
    golden_values: dict[str, Any] = msgspec.field(default_factory=dict)
    """Pointer -> the golden's value, where it is known on this machine; for display alone."""

    @property
    def is_root(self) -> bool:
        """Does it follow from no other change?"""
        return self.caused_by is None


class Comparison(msgspec.Struct):
    """What a golden and a candidate have to do with each other.

    pairs: (golden operation or None, candidate operation or None) in the order in which to read them; changes: in the
    order of the golden; not_comparable: why no verdict is possible, each one clause; coverage: what was not compared
    because a source does not record it; is_approximate: the alignment is not exact.
    """

    golden: NormalTrace
    candidate: NormalTrace
    pairs: list[tuple[int | None, int | None]]
    changes: list[Change]
    not_comparable: list[str] = msgspec.field(default_factory=list)
    coverage: list[str] = msgspec.field(default_factory=list)
    is_approximate: bool = False

    def roots(self, severity: Severity) -> list[Change]:
        """Return the changes of a severity that no other change causes."""
        return [change for change in self.changes if change.severity == severity and change.caused_by is None]

    def near_changes(self, around: int) -> tuple[list[int], list[int]]:
        """Return the golden's and the candidate's operations that stand within `around` rows of a changed one."""
        changed = {(c.golden_index, c.candidate_index) for c in self.changes}
        golden_changed = {g for g, _ in changed if g is not None}
        candidate_changed = {c for _, c in changed if c is not None}
        rows: set[int] = set()
        for row, (g, c) in enumerate(self.pairs):
            if g in golden_changed or c in candidate_changed:
                rows.update(range(max(0, row - around), min(len(self.pairs), row + around + 1)))
        rows.update(range(max(0, len(self.pairs) - around), len(self.pairs)))
        near = [self.pairs[row] for row in sorted(rows)]
        return [g for g, _ in near if g is not None], [c for _, c in near if c is not None]

    @property
    def first(self) -> Change | None:
        """Where to start reading: the first root of the highest severity there is."""
        for severity in SEVERITIES:
            found = self.roots(severity)
            if found:
                return found[0]
        return None
