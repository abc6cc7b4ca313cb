"""A scripted model in the agent's own process: for a harness that calls its model through a function, no SDK and no
socket.

The same player and the same recording as behind the wire formats, so that a run in process and a run over HTTP leave
the same events. This module must not open a socket."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

from goldentrace.errors import InfrastructureError, Where
from goldentrace.model.event import AnyEvent
from goldentrace.replay.conversation import Message, ModelRequest, Reply
from goldentrace.replay.player import ScriptFailure, ScriptPlayer, Served, TurnUse
from goldentrace.replay.recording import EventList, ModelRecording
from goldentrace.replay.script import Cut, ProviderError, Script
from goldentrace.replay.script_file import read_script
from goldentrace.replay.wire import anthropic_messages, openai_chat, openai_responses
from goldentrace.replay.wire.stored import stores
from goldentrace.replay.wire.wire import RequestRefused, Wire

NEUTRAL_PREFIX = "call_"
DEFAULT_MODEL = "scripted"


class WaitingClock(Protocol):
    """A clock that can be waited on: the module `time` for `sleep`, a VirtualClock."""

    def time_ns(self) -> int: ...

    def monotonic_ns(self) -> int: ...

    def sleep(self, seconds: float, /) -> None: ...


class ProviderFailure(Exception):  # noqa: N818 (what a provider's SDK would raise, for a harness without one)
    """The script has the provider refuse, fail, or cut its reply off.

    status: None for a lost connection; partial: what of the reply arrived before the cut, None for nothing.
    """

    def __init__(
        self, message: str, *, status: int | None = None, headers: dict[str, str] | None = None, body: Any = None,
        partial: Reply | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.body = body
        self.partial = partial


class ScriptedModel:
    """Answers requests from a script. Not thread-safe; one object is one run.

    seed: of ids, None for the script's own; clock: stamps events and is waited on for `delay_ms` by the calls that
    are not async (those wait with asyncio.sleep, which a virtual clock's event loop makes virtual)."""

    def __init__(self, script: Script, *, seed: int | None = None, clock: WaitingClock = time) -> None:
        self._player = ScriptPlayer(script, seed=seed)
        self._clock = clock
        self._kept = EventList(clock)
        self._recording = ModelRecording(self._kept.append)
        self._stores = stores()

    @classmethod
    def from_file(cls, path: str | Path, *, seed: int | None = None, clock: WaitingClock = time) -> Self:
        """Return the model of a script file. Raises: ConfigError with file, line and key."""
        return cls(read_script(path), seed=seed, clock=clock)

    @property
    def events(self) -> list[AnyEvent]:
        """The model's side of the run so far."""
        return list(self._kept.events)

    @property
    def failure(self) -> str | None:
        """Why the run has no verdict (the script ran out, no turn applied), None if it has."""
        return self._player.failure

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._player.notes)

    @property
    def unused_turns(self) -> tuple[TurnUse, ...]:
        """The turns that the script takes for certain and that nobody asked for."""
        return tuple(use for use in self._player.uses() if use.is_unused)

    def respond(self, messages: Sequence[Message], *, tools: Sequence[str] = (), model: str = DEFAULT_MODEL) -> Reply:
        """Return the next reply in neutral form. messages: the conversation so far; tools: names that are on offer.

        Raises: ProviderFailure where the script says so; InfrastructureError where it has no answer.
        """
        served = self._serve(ModelRequest(model, tuple(messages), tuple(tools)), NEUTRAL_PREFIX, "reply_")
        self._clock.sleep(served.turn.delay_ms / 1000)
        return self._finish(served, openai_chat.WIRE)

    async def respond_async(
        self, messages: Sequence[Message], *, tools: Sequence[str] = (), model: str = DEFAULT_MODEL
    ) -> Reply:
        """Return what `respond` returns. Raises: as it."""
        served = self._serve(ModelRequest(model, tuple(messages), tuple(tools)), NEUTRAL_PREFIX, "reply_")
        await asyncio.sleep(served.turn.delay_ms / 1000)
        return self._finish(served, openai_chat.WIRE)

    def chat_completion(self, **body: Any) -> dict[str, Any]:
        """Return a Chat Completions body for the arguments of `client.chat.completions.create`. Raises: as respond."""
        return self._answer(openai_chat.WIRE, body)

    async def chat_completion_async(self, **body: Any) -> dict[str, Any]:
        """Return what `chat_completion` returns. Raises: as respond."""
        return await self._answer_async(openai_chat.WIRE, body)

    def response(self, **body: Any) -> dict[str, Any]:
        """Return a Responses body for the arguments of `client.responses.create`. Raises: as respond."""
        return self._answer(openai_responses.WIRE, body)

    async def response_async(self, **body: Any) -> dict[str, Any]:
        """Return what `response` returns. Raises: as respond."""
        return await self._answer_async(openai_responses.WIRE, body)

    def message(self, **body: Any) -> dict[str, Any]:
        """Return a Messages body for the arguments of `client.messages.create`. Raises: as respond."""
        return self._answer(anthropic_messages.WIRE, body)

    async def message_async(self, **body: Any) -> dict[str, Any]:
        """Return what `message` returns. Raises: as respond."""
        return await self._answer_async(anthropic_messages.WIRE, body)

    def _answer(self, wire: Wire, body: dict[str, Any]) -> dict[str, Any]:
        request, expanded = self._read(wire, body)
        served = self._serve(request, wire.call_prefix, wire.reply_prefix)
        self._clock.sleep(served.turn.delay_ms / 1000)
        return self._written(wire, request, served, expanded)

    async def _answer_async(self, wire: Wire, body: dict[str, Any]) -> dict[str, Any]:
        request, expanded = self._read(wire, body)
        served = self._serve(request, wire.call_prefix, wire.reply_prefix)
        await asyncio.sleep(served.turn.delay_ms / 1000)
        return self._written(wire, request, served, expanded)

    def _read(self, wire: Wire, body: dict[str, Any]) -> tuple[ModelRequest, dict[str, Any]]:
        try:
            expanded = self._stores[wire.name].expand(body)
            headers = {anthropic_messages.VERSION_HEADER: "in process"}
            return wire.read_request(expanded, headers, self._player.script.is_strict), expanded
        except RequestRefused as refusal:
            raise _failure(wire, refusal.error, refusal.param) from None

    def _written(self, wire: Wire, request: ModelRequest, served: Served, expanded: dict[str, Any]) -> dict[str, Any]:
        reply = self._finish(served, wire)
        body = wire.write_reply(reply, request, self._clock.time_ns() // 1_000_000_000)
        self._stores[wire.name].keep(expanded, body)
        return body

    def _serve(self, request: ModelRequest, call_prefix: str, reply_prefix: str) -> Served:
        try:
            intake = self._player.take_in(request)
            self._recording.asked(request, intake)
            served = self._player.play(request, intake, call_prefix=call_prefix, reply_prefix=reply_prefix)
        except ScriptFailure as failure:
            raise InfrastructureError(
                failure.message,
                where=Where(self._player.script.path),
                next_step="add the turn that is missing, or give one a `repeat`",
            ) from None
        if served.turn.error is None and served.turn.cut is None:
            self._recording.answered(request, served)
        return served

    def _finish(self, served: Served, wire: Wire) -> Reply:
        turn = served.turn
        if turn.error is not None:
            self._recording.failed(served)
            raise _failure(wire, turn.error, None)
        if turn.cut is not None:
            self._recording.failed(served)
            raise ProviderFailure(f"the reply was cut off ({turn.cut.at})", partial=_partial(served.reply, turn.cut))
        return served.reply


def _failure(wire: Wire, error: ProviderError, param: str | None) -> ProviderFailure:
    body = wire.write_error(error, param, "req_in_process")
    return ProviderFailure(
        f"{error.status}: {body['error']['message']}", status=error.status, headers=dict(error.headers), body=body
    )


def _partial(reply: Reply, cut: Cut) -> Reply | None:
    """What had arrived when a stream was cut: half of the text, or all of it and half of the last call's arguments."""
    if cut.at == "before_reply":
        return None
    if cut.at == "text":
        return replace(reply, text=reply.text[: len(reply.text) // 2], calls=())
    if cut.at == "arguments":
        last = reply.calls[-1]
        torn = replace(last, arguments=last.arguments[: len(last.arguments) // 2])
        return replace(reply, calls=(*reply.calls[:-1], torn))
    return reply
