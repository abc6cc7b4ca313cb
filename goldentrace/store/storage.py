"""What of a trace may be stored: without secrets, and without results or messages where the project says so.

The recorder does this before it writes; here it is done for traces that something else wrote: an agent in another
language, an imported file. Idempotent. This module must not read or write files.
"""

from typing import Any

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import ARGS_DIGITS, JsonError, canonical, decode, digest, encode_raw
from goldentrace.model.config import RecordPolicy
from goldentrace.model.event import ABSENT, AnyEvent, Message, ToolCall, ToolResult
from goldentrace.model.profile import Redact
from goldentrace.normalize.redact import Redactor


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
        changes: dict[str, Any] = {}
        if type(event) is ToolCall:
            self._clean(changes, event, "args")
            self._clean_text(changes, event, "args_raw")
            self._clean_text(changes, event, "idempotency_key")
        elif type(event) is ToolResult:
            self._clean(changes, event, "result")
            if self._policy.results == "hash" and bytes(event.result):
                changes |= _hashed(changes.get("result", event.result))
        elif type(event) is Message and event.text is not None:
            if self._policy.messages == "drop":
                changes["text"] = None
            else:
                self._clean_text(changes, event, "text")
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
            clean = self._redactor.redact_text(text, self._numbers)
            if clean != text:
                changes[name] = clean


def _hashed(result: Raw) -> dict[str, Any]:
    try:
        written = digest(canonical(decode(result)), ARGS_DIGITS)
    except JsonError:
        return {}
    return {"result": ABSENT, "result_hash": written, "result_bytes": len(bytes(result))}
