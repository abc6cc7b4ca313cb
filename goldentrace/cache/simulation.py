"""What a cache would have saved of one recorded run: the run's calls, replayed against a `ToolResultCache` whose clock
is the trace's.

A hit is judged by the result that was recorded for that very call: another digest means that the cache would have given
an old answer. What calls took stands in the trace; what a model turn cost too, or it is unknown: nothing is estimated.
The recorded offsets are kept, although a run with a cache is faster: entries are judged older than they would have
been, never younger. Must not read files.
"""

import glob
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import msgspec

from goldentrace.cache.results import MAX_ENTRIES, Look, ToolResultCache
from goldentrace.model.event import Access, ModelTurn, ToolCall, Usage
from goldentrace.model.operation import Attempt, Operation
from goldentrace.rules.subject import Subject


@dataclass(frozen=True, slots=True)
class Settings:
    """Of the simulated cache; tools: names or patterns to keep, empty for all that may be; undeclared: what a call of a
    tool counts as of which nothing is declared, `read` keeps its results."""

    ttl_s: float | None = None
    max_entries: int = MAX_ENTRIES
    tools: tuple[str, ...] = ()
    undeclared: Access = "read"


@dataclass(frozen=True, slots=True)
class Hit:
    """One call that the cache would have answered. line, first_line: of the call, and of the one whose result it would
    have got; age_ms: of that result, None without times; is_right: None where a result was left out or the call failed;
    why: what is not right, or not known; saved_ms: what the call took, None where unknown."""

    label: str
    tool_name: str
    line: int
    first_label: str
    first_line: int
    age_ms: float | None
    is_right: bool | None
    why: str
    saved_ms: float | None


@dataclass(slots=True)
class ToolSum:
    """What became of one tool's calls. why_not: why its results are not kept, None where they are; took_ms, saved_ms:
    of the calls whose duration is known."""

    tool_name: str
    why_not: str | None
    is_declared: bool
    calls: int = 0
    hits: int = 0
    wrong: int = 0
    unverified: int = 0
    timed: int = 0
    took_ms: float = 0.0
    saved_ms: float = 0.0


@dataclass(slots=True)
class TokenSum:
    """Sums over model turns. known: turns whose usage the trace has; a number is None where no turn has it.

    uncached_input_tokens: input without what the provider had cached, of the turns that tell both.
    """

    turns: int = 0
    known: int = 0
    input_tokens: int | None = None
    uncached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def add(self, usage: Usage | None) -> None:
        self.turns += 1
        if usage is None:
            return
        self.known += 1
        if usage.input_tokens is not None:
            self.input_tokens = (self.input_tokens or 0) + usage.input_tokens
            if usage.cached_tokens is not None:
                fresh = max(usage.input_tokens - usage.cached_tokens, 0)
                self.uncached_input_tokens = (self.uncached_input_tokens or 0) + fresh
        if usage.output_tokens is not None:
            self.output_tokens = (self.output_tokens or 0) + usage.output_tokens
        if usage.cost_usd is not None:
            self.cost_usd = round((self.cost_usd or 0.0) + usage.cost_usd, 9)


@dataclass(slots=True)
class Simulation:
    """What a cache would have done. hits: in order of the calls; all_turns: of the whole run; repeat_turns: of the
    turns in which the model asked only for what the cache held; has_times: does the trace tell when calls happened?"""

    tools: list[ToolSum] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    all_turns: TokenSum = field(default_factory=TokenSum)
    repeat_turns: TokenSum = field(default_factory=TokenSum)
    has_times: bool = True

    @property
    def calls(self) -> int:
        return sum(tool.calls for tool in self.tools)

    @property
    def wrong(self) -> list[Hit]:
        return [hit for hit in self.hits if hit.is_right is False]

    @property
    def unverified(self) -> list[Hit]:
        return [hit for hit in self.hits if hit.is_right is None]


class TraceClock:
    """Shows the time of the event that is being replayed; never goes back."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def move_to(self, at_ms: float | None) -> None:
        """Show a later time; an unknown or earlier one changes nothing."""
        if at_ms is not None:
            self.now_ms = max(self.now_ms, at_ms)

    def monotonic_ns(self) -> int:
        return round(self.now_ms * 1e6)

    def time_ns(self) -> int:
        return self.monotonic_ns()


@dataclass(frozen=True, slots=True)
class _Source:
    """The call whose result an entry holds."""

    operation: Operation
    attempt: Attempt
    digest: str | None


def simulate(subject: Subject, settings: Settings) -> Simulation:
    """Return what a cache would have saved of a trace that was placed in time. Linear in events.

    Every execution counts, retries too: a wrapped tool asks the cache each time. Raises: ConfigError for settings that
    are wrong.
    """
    clock = TraceClock()
    names = sorted({operation.tool_name for operation in subject.operations})
    left_out = [name for name in names if settings.tools and not any(fnmatchcase(name, t) for t in settings.tools)]
    cache = ToolResultCache(
        settings.ttl_s,
        settings.max_entries,
        include=settings.tools or (("*",) if settings.undeclared == "read" else ()),
        exclude=[glob.escape(name) for name in left_out],
        undeclared=settings.undeclared,
        profile=subject.profile,
        clock=clock,
    )
    for name in names:
        cache.declare(name, subject.tool(name))
    replay = _Replay(subject, cache, clock)
    for index in range(len(subject.trace.events)):
        replay.step(index)
    replay.count_turns()
    return replay.found


class _Replay:
    """The state of one simulation: which executions are under way, which were answered."""

    def __init__(self, subject: Subject, cache: ToolResultCache, clock: TraceClock) -> None:
        self._subject = subject
        self._cache = cache
        self._clock = clock
        self._starting = {attempt.call_index: (op, attempt) for op, attempt in subject.attempts}
        self._ending = {a.result_index: (op, a) for op, a in subject.attempts if a.result_index is not None}
        self._looks: dict[int, Look] = {}
        self._hit_calls: set[int] = set()
        self._tools: dict[str, ToolSum] = {}
        self.found = Simulation(has_times=subject.normal.has_times)

    def step(self, index: int) -> None:
        """Replay one event: a call is looked up, a result is kept."""
        if index in self._starting:
            operation, attempt = self._starting[index]
            self._clock.move_to(attempt.started_ms)
            self._start(operation, attempt)
        elif index in self._ending:
            operation, attempt = self._ending[index]
            self._clock.move_to(attempt.ended_ms)
            self._end(operation, attempt)

    def _start(self, operation: Operation, attempt: Attempt) -> None:
        entry = self._sum_of(operation)
        took_ms = _took_ms(attempt)
        entry.calls += 1
        if took_ms is not None:
            entry.timed += 1
            entry.took_ms += took_ms
        if attempt.status == "denied":
            return  # the tool never saw it
        self._declare_access(operation)
        arguments = self._subject.arguments(attempt)  # MISSING is no JSON, so that it is not kept
        look = self._cache.look_up(operation.tool_name, arguments, resource=self._subject.resource(operation))
        if look.entry is None:
            self._looks[attempt.call_index] = look
            return
        hit = self._hit(operation, attempt, look)
        self._hit_calls.add(attempt.call_index)
        self.found.hits.append(hit)
        entry.hits += 1
        entry.wrong += hit.is_right is False
        entry.unverified += hit.is_right is None
        entry.saved_ms += hit.saved_ms or 0.0

    def _end(self, operation: Operation, attempt: Attempt) -> None:
        look = self._looks.pop(attempt.call_index, None)
        if look is None:
            return
        if attempt.status == "ok":
            self._cache.store(look, _Source(operation, attempt, self._subject.result_digest(attempt)))
        else:
            self._cache.drop(look)

    def _declare_access(self, operation: Operation) -> None:
        """What the recorder said of a call counts where nothing else is declared of its tool."""
        access = self._subject.access(operation)
        tool = self._subject.tool(operation.tool_name)
        if access is not None and self._cache.known(operation.tool_name).access != access:
            self._cache.declare(operation.tool_name, msgspec.structs.replace(tool, access=access))
            entry = self._tools[operation.tool_name]
            entry.why_not, entry.is_declared = self._cache.why_not(operation.tool_name), True

    def _hit(self, operation: Operation, attempt: Attempt, look: Look) -> Hit:
        assert look.entry is not None, "asked of hits only"
        source: _Source = look.entry.value
        now = self._subject.result_digest(attempt)
        is_right: bool | None = None
        if attempt.status != "ok":
            why = f"the recorded call ended with {attempt.status or 'no result'}"
        elif now is None or source.digest is None:
            why = "the trace holds no result to compare"
        else:
            is_right = now == source.digest
            why = "" if is_right else "the recorded call returned another result"
        age_ms = None if attempt.started_ms is None else self._cache.now_ms() - look.entry.stored_ms
        return Hit(
            operation.label, operation.tool_name, attempt.call_line, source.operation.label, source.attempt.call_line,
            age_ms, is_right, why, _took_ms(attempt),
        )  # fmt: skip

    def _sum_of(self, operation: Operation) -> ToolSum:
        name = operation.tool_name
        if name not in self._tools:
            is_declared = self._subject.access(operation) is not None
            self._tools[name] = ToolSum(name, self._cache.why_not(name), is_declared)
            self.found.tools.append(self._tools[name])
        return self._tools[name]

    def count_turns(self) -> None:
        """Sum what turns used, and of those in which the model asked only for what the cache held."""
        turns, asked = _calls_of_turns(self._subject)
        for index, turn in turns:
            self.found.all_turns.add(turn.usage)
            calls = asked.get(index)
            if calls and all(call in self._hit_calls for call in calls):
                self.found.repeat_turns.add(turn.usage)


def _took_ms(attempt: Attempt) -> float | None:
    if attempt.started_ms is None or attempt.ended_ms is None:
        return None
    return max(attempt.ended_ms - attempt.started_ms, 0.0)


def _calls_of_turns(subject: Subject) -> tuple[list[tuple[int, ModelTurn]], dict[int, list[int]]]:
    """The turns, and index of a turn -> indexes of the calls that the model asked for in it: by number where events
    have one, else the turn before them."""
    asked: dict[int, list[int]] = {}
    by_number: dict[tuple[str, int], int] = {}
    last: dict[str, int] = {}
    for index, event in enumerate(subject.trace.events):
        if isinstance(event, ModelTurn):
            last[event.agent] = index
            if event.turn is not None:
                by_number[event.agent, event.turn] = index
        elif isinstance(event, ToolCall) and event.origin == "model":
            place = last.get(event.agent)
            if event.turn is not None:
                place = by_number.get((event.agent, event.turn), place)
            if place is not None:
                asked.setdefault(place, []).append(index)
    return subject.turns, asked


def sums_of(tools: Iterable[ToolSum]) -> tuple[float | None, float | None]:
    """Return the ms that calls took before and after, None where no duration is known."""
    timed = [tool for tool in tools if tool.timed]
    if not timed:
        return None, None
    took = sum(tool.took_ms for tool in timed)
    return took, took - sum(tool.saved_ms for tool in timed)
