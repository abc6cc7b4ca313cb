"""A turn of the model while it happens: entered before the model is asked, written once its answer is known.

The line is written at the first event of the turn, so that what the answer brought (model, usage) can still be said in
between; a request that failed before any answer leaves no turn. This module must not ask a model.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from goldentrace.model.event import ModelTurn, Usage
from goldentrace.record.calls import Scope

if TYPE_CHECKING:
    from goldentrace.record.session import Session

_TOKEN_NAMES: Final = {
    "input_tokens": ("input_tokens", "prompt_tokens", "prompt_token_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidates_token_count"),
    "cached_tokens": ("cached_tokens", "cache_read_input_tokens", "cached_content_token_count"),
    "cost_usd": ("cost_usd", "cost"),
}
"""Our name, then those of Anthropic and OpenAI Responses, OpenAI Chat Completions, Gemini."""
_DETAILS: Final = ("input_tokens_details", "prompt_tokens_details")
"""Where OpenAI's usage holds `cached_tokens`."""


class Turn:
    """One turn; a context manager. Made by `Recorder.turn`. batch: of the calls that it asks for, None where they are
    told apart by when they ran."""

    def __init__(self, session: "Session", fields: dict[str, Any], batch: str | None = None) -> None:
        self._session = session
        self.batch = batch
        self._fields = fields
        self._outer = Scope()
        self._is_begun = self._is_written = False
        self.number: int | None = None
        self.inner = self._outer

    def __enter__(self) -> Self:
        """Begin. Raises: LimitReached."""
        self._session.take_turn()
        calls = self._session.calls
        self._outer = calls.scope()
        self.inner = msgspec.structs.replace(self._outer, turn=self, batch=None)
        calls.move_to(self.inner)
        calls.enter_turn(self)
        if self._fields.get("usage") is not None:
            self._take_usage(self._fields["usage"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        calls = self._session.calls
        if error is None or self._fields:
            self.write()
        calls.open_turns.remove(self)
        # What happened last is still the latest outside of the turn, for a decision that is stated after it.
        scope = calls.scope()
        calls.move_to(msgspec.structs.replace(self._outer, last=scope.last, retry=scope.retry))

    def response(
        self,
        *,
        model: str | None = None,
        finish_reason: str | None = None,
        usage: Any = None,
        input_call_ids: Sequence[str] | None = None,
    ) -> None:
        """Say what the model's answer brought; before the first call of the turn. Raises: LimitReached.

        usage: a mapping or a provider's own usage object; input_call_ids: the calls whose results were in the request.
        """
        stated = turn_fields(model, finish_reason, usage, input_call_ids)
        self._fields.update(stated)
        if stated.get("usage") is not None:
            self._take_usage(stated["usage"])

    def write(self) -> None:
        """Write the line, if it is not there yet. Whoever comes meanwhile waits: its own line must not stand before
        it."""
        if self._is_written:
            return
        session = self._session
        with session.calls.lock:
            if not self._is_begun:  # begun, not written: a signal handler interrupts this very thread
                self._is_begun = True
                self.number = session.next_turn()
                session.append(ModelTurn(turn=self.number, agent=self.inner.agent, **self._fields))
                self._is_written = True

    def _take_usage(self, usage: Usage) -> None:
        self._session.take_usage(usage, self)


def turn_fields(
    model: str | None, finish_reason: str | None, usage: Any, input_call_ids: Sequence[str] | None
) -> dict[str, Any]:
    """Return what is known of a turn, as fields of its event."""
    stated = {
        "model": model,
        "finish_reason": finish_reason,
        "usage": None if usage is None else read_usage(usage),
        "input_call_ids": None if input_call_ids is None else [str(call_id) for call_id in input_call_ids],
    }
    return {name: value for name, value in stated.items() if value is not None}


def read_usage(source: Any) -> Usage | None:
    """Return the usage that a mapping or a provider's object states; None where it states none."""
    if isinstance(source, Usage):
        return source
    found: dict[str, Any] = {}
    for ours, names in _TOKEN_NAMES.items():
        for name in names:
            value = _stated(source, name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[ours] = float(value) if ours == "cost_usd" else int(value)
                break
    for name in _DETAILS:
        cached = _stated(_stated(source, name), "cached_tokens")
        if isinstance(cached, int):
            found.setdefault("cached_tokens", cached)
    return Usage(**found) if found else None


def _stated(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
