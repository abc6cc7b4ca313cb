"""GT1801 no-terminal-event: a run that does not say, once and last, how it ended.

What it finds: a trace without `trace_end`, with more than one, with events after it, or with one whose stop reason is
    `unknown` although its recorder states reasons.
Why it matters: a run that was cut off looks like one that stopped calling tools; nothing after it can be trusted.
Example: the agent's process was killed, and the trace ends with a tool result.
Not a finding: a foreign format that has no end marker (its importer says so).
Options: none.
Needs: a recorder that writes the end.
References: an explicit terminal event is what tells "finished" from "died".
"""

from collections.abc import Iterator

from goldentrace.model.event import TraceEnd
from goldentrace.model.finding import Finding
from goldentrace.rules.claims import NATIVE
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1801"


@rule(CODE, "no-terminal-event", severity="error")
def no_terminal_event(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per way in which the end is missing or not one."""
    trace = subject.trace
    ends = [index for index, event in enumerate(trace.events) if isinstance(event, TraceEnd)]
    if not ends:
        yield finding(CODE, "the trace has no trace_end", lines=[subject.end_line])
        return
    if len(ends) > 1:
        lines = [subject.line(ends[0]), subject.line(ends[-1])]
        yield finding(CODE, f"the trace ends {len(ends)} times", lines=lines, count=len(ends))
    if ends[-1] != len(trace.events) - 1:
        lines = [subject.line(ends[-1]), subject.end_line]
        yield finding(CODE, f"{len(trace.events) - 1 - ends[-1]} events stand after trace_end", lines=lines)
    end = trace.events[ends[-1]]
    assert isinstance(end, TraceEnd)
    if end.stop_reason == "unknown":
        if trace.format == NATIVE:
            yield finding(CODE, "the run ended without a stop reason", lines=[subject.line(ends[-1])])
        else:
            yield Unchecked("the format has no end marker")
