"""Plays a script: for each request the turn that is due, its references resolved and its ids drawn.

A turn is due when those before it have been served as often as they say, or do not apply. Nothing is improvised:
where no turn is left, or none applies, the request fails and so does the run. This module must not know a wire
format, a socket or a clock."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from goldentrace.codec.canonical import encode
from goldentrace.errors import Where
from goldentrace.model.operation import escape_label
from goldentrace.replay.conversation import Call, ModelRequest, Reply, Result, TokenUsage, object_of
from goldentrace.replay.draw import draw_id
from goldentrace.replay.references import Lookup, ReferenceMissingError, resolve, resolve_text
from goldentrace.replay.script import FOREVER, AgentScript, Condition, Script, ScriptedCall, ScriptTurn

EndedWith: TypeAlias = Literal["final_answer", "provider_error", "tool_calls", "nothing"]


class ScriptFailure(Exception):  # noqa: N818 (it says what the script cannot do; it is no error of the code)
    """The script has no answer. The message says which turn and why; kind: a word for the provider's error code."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class SeenResult:
    """A result that a request carries for the first time. call: what it answers, None where no open call has its id."""

    result: Result
    is_error: bool
    call: "ServedCall | None"


@dataclass(frozen=True, slots=True)
class ServedCall:
    """A call as it was served.

    reply_number: which of the agent's replies it was in; event_id: its id in events, made up where the call has none;
    label: name of the tool and its ordinal among the agent's calls of that tool.
    """

    call: Call
    reply_number: int
    event_id: str
    label: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Intake:
    """What a request brings that was not known. agent: whose request it is; replies: how many it has had so far."""

    agent: str
    replies: int
    new_results: tuple[SeenResult, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """What is due for a request: a turn of an agent, and the reply that it makes (an error or a cut too has one)."""

    agent: str
    turn: ScriptTurn
    reply: Reply
    reply_number: int
    calls: tuple[ServedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnUse:
    """How often a turn was served. wanted: its `repeat`, FOREVER (-1) without end."""

    agent: str
    index: int
    line: int
    served: int
    wanted: int
    is_conditional: bool

    @property
    def is_unused(self) -> bool:
        """Whether something that the script takes for certain did not happen."""
        if self.is_conditional:
            return False
        return self.served < (1 if self.wanted == FOREVER else self.wanted)


@dataclass(slots=True)
class _AgentState:
    script: AgentScript
    position: int = 0
    served: Counter[int] = field(default_factory=Counter)
    replies: int = 0
    calls_of_tool: Counter[str] = field(default_factory=Counter)
    open_calls: list[ServedCall] = field(default_factory=list)
    last_calls: list[ServedCall] = field(default_factory=list)
    seen_results: Counter[str] = field(default_factory=Counter)
    result_texts: dict[tuple[str, int], str] = field(default_factory=dict)
    tool_of: dict[str, str] = field(default_factory=dict)


class ScriptPlayer:
    """One run of a script. Not thread-safe: one request at a time."""

    def __init__(self, script: Script, *, seed: int | None = None) -> None:
        self.script = script
        self.seed = script.seed if seed is None else seed
        self.failure: str | None = None
        self.notes: list[str] = []
        self.ended_with: EndedWith = "nothing"
        self._states = [_AgentState(agent) for agent in script.agents]

    def take_in(self, request: ModelRequest) -> Intake:
        """Return whose request it is and which results it brings for the first time; once per request, before `play`.

        Raises: ScriptFailure where it is of none of the agents.
        """
        state = self._state_for(request)
        return Intake(state.script.name, state.replies, self._observe(state, request))

    def play(self, request: ModelRequest, intake: Intake, *, call_prefix: str, reply_prefix: str) -> Served:
        """Return the turn that is due for a request that was taken in.

        call_prefix, reply_prefix: how the ids of the wire begin.
        Raises: ScriptFailure where there is none; the first one is kept in `failure`.
        """
        state = next(state for state in self._states if state.script.name == intake.agent)
        try:
            served = self._serve(state, self._due(state, request), request, call_prefix, reply_prefix)
        except ScriptFailure as failure:
            self.fail(failure.message)
            raise
        self._note_undeclared(served, request)
        return served

    def fail(self, message: str) -> None:
        """Keep the first reason why the run has no verdict."""
        self.failure = self.failure or message

    def uses(self) -> list[TurnUse]:
        """Return how often each turn was served, in the order of the script."""
        return [
            TurnUse(state.script.name, index, turn.line, state.served[index], turn.repeat, bool(turn.when))
            for state in self._states
            for index, turn in enumerate(state.script.turns)
        ]

    def _state_for(self, request: ModelRequest) -> _AgentState:
        for state in self._states:
            agent = state.script
            if (
                agent.model in (None, request.model)
                and (agent.system_contains is None or agent.system_contains in request.system_text())
                and set(agent.tools) <= set(request.tool_names)
            ):
                return state
        names = ", ".join(state.script.name for state in self._states)
        problem = f"a request for {request.model} is of none of the script's agents: {names} ({self.script.path})"
        self.fail(problem)
        raise ScriptFailure("no_agent_matches", problem)

    def _observe(self, state: _AgentState, request: ModelRequest) -> tuple[SeenResult, ...]:
        """The results that were in no earlier request, each with the nearest earlier open call of its id."""
        counts: Counter[str] = Counter()
        seen: list[SeenResult] = []
        for result in request.results():
            counts[result.call_id] += 1
            if counts[result.call_id] <= state.seen_results[result.call_id]:
                continue
            state.seen_results[result.call_id] += 1
            call = _take_open(state, result.call_id)
            if call is not None:
                state.result_texts[call.label] = result.text
            seen.append(SeenResult(result, self._is_error(result), call))
        return tuple(seen)

    def _is_error(self, result: Result) -> bool:
        """What the wire says; else a flag in a structured text, else what the script declares."""
        if result.is_error is not None:
            return result.is_error
        fields = object_of(result.text) or {}
        if any(fields.get(flag) is True for flag in ("is_error", "isError")):
            return True
        return any(text in result.text for text in self.script.error_texts)

    def _due(self, state: _AgentState, request: ModelRequest) -> ScriptTurn:
        turns = state.script.turns
        position = state.position
        while position < len(turns):
            turn = turns[position]
            is_left = turn.repeat == FOREVER or state.served[position] < turn.repeat
            if is_left and all(self._holds(condition, state, request) for condition in turn.when):
                state.position = position
                state.served[position] += 1
                return turn
            position += 1
        raise self._failure(state)

    def _failure(self, state: _AgentState) -> ScriptFailure:
        """Why no turn is due: the script is at its end, or what is left of it does not apply."""
        who = "" if len(self._states) == 1 else f" of agent {state.script.name}"
        request = f"request {sum(state.served.values()) + 1}{who}"
        for index, turn in enumerate(state.script.turns[state.position :], start=state.position):
            if turn.when and (turn.repeat == FOREVER or state.served[index] < turn.repeat):
                where = Where(self.script.path, turn.line or None)
                return ScriptFailure(
                    "no_turn_applies", f"no turn of the script applies to {request}: no `when` holds ({where})"
                )
        turns = len(state.script.turns)
        return ScriptFailure(
            "script_exhausted", f"the script has no turn left for {request} ({self.script.path}, {turns} turns)"
        )

    def _holds(self, condition: Condition, state: _AgentState, request: ModelRequest) -> bool:
        if condition.user_contains is not None and condition.user_contains not in request.last_user_text():
            return False
        if condition.status is None and condition.tool_name is None and condition.contains is None:
            return True
        results = request.new_results()
        tool_of = {**_tools_in(request), **state.tool_of}
        if condition.status == "missing":
            open_calls = [served for served in state.last_calls if served in state.open_calls]
            return any(condition.tool_name in (None, served.call.tool_name) for served in open_calls)
        return any(
            (condition.status is None or (condition.status == "error") == self._is_error(result))
            and condition.tool_name in (None, tool_of.get(result.call_id))
            and (condition.contains is None or condition.contains in result.text)
            for result in results
        )

    def _serve(
        self, state: _AgentState, turn: ScriptTurn, request: ModelRequest, call_prefix: str, reply_prefix: str
    ) -> Served:
        number = state.replies + 1
        scope = (state.script.name, sum(state.served.values()))
        try:
            text = turn.text if turn.is_literal else resolve_text(turn.text, self._lookup(state))
            calls = tuple(
                self._call(call, state, turn, draw_id(call_prefix, self.seed, *scope, index))
                for index, call in enumerate(turn.calls)
            )
        except ReferenceMissingError as error:
            where = Where(self.script.path, turn.line or None)
            raise ScriptFailure("reference_missing", f"a reference cannot be resolved: {error} ({where})") from None
        reply = Reply(
            reply_id=draw_id(reply_prefix, self.seed, *scope),
            model=request.model,
            text=text,
            calls=calls,
            finish=turn.finish_reason,
            usage=turn.usage or TokenUsage(),
        )
        if turn.error is not None or turn.cut is not None:
            self.ended_with = "provider_error"
            return Served(state.script.name, turn, reply, number)
        state.replies = number
        self._keep(state, calls)
        self.ended_with = "tool_calls" if calls else "final_answer"
        return Served(state.script.name, turn, reply, number, tuple(state.last_calls))

    def _call(self, call: ScriptedCall, state: _AgentState, turn: ScriptTurn, drawn_id: str) -> Call:
        call_id = (call.call_id or drawn_id) if call.has_id else None
        if call.args_raw is not None:
            return Call(call.tool_name, call.args_raw, call_id)
        args = call.args if turn.is_literal else resolve(call.args, self._lookup(state))
        return Call(call.tool_name, encode(args).decode("utf-8"), call_id)

    def _lookup(self, state: _AgentState) -> Lookup:
        def find(tool: str, number: int) -> str:
            if (tool, number) not in state.result_texts:
                raise ReferenceMissingError(f"<{tool}#{number}>: no such result so far")
            return state.result_texts[tool, number]

        return find

    def _keep(self, state: _AgentState, calls: tuple[Call, ...]) -> None:
        state.last_calls = []
        for index, call in enumerate(calls, start=1):
            name = escape_label(call.tool_name)
            state.calls_of_tool[name] += 1
            event_id = call.call_id or f"call-{state.replies}-{index}"
            served = ServedCall(call, state.replies, event_id, (name, state.calls_of_tool[name]))
            state.last_calls.append(served)
            if call.call_id is not None:
                state.tool_of[call.call_id] = call.tool_name
        state.open_calls.extend(state.last_calls)

    def _note_undeclared(self, served: Served, request: ModelRequest) -> None:
        for call in served.reply.calls:
            if call.tool_name not in request.tool_names:
                self._note(f"{self._place(served)}: the request did not declare the tool {call.tool_name}")
        if len(served.reply.calls) > 1 and not request.is_parallel:
            self._note(f"{self._place(served)}: {len(served.reply.calls)} calls, but the request allows one at a time")

    def _place(self, served: Served) -> str:
        return str(Where(self.script.path, served.turn.line or None))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _take_open(state: _AgentState, call_id: str) -> ServedCall | None:
    """Remove and return the call that a result answers: the open one of its id, of the latest reply that has one.

    A result of an id that was never served answers the first open call without one: the agent gave it an id of its own.
    """
    matching = [served for served in state.open_calls if served.call.call_id == call_id]
    if not matching and call_id not in state.tool_of:
        matching = [served for served in state.open_calls if served.call.call_id is None][:1]
    if not matching:
        return None
    latest = max(served.reply_number for served in matching)
    found = next(served for served in matching if served.reply_number == latest)
    state.open_calls.remove(found)
    state.tool_of[call_id] = found.call.tool_name
    return found


def _tools_in(request: ModelRequest) -> dict[str, str]:
    calls: Iterable[Call] = (call for message in request.messages for call in message.calls)
    return {call.call_id: call.tool_name for call in calls if call.call_id is not None}
