"""GT1406 result-not-attached: the next request did not carry a result.

What it finds: a result that arrived before a turn of the model, and is not among the results of that turn's request.
Why it matters: the model never saw it, and asks again: the first cause of repeated calls that are not the model's
    fault.
Example: results for call_1 and call_2 arrive; the next request holds only call_1.
Not a finding: a result that an earlier request carried (it may be compacted away later); a result that arrived after
    the request; another agent's result.
Options: none.
Needs: the results in each request (`input_call_ids` of model turns).
References: providers reject a request in which a tool call has no result; a harness that drops the call with it is
    not caught by them.
"""

from collections.abc import Iterator

from goldentrace.model.event import ModelTurn, ToolCall, ToolResult
from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1406"


@rule(CODE, "result-not-attached", severity="error")
def result_not_attached(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per result that did not reach the next request, at the result and at the turn."""
    if not any(turn.input_call_ids is not None for _, turn in subject.turns):
        if subject.trace.results():
            yield Unchecked("the source does not say which results were in a request")
        return
    labels = {attempt.result_index: operation for operation, attempt in subject.attempts}
    agent_of: dict[str, str] = {}
    waiting: dict[str, dict[str, int]] = {}
    for index, event in enumerate(subject.trace.events):
        if isinstance(event, ToolCall):
            agent_of[event.call_id] = event.agent
        elif isinstance(event, ToolResult):
            waiting.setdefault(agent_of.get(event.call_id, event.agent), {})[event.call_id] = index
        elif isinstance(event, ModelTurn):
            arrived = waiting.pop(event.agent, {})
            if event.input_call_ids is None:
                continue
            carried = set(event.input_call_ids)
            for call_id, place in arrived.items():
                operation = labels.get(place)
                if call_id in carried or operation is None or subject.call(operation.first).parent is not None:
                    continue
                yield finding(
                    CODE, f"the result of {operation.label} was not in the next request",
                    lines=[subject.line(place), subject.line(index)], labels=[operation.label],
                    tool_name=operation.tool_name,
                )  # fmt: skip
