"""A trace to a normalized trace: `redact -> paths -> ids -> offsets -> arguments -> results`, the same on both sides.

The text steps (redact, paths, ids) are composed in `LeafReader.text`; operations are then named in canonical order,
because labels and placeholders depend on it: turns and serial calls as they happened, members of a batch by (agent,
tool, key), the calls that ran within a call behind its batch. This module must not compare anything.
"""

from bisect import bisect_right
from collections.abc import Collection
from typing import Any

from goldentrace.model.event import DECISION_KINDS, Approval, Decision, Effect, ModelTurn, TraceStart
from goldentrace.model.normal import Header, Masked, NormalTrace
from goldentrace.model.operation import BEFORE_TURNS, ApprovalStep, Attempt, DecisionStep, Operation, make_label
from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace
from goldentrace.normalize.arguments import ArgumentCache, ArgumentWriter
from goldentrace.normalize.decisions import infer_decisions, infer_retries
from goldentrace.normalize.elements import ResultDocument
from goldentrace.normalize.ids import id_values, values_of
from goldentrace.normalize.leaves import LeafReader, Mixed
from goldentrace.normalize.likeness import ArgumentLikeness
from goldentrace.normalize.literals import given_ids, literal_ids
from goldentrace.normalize.loose import effect_ids, loose_events
from goldentrace.normalize.offsets import gap_ms, has_times
from goldentrace.normalize.operations import Group, Grouped, Try, group
from goldentrace.normalize.paths import path_step
from goldentrace.normalize.payloads import RunPayloads, result_value
from goldentrace.normalize.provenance import NewIds, Provenance
from goldentrace.normalize.results import compared_result, with_failures

__all__ = ["ArgumentCache", "normalize"]


def normalize(
    trace: Trace,
    profile: Profile,
    profile_hash: str,
    *,
    key: bytes | None = None,
    cache: ArgumentCache | None = None,
    constants: Collection[str] = (),
    is_explained: bool = False,
) -> NormalTrace:
    """Return the normalized form of a trace.

    profile_hash: its digest, for the header; key: HMAC key of the digests; cache: shared with the other side, if any;
    constants: written leaves (`str[36] h:…`) that are values although they look random, because a golden holds them
    as values or every run had them; is_explained: list every replaced value in `masked`.
    Raises: InputError naming the line where arguments are no JSON.
    """
    return _Normalization(trace, profile, key, cache or ArgumentCache(), is_explained=is_explained).run(
        profile_hash, constants
    )


class _Normalization:
    """One run of the pipeline over one trace."""

    def __init__(
        self, trace: Trace, profile: Profile, key: bytes | None, cache: ArgumentCache, *, is_explained: bool
    ) -> None:
        self.trace = with_failures(trace, profile)
        self.profile = profile
        paths = path_step(trace.start, profile.paths)
        self.reader = LeafReader(profile, paths, key)
        self.masked: list[Masked] = []
        self.writer = ArgumentWriter(self.trace, profile, self.reader, cache, self.masked if is_explained else None)
        self.turn_indexes: list[int] | None = None
        self.wanted: set[str] = set()
        self.counts: dict[tuple[str, str], int] = {}
        self.turns: dict[str, _Turns] = {}
        self.batches: dict[tuple[str, int | None], int] = {}
        self.operations: list[Operation] = []
        self.order: list[Group] = []
        self.members: list[int] = []
        self._folders = tuple(folder.encode() for folder in paths.folders)

    @property
    def provenance(self) -> Provenance:
        return self.writer.provenance

    def run(self, profile_hash: str, constants: Collection[str]) -> NormalTrace:
        trace = self.trace
        given = given_ids(trace)
        grouped = group(trace, ArgumentLikeness(trace, self.reader, given))
        self.wanted = self._argument_ids(grouped)
        self.writer.provenance = Provenance(
            literal_ids(trace, given, self.wanted), self._constant_ids(grouped, constants)
        )
        turned = {member.first.call.agent for member in grouped.groups if member.turn is not None}
        self.turns = {agent: _Turns() for agent in turned}
        self._name_units(grouped.units)
        start, end = trace.start, trace.end
        normal = NormalTrace(
            header=Header(
                scenario_id=start.scenario_id, seed=start.seed, profile=self.profile.name,
                profile_hash=profile_hash, states=_stated_kinds(trace),
            ),
            operations=self.operations,
            loose=loose_events(trace, grouped, self.members, self.writer),
            outcome=end.outcome if end is not None else "unknown",
            stop_reason=end.stop_reason if end is not None else "unknown",
            path=trace.path,
            has_turns=grouped.has_turns,
            has_times=has_times(trace),
            incomplete=trace.incomplete,
            end_line=trace.line_of(len(trace.events) - 1),
            payloads=RunPayloads(self.reader, self.order, self.members, self.writer.ids),
            notes=(*(_note_text(note.text, note.line) for note in trace.notes), *_unheard_of(start)),
            masked=self.masked,
        )  # fmt: skip
        infer_retries(normal, start.states)
        infer_decisions(normal, self.profile, start.states)
        return normal

    def _argument_ids(self, grouped: Grouped) -> set[str]:
        """Every id that stands in any argument or effect: only those are looked for in results."""
        found: set[str] = set()
        for member in grouped.groups:
            for attempt in member.tries():
                flat = self.writer.prepare(attempt)
                if flat is not None:
                    for pointer in flat.specials:
                        leaf = flat.leaves[pointer]
                        if isinstance(leaf, Mixed):
                            found.update(values_of(leaf.segments))
        for index in grouped.loose:
            event = self.trace.events[index]
            if isinstance(event, Effect):
                found |= effect_ids(event, self.reader)
        return found

    def _constant_ids(self, grouped: Grouped, constants: Collection[str]) -> frozenset[str]:
        """The ids that are a whole argument and whose written form is among the constants."""
        if not constants or not self.wanted:
            return frozenset()
        found: set[str] = set()
        for member in grouped.groups:
            for attempt in member.tries():
                found.update(
                    leaf.segments[0].value
                    for leaf in self.writer.leaves(attempt)
                    if isinstance(leaf, Mixed)
                    and len(leaf.segments) == 1
                    and not isinstance(leaf.segments[0], str)
                    and leaf.segments[0].is_id
                    and self.reader.describe(leaf.segments[0].text) in constants
                )
        return frozenset(found)

    def _name_units(self, units: list[list[Group]]) -> None:
        """Label the members of each batch (or serial call), then take in their results, then those within them."""
        waiting = units[::-1]
        while waiting:
            unit = waiting.pop()
            number = len(self.order)
            if len(unit) > 1 and self.profile.compare.parallel_order == "any":
                tentative = {id(member): self._tentative_key(member) for member in unit}
                unit = sorted(unit, key=lambda member: tentative[id(member)])
            turn, batch = self._place(unit)
            for member in unit:
                self._name_operation(member, number, turn, batch)
            if self.wanted:
                for member in unit:
                    self._take_results(member)
            for member in reversed(unit):
                if member.children:
                    waiting.extend(reversed(member.children))

    def _tentative_key(self, member: Group) -> tuple[str, str, str, list[str]]:
        """Exact twins are told apart by how they ended: the first of them is the one that later ids are named by."""
        call = member.first.call
        _, reduced_hash = self.writer.written(member.first, NewIds(), None)
        ends = [attempt.result.status if attempt.result is not None else "" for attempt in member.tries()]
        return (call.agent, call.tool_name, reduced_hash or "", ends)

    def _place(self, unit: list[Group]) -> tuple[int | None, int | None]:
        """The turn of a unit (its agent's last one, where it states none), and its number among the turn's batches."""
        agent = unit[0].first.call.agent
        turns = self.turns.get(agent) if self.turns else None
        turn = None if turns is None else turns.number(unit[0].turn)
        if len(unit) == 1:
            return turn, None
        batch = self.batches[agent, turn] = self.batches.get((agent, turn), 0) + 1
        return turn, batch

    def _name_operation(self, member: Group, number: int, turn: int | None, batch: int | None) -> None:
        call = member.first.call
        tool_name = call.tool_name
        place = (call.agent, tool_name)
        count = self.counts[place] = self.counts.get(place, 0) + 1
        member.label = label = make_label(call.agent, tool_name, count)
        plain = member.first.plain
        new = None if plain is not None and len(member.steps) == 1 else NewIds()
        args, args_hash = plain if plain is not None else self.writer.written(member.first, new or NewIds(), label)
        tool = self.profile.tools.get(tool_name) if self.profile.tools else None
        access = call.access if call.access is not None or tool is None else tool.access
        self.operations.append(
            Operation(
                label=label, tool_name=tool_name, agent=call.agent, turn=turn, batch=batch,
                parent=member.parent.label if member.parent is not None else None, access=access,
                resource=call.resource, args=args, args_hash=args_hash, steps=self._steps(member, new, label, tool),
            )
        )  # fmt: skip
        self.order.append(member)
        self.members.append(number)
        if new is not None and new.places:  # known to the later members of a batch already
            self.provenance.keep_new(new, label, label.rpartition("#")[0])

    def _steps(self, member: Group, new: NewIds | None, label: str, tool: Tool | None) -> list[Any]:
        if new is None:
            return [self._attempt(member.first, None, 1, None, label, tool)]
        steps: list[Any] = []
        before: Try | None = None
        count = 0
        for step in member.steps:
            if type(step) is Try:
                count += 1
                steps.append(self._attempt(step, before, count, new, label, tool))
                before = step
                continue
            event, index = step  # type: ignore[misc]
            line = self.trace.line_of(index)
            if isinstance(event, Approval):
                by = self.reader.words(event.by)
                is_early = before is not None and (before.result is None or index < before.result_index)
                steps.append(ApprovalStep(verdict=event.verdict, is_early=is_early, by=by, index=index, line=line))
            elif event.decision != "finish":
                steps.append(
                    DecisionStep(
                        decision=event.decision, by=event.by, reason=self.reader.words(event.reason),
                        delay_ms=event.delay_ms, inferred=event.inferred, index=index, line=line,
                    )
                )  # fmt: skip
        return steps

    def _attempt(
        self, step: Try, before: Try | None, number: int, new: NewIds | None, label: str, tool: Tool | None
    ) -> Attempt:
        call, result = step.call, step.result
        lines = self.trace.lines
        call_line = step.call_index + 1 if lines is None else lines[step.call_index]
        if result is None:
            attempt = Attempt(number=number, origin=call.origin, call_index=step.call_index, call_line=call_line)
        else:
            attempt = Attempt(
                number=number, origin=call.origin, status=result.status, error_class=result.error_class,
                http_status=result.http_status if result.status != "ok" else None,  # of an error; ok says enough
                owed_ms=result.owed_ms, sent=result.sent, call_index=step.call_index,
                result_index=step.result_index, call_line=call_line,
                result_line=step.result_index + 1 if lines is None else lines[step.result_index],
            )  # fmt: skip
            mode = self.profile.results.compare if tool is None or tool.results is None else tool.results
            if mode != "status":
                attempt.result = compared_result(step, mode, self.reader, tool)
        if before is not None and new is not None:
            attempt.gap_ms = gap_ms(before.result, call)
            attempt.after_model_turn = self._is_model_between(before.call_index, step.call_index)
            args_before, _ = self.writer.written(before, new, None)
            new.attempt = number
            args, own_hash = self.writer.written(step, new, label)
            if args != args_before:
                attempt.args, attempt.args_hash = args, own_hash
        return attempt

    def _is_model_between(self, before: int, now: int) -> bool:
        """Did a model turn ask for the later attempt? Then the gap holds the model's latency."""
        if self.turn_indexes is None:  # few runs retry anything
            self.turn_indexes = [index for index, event in enumerate(self.trace.events) if type(event) is ModelTurn]
        place = bisect_right(self.turn_indexes, before)
        return place < len(self.turn_indexes) and self.turn_indexes[place] < now

    def _take_results(self, member: Group) -> None:
        """The ids of an operation's results are known from here on; a result that was left out makes later ids
        unknown."""
        tries = member.tries()
        for number, attempt in enumerate(tries, start=1):
            result = attempt.result
            if result is None:
                continue
            raw = bytes(result.result)
            if not raw:
                if result.status == "ok":
                    self.provenance.is_blind = True
                continue
            wanted = {value for value in id_values(raw) & self.wanted if not self.provenance.is_known(value)}
            if self.reader.ids.has_keys or any(folder in raw for folder in self._folders):
                wanted = {value for value in self.wanted if not self.provenance.is_known(value)}
            if wanted:
                places = ResultDocument(result_value(attempt), self.reader).places(wanted)
                tool = member.label.rpartition("#")[0]
                self.provenance.keep_result(places, member.label, tool, number if number < len(tries) else None)


class _Turns:
    """The turns of one agent as its calls come to stand: one that it left and comes back to is another, because a
    golden cannot open a turn again."""

    def __init__(self) -> None:
        self._stated = self._number = BEFORE_TURNS
        self._used = {BEFORE_TURNS}

    def number(self, stated: int | None) -> int:
        """Return the number of the turn that a call stands in. stated: by its source; None for the last one."""
        if stated is not None and stated != self._stated:
            self._stated = stated
            self._number = stated if stated not in self._used else max(self._used) + 1
            self._used.add(self._number)
        return self._number


def _stated_kinds(trace: Trace) -> tuple[str, ...] | None:
    """The decision kinds that the source says it states, and those that it did state; None for all."""
    if trace.start.states is None:
        return None
    kinds = {*trace.start.states, *(event.decision for event in trace.events if type(event) is Decision)}
    return tuple(sorted(kinds.intersection(DECISION_KINDS)))


def _unheard_of(start: TraceStart) -> list[str]:
    unknown = sorted(set(start.states or ()).difference(DECISION_KINDS))
    return [f"no kind of decision, left out of `states`: {', '.join(map(repr, unknown))}"] if unknown else []


def _note_text(text: str, line: int | None) -> str:
    return text if line is None else f"line {line}: {text}"
