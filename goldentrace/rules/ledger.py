"""Which attempt committed which effect, as far as the ledger tells. Must not judge."""

from goldentrace.model.event import Effect, ToolCall, ToolResult
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.subject import Subject


def commits(subject: Subject) -> list[tuple[Effect, int, Operation, Attempt]]:
    """Return each effect with the index of its event and the attempt that made it: the newest open call that is not a
    read (of the tool that the ledger names, if it names one), else the newest one that ended."""
    by_index = {attempt.call_index: (operation, attempt) for operation, attempt in subject.attempts}
    ends = {attempt.result_index: attempt.call_index for _, attempt in subject.attempts if attempt.result_index}
    open_calls: dict[int, None] = {}
    ended: dict[str, int] = {}
    last_ended: int | None = None
    found: list[tuple[Effect, int, Operation, Attempt]] = []
    for index, event in enumerate(subject.trace.events):
        if isinstance(event, ToolCall) and index in by_index:
            if subject.access(by_index[index][0]) != "read":
                open_calls[index] = None
        elif isinstance(event, ToolResult) and index in ends:
            if open_calls.pop(ends[index], 0) is None:
                last_ended = ends[index]
                ended[by_index[last_ended][0].tool_name] = last_ended
        elif isinstance(event, Effect):
            tool_name = _tool_of(event)
            place = next(
                (n for n in reversed(open_calls) if tool_name in (None, by_index[n][0].tool_name)),
                ended.get(tool_name) if tool_name is not None else last_ended,
            )
            if place is not None:
                found.append((event, index, *by_index[place]))
    return found


def _tool_of(event: Effect) -> str | None:
    """The tool that a tool server says it was."""
    about = (event.extra or {}).get("server")
    name = about.get("tool") if isinstance(about, dict) else None
    return name if isinstance(name, str) else None
