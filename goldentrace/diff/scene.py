"""What every comparison step is given: both sides, which operations are paired, and how a change is made."""

from collections.abc import Mapping
from typing import Any

import msgspec

from goldentrace.diff.codes import CODES
from goldentrace.match.alignment import Alignment
from goldentrace.match.references import References
from goldentrace.model.change import Change, Tolerance
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import Operation
from goldentrace.model.profile import Profile, Severity


class Scene(msgspec.Struct):
    """One comparison under way. backoff: the policy of waits that outranks the tools' and the profile's, if any."""

    golden: NormalTrace
    candidate: NormalTrace
    profile: Profile
    references: References
    alignment: Alignment
    backoff: Mapping[str, Any] | None = None
    kinds: frozenset[str] = frozenset()
    changes: list[Change] = msgspec.field(default_factory=list)
    not_comparable: list[str] = msgspec.field(default_factory=list)
    coverage: dict[str, int] = msgspec.field(default_factory=dict)

    def note(self, what: str) -> None:
        """Count something that was not compared because a source does not record it."""
        self.coverage[what] = self.coverage.get(what, 0) + 1

    def refuse(self, why: str) -> None:
        """Say, once, why no verdict is possible."""
        if why not in self.not_comparable:
            self.not_comparable.append(why)

    def severity(self, code: str, default: Severity | None = None) -> Severity:
        """Return the severity of a code: the profile's, else the given default, else the code's own."""
        return self.profile.compare.severities.get(code, default or CODES[code].severity)

    def change(  # noqa: PLR0913 - one keyword per field of a Change
        self,
        code: str,
        message: str,
        *,
        golden: int | None = None,
        candidate: int | None = None,
        severity: Severity | None = None,
        pointers: tuple[str, ...] = (),
        expected: Any = None,
        actual: Any = None,
        tolerance: Tolerance | None = None,
        attempt: int | None = None,
        lines: tuple[int | None, int | None] | None = None,
        hint: str | None = None,
    ) -> Change:
        """Return a change of one operation (or of the run, without indexes) and keep it.

        attempt: 1-based, to point at its line rather than at the operation's first; lines: given where neither applies.
        """
        one = self.golden.operations[golden] if golden is not None else None
        other = self.candidate.operations[candidate] if candidate is not None else None
        shown = one or other
        made = Change(
            code=code,
            name=CODES[code].name,
            severity=self.severity(code, severity),
            message=message,
            label=shown.label if shown is not None else None,
            tool_name=shown.tool_name if shown is not None else None,
            pointers=pointers,
            expected=expected,
            actual=actual,
            tolerance=tolerance,
            golden_line=lines[0] if lines else _line(one, attempt),
            candidate_line=lines[1] if lines else _line(other, attempt),
            golden_index=golden,
            candidate_index=candidate,
            attempt=attempt,
            hint=hint,
        )
        self.changes.append(made)
        return made


def _line(operation: Operation | None, attempt: int | None) -> int | None:
    if operation is None:
        return None
    tries = operation.attempts
    return tries[min(attempt or 1, len(tries)) - 1].call_line or None
