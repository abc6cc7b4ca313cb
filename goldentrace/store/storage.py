"""What of a trace may be stored: without secrets, and without results or messages where the project says so.

The recorder does this before it writes; here it is done for traces that something else wrote: an agent in another
language, an imported file. Idempotent. This module must not read or write files.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import ARGS_DIGITS, JsonError, canonical, decode, digest, encode_raw
from goldentrace.model.config import RecordPolicy
from goldentrace.model.event import (
    ABSENT,
    AnyEvent,
    Approval,
    Decision,
    Effect,
    Message,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.profile import Redact
from goldentrace.normalize.redact import Redactor

_RAWS: Final[dict[type, tuple[str, ...]]] = {ToolCall: ("args",), ToolResult: ("result",), Effect: ("value",)}
_TEXTS: Final[dict[type, tuple[str, ...]]] = {
    ToolCall: ("args_raw", "idempotency_key", "resource"), Message: ("text",), Decision: ("reason",),
    Approval: ("by",), Effect: ("key",), TraceEnd: ("incomplete",),
}  # fmt: skip
_OBJECTS: Final[dict[type, tuple[str, ...]]] = {TraceStart: ("attributes", "extra")}
"""Beside these every event has `extra`. Names, ids and words of closed lists are kept: events are joined by them."""


class Storage:
    """Makes events storable. Equal secrets get equal numbers, over all events of one trace."""

    def __init__(self, redact: Redact | None = None, policy: RecordPolicy | None = None) -> None:
        self._redactor = Redactor(redact)
        self._policy = policy or RecordPolicy()
        self._numbers: dict[str, int] = {}

    def events(self, events: list[AnyEvent]) -> list[AnyEvent]:
        """Return the events as they may be stored; the same list where nothing has to change."""
        kept = [self.event(event) for event in events]
        is_same = all(new is old for new, old in zip(kept, events, strict=True))
        return events if is_same else kept

    def event(self, event: AnyEvent) -> AnyEvent:
        """Return one event as it may be stored."""
        kind = type(event)
        changes: dict[str, Any] = {}
        for name in _RAWS.get(kind, ()):
            self._clean(changes, event, name)
        for name in _TEXTS.get(kind, ()):
            self._clean_text(changes, event, name)
        for name in _OBJECTS.get(kind, ("extra",)):
            self._clean_object(changes, event, name)
        if kind is ToolResult and self._policy.results == "hash":
            result = changes.get("result", event.result)  # type: ignore[union-attr]
            changes |= _hashed(result) if bytes(result) else {}
        elif kind is Message and self._policy.messages == "drop":
            changes["text"] = None
        return msgspec.structs.replace(event, **changes) if changes else event

    def _clean(self, changes: dict[str, Any], event: AnyEvent, name: str) -> None:
        raw: Raw = getattr(event, name)
        text = bytes(raw)
        if not text or not self._redactor.is_suspect(text.decode("utf-8", "surrogatepass")):
            return
        try:
            value = decode(raw)
        except JsonError:
            return  # what cannot be read is refused by whoever needs it
        clean = self._redactor.redact_value(value, self._numbers)
        if clean != value:
            changes[name] = encode_raw(clean)

    def _clean_text(self, changes: dict[str, Any], event: AnyEvent, name: str) -> None:
        text: str | None = getattr(event, name)
        if text is not None and self._redactor.is_suspect(text):
            clean = self._redactor.redact_value(text, self._numbers)
            if clean != text:
                changes[name] = clean

    def _clean_object(self, changes: dict[str, Any], event: AnyEvent, name: str) -> None:
        value: dict[str, Any] | None = getattr(event, name)
        if value and self._redactor.is_suspect(msgspec.json.encode(value).decode("utf-8")):
            clean = self._redactor.redact_value(value, self._numbers)
            if clean != value:
                changes[name] = clean


def _hashed(result: Raw) -> dict[str, Any]:
    try:
        written = digest(canonical(decode(result)), ARGS_DIGITS)
    except JsonError:
        return {}
    return {"result": ABSENT, "result_hash": written, "result_bytes": len(bytes(result))}
