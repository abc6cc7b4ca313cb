"""Bugs of the tool loop on demand: for each, the script that provokes it and two traces, of an agent that copes and
of one that does not.

A rule is tried on both: it has to speak on the broken one, and its silence on the sound one is worth as much. The
script can be served over a wire as well, to try a real agent. What is to be seen stands beside each bug. This module
must not import rules: the codes are what a rule set is expected to say, and tests hold the two together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from goldentrace.codec.yaml_document import suggest
from goldentrace.errors import ConfigError
from goldentrace.model.event import TraceEnd
from goldentrace.model.trace import Trace
from goldentrace.replay.clock import VirtualClock
from goldentrace.replay.script import (
    FOREVER,
    AgentScript,
    Condition,
    Cut,
    Script,
    ScriptedCall,
    ScriptTurn,
)
from goldentrace.replay.scripted_model import ScriptedModel
from goldentrace.replay.tool_loop import DO_NOT_ASK, NOBODY, Defect, ToolLoop, User

START_TIME_NS: Final = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z: simulated traces carry times, and the same ones each time."""


@dataclass(frozen=True, slots=True)
class LoopBug:
    """One way in which a tool loop goes wrong.

    happens: what the model, the provider or the user does; sound, broken: what the trace shows of an agent that copes
    and of one that does not; defect: what is wrong with that one; codes: rules that speak on the broken trace and not
    on the sound one; is_on_wire: the script provokes it over a wire too."""

    name: str
    happens: str
    sound: str
    broken: str
    defect: Defect
    codes: tuple[str, ...]
    turns: tuple[ScriptTurn, ...]
    codes_of_both: tuple[str, ...] = ()
    user: User = NOBODY
    is_on_wire: bool = True

    @property
    def script(self) -> Script:
        return Script(self.name, (AgentScript(turns=self.turns),), description=self.happens)


def simulate(name: str, *, is_sound: bool, seed: int = 0) -> Trace:
    """Return the trace of a simulated run: the agent that copes with the bug, or the one that does not.

    Raises: ConfigError for an unknown name.
    """
    if name not in LOOP_BUGS:
        raise ConfigError(f"no simulated bug {name!r}", next_step=suggest(name, LOOP_BUGS))
    bug = LOOP_BUGS[name]
    clock = VirtualClock(start_time_ns=START_TIME_NS)
    model = ScriptedModel(bug.script, seed=seed, clock=clock)
    loop = ToolLoop(model, clock, bug.user, None if is_sound else bug.defect)
    events = loop.run(f"{name}-{'sound' if is_sound else 'broken'}")
    has_end = isinstance(events[-1], TraceEnd)
    return Trace(events, f"<simulated {name}>", incomplete=None if has_end else "no trace_end")


def _call(tool: str, **args: Any) -> ScriptedCall:
    return ScriptedCall(tool, args)


def _turn(*calls: ScriptedCall, **fields: Any) -> ScriptTurn:
    return ScriptTurn(calls=calls, **fields)


_ORDER: Final = _call("get_order", order_ref="A-17")
_STOCK: Final = _call("get_stock", sku="A-17")
_CHARGE: Final = _call("charge_card", order_id="<get_order#1/id>", amount_cents=1250)
_DONE: Final = ScriptTurn(text="The order is charged.")
_MISSING: Final = (Condition(status="missing"),)
_FAILED: Final = (Condition(status="error"),)

_BUGS: Final = (
    LoopBug(
        name="malformed_arguments",
        happens="the model writes arguments that end in the middle of the JSON, and better ones once it is told",
        sound="the call has args_raw and an error of class malformed_json; nothing ran; the next turn's call is whole",
        broken="the call has args_raw and an ok result: the tool ran without the arguments it was asked for",
        defect="runs_malformed",
        codes=(),
        codes_of_both=("GT1503",),
        turns=(
            _turn(ScriptedCall("get_order", args_raw='{"order_ref": "A-')),
            _turn(_ORDER, when=_FAILED),
            ScriptTurn(text="Order A-17 is found."),
        ),
    ),
    LoopBug(
        name="duplicate_call_id",
        happens="two calls of one reply carry the same id",
        sound="two calls, two results under that id",
        broken="two calls, one result: the second overwrote the first, or was taken for it",
        defect="pairs_by_id",
        codes=("GT1402",),
        turns=(
            _turn(
                ScriptedCall("get_order", {"order_ref": "A-17"}, call_id="call_same00000001"),
                ScriptedCall("get_stock", {"sku": "A-17"}, call_id="call_same00000001"),
            ),
            _DONE,
        ),
    ),
    LoopBug(
        name="missing_call_id",
        happens="a call carries no id; the model asks again as long as it sees no result",
        sound="one call under an id of the agent's own, its result in the next request",
        broken="the result is in no request (input_call_ids), and the same call comes again",
        defect="drops_result",
        codes=("GT1406",),
        turns=(
            _turn(ScriptedCall("get_order", {"order_ref": "A-17"}, has_id=False)),
            _turn(ScriptedCall("get_order", {"order_ref": "A-17"}, has_id=False), when=_MISSING),
            ScriptTurn(text="Order A-17 is found."),
        ),
    ),
    LoopBug(
        name="missing_result",
        happens="the model asks for two calls at once",
        sound="each of the two has a result",
        broken="one of the two has none: the loop took the first and went on",
        defect="drops_result",
        codes=("GT1402",),
        turns=(_turn(_ORDER, _STOCK), _DONE),
    ),
    LoopBug(
        name="partial_stream",
        happens="the stream of a reply ends inside the arguments of a call; the next try is whole",
        sound="nothing of the torn reply ran: a retry of the model's request, then one call, one result",
        broken="a call with torn args_raw and an ok result before the whole one: the charge was made twice",
        defect="runs_partial",
        codes=("GT1503",),
        turns=(
            _turn(_ORDER),
            _turn(_CHARGE, cut=Cut("arguments")),
            _turn(_CHARGE),
            _DONE,
        ),
    ),
    LoopBug(
        name="provider_disconnect",
        happens="the provider closes the connection before a word of the reply, three times",
        sound="two retries with growing delay_ms, then an abort and an end with the reason provider_error",
        broken="the trace stops without an end",
        defect="forgets_end",
        codes=("GT1801",),
        turns=(_turn(_ORDER), ScriptTurn(cut=Cut("before_reply"), repeat=FOREVER)),
    ),
    LoopBug(
        name="user_denial",
        happens="the user denies a call; the model asks for the same again unless the result says that it should not",
        sound="one denial, told to the model as final, and a run that ends as partial",
        broken="the user is asked for the same call again and again",
        defect="asks_again",
        codes=("GT1701",),
        turns=(
            _turn(_ORDER),
            _turn(_CHARGE),
            ScriptTurn(text="I could not do it.", when=(Condition(contains=DO_NOT_ASK),)),
            _turn(_CHARGE, when=_FAILED, repeat=2),
            ScriptTurn(text="I could not do it.", when=_FAILED),
        ),
        user=User(denies=frozenset({"charge_card"})),
        is_on_wire=False,
    ),
    LoopBug(
        name="cancellation",
        happens="the user cancels while a tool runs, and its result comes late",
        sound="the result is cancelled, and the run ends with the reason user_cancelled",
        broken="a second, ok result for the call, and a model turn that has it in its request",
        defect="uses_late_result",
        codes=("GT1403",),
        turns=(_turn(_ORDER), _turn(_CHARGE), _DONE),
        user=User(cancels_at="charge_card"),
        is_on_wire=False,
    ),
    LoopBug(
        name="repeated_call",
        happens="the model asks for the same read for ever, whatever comes back",
        sound="the run ends with the reason tool_loop at the third equal result",
        broken="the same call until the limit of calls",
        defect="repeats",
        codes=("GT1101",),
        turns=(_turn(_STOCK, repeat=FOREVER),),
    ),
)
LOOP_BUGS: Final[Mapping[str, LoopBug]] = {bug.name: bug for bug in _BUGS}
"""Name -> bug, in the order of a run: arguments, ids, results, stream, provider, user, loop."""
