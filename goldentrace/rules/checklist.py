"""The questions that are asked of a tool loop that went wrong, in the order in which data flows through it.

The first one that is answered with no is where to look: what comes after it follows from it more often than not. Must
not judge by itself: the answers are those of the rules.
"""

from dataclasses import dataclass
from typing import Final, Literal

from goldentrace.model.finding import Finding, LintResult

State = Literal["yes", "no", "unknown"]

QUESTIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Was the model offered each tool that it called?", ("GT1502",)),
    ("Did the arguments of each call parse, and keep to the schema?", ("GT1503", "GT1501")),
    ("Did the arguments come from somewhere?", ("GT1507", "GT1506", "GT1505")),
    ("Was each call allowed?", ("GT1702", "GT1701")),
    ("Did each call get exactly one result, under its own id?", ("GT1402", "GT1401", "GT1403")),
    ("Were the results what the tools promise, whole and of a bearable size?", ("GT1504", "GT1601", "GT1602")),
    ("Did each result reach the next request?", ("GT1406",)),
    ("Did results of calls that were over stay out?", ("GT1404",)),
    ("Did the successful siblings of a failed call stand?", ("GT1405",)),
    ("Were failures retried in time, and not for ever?", ("GT1201", "GT1202", "GT1203", "GT1204", "GT1103")),
    ("Did each write take effect once, and does the run know?", ("GT1205", "GT1301", "GT1302", "GT1303", "GT1304")),
    ("Did the model take in what it got?", ("GT1101", "GT1102", "GT1001", "GT1002", "GT1003", "GT1004", "GT1005")),
    ("Did failures change what the run claims?", ("GT1803",)),
    ("Did the run stop where it had to, and say why?", ("GT1802", "GT1006", "GT1801")),
    ("Is the trace free of secrets?", ("GT1901",)),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One question. state: no where a rule found something of severity error or warning that nobody accepted, unknown
    where a rule could not check, else yes."""

    question: str
    codes: tuple[str, ...]
    state: State
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


def answers(result: LintResult) -> list[Answer]:
    """Return the answer to each question, in order."""
    found: list[Answer] = []
    for question, codes in QUESTIONS:
        findings = tuple(f for f in result.findings if f.code in codes and f.accepted is None and f.severity != "note")
        reasons = tuple(f"{code}: {result.could_not_check[code]}" for code in codes if code in result.could_not_check)
        has_run = any(code in result.checked for code in codes)
        state: State = "no" if findings else "yes" if has_run and not reasons else "unknown"
        found.append(Answer(question, codes, state, findings, reasons))
    return found


def first_broken(found: list[Answer]) -> Answer | None:
    """Return where to look first, None where nothing is broken."""
    return next((answer for answer in found if answer.state == "no"), None)
