"""GT1005 superseded-error: a failed call made moot by a later success of the same intent.

What it finds: a failed call by the model that it made again later with arguments that are equal after normalization,
    and that succeeded then.
Why it matters: it is no defect by itself (often the retry was right), but the failed call is the part of the run that
    can go: it cost a turn that a retry inside the harness would have saved.
Example: search fails with a timeout in turn 3, the model asks for the same search in turn 4.
Not a finding: a retry by the harness, the SDK or the transport; a corrected call (other arguments); a failure that no
    later call makes good.
Options: none.
Needs: arguments, failed calls told from successful ones: a status in the source, or `error_patterns` in the profile's
    tools.
References: RedundancyBench labels such calls `abnormal step`.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.ask import Ask
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1005"
FAILED = frozenset({"error", "timeout", "cancelled"})


@rule(CODE, "superseded-error", severity="note", needs={Needs.ARGUMENTS, Needs.STATUS, Needs.FAILURES})
def superseded_error(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per run of failures that one success makes moot."""
    failed: dict[tuple[object, ...], list[Ask]] = {}
    for ask in subject.asks:
        key = (ask.lane, ask.tool_name, subject.payload_key(ask.attempt))
        if ask.last.status in FAILED:
            failed.setdefault(key, []).append(ask)
        elif ask.is_ok and key in failed:
            yield _superseded(subject, failed.pop(key), ask)


def _superseded(subject: Subject, failures: list[Ask], success: Ask) -> Finding:
    for ask in failures:
        subject.claimed.setdefault(ask.call_index, CODE)
    first, last = failures[0], failures[-1]
    shown = [first, success] if first is last else [first, last, success]
    how = first.last.error_class or first.last.status
    times = f"failed ({how})" if first is last else f"failed {len(failures)} times ({how})"
    return finding(
        CODE, f"{first.label} {times}; the same call succeeded later as {success.label} [error repeat]",
        lines=[ask.line for ask in shown], labels=[ask.label for ask in shown], tool_name=first.tool_name,
        count=len(failures),
    )  # fmt: skip
