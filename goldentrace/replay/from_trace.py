"""Makes a script of a recorded run: the model asks again for what it asked for then, so that an incident is a fixture.

Only what the model did is carried over. Retries by the harness, decisions and results are the agent's and the tools'
part, and are what the replay is for. What could not be carried over is said, never guessed. This module must not read
files."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from goldentrace.codec.canonical import decode, encode
from goldentrace.model.event import (
    ABSENT,
    MAIN_AGENT,
    Decision,
    Limit,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    Usage,
)
from goldentrace.model.operation import escape_label
from goldentrace.model.trace import Trace
from goldentrace.replay.conversation import Finish, TokenUsage
from goldentrace.replay.provenance import Provenance
from goldentrace.replay.recording import PROVIDER
from goldentrace.replay.references import holds_reference
from goldentrace.replay.script import AgentScript, Cut, ProviderError, Script, ScriptedCall, ScriptTurn

NOT_RECORDED: Final = "(the text was not recorded)"
ENDS_HERE: Final = "(the recorded run ends here)"
MATCH_CHARS: Final = 120
"""How much of a system prompt tells one agent from another: the first line, or this much of it."""
_FINISHES: Final[dict[str, Finish]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "completed", "final_answer"), "stop"),
    **dict.fromkeys(("tool_calls", "tool_use", "tool_call", "function_call", "tool-calls"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "refusal", "safety", "content-filter"), "content_filter"),
}
_OWN_ENDS: Final = ("final_answer", "unknown")
"""Reasons to end that leave the last word to the model; with any other the agent stopped by itself."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A script and, one sentence each, what of the trace it does not hold."""

    script: Script
    notes: tuple[str, ...]


def script_from_trace(trace: Trace, *, name: str = "", has_references: bool = True) -> Conversion:
    """Return the script that has the model of a recorded run ask for the same again.

    name: of the script, default the scenario's; has_references: ids that came from results become references to them.
    """
    reader = _Reader(has_references=has_references)
    for event in trace.events:
        reader.take(event)
    return reader.finish(trace, name)


@dataclass(slots=True)
class _Agent:
    """What was seen of one agent so far."""

    name: str
    turns: list[ScriptTurn] = field(default_factory=list)
    is_open: bool = False
    has_result_since: bool = False
    turn_number: int | None = None
    calls_of_tool: Counter[str] = field(default_factory=Counter)
    labels: dict[str, list[str]] = field(default_factory=dict)
    call_ids: list[list[str]] = field(default_factory=list)
    provenance: Provenance = field(default_factory=Provenance)
    system_text: str = ""
    model: str | None = None
    has_model_turns: bool = False


class _Reader:
    def __init__(self, *, has_references: bool) -> None:
        self._has_references = has_references
        self._agents: dict[str, _Agent] = {}
        self._end: TraceEnd | None = None
        self._left: Counter[str] = Counter()
        self._notes: list[str] = []

    def take(self, event: Any) -> None:
        """Take the next event."""
        if isinstance(event, TraceEnd):
            self._end = event
            return
        agent = self._agents.setdefault(event.agent, _Agent(event.agent))
        if isinstance(event, ModelTurn):
            self._model_turn(agent, event)
        elif isinstance(event, Message):
            self._message(agent, event)
        elif isinstance(event, ToolCall):
            self._call(agent, event)
        elif isinstance(event, ToolResult):
            self._result(agent, event)
        elif isinstance(event, Decision | Limit):
            self._left[str(event.__struct_config__.tag)] += 1

    def _model_turn(self, agent: _Agent, event: ModelTurn) -> None:
        agent.has_model_turns = True
        agent.model = agent.model or event.model
        finish = _FINISHES.get(event.finish_reason or "")
        if event.finish_reason and finish is None:
            self._note(f"finish reason {event.finish_reason!r} has no counterpart and was left out")
        self._open(agent, event.turn, ScriptTurn(finish=finish, usage=self._usage(event.usage)))

    def _usage(self, usage: Usage | None) -> TokenUsage | None:
        if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
            return None
        if usage.cost_usd is not None:
            self._note("costs were left out: the provider's replies do not state them")
        sent, cached = usage.input_tokens or 0, usage.cached_tokens or 0
        if cached > sent:
            self._note("cached tokens beyond the input tokens were left out")
            cached = 0
        return TokenUsage(sent, usage.output_tokens or 0, cached)

    def _open(self, agent: _Agent, number: int | None, turn: ScriptTurn) -> None:
        agent.turns.append(turn)
        agent.call_ids.append([])
        agent.is_open, agent.has_result_since, agent.turn_number = True, False, number

    def _message(self, agent: _Agent, event: Message) -> None:
        text = event.text
        if event.role in ("user", "system", "developer"):
            if text:
                agent.provenance.add_text(text)
                if event.role != "user" and not agent.system_text:
                    agent.system_text = text
            agent.is_open = agent.is_open and agent.has_model_turns
        elif event.role == PROVIDER:
            self._provider(agent, event)
        elif event.role == "assistant":
            if text is None and event.text_hash is not None:
                text = NOT_RECORDED
                self._note("texts of the model that were not recorded stand as placeholders")
            if text:
                self._text(agent, event.turn, text)

    def _text(self, agent: _Agent, number: int | None, text: str) -> None:
        last = agent.turns[-1] if agent.turns and agent.is_open else None
        if last is None or agent.has_result_since or (not agent.has_model_turns and (last.calls or last.text)):
            self._open(agent, number, ScriptTurn())
            last = agent.turns[-1]
        is_literal = holds_reference(text)
        written = text if is_literal or not self._has_references else agent.provenance.refer(text)
        joined = f"{last.text}\n{written}" if last.text else written
        agent.turns[-1] = replace(last, text=joined, is_literal=last.is_literal or is_literal)

    def _provider(self, agent: _Agent, event: Message) -> None:
        """A refusal or a cut, as this package's own recording of the model's side has them."""
        extra = event.extra or {}
        status, cut = extra.get("http_status"), extra.get("cut")
        if isinstance(status, int) and 400 <= status <= 599:
            headers = tuple((key, str(extra[key])) for key in ("retry-after", "retry-after-ms") if key in extra)
            self._open(agent, None, ScriptTurn(error=ProviderError(status, headers=headers)))
        elif cut in ("before_reply", "end"):
            self._open(agent, None, ScriptTurn(cut=Cut(cut, extra.get("cut_how", "close"))))
        else:
            self._note("a reply that was cut off is left out: what it would have said was not recorded")
        agent.is_open = False

    def _call(self, agent: _Agent, event: ToolCall) -> None:
        if event.origin != "model" or event.attempt != 1 or event.op_id not in (None, event.call_id):
            self._left[f"attempt by the {event.origin}"] += 1
            return
        last = agent.turns[-1] if agent.turns and agent.is_open else None
        is_next = event.turn is not None and event.turn != agent.turn_number
        if last is None or (
            not agent.has_model_turns and (is_next if event.turn is not None else agent.has_result_since)
        ):
            self._open(agent, event.turn, ScriptTurn())
            last = agent.turns[-1]
        name = escape_label(event.tool_name)
        agent.calls_of_tool[name] += 1
        agent.labels.setdefault(event.call_id, []).append(f"{name}#{agent.calls_of_tool[name]}")
        agent.call_ids[-1].append(event.call_id)
        call, is_literal = self._scripted(agent, event)
        agent.turns[-1] = replace(last, calls=(*last.calls, call), is_literal=last.is_literal or is_literal)

    def _scripted(self, agent: _Agent, event: ToolCall) -> tuple[ScriptedCall, bool]:
        has_id = "call_id" not in (event.extra or {})
        if event.args == ABSENT:
            if event.args_raw is None:
                self._note(f"the arguments of {event.tool_name} were not recorded: its calls have none")
            return ScriptedCall(
                event.tool_name, {} if event.args_raw is None else None, event.args_raw, None, has_id
            ), False
        args = decode(event.args)
        if not isinstance(args, dict) or _has_lone_surrogate(args):
            text = event.args_raw or encode(args).decode()
            return ScriptedCall(event.tool_name, None, text, None, has_id), False
        is_literal = holds_reference(args)
        if self._has_references and not is_literal:
            args = agent.provenance.refer(args)
        return ScriptedCall(event.tool_name, args, None, None, has_id), is_literal

    def _result(self, agent: _Agent, event: ToolResult) -> None:
        agent.has_result_since = True
        labels = agent.labels.get(event.call_id)
        label = labels.pop() if labels else None  # of the nearest earlier open call of that id
        if label is not None and event.status == "ok" and event.result != ABSENT:
            agent.provenance.add_result(label, decode(event.result))

    def finish(self, trace: Trace, name: str) -> Conversion:
        """Return the script of all that was taken."""
        agents = [agent for agent in self._agents.values() if agent.turns]
        self._close(agents)
        for what, count in sorted(self._left.items()):
            self._note(f"left to the agent: {count} {what}{'' if count == 1 else 's'}")
        if trace.incomplete is not None:
            self._note(f"the trace is incomplete: {trace.incomplete}")
        if not agents:
            self._note("the trace holds nothing that a model said")
            agents = [_Agent(MAIN_AGENT, [ScriptTurn(text=ENDS_HERE)], call_ids=[[]])]
        script = Script(
            name=name or trace.start.scenario_id or "recorded",
            description=f"made from a recorded run ({trace.start.source or trace.format})",
            seed=trace.start.seed or 0,
            agents=tuple(self._matched(agents)),
        )
        return Conversion(script, tuple(self._notes))

    def _close(self, agents: list[_Agent]) -> None:
        stop_reason = self._end.stop_reason if self._end is not None else "unknown"
        for agent in agents:
            agent.turns = [_tidied(turn, ids) for turn, ids in zip(agent.turns, _kept_ids(agent), strict=True)]
            last = agent.turns[-1]
            if not last.calls or last.error or last.cut:
                continue
            if stop_reason in _OWN_ENDS:
                agent.turns.append(ScriptTurn(text=ENDS_HERE))
                self._note("the run ends with a call: a last turn was added that says so")
            else:
                self._note(f"the agent stopped by itself ({stop_reason}): one that goes on runs out of turns")

    def _matched(self, agents: list[_Agent]) -> Iterable[AgentScript]:
        """Each agent with what tells its requests apart; the one that needs nothing comes last."""
        if len(agents) == 1:
            return [AgentScript(agents[0].name, tuple(agents[0].turns))]
        heads = Counter(_head(agent) for agent in agents)
        found: list[AgentScript] = []
        for agent in agents:
            script = AgentScript(agent.name, tuple(agent.turns))
            others = [set(other.calls_of_tool) for other in agents if other is not agent]
            tools = {call.tool_name for turn in agent.turns for call in turn.calls}
            if _head(agent) and heads[_head(agent)] == 1:
                script = replace(script, system_contains=_head(agent))
            elif tools and not any({escape_label(tool) for tool in tools} <= other for other in others):
                script = replace(script, tools=tuple(sorted(tools)))
            elif agent.name != MAIN_AGENT:
                self._note(f"nothing tells the requests of agent {agent.name} apart: give it a `match`")
            found.append(script)
        return sorted(found, key=lambda script: script.system_contains is None and not script.tools)

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


def _head(agent: _Agent) -> str:
    return agent.system_text.strip().partition("\n")[0][:MATCH_CHARS].strip()


def _kept_ids(agent: _Agent) -> list[list[str | None]]:
    """The call ids to keep: those that the run used more than once, which may be what went wrong in it."""
    counts = Counter(call_id for ids in agent.call_ids for call_id in ids)
    return [[call_id if counts[call_id] > 1 else None for call_id in ids] for ids in agent.call_ids]


def _tidied(turn: ScriptTurn, ids: list[str | None]) -> ScriptTurn:
    calls = tuple(
        replace(call, call_id=kept if call.has_id else None) for call, kept in zip(turn.calls, ids, strict=True)
    )
    is_derived = turn.finish == ("tool_calls" if calls else "stop")
    return replace(turn, calls=calls, finish=None if is_derived else turn.finish)


def _has_lone_surrogate(value: Any) -> bool:
    """Whether a text in a value is beyond UTF-8, which YAML has no form for; in JSON text it is escaped."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
