"""The model's side of a run as events: what an agent that records nothing itself still leaves behind.

Tool calls are read from the replies, their results from the next request; a result is ok unless the wire or the
script says otherwise. A refusal of the provider and a cut reply are `message` events of the role `provider`, which
nothing compares: no turn came of them. Secrets are replaced before an event leaves; no header and no hidden reasoning
gets here. This module must not write files."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import encode, encode_raw
from goldentrace.model.event import AnyEvent, Message, ModelTurn, ToolCall, ToolResult, Usage
from goldentrace.normalize.redact import Redactor
from goldentrace.replay.conversation import ModelRequest, object_of
from goldentrace.replay.player import Intake, Served, ServedCall

PROVIDER: Final = "provider"
Sink = Callable[[AnyEvent], object]


class Clock(Protocol):
    """Nanoseconds since the epoch, and of a clock that never goes back. The module `time` is one; a virtual one
    another."""

    def time_ns(self) -> int: ...

    def monotonic_ns(self) -> int: ...


class EventList:
    """Keeps events in memory, each with its seq and clocks, as a journal does in a file."""

    def __init__(self, clock: Clock = time) -> None:
        self.events: list[AnyEvent] = []
        self._clock = clock

    def append(self, event: AnyEvent) -> None:
        """Take one event. event: without seq, ts and mono_ns."""
        stamps = {"ts": timestamp(self._clock.time_ns()), "mono_ns": self._clock.monotonic_ns()}
        self.events.append(msgspec.structs.replace(event, seq=len(self.events) + 1, **stamps))


class ModelRecording:
    """Turns served requests into events, in order. sink: takes each as it happens, and stamps it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._told: dict[str, Counter[tuple[str, str]]] = {}
        self._redactor = Redactor()
        self._secrets: dict[str, int] = {}
        self._event_ids: dict[tuple[str, str], str] = {}

    def asked(self, request: ModelRequest, intake: Intake) -> None:
        """Record what a request brings: texts that were in none before, then results."""
        agent, turn = intake.agent, intake.replies
        told = self._told.setdefault(agent, Counter())
        counts: Counter[tuple[str, str]] = Counter()
        for message in request.messages:
            if message.role in ("system", "user") and message.text:
                counts[message.role, message.text] += 1
                if counts[message.role, message.text] > told[message.role, message.text]:
                    self._sink(
                        Message(agent=agent, turn=turn or None, role=message.role, text=self._text(message.text))
                    )
        told |= counts
        self._told[agent] = told
        for seen in intake.new_results:
            event_id = seen.result.call_id if seen.call is None else seen.call.event_id
            self._event_ids[agent, seen.result.call_id] = event_id
            self._sink(
                ToolResult(
                    agent=agent,
                    turn=turn or None,
                    call_id=event_id,
                    status="error" if seen.is_error else "ok",
                    error_class="tool_error" if seen.is_error else None,
                    result=self._result_value(seen.result.text),
                    result_bytes=len(seen.result.text.encode("utf-8", "surrogatepass")),
                )
            )

    def answered(self, request: ModelRequest, served: Served) -> None:
        """Record a whole reply: the turn, its text, its calls."""
        reply, turn = served.reply, served.reply_number
        usage = served.turn.usage
        self._sink(
            ModelTurn(
                agent=served.agent,
                turn=turn,
                model=reply.model,
                finish_reason=reply.finish,
                usage=None
                if usage is None
                else Usage(
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cached_tokens=usage.cached_tokens or None,
                ),
                input_call_ids=[
                    self._event_ids.get((served.agent, result.call_id), result.call_id) for result in request.results()
                ],
            )
        )
        if reply.text:
            self._sink(Message(agent=served.agent, turn=turn, role="assistant", text=self._text(reply.text)))
        batch = 1 if len(served.calls) > 1 else None
        for call in served.calls:
            self._sink(ToolCall(agent=served.agent, turn=turn, batch=batch, **self._call_fields(call)))

    def failed(self, served: Served, extra: dict[str, Any] | None = None) -> None:
        """Record that the provider refused, failed, or cut its reply off. extra: what else is known of the request."""
        error, cut = served.turn.error, served.turn.cut
        known = dict(extra or {})
        if error is not None:
            text = f"the provider answered {error.status} {error.type or ''}".rstrip()
            waits = {name.lower(): value for name, value in error.headers if name.lower().startswith("retry-after")}
            known |= {"http_status": error.status, **waits}
        else:
            assert cut is not None, "only an error or a cut fails"
            text = f"the reply was cut off ({cut.at}, {cut.how})"
            known |= {"cut": cut.at, "cut_how": cut.how}
        turn = served.reply_number - 1 or None
        self._sink(Message(agent=served.agent, turn=turn, role=PROVIDER, text=text, extra=known))

    def _text(self, text: str) -> str:
        return self._redactor.redact_text(text, self._secrets)

    def _value(self, value: Any) -> Any:
        return self._redactor.redact_value(value, self._secrets)

    def _call_fields(self, served: ServedCall) -> dict[str, Any]:
        call = served.call
        fields: dict[str, Any] = {"tool_name": call.tool_name, "call_id": served.event_id}
        if call.call_id is None:
            fields["extra"] = {"call_id": "the reply carried none"}
        args = call.args
        if args is None:
            return {**fields, "args_raw": self._text(call.arguments)}
        redacted = self._value(args)
        fields["args"] = encode_raw(redacted)
        if redacted == args and encode(args) != call.arguments.encode("utf-8", "surrogatepass"):
            fields["args_raw"] = call.arguments
        return fields

    def _result_value(self, text: str) -> Raw:
        """A text that is a JSON object is that object, as the tool meant it; any other stays a text."""
        value = object_of(text)
        return encode_raw(self._value(text if value is None else value))


def timestamp(time_ns: int) -> str:
    """Return nanoseconds since the epoch as RFC 3339 UTC with microseconds."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06d}Z"
