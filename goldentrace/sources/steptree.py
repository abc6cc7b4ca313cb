"""How the steps of one trace hang together: order, what ran within what, whose they are, what was seen twice.

Must not build events.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from goldentrace.model.event import ABSENT, MAIN_AGENT
from goldentrace.sources.marks import mark_of
from goldentrace.sources.steps import Step

MAX_CHAIN: Final = 10_000


class StepTree:
    """Steps that matter (`steps`, in order: by start, what encloses first, then id) and what is known about each.

    attempts: of a call that lower spans show as several runs, those runs; main_agent: the name of the agent that acts
    first, which is `main` in the trace; others: how many steps are neither a model's, a tool's nor an agent's.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        given = list(steps)
        self._by_id: dict[str, Step] = {}
        for step in given:
            self._by_id.setdefault(step.step_id, step)
        self._owner: dict[int, Step | None] = {}
        self._place = _places(given)
        self._hide_wrappers(given)
        self.attempts: dict[int, list[Step]] = {}
        self._merge_lower_views(given)
        ordered = sorted(given, key=self._order)
        self.agents = [step for step in ordered if step.kind == "agent"]
        self.steps = [step for step in ordered if step.kind in ("model", "tool")]
        self.others = sum(step.kind == "other" for step in given)
        self.roots = [step for step in ordered if self._parent(step) is None]
        self._agent_of = self._name_agents()

    def owner(self, step: Step) -> Step | None:
        """The nearest enclosing step that is a model's, a tool's or an agent's."""
        passed: list[int] = []
        seen: set[int] = set()
        found, here = None, self._parent(step)
        passed.append(id(step))
        while here is not None and id(here) not in seen and len(seen) < MAX_CHAIN:
            if here.kind != "other":
                found = here
                break
            if id(here) in self._owner:
                found = self._owner[id(here)]
                break
            seen.add(id(here))
            passed.append(id(here))
            here = self._parent(here)
        for each in passed:
            self._owner[each] = found
        return found

    def enclosing(self, step: Step, kind: str) -> Step | None:
        """The nearest enclosing step of a kind."""
        here = self._cached_owner(step)
        for _ in range(MAX_CHAIN):
            if here is None or here is step or here.kind == kind:
                return here if here is not None and here is not step else None
            here = self._cached_owner(here)
        return None

    def agent(self, step: Step) -> str:
        """The name of the agent that a step belongs to."""
        return self._agent_of[id(step)]

    def give_to(self, tool: Step, model: Step) -> None:
        """Say whose response asked for a tool: it is that agent's, wherever its span hangs."""
        self._agent_of[id(tool)] = self._agent_of[id(model)]

    def _cached_owner(self, step: Step) -> Step | None:
        return self._owner[id(step)] if id(step) in self._owner else self.owner(step)

    def _parent(self, step: Step) -> Step | None:
        found = None if step.parent_id is None else self._by_id.get(step.parent_id)
        return None if found is step else found

    def _order(self, step: Step) -> tuple[int, int, int, str]:
        """A step without a time stands behind what the file holds before it: files hold spans as they ended."""
        known, position = self._place[id(step)]
        if step.started_ns is None:
            return (known, MAX_CHAIN, position, "")
        depth, here = 0, self._cached_owner(step)
        while here is not None and depth < 64:
            depth, here = depth + 1, self._cached_owner(here)
        return (step.started_ns, depth, 0, step.step_id)

    def _hide_wrappers(self, steps: list[Step]) -> None:
        """A model's span around another one is a helper of its library: the inner one is the response."""
        for step in steps:
            if step.kind != "model":
                continue
            owner = self._cached_owner(step)
            if owner is not None and owner.kind == "model" and owner is not step:
                step.sent = step.sent or owner.sent
                step.model = step.model or owner.model
                step.usage = step.usage or owner.usage
        wrapped = {id(self._cached_owner(step)) for step in steps if step.kind == "model"}
        for step in steps:
            if step.kind == "model" and id(step) in wrapped:
                step.kind = "other"
                self._owner.clear()
        has_sure = any(step.kind == "model" and not step.is_guess for step in steps)
        for step in steps:
            if step.kind == "model" and step.is_guess and has_sure:
                step.kind = "other"
                self._owner.clear()

    def _merge_lower_views(self, steps: list[Step]) -> None:
        """A tool's span right within another of the same tool is the same call, seen by a lower layer."""
        inner: dict[int, list[Step]] = defaultdict(list)
        for step in steps:
            if step.kind != "tool":
                continue
            owner = self._cached_owner(step)
            if owner is not None and owner.kind == "tool" and owner.called.tool_name == step.called.tool_name:
                inner[id(owner)].append(step)
        by_identity = {id(step): step for step in steps}
        for key, views in inner.items():
            outer = by_identity[key]
            if any(id(view) in inner for view in views) and len(views) > 1:
                continue
            views.sort(key=self._order)
            if len(views) == 1:
                _take_over(outer, views[0])
            elif _are_attempts(views):
                self.attempts[key] = views
            else:
                continue
            for view in views:
                view.kind = "other"
        self._owner.clear()

    def _name_agents(self) -> dict[int, str]:
        """The agent that acts first is `main`; one that runs beside itself gets a number."""
        instance_of = {id(step): self.enclosing(step, "agent") for step in self.steps}
        used = list({id(found): found for found in instance_of.values() if found is not None}.values())
        used.sort(key=self._order)
        number_of = _numbers(used)
        named: dict[int, tuple[str | None, int]] = {}
        for step in self.steps:
            instance = instance_of[id(step)]
            if instance is None:
                named[id(step)] = (step.agent, 1)
            else:
                named[id(step)] = (instance.agent or step.agent or instance.name, number_of[id(instance)])
        first = next((name for step in self.steps if (name := named[id(step)][0]) is not None), None)
        self.main_agent = first
        names: dict[int, str] = {}
        for key, (name, number) in named.items():
            plain = MAIN_AGENT if name is None or name == first else name
            names[key] = plain if number == 1 else f"{plain}-{number}"
        return names


def _places(steps: list[Step]) -> dict[int, tuple[int, int]]:
    """(the last start in the file so far, position) of each step."""
    known, found = 0, {}
    for position, step in enumerate(steps):
        known = known if step.started_ns is None else step.started_ns
        found[id(step)] = (known, position)
    return found


def _numbers(instances: list[Step]) -> dict[int, int]:
    """1 for each run of an agent, a higher number for one that runs while another of its name does."""
    busy: dict[str | None, list[int | None]] = defaultdict(list)
    numbers: dict[int, int] = {}
    for step in instances:
        ends = busy[step.agent or step.name]
        start = step.started_ns or 0
        free = next((slot for slot, end in enumerate(ends) if end is not None and end <= start), None)
        if free is None:
            free = len(ends)
            ends.append(None)
        ends[free] = step.ended_ns if step.started_ns is not None else 0
        numbers[id(step)] = free + 1
    return numbers


def _are_attempts(views: list[Step]) -> bool:
    marks = [mark_of(view.called) for view in views]
    return all(mark is not None and marks[0] is not None and mark.content == marks[0].content for mark in marks)


def _take_over(outer: Step, view: Step) -> None:
    """What the upper span left out, and a failure that only the lower one saw."""
    if outer.called.args is ABSENT and outer.called.args_text is None:
        outer.called = replace(outer.called, args=view.called.args, args_text=view.called.args_text)
    if outer.called.call_id is None:
        outer.called = replace(outer.called, call_id=view.called.call_id)
    if view.answered is not None:
        if outer.answered is None:
            outer.answered = view.answered if outer.ended_ns is not None else None
        else:
            if outer.answered.value is ABSENT:
                outer.answered = replace(outer.answered, value=view.answered.value)
            if outer.answered.status == "ok" and view.answered.status != "ok":
                outer.answered = replace(
                    outer.answered, status=view.answered.status, error_class=view.answered.error_class
                )
    lower = {"span_id": view.step_id, **{key: item for key, item in view.extra.items() if key != "span_id"}}
    outer.extra = {**outer.extra, "lower_span": lower}
