"""What a script says: the replies of a model, turn by turn. Values only; reading YAML and playing are elsewhere."""

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from goldentrace.model.event import MAIN_AGENT
from goldentrace.replay.conversation import Finish, TokenUsage

ResultStatus: TypeAlias = Literal["ok", "error", "missing"]
CutPlace: TypeAlias = Literal["before_reply", "text", "arguments", "end"]
CutManner: TypeAlias = Literal["close", "reset"]
FOREVER: Final = -1
"""The value of `repeat` for a turn that is served as often as it is asked for."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a turn.

    args: the arguments, in which `<tool#n/pointer>` stands for a value of an earlier result; args_raw: their text
    instead, sent as it is; call_id: fixed, or None to draw one; has_id: False sends the call without an id."""

    tool_name: str
    args: dict[str, Any] | None = None
    args_raw: str | None = None
    call_id: str | None = None
    has_id: bool = True


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of the last results (those after the model's last reply) for a turn to be served.

    status, tool_name and contains must hold of one and the same result; `missing` is a call of the last reply whose
    result the request does not carry. user_contains: a part of the last user message."""

    status: ResultStatus | None = None
    tool_name: str | None = None
    contains: str | None = None
    user_contains: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The provider refuses or fails. type, code and message: None for what the provider says of that status.

    is_in_stream: a streamed reply begins and ends in an error event; a reply that is not streamed gets the status.
    """

    status: int
    type: str | None = None
    code: str | None = None
    message: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    is_in_stream: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends before the reply does. at: how far it gets; how: an orderly close or a reset (RST)."""

    at: CutPlace
    how: CutManner = "close"


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """One turn.

    repeat: how often it is served, FOREVER without end; is_literal: no references are looked for; line: 1-based, in the
    script's file.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: Finish | None = None
    usage: TokenUsage | None = None
    when: tuple[Condition, ...] = ()
    repeat: int = 1
    error: ProviderError | None = None
    cut: Cut | None = None
    delay_ms: float = 0
    is_literal: bool = False
    line: int = 0

    @property
    def finish_reason(self) -> Finish:
        """The stated reason, else what follows from the calls."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True)
class AgentScript:
    """The turns of one agent, and how its requests are told from another's; all that is given must hold."""

    name: str = MAIN_AGENT
    turns: tuple[ScriptTurn, ...] = ()
    model: str | None = None
    system_contains: str | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script.

    seed: of ids and stream splits where the run gives none; error_texts: a result that contains one of them is an
    error, on wires without a flag for it; is_strict: requests that the provider would refuse are refused."""

    name: str
    agents: tuple[AgentScript, ...]
    seed: int = 0
    description: str = ""
    error_texts: tuple[str, ...] = ()
    is_strict: bool = True
    path: str = "<memory>"
