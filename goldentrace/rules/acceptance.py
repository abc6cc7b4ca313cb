"""Findings that somebody has accepted: by suppression, by a list of known ones, in a golden's header.

An entry names a rule, a tool and a field, never a position or a value, so that it still means the same after the run
has changed elsewhere. One that matches nothing any more is reported. Must not read files or the clock.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from goldentrace.errors import ConfigError
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.profile import Profile

KEYS: Final = frozenset({"code", "tool", "field", "reason", "until"})
_INDEX: Final = re.compile(r"/\d+(?=/|$)")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """code, tool, field: what it accepts, None is any (nothing, where is_exact); until: ISO date, the last day on which
    it holds; kind: what it is, as shown."""

    code: str
    reason: str
    kind: str
    tool: str | None = None
    field: str | None = None
    until: str | None = None
    is_exact: bool = False

    def matches(self, finding: Finding) -> bool:
        """Does it accept this finding?"""
        if finding.code != self.code:
            return False
        if self.is_exact:
            return (self.tool, self.field) == (finding.tool_name, field_of(finding))
        return self.tool in (None, finding.tool_name) and self.field in (None, field_of(finding))

    def is_over(self, today: str) -> bool:
        """Has its last day passed? today: ISO date."""
        return self.until is not None and self.until < today

    def __str__(self) -> str:
        parts = (self.code, f"of {self.tool}" if self.tool else "", f"at {self.field}" if self.field else "")
        return f"{self.kind} {' '.join(part for part in parts if part)}"


def field_of(finding: Finding) -> str | None:
    """Return the leaf that a finding concerns, elements of arrays as `*`."""
    return None if finding.pointer is None else _INDEX.sub("/*", finding.pointer)


def read_entries(
    value: Any, place: str, kind: str, *, needs_reason: bool = True, is_exact: bool = False
) -> list[Acceptance]:
    """Return the entries of a list of mappings {code, tool, field, reason, until}.

    place: where it stands, for messages. Raises: ConfigError for anything else, a position or a value among the keys,
    a missing reason.
    """
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{place} is no list", next_step="write a list of {code, tool, field, reason}")
    return [
        _entry(item, f"{place}[{n}]", kind, needs_reason=needs_reason, is_exact=is_exact)
        for n, item in enumerate(value)
    ]


def _entry(item: Any, place: str, kind: str, *, needs_reason: bool, is_exact: bool) -> Acceptance:
    if not isinstance(item, Mapping):
        raise ConfigError(f"{place} is no mapping", next_step="write {code, tool, field, reason}")
    unknown = sorted(set(item) - KEYS)
    if unknown:
        raise ConfigError(
            f"{place} has {', '.join(unknown)}",
            next_step="a finding is accepted by code, tool and field, with a reason",
        )
    fields = {name: None if item.get(name) is None else str(item[name]) for name in KEYS}
    code, reason, until = fields["code"], fields["reason"], fields["until"]
    if code is None or not re.fullmatch(r"GT\d{4}", code):
        raise ConfigError(f"{place} names no rule", next_step="write code: GT1004; `goldentrace rules` lists them")
    if needs_reason and not (reason or "").strip():
        raise ConfigError(f"{place} has no reason", next_step=f"say why {code} is accepted: reason: …")
    if until is not None and not _DATE.fullmatch(until):
        raise ConfigError(f"{place} has until: {until}", next_step="write a date, as in until: 2027-01-31")
    return Acceptance(code, reason or "", kind, fields["tool"], fields["field"], until, is_exact=is_exact)


def suppressions(profile: Profile) -> list[Acceptance]:
    """Return the profile's `rules.suppressions`. Raises: ConfigError as `read_entries`."""
    return read_entries(profile.rules.get("suppressions") or [], "rules.suppressions", "suppression of")


def accept(result: LintResult, entries: Iterable[Acceptance], today: str) -> LintResult:
    """Return the result with the findings marked that an entry accepts. today: ISO date."""
    valid = [entry for entry in entries if not entry.is_over(today)]
    if not valid:
        return result

    def marked(finding: Finding) -> Finding:
        entry = next((entry for entry in valid if entry.matches(finding)), None)
        if entry is None or finding.accepted is not None:
            return finding
        return msgspec.structs.replace(finding, accepted=f"{entry}: {entry.reason}" if entry.reason else str(entry))

    return msgspec.structs.replace(result, findings=[marked(finding) for finding in result.findings])


def idle(entries: Iterable[Acceptance], results: Iterable[LintResult], today: str) -> list[str]:
    """Return what to say of entries that accept nothing: their day has passed, or no finding matches. Entries of
    rules that did not run are not judged."""
    results = list(results)
    ran = {code for result in results for code in (*result.checked, *result.could_not_check)}
    said: list[str] = []
    for entry in entries:
        if entry.is_over(today):
            said.append(f"{entry}: no longer holds since {entry.until}")
        elif entry.code in ran and not any(entry.matches(finding) for result in results for finding in result.findings):
            said.append(f"{entry}: accepts nothing, take it out")
    return said


def entries_accepting(findings: Iterable[Finding], reason: str) -> list[dict[str, Any]]:
    """Return entries {code, tool, field, reason} that accept findings which nobody accepted yet, each once, sorted."""
    known = known_entries([LintResult("", list(findings))])
    return [
        {**{name: value for name, value in entry.items() if value is not None}, "reason": reason} for entry in known
    ]


def known_entries(results: Iterable[LintResult]) -> list[dict[str, str | None]]:
    """Return today's unaccepted findings as entries of a list of known ones, each once, sorted."""
    found = {
        (finding.code, finding.tool_name, field_of(finding))
        for result in results
        for finding in result.findings
        if finding.accepted is None
    }
    ordered = sorted(found, key=lambda key: tuple(part or "" for part in key))
    return [{"code": code, "tool": tool, "field": place} for code, tool, place in ordered]
