"""How a run says that it ended, and whether that is its own word. Must not judge."""

from goldentrace.rules.subject import Subject

NATIVE = "goldentrace/1"


def claimed_outcome(subject: Subject) -> tuple[str | None, str]:
    """Return the outcome that the run itself claims, or None and why there is none: in a foreign format it is the
    verdict of a benchmark, or nobody's."""
    trace = subject.trace
    if trace.end is None:
        return None, "the trace has no end"
    if trace.format != NATIVE:
        return None, "the format has no outcome that the run itself states"
    return trace.end.outcome, ""
