"""A trace to a normalized trace: `redact -> paths -> ids -> offsets -> arguments -> results`, the same on both sides.

The text steps (redact, paths, ids) are composed in `LeafReader.text`; operations are then named in canonical order,
because labels and placeholders depend on it: turns and serial calls as they happened, members of a batch by (agent,
tool, key), the calls that ran within a call behind its batch. Arguments without ids, secrets or clock values depend on
nothing else, so their leaves are made once per distinct text (`ArgumentCache`). This module must not compare anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from goldentrace.codec.canonical import ARGS_DIGITS, JsonError, canonical, decode, digest
from goldentrace.errors import InputError, Where
from goldentrace.model.event import Approval, Decision, Effect, Limit, Message, ToolCall, TraceStart
from goldentrace.model.normal import Header, Masked, NormalTrace
from goldentrace.model.operation import (
    ApprovalStep,
    Attempt,
    DecisionStep,
    LeafMap,
    LooseEvent,
    Operation,
    WrittenLeaf,
    make_label,
)
from goldentrace.model.profile import Profile, Tool
from goldentrace.model.trace import Trace
from goldentrace.normalize.decisions import infer_decisions, infer_retries
from goldentrace.normalize.elements import ResultDocument
from goldentrace.normalize.ids import find_ids, id_values
from goldentrace.normalize.leaves import Flat, LeafReader, Mixed, Moment
from goldentrace.normalize.offsets import gap_ms, has_times, wall_ms
from goldentrace.normalize.operations import Group, Grouped, Try, group
from goldentrace.normalize.paths import path_step
from goldentrace.normalize.payloads import RunPayloads, flatten_call, result_value
from goldentrace.normalize.provenance import NewIds, Provenance
from goldentrace.normalize.results import compared_result, is_failure_text
from goldentrace.normalize.text import Token

NOW_WITHIN_MS = 5 * 60 * 1000
"""A value this near to its event's own clock is the clock's: the widest skew seen between an agent and its tools."""

RELATIVE_STEP_MS = 10 * 60 * 1000
"""Dates that follow the clock are named by their distance from it, rounded to this, so that latency does not show."""


@dataclass(slots=True)
class ArgumentCache:
    """Leaves and hash per distinct argument text, shared by both sides of a comparison under one profile.

    is_used False computes everything anew: the output must be the same.
    """

    is_used: bool = True
    plain: dict[tuple[str, bytes], tuple[LeafMap, str | None]] = field(default_factory=dict)


def normalize(
    trace: Trace,
    profile: Profile,
    profile_hash: str,
    *,
    key: bytes | None = None,
    cache: ArgumentCache | None = None,
    is_explained: bool = False,
) -> NormalTrace:
    """Return the normalized form of a trace.

    profile_hash: its digest, for the header; key: HMAC key of the digests; cache: shared with the other side, if any;
    is_explained: list every replaced value in `masked`.
    Raises: InputError naming the line where arguments are no JSON.
    """
    return _Normalization(trace, profile, key, cache or ArgumentCache(), is_explained=is_explained).run(profile_hash)


class _Normalization:
    """One run of the pipeline over one trace."""

    def __init__(
        self, trace: Trace, profile: Profile, key: bytes | None, cache: ArgumentCache, *, is_explained: bool
    ) -> None:
        self.trace = trace
        self.profile = profile
        self.start: TraceStart = trace.start
        self.paths = path_step(self.start, profile.paths)
        self.reader = LeafReader(profile, self.paths, key)
        self.cache = cache
        self.flats: dict[int, Flat] = {}
        self.masked: list[Masked] | None = [] if is_explained else None
        self.counts: dict[tuple[str, str], int] = {}
        self.result_ids: set[str] = set()
        self.result_ids_until = 0
        self.operations: list[Operation] = []
        self.order: list[Group] = []
        self.members: list[int] = []
        self._folders = tuple(folder.encode() for folder in self.paths.folders)

    def run(self, profile_hash: str) -> NormalTrace:
        trace = self.trace
        self._apply_error_patterns()
        literal_ids, message_index = self._literals()
        self.known_literals = literal_ids
        grouped = group(self.trace, self._same_arguments)
        wanted = self._argument_ids(grouped)
        self.wanted = wanted
        self.provenance = Provenance(self._settled_literals(literal_ids & wanted, message_index))
        for unit in grouped.units:
            self._name_unit(unit)
        states = self.start.states
        end = trace.end
        normal = NormalTrace(
            header=Header(
                scenario_id=self.start.scenario_id, seed=self.start.seed, profile=self.profile.name,
                profile_hash=profile_hash, states=None if states is None else tuple(sorted(set(states))),
            ),
            operations=self.operations,
            loose=self._loose(grouped),
            outcome=end.outcome if end is not None else "unknown",
            stop_reason=end.stop_reason if end is not None else "unknown",
            path=trace.path,
            has_turns=grouped.has_turns,
            has_times=has_times(trace),
            incomplete=trace.incomplete,
            end_line=trace.line_of(len(trace.events) - 1),
            payloads=RunPayloads(self.reader, self.order, self.members),
            notes=tuple(_note_text(note.text, note.line) for note in trace.notes),
            masked=self.masked or [],
        )  # fmt: skip
        infer_retries(normal)
        infer_decisions(normal, self.profile)
        return normal

    # -- what is an id, and whose --------------------------------------------------------------------------------

    def _apply_error_patterns(self) -> None:
        """A tool whose ok text matches the profile's `error_patterns` has failed."""
        tools = {name: tool for name, tool in self.profile.tools.items() if tool.error_patterns}
        if not tools:
            return
        names = {call.call_id: call.tool_name for call in self.trace.calls() if call.tool_name in tools}
        events = list(self.trace.events)
        for index, event in enumerate(events):
            tool_name = names.get(getattr(event, "call_id", ""))
            if tool_name is not None and is_failure_text(event, tools[tool_name].error_patterns):
                events[index] = _as_failed(event)
        self.trace = replace(self.trace, events=events)

    def _literals(self) -> tuple[set[str], dict[str, int]]:
        """Ids in user and system messages and in the scenario's inputs, with the index where each first stood."""
        first: dict[str, int] = {}
        for text in _strings((self.start.attributes or {}).get("inputs")):
            for _, _, token in find_ids(text):
                first.setdefault(token.value, -1)
        for index, event in enumerate(self.trace.events):
            if type(event) is Message and event.role in ("user", "system", "developer") and event.text is not None:
                for _, _, token in find_ids(event.text):
                    first.setdefault(token.value, index)
        return set(first), first

    def _settled_literals(self, candidates: set[str], first: dict[str, int]) -> frozenset[str]:
        """Those that no result held before the message did."""
        if not candidates:
            return frozenset()
        held: dict[str, int] = {}
        for index, event in enumerate(self.trace.events):
            result = getattr(event, "result", None)
            if result is not None and bytes(result):
                for value in id_values(bytes(result)) & candidates:
                    held.setdefault(value, index)
        return frozenset(value for value in candidates if first[value] < held.get(value, len(self.trace.events)))

    def _argument_ids(self, grouped: Grouped) -> set[str]:
        """Every id that stands in any argument: only those are looked for in results."""
        found: set[str] = set()
        for member in grouped.groups:
            for attempt in member.tries():
                flat = self._prepare(attempt)
                if flat is not None:
                    for pointer in flat.specials:
                        leaf = flat.leaves[pointer]
                        if isinstance(leaf, Mixed):
                            found.update(t.value for t in leaf.segments if not isinstance(t, str) and t.is_id)
        return found

    def _prepare(self, attempt: Try) -> Flat | None:
        """Flatten an attempt's arguments once: to what is written, where that is certain, else to leaves (returned)."""
        call = attempt.call
        is_cachable = self.cache.is_used and call.idempotency_key is None and call.args_raw is None
        name = (call.tool_name if call.tool_name in self.profile.tools else "", bytes(call.args))
        if is_cachable:
            attempt.plain = self.cache.plain.get(name)
            if attempt.plain is not None:
                return None
        flat = self._flatten(attempt)
        if flat.specials:
            self.flats[attempt.call_index] = flat
            return flat
        attempt.plain = (flat.leaves, _hash_of(flat.leaves))  # type: ignore[assignment]
        if is_cachable:
            self.cache.plain[name] = attempt.plain  # type: ignore[assignment]
        return None

    def _same_arguments(self, earlier: ToolCall, later: ToolCall, index: int) -> bool:
        """Equal leaves, where ids that neither a result nor a message held before `index` are erased."""
        if bytes(earlier.args) == bytes(later.args) and earlier.args_raw == later.args_raw:
            return True
        first, second = (flatten_call(self.reader, call, None).leaves for call in (earlier, later))
        first.pop("#idempotency_key", None)
        second.pop("#idempotency_key", None)
        if first.keys() != second.keys():
            return False
        return all(self._same_leaf(first[pointer], second[pointer], index) for pointer in first)

    def _same_leaf(self, first: Any, second: Any, index: int) -> bool:
        if first == second:
            return True
        if not (isinstance(first, Mixed) and isinstance(second, Mixed)) or len(first.segments) != len(second.segments):
            return (
                isinstance(first, Moment)
                and isinstance(second, Moment)
                and self._is_clock(first)
                and self._is_clock(second)
            )
        for one, other in zip(first.segments, second.segments, strict=True):
            if one == other:
                continue
            if isinstance(one, str) or isinstance(other, str) or one.kind != other.kind:
                return False
            if one.value != other.value and (self._has_source(one, index) or self._has_source(other, index)):
                return False
        return True

    def _is_clock(self, moment: Moment) -> bool:
        start = wall_ms(self.start)
        return start is not None and abs(moment.at_ms - start) < 24 * 3_600_000

    def _has_source(self, token: Token, index: int) -> bool:
        for event in self.trace.events[self.result_ids_until : index]:
            result = getattr(event, "result", None)
            if result is not None:
                self.result_ids |= id_values(bytes(result))
        self.result_ids_until = max(self.result_ids_until, index)
        return token.value in self.result_ids or token.value in self.known_literals

    # -- naming, in canonical order ------------------------------------------------------------------------------

    def _flatten(self, attempt: Try) -> Flat:
        try:
            return flatten_call(self.reader, attempt.call, self.profile.tools.get(attempt.call.tool_name))
        except JsonError as error:
            where = Where(self.trace.path, self.trace.line_of(attempt.call_index), "$.args")
            raise InputError(str(error), where=where, next_step="put what is no JSON in `args_raw`, as text") from None

    def _name_unit(self, unit: list[Group]) -> None:
        """Label the members of one batch (or one serial call), then take in their results, then their children."""
        number = len(self.order)
        if len(unit) > 1:
            if self.profile.compare.parallel_order == "any":
                tentative = {id(member): self._tentative_key(member) for member in unit}
                unit = sorted(unit, key=lambda member: tentative[id(member)])
            news = [self._name_operation(member, number) for member in unit]
        else:
            news = [self._name_operation(unit[0], number)]
        for member, new in zip(unit, news, strict=True):
            if new is not None and new.pointers:
                self.provenance.keep_new(new, member.label, member.label.rpartition("#")[0])
            self._take_results(member)
        for member in unit:
            for child_unit in member.children:
                self._name_unit(child_unit)

    def _tentative_key(self, member: Group) -> tuple[str, str, str]:
        call = member.first.call
        _, reduced_hash = self._written(member.first, NewIds(), None)
        return (call.agent, call.tool_name, reduced_hash or "")

    def _name_operation(self, member: Group, number: int) -> NewIds | None:
        call = member.first.call
        tool_name = call.tool_name
        place = (call.agent, tool_name)
        count = self.counts[place] = self.counts.get(place, 0) + 1
        member.label = label = make_label(call.agent, tool_name, count)
        plain = member.first.plain
        new = None if plain is not None and len(member.steps) == 1 else NewIds()
        args, args_hash = plain if plain is not None else self._written(member.first, new or NewIds(), label)
        tool = self.profile.tools.get(tool_name)
        access = call.access if call.access is not None or tool is None else tool.access
        self.operations.append(
            Operation(
                label=label, tool_name=tool_name, agent=call.agent, turn=member.turn, batch=member.batch,
                parent=member.parent.label if member.parent is not None else None, access=access,
                resource=call.resource, args=args, args_hash=args_hash, steps=self._steps(member, new, label, tool),
            )
        )  # fmt: skip
        self.order.append(member)
        self.members.append(number)
        if new is not None and new.pointers and len(self.order) - number > 1:
            self._share_new(new)
        return new

    def _share_new(self, new: NewIds) -> None:
        """Inside a batch an id that an earlier member was the first to hold is known by that member's arguments."""
        label = self.operations[-1].label
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
                steps.append(ApprovalStep(verdict=event.verdict, by=event.by, index=index, line=line))
            elif event.decision != "finish":
                steps.append(
                    DecisionStep(
                        decision=event.decision, by=event.by, reason=event.reason, delay_ms=event.delay_ms,
                        inferred=event.inferred, index=index, line=line,
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
                http_status=result.http_status, owed_ms=result.owed_ms, sent=result.sent, call_index=step.call_index,
                result_index=step.result_index, call_line=call_line,
                result_line=step.result_index + 1 if lines is None else lines[step.result_index],
            )  # fmt: skip
            mode = self.profile.results.compare if tool is None or tool.results is None else tool.results
            if mode != "status":
                attempt.result = compared_result(step, mode, self.reader, tool)
        if before is not None and new is not None:
            attempt.gap_ms = gap_ms(before.result, call)
            args, own_hash = self._written(step, new, label)
            if args != self._first_args(before, new):
                attempt.args, attempt.args_hash = args, own_hash
        return attempt

    def _first_args(self, before: Try, new: NewIds) -> LeafMap:
        return self._written(before, new, None)[0]

    def _written(self, attempt: Try, new: NewIds, label: str | None) -> tuple[LeafMap, str | None]:
        """The written leaf map of an attempt and the hash over its reduced form."""
        if attempt.plain is not None:
            return attempt.plain
        call = attempt.call
        flat = self.flats[attempt.call_index]
        written: LeafMap = {}
        reduced: dict[str, Any] = {}
        for pointer, leaf in flat.leaves.items():
            if isinstance(leaf, Mixed):
                written[pointer], reduced[pointer] = self._name_mixed(leaf, pointer, new, label)
            elif isinstance(leaf, Moment):
                written[pointer] = reduced[pointer] = self._name_moment(leaf, call, pointer, label)
            else:
                written[pointer] = reduced[pointer] = leaf
        return written, _hash_of(reduced)

    def _name_mixed(self, leaf: Mixed, pointer: str, new: NewIds, label: str | None) -> tuple[WrittenLeaf, WrittenLeaf]:
        """A leaf that is one placeholder is written as that; a mixed one as the digest of its template and
        placeholders."""
        template: list[Any] = []
        written: list[str] = []
        reduced: list[str] = []
        nth = 0
        for segment in leaf.segments:
            if isinstance(segment, str):
                template.append(segment)
                continue
            if segment.kind == "path":
                template.append({"path": segment.value})
                self._explain(label, pointer, segment, f"<{segment.value}>")
                continue
            nth += segment.is_id
            place = pointer if len(leaf.segments) == 1 else f"{pointer}~{nth}"
            found = (
                self.provenance.name_secret(segment)
                if segment.kind == "secret"
                else self.provenance.name(segment, place, new)
            )
            if found is None:
                template.append(segment.text)
                continue
            template.append({})
            written.append(found.written)
            reduced.append(found.reduced)
            self._explain(label, pointer, segment, found.written)
        template = _merged(template)
        if template == [{}]:
            return written[0], reduced[0]
        if all(isinstance(part, str) for part in template):
            plain = self.reader.describe("".join(template))
            return plain, plain
        length = sum(
            len(part) if isinstance(part, str) else len(part.get("path", "")) + 2 for part in template if part != {}
        )
        shape = f"str[{length}] {self.reader.digest(template)}"
        return " ".join((shape, *written)), " ".join((shape, *reduced))

    def _name_moment(self, leaf: Moment, call: ToolCall, pointer: str, label: str | None) -> WrittenLeaf:
        clock = wall_ms(call)
        if clock is None:
            return leaf.written
        distance_ms = leaf.at_ms - clock
        if leaf.is_relative and leaf.is_date:
            days = int(leaf.at_ms // 86_400_000) - int(clock // 86_400_000)
            placeholder = f"<today{days:+d}d>"
        elif abs(distance_ms) <= NOW_WITHIN_MS:
            placeholder = "<now>"
        elif leaf.is_relative:
            placeholder = f"<now{round(distance_ms / RELATIVE_STEP_MS) * RELATIVE_STEP_MS // 1000:+d}s>"
        else:
            return leaf.written
        self._explain(label, pointer, Token("now", "", str(leaf.at_ms), "time/now"), placeholder)
        return placeholder

    def _explain(self, label: str | None, pointer: str, token: Token, placeholder: str) -> None:
        if self.masked is not None and label is not None:
            shown = "(secret)" if token.kind == "secret" else token.text
            self.masked.append(Masked(label, pointer, shown, placeholder, token.rule))

    def _take_results(self, member: Group) -> None:
        """The ids of an operation's results are known from here on; a result that was left out makes later ids
        unknown."""
        for attempt in member.tries():
            result = attempt.result
            if result is None:
                continue
            raw = bytes(result.result)
            if not raw:
                if result.status == "ok":
                    self.provenance.is_blind = True
                continue
            if not self.wanted:
                continue
            wanted = {value for value in id_values(raw) & self.wanted if not self.provenance.is_known(value)}
            if self.reader.ids.has_keys or any(folder in raw for folder in self._folders):
                wanted = {value for value in self.wanted if not self.provenance.is_known(value)}
            if wanted:
                places = ResultDocument(result_value(attempt), self.reader).places(wanted)
                self.provenance.keep_result(places, member.label, member.label.rpartition("#")[0])

    # -- what belongs to no operation ----------------------------------------------------------------------------

    def _loose(self, grouped: Grouped) -> list[LooseEvent]:
        starts = sorted(member.first.call_index for member in grouped.groups)
        found: list[LooseEvent] = []
        position = 0
        for index in grouped.loose:
            while position < len(starts) and starts[position] < index:
                position += 1
            place = self._unit_end(position)
            event = self.trace.events[index]
            fields: dict[str, Any]
            if isinstance(event, Decision):
                if event.decision == "finish":
                    continue
                fields = {
                    "decision": event.decision, "by": event.by, "reason": event.reason,
                    "delay_ms": event.delay_ms, "inferred": event.inferred or None,
                }  # fmt: skip
                kind = "decision"
            elif isinstance(event, Limit):
                fields, kind = {"limit": event.limit, "max": event.max}, "limit"
            elif isinstance(event, Effect):
                fields, kind = self._effect(event), "effect"
            else:
                continue
            if event.agent != "main":
                fields["agent"] = event.agent
            kept = {name: value for name, value in fields.items() if value is not None}
            line = self.trace.line_of(index)
            found.append(LooseEvent(kind=kind, position=place, fields=kept, index=index, line=line))  # type: ignore[arg-type]
        return found

    def _unit_end(self, position: int) -> int:
        """A position inside a batch is moved behind it, because arrival inside a batch is no order."""
        while 0 < position < len(self.members) and self.members[position] == self.members[position - 1]:
            position += 1
        return position

    def _effect(self, event: Effect) -> dict[str, Any]:
        """An effect keeps its name; its key and value as leaves, ids in them by provenance."""
        fields: dict[str, Any] = {"name": event.name}
        for name, value in (("key", event.key), ("value", decode(event.value) if bytes(event.value) else None)):
            if value is None:
                continue
            flat = self.reader.flatten(value)
            written: LeafMap = {}
            for pointer, leaf in flat.leaves.items():
                if isinstance(leaf, Mixed):
                    written[pointer] = self._name_mixed(leaf, pointer, NewIds(), None)[0]
                else:
                    written[pointer] = leaf.written if isinstance(leaf, Moment) else leaf
            fields[name] = written[""] if set(written) == {""} else written
        return fields


def _hash_of(leaves: Mapping[str, Any]) -> str | None:
    """The digest over a reduced leaf map; None for no arguments at all."""
    return digest(canonical(leaves), ARGS_DIGITS) if leaves else None


def _merged(template: list[Any]) -> list[Any]:
    merged: list[Any] = []
    for part in template:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []


def _as_failed(event: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(event, status="error", error_class=event.error_class or "tool_error")


def _note_text(text: str, line: int | None) -> str:
    return text if line is None else f"line {line}: {text}"
