"""Names for changes and findings that stay the same while the files around them move.

A fingerprint is made of what the change is about (trace, rule, operation, leaves), never of lines or values: services
that remember results by it then recognise one that was seen before, and show it once.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, TypeAlias

from goldentrace.model.change import Change
from goldentrace.model.finding import Finding

DIGITS: Final = 32
Subject: TypeAlias = Change | Finding


def fingerprints(trace: str, subjects: Sequence[Subject]) -> list[str]:
    """Return one fingerprint per change or finding of a trace, all different, in their order."""
    seen: dict[str, int] = {}
    made: list[str] = []
    for subject in subjects:
        name = "\0".join((trace, *_about(subject)))
        nth = seen[name] = seen.get(name, 0) + 1
        made.append(hashlib.sha256(f"{name}\0{nth}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS])
    return made


def _about(subject: Subject) -> tuple[str, ...]:
    """What tells a change from others of its trace. An added call is counted: its label may be another next time."""
    if isinstance(subject, Finding):
        return ("finding", subject.code, subject.tool_name or "", "\n".join(subject.labels), subject.pointer or "")
    is_added = subject.golden_index is None and subject.candidate_index is not None
    place = (subject.tool_name if is_added else subject.label) or ""
    attempt = str(subject.attempt or 1)
    return ("change", subject.code, "+" if is_added else "", place, attempt, "\n".join(subject.pointers))
