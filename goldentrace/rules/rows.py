"""What two calls of a loop have in common. Must not judge."""

from goldentrace.rules.ask import Ask
from goldentrace.rules.subject import Subject


def signature(subject: Subject, ask: Ask) -> tuple[object, ...] | None:
    """Return tool, arguments and outcome of a call as one value; None where no other call is the same, and where its
    outcome is not known."""
    if not subject.is_repeated(ask):
        return None
    last = ask.last
    digest = subject.result_digest(last)
    if digest is None and last.status in (None, "ok", "unfinished"):
        return None
    return (ask.tool_name, subject.semantic_key(ask.attempt), last.status, last.error_class, digest)
