"""GT1506 failed-value-used: a write uses a value that only a failed call supplied.

What it finds: a declared write whose arguments hold a value (an id, a number, a code with a digit) that stands in the
    result of a failed call, and in no successful result, message or earlier arguments before it.
Why it matters: what a failed call returns is partial, stale or an example; a write on that ground goes to the wrong
    place.
Example: get_account answers 500 with {"account": "AC-1042"}; transfer(to="AC-1042") follows.
Not a finding: a value that the user, a successful result, or an earlier call of the model supplied too; a read.
Options: none.
Needs: results, access of the tool, failed calls told from successful ones.
References: partial and short replies are never to be used as data.
"""

from collections.abc import Iterator

from goldentrace.model.event import Message, ToolCall, ToolResult
from goldentrace.model.finding import Finding, Needs
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.registry import Unchecked, finding, rule, undeclared
from goldentrace.rules.subject import Subject
from goldentrace.rules.values import values_in, words_in

CODE = "GT1506"


@rule(CODE, "failed-value-used", severity="error", needs={Needs.RESULTS, Needs.FAILURES})
def failed_value_used(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per write, the failed result as its reference."""
    failed = {a.result_index: (o, a) for o, a in subject.attempts if a.result_index and a.status not in (None, "ok")}
    if not any(_values_of(subject, index, attempt) for index, (_, attempt) in failed.items()):
        return
    calls = {attempt.call_index: (operation, attempt) for operation, attempt in subject.attempts}
    supplied: set[str] = set()
    suspect: dict[str, tuple[Operation, Attempt]] = {}
    unknown: set[str] = set()
    for index, event in enumerate(subject.trace.events):
        if index in failed:
            for value in _values_of(subject, index, failed[index][1]) - supplied:
                suspect.setdefault(value, failed[index])
        elif isinstance(event, ToolResult):
            supplied |= values_in(event.result)
        elif isinstance(event, Message) and event.role != "assistant":
            supplied |= words_in(event)
        elif isinstance(event, ToolCall) and index in calls:
            operation, attempt = calls[index]
            used = values_in(event.args)
            source = next((suspect[v] for v in sorted(used) if v in suspect and v not in supplied), None)
            access = subject.access(operation)
            if source is not None and access is None:
                unknown.add(operation.tool_name)
            elif source is not None and access == "write":
                yield _finding(source, operation, attempt)
            supplied |= used
    yield from undeclared(unknown)


def _finding(source: tuple[Operation, Attempt], operation: Operation, attempt: Attempt) -> Finding:
    first, failure = source
    return finding(
        CODE, f"{operation.label} uses a value that only {first.label} supplied, which had failed "
        f"({failure.error_class or failure.status})",
        lines=[failure.result_line, attempt.call_line], labels=[first.label, operation.label],
        tool_name=operation.tool_name,
    )  # fmt: skip


def _values_of(subject: Subject, index: int, attempt: Attempt) -> set[str]:
    event = subject.trace.events[index]
    assert isinstance(event, ToolResult)
    return values_in(event.result) - {str(attempt.http_status)}
