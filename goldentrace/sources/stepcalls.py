"""Which call of a model's response a tool's span ran: by its id, else by name and arguments, else by name, in order.

Many instrumentations give a tool's span no call id. Must not build events.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from typing import Any, Final

from msgspec import Raw

from goldentrace.codec.canonical import JsonError, canonical, decode
from goldentrace.model.event import ABSENT
from goldentrace.sources.fields import read_arguments
from goldentrace.sources.steps import Step
from goldentrace.sources.steptree import StepTree
from goldentrace.sources.transcript import Answered, Called

MAX_LOOK_BACK: Final = 50
"""Responses before the latest one in which a call without an id is looked for."""


class Calls:
    """turn_of: tool step -> the model's step that asked for it; unclaimed: model step -> the calls of its response that
    no span ran; answers: call id -> the result that a later request carries; batches: model steps that asked for more
    than one call.
    """

    def __init__(self, tree: StepTree) -> None:
        self._tree = tree
        self._models = [step for step in tree.steps if step.kind == "model"]
        self._starts = [step.started_ns or 0 for step in self._models]
        self._claimed: set[tuple[int, int]] = set()
        self._proposed_ids: dict[str, list[tuple[Step, int]]] = defaultdict(list)
        self.answers: dict[str, Answered] = {}
        self.turn_of: dict[int, Step] = {}
        seen: set[str] = set()
        for model in self._models:
            for item in model.sent:
                if isinstance(item, Answered) and item.call_id is not None:
                    self.answers.setdefault(item.call_id, item)
            for number, item in enumerate(model.got):
                if isinstance(item, Called) and item.call_id is not None:
                    self._proposed_ids[item.call_id].append((model, number))
                    if item.call_id in seen:
                        self._claimed.add((id(model), number))  # the same response, seen by two instrumentations
                    seen.add(item.call_id)
        tools = [step for step in tree.steps if step.kind == "tool"]
        for tool in tools:
            self._claim_by_id(tool)
        for is_exact in (True, False):
            for tool in tools:
                if id(tool) not in self.turn_of:
                    self._claim_by_likeness(tool, is_exact=is_exact)
        self.batches = {id(model) for model in self._models if sum(isinstance(i, Called) for i in model.got) > 1}

    def unclaimed(self, model: Step) -> list[Called]:
        """The calls of a response that no span ran, in their order."""
        return [
            item for number, item in enumerate(model.got)
            if isinstance(item, Called) and (id(model), number) not in self._claimed
        ]  # fmt: skip

    def latest_before(self, tool: Step) -> Step | None:
        """The model's step that started last before a tool's, of the same agent; without times, none."""
        if tool.started_ns is None:
            return None
        agent = self._tree.agent(tool)
        end = bisect_right(self._starts, tool.started_ns)
        near = reversed(self._models[max(0, end - MAX_LOOK_BACK) : end])
        return next((model for model in near if self._tree.agent(model) == agent), None)

    def _claim_by_id(self, tool: Step) -> None:
        places = self._proposed_ids.get(tool.called.call_id or "")
        if places:
            model, number = places[0]
            self._take(tool, model, number)

    def _claim_by_likeness(self, tool: Step, *, is_exact: bool) -> None:
        end = len(self._models) if tool.started_ns is None else bisect_right(self._starts, tool.started_ns)
        agent, outer = self._tree.agent(tool), self._tree.enclosing(tool, "tool")
        is_free = is_exact or self._tree.enclosing(tool, "agent") is None
        for model in reversed(self._models[max(0, end - MAX_LOOK_BACK) : end]):
            is_near = self._tree.agent(model) == agent or is_free
            if not is_near or self._tree.enclosing(model, "tool") is not outer:
                continue
            for number, item in enumerate(model.got):
                if not isinstance(item, Called) or (id(model), number) in self._claimed:
                    continue
                if not _is_same_tool(tool, item) or None not in (tool.called.call_id, item.call_id):
                    continue
                if not is_exact or _value(tool.called) == _value(item):
                    self._take(tool, model, number)
                    return

    def _take(self, tool: Step, model: Step, number: int) -> None:
        self._claimed.add((id(model), number))
        self.turn_of[id(tool)] = model
        self._tree.give_to(tool, model)
        asked = model.got[number]
        assert isinstance(asked, Called)
        tool.called = completed(tool.called, asked)


def completed(ran: Called, asked: Called) -> Called:
    """What a span says about a call, with the id, the name and the arguments that only the response holds.

    A span whose input is a bare value (`"C-1"`) was given that argument alone; the response has it with its name.
    """
    found = replace(ran, call_id=ran.call_id or asked.call_id)
    if found.extra.get("handoff") or not found.tool_name:
        found = replace(found, tool_name=asked.tool_name)
    given = _value(ran)
    if (given is None or not isinstance(given, dict)) and isinstance(_value(asked), dict):
        extra = found.extra if given is None else {**found.extra, "tool_input": given}
        found = replace(found, args=asked.args, args_text=asked.args_text, extra=extra)
    return found


def handoff_name(agent: str) -> str:
    """Return the name of the tool that hands over to an agent, as the Agents SDK makes it (handoff.py)."""
    return "transfer_to_" + re.sub(r"[^a-zA-Z0-9]", "_", agent).lower()


def _is_same_tool(tool: Step, asked: Called) -> bool:
    if tool.called.tool_name == asked.tool_name:
        return True
    return bool(tool.called.extra.get("handoff")) and (asked.tool_name or "").startswith("transfer_to_")


def _value(called: Called) -> Any:
    """The arguments as a value; None where there are none or they do not parse."""
    raw = called.args if called.args_text is None else read_arguments(called.args_text)[0]
    if raw is ABSENT or raw == ABSENT:
        return None
    try:
        return decode(canonical(decode(raw) if isinstance(raw, Raw) else raw))
    except JsonError:
        return None
