"""Which result answers which call, as the normalization pairs them: the nearest earlier open call of its id.

Shared by the rules about unmatched, missing and duplicate results, so that the three agree. Must not judge.
"""

from goldentrace.model.event import ToolCall, ToolResult
from goldentrace.model.trace import Trace


def pair_results(trace: Trace) -> tuple[dict[int, int], list[int]]:
    """Return result index -> call index, and the indexes of the results that no open call waited for."""
    waiting: dict[str, list[int]] = {}
    early: dict[str, list[int]] = {}
    pairs: dict[int, int] = {}
    called: set[str] = set()
    unmatched: list[int] = []
    for index, event in enumerate(trace.events):
        if isinstance(event, ToolCall):
            called.add(event.call_id)
            held = early.get(event.call_id)
            if held:
                pairs[held.pop(0)] = index
            else:
                waiting.setdefault(event.call_id, []).append(index)
        elif isinstance(event, ToolResult):
            calls = waiting.get(event.call_id)
            if not calls:
                (unmatched if event.call_id in called else early.setdefault(event.call_id, [])).append(index)
                continue
            place = len(calls) - 1
            for n in range(len(calls) - 1, -1, -1) if event.attempt is not None else ():
                call = trace.events[calls[n]]
                if isinstance(call, ToolCall) and call.attempt == event.attempt:
                    place = n
                    break
            pairs[index] = calls.pop(place)
    return pairs, sorted([*unmatched, *(index for held in early.values() for index in held)])
