"""GT1801 no-terminal-event: a run that does not say how it ended.

What it finds: a trace without `trace_end`, or one whose stop reason is `unknown` although its recorder states outcomes.
Why it matters: a run that was cut off looks like one that stopped calling tools; nothing after it can be trusted.
Example: the agent's process was killed, and the trace ends with a tool result.
Not a finding: a foreign format that has no end marker (its importer says so).
Options: none.
Needs: a recorder that writes the end.
References: an explicit terminal event is what tells "finished" from "died".
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

NATIVE = "goldentrace/1"


@rule("GT1801", "no-terminal-event", severity="error")
def no_terminal_event(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding where the end is missing or has no reason."""
    trace = subject.trace
    end = trace.end
    if end is None:
        yield finding("GT1801", "the trace has no trace_end", lines=[subject.end_line])
    elif end.stop_reason == "unknown":
        if trace.format == NATIVE:
            yield finding("GT1801", "the run ended without a stop reason", lines=[subject.end_line])
        else:
            yield Unchecked("the format has no end marker")
