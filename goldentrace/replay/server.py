"""The scripted model behind the wire formats of OpenAI and Anthropic: an HTTP request in, the due turn out.

The agent's own SDK talks to it unchanged. What the script cannot answer is refused in the provider's own shape, with a
code of its own, and fails the run. This module must not read files or start processes.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.replay.conversation import ModelRequest
from goldentrace.replay.draw import draw_id, generator
from goldentrace.replay.http import HttpReply, HttpRequest
from goldentrace.replay.player import EndedWith, ScriptFailure, ScriptPlayer, Served, TurnUse
from goldentrace.replay.recording import Clock, ModelRecording
from goldentrace.replay.script import Cut, ProviderError
from goldentrace.replay.wire import anthropic_messages, openai_chat, openai_responses
from goldentrace.replay.wire.stored import stores
from goldentrace.replay.wire.wire import RequestRefused, StreamPart, Wire, dumps, split_bytes

WIRES: Final = (openai_chat.WIRE, openai_responses.WIRE, anthropic_messages.WIRE)
MAX_NOTED: Final = 50
"""Refused requests kept for the report; the count goes on."""
_NO_RETRY: Final = ("x-should-retry", "false")
"""Both SDKs obey it (openai-python and anthropic-sdk-python, `_base_client.py`): a script's end is not worth a
retry."""
_RETRY_COUNT: Final = "x-stainless-retry-count"


@dataclass(frozen=True, slots=True)
class ScriptReport:
    """What came of a script. failure: why the run has no verdict, None if it has; refused: what the provider would
    refuse too; notes: worth saying; is_exhausted: the script ran out of turns."""

    requests: int
    replies: int
    turns: tuple[TurnUse, ...]
    failure: str | None
    is_exhausted: bool
    refused: tuple[str, ...]
    notes: tuple[str, ...]
    ended_with: EndedWith

    @property
    def unused_turns(self) -> tuple[TurnUse, ...]:
        return tuple(turn for turn in self.turns if turn.is_unused)


class ModelServer:
    """Answers HTTP requests from one player. clock: stamps replies and events."""

    def __init__(self, player: ScriptPlayer, recording: ModelRecording, clock: Clock = time) -> None:
        self._player = player
        self._recording = recording
        self._clock = clock
        self._stores = stores()
        self._requests = 0
        self._replies = 0
        self._is_exhausted = False
        self._refused: list[str] = []
        self._gone = 0

    def report(self) -> ScriptReport:
        """Return what has come of the script so far."""
        gone = [f"the client went away before {self._gone} of the replies was whole"] if self._gone else []
        return ScriptReport(
            requests=self._requests,
            replies=self._replies,
            turns=tuple(self._player.uses()),
            failure=self._player.failure,
            is_exhausted=self._is_exhausted,
            refused=tuple(self._refused[:MAX_NOTED]),
            notes=(*self._player.notes, *gone),
            ended_with=self._player.ended_with,
        )

    def client_gone(self, _request: HttpRequest) -> None:
        """Note that a client left before its reply was whole."""
        self._gone += 1

    def handle(self, request: HttpRequest) -> HttpReply:
        """Return the reply to one request."""
        wire = _wire_of(request)
        if wire is None:
            return self._handle_other(request)
        if request.method != "POST":
            return self._refuse(wire, ProviderError(405, message=f"{request.method} is not taken here."), None, request)
        self._requests += 1
        try:
            body = decode(request.body)
        except JsonError as error:
            problem = f"We could not parse the JSON body of your request: {error}."
            return self._refuse(wire, ProviderError(400, message=problem), None, request)
        try:
            expanded = self._stores[wire.name].expand(body)
            asked = wire.read_request(expanded, request.headers, self._player.script.is_strict)
        except RequestRefused as refusal:
            return self._refuse(wire, refusal.error, refusal.param, request)
        try:
            intake = self._player.take_in(asked)
            self._recording.asked(asked, intake)
            served = self._player.play(asked, intake, call_prefix=wire.call_prefix, reply_prefix=wire.reply_prefix)
        except ScriptFailure as failure:
            return self._fail(wire, failure)
        return self._reply(wire, asked, served, expanded, request)

    def _reply(self, wire: Wire, asked: ModelRequest, served: Served, body: Any, request: HttpRequest) -> HttpReply:
        turn = served.turn
        created_s = self._clock.time_ns() // 1_000_000_000
        if turn.error is not None:
            self._recording.failed(served, _retry_fields(request))
            if not (turn.error.is_in_stream and asked.is_stream):
                return self._error_reply(wire, turn.error, None, turn.delay_ms)
        elif turn.cut is not None:
            self._recording.failed(served, _retry_fields(request))
            if turn.cut.at == "before_reply":
                return HttpReply(None, cut=turn.cut.how, delay_ms=turn.delay_ms)
        else:
            self._replies += 1
            self._recording.answered(asked, served)
        whole = wire.write_reply(served.reply, asked, created_s)
        if turn.error is None and turn.cut is None:
            self._stores[wire.name].keep(body, whole)
        headers = self._headers(wire, is_stream=asked.is_stream)
        if asked.is_stream:
            chunks = self._stream(wire, asked, served, created_s)
            return HttpReply(200, headers, chunks, turn.cut.how if turn.cut else None, turn.delay_ms)
        data = dumps(whole).encode()
        if turn.cut is not None:
            sent = data[:-1] if turn.cut.at == "end" else data[: len(data) // 2]
            return HttpReply(200, headers, sent, turn.cut.how, turn.delay_ms, announced_bytes=len(data))
        return HttpReply(200, headers, data, delay_ms=turn.delay_ms)

    def _stream(self, wire: Wire, asked: ModelRequest, served: Served, created_s: int) -> Iterator[bytes]:
        draw = generator(self._player.seed, "stream", served.reply.reply_id)
        parts = list(wire.stream_reply(served.reply, asked, created_s, draw))
        encoded = [part.encode() for part in parts]
        if served.turn.error is not None:
            kept = next((index for index, part in enumerate(parts) if part.kind in ("close", "end")), len(parts))
            encoded = [*encoded[:kept], wire.stream_error(served.turn.error, kept).encode()]
        elif served.turn.cut is not None:
            encoded = _cut_stream(parts, encoded, served.turn.cut)
        longest = max(160, sum(map(len, encoded)) // 1024)  # a long stream comes in longer chunks, not in more
        return split_bytes(encoded, draw, longest=longest)

    def _refuse(self, wire: Wire, error: ProviderError, param: str | None, request: HttpRequest) -> HttpReply:
        """What the provider would refuse: the agent's doing, no failure of the script."""
        self._refused.append(f"{request.method} {request.path}: {error.status} {error.message}")
        return self._error_reply(wire, error, param, 0)

    def _fail(self, wire: Wire, failure: ScriptFailure) -> HttpReply:
        self._is_exhausted = self._is_exhausted or failure.kind == "script_exhausted"
        error = ProviderError(400, type=failure.kind, code=failure.kind, message=failure.message, headers=(_NO_RETRY,))
        return self._error_reply(wire, error, None, 0)

    def _error_reply(self, wire: Wire, error: ProviderError, param: str | None, delay_ms: float) -> HttpReply:
        request_id = draw_id("req_", self._player.seed, "error", self._requests)
        body = dumps(wire.write_error(error, param, request_id)).encode()
        given = {name.lower() for name, _ in error.headers}
        headers = tuple(header for header in self._headers(wire, is_stream=False) if header[0] not in given)
        return HttpReply(error.status, headers + error.headers, body, delay_ms=delay_ms)

    def _headers(self, wire: Wire, *, is_stream: bool) -> tuple[tuple[str, str], ...]:
        kind = "text/event-stream; charset=utf-8" if is_stream else "application/json"
        return ("content-type", kind), (
            wire.request_id_header,
            draw_id("req_", self._player.seed, "request", self._requests),
        )

    def _handle_other(self, request: HttpRequest) -> HttpReply:
        """Paths beside the three: a stored response, the list of models, the count of tokens. Anything else fails the
        run."""
        folder, _, name = request.path.rpartition("/")
        stored = self._stores[openai_responses.WIRE.name].get(name) if folder.endswith("/responses") else None
        if request.method == "GET" and stored is not None:
            return _json(200, stored)
        if request.method == "GET" and request.path.endswith("/models"):
            return _json(200, {"object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None})
        if request.method == "POST" and request.path.endswith("/messages/count_tokens"):
            return _json(200, {"input_tokens": 0})
        problem = f"{request.method} {request.path} is nothing that a scripted model serves"
        self._player.fail(problem)
        wire = anthropic_messages.WIRE if anthropic_messages.VERSION_HEADER in request.headers else openai_chat.WIRE
        error = ProviderError(404, code="not_scripted", message=problem, headers=(_NO_RETRY,))
        return self._error_reply(wire, error, None, 0)


def _wire_of(request: HttpRequest) -> Wire | None:
    return next((wire for wire in WIRES if request.path.endswith(wire.paths)), None)


def _json(status: int, body: dict[str, Any]) -> HttpReply:
    return HttpReply(status, (("content-type", "application/json"),), dumps(body).encode())


def _retry_fields(request: HttpRequest) -> dict[str, Any]:
    """Which try of the SDK this was; the SDKs count in a header of their own."""
    count = request.headers.get(_RETRY_COUNT, "")
    return {"sdk_retry": int(count)} if count.isdecimal() and int(count) else {}


def _cut_stream(parts: list[StreamPart], encoded: list[bytes], cut: Cut) -> list[bytes]:
    """The events up to the place of the cut, the last of them torn in its middle (but for `end`: all but the end)."""
    if cut.at == "end":
        return [data for part, data in zip(parts, encoded, strict=True) if part.kind != "end"]
    places = [index for index, part in enumerate(parts) if part.kind == cut.at]
    last = places[len(places) // 2]
    return [*encoded[:last], encoded[last][: len(encoded[last]) // 2]]
