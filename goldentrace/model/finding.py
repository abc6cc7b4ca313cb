"""A finding: what a rule says about one trace, pointing at the events."""

from enum import StrEnum, auto
from typing import Any

import msgspec

from goldentrace.model.profile import Severity


class Needs(StrEnum):
    """What a rule needs to know; where a trace lacks it, the rule says that it could not check."""

    STATUS = auto()
    RESULTS = auto()
    TIMES = auto()
    TURNS = auto()
    ARGUMENTS = auto()
    FAILURES = auto()
    """Failed calls told from successful ones."""
    RETRIES = auto()
    """Attempts that others than the model make."""


class Finding(msgspec.Struct, frozen=True):
    """One defect.

    labels: the operations concerned, the first before the repeat; lines: 1-based lines of the events concerned, in the
    same order, at least one, 0 where the line is not known; pointer: the leaf, if one; count: how many events the
    finding spans, where it is a range; expected, actual: shown values, never a secret; accepted: why it does not count,
    if somebody accepted it.
    """

    code: str
    name: str
    severity: Severity
    message: str
    labels: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    tool_name: str | None = None
    pointer: str | None = None
    count: int = 1
    expected: Any = None
    actual: Any = None
    accepted: str | None = None

    @property
    def line(self) -> int | None:
        """The line of the first event, None where it is not known: a trace that was read from one JSON document."""
        return next(iter(self.lines), 0) or None


class LintResult(msgspec.Struct):
    """What the rules said of one trace. could_not_check: code -> why; checked: codes that ran to the end."""

    path: str
    findings: list[Finding]
    checked: tuple[str, ...] = ()
    could_not_check: dict[str, str] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
