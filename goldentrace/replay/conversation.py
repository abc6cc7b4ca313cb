"""What a model is asked and what it answers, without any provider's spelling.

The wire modules translate to and from these values; scripts, recording and tests know only these. Hidden reasoning
has no field here, so it can neither be served nor recorded. This module must not know a wire format."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from goldentrace.codec.canonical import JsonError, canonical, decode

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]
FINISHES: Final[tuple[Finish, ...]] = ("stop", "tool_calls", "length", "content_filter")
"""Why the model stopped, one vocabulary for all wire formats."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model. call_id: None where the wire carried none; arguments: the text as sent, JSON or not."""

    tool_name: str
    arguments: str
    call_id: str | None

    @property
    def args(self) -> dict[str, Any] | None:
        """The arguments as an object, None where the text is no JSON object."""
        return object_of(self.arguments)

    @property
    def key(self) -> tuple[str, bytes]:
        """Tool and canonical arguments: equal for equal calls, whatever the spelling of the JSON."""
        args = self.args
        return self.tool_name, self.arguments.encode("utf-8", "surrogatepass") if args is None else canonical(args)


@dataclass(frozen=True, slots=True)
class Result:
    """A tool result that a request carries. is_error: None where the wire has no flag for it."""

    call_id: str
    text: str
    is_error: bool | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request. calls: of an assistant; results: of tools, in the order sent."""

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one reply, as the provider's own fields count them; cached_tokens are part of input_tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request for a reply.

    tool_names: what the request declares; echo: what the wire's reply has to repeat, in the wire's own spelling.
    """

    model: str
    messages: tuple[Message, ...]
    tool_names: tuple[str, ...] = ()
    is_stream: bool = False
    wants_usage: bool = True
    is_parallel: bool = True
    echo: dict[str, Any] = field(default_factory=dict)

    def results(self) -> list[Result]:
        """Every tool result in the request, in order."""
        return [result for message in self.messages for result in message.results]

    def new_results(self) -> list[Result]:
        """The results after the last assistant message: what the model has not answered yet."""
        found: list[Result] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            found[:0] = message.results
        return found

    def last_user_text(self) -> str:
        """The text of the last user message that has any, else the empty string."""
        return next(
            (message.text for message in reversed(self.messages) if message.role == "user" and message.text), ""
        )

    def system_text(self) -> str:
        return "\n".join(message.text for message in self.messages if message.role == "system")


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of the model. text comes before the calls, the order that all three wire formats can carry."""

    reply_id: str
    model: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"
    usage: TokenUsage = TokenUsage()

    @property
    def content(self) -> tuple[Any, ...]:
        """What was said, without the ids of reply and calls and the model's name: equal for equal turns."""
        return self.text, tuple(call.key for call in self.calls), self.finish, self.usage


def object_of(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text holds, None where it holds anything else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = decode(text.encode("utf-8", "surrogatepass"))
    except JsonError:
        return None
    return value if isinstance(value, dict) else None
