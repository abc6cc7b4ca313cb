"""GT1901 secret-in-trace: a credential stands in the trace.

What it finds: a value that looks like a key, token or password (list `secrets/1`, and the profile's own rules), or
    stands under a name such as `password` or `api_key`, in arguments, results, messages or effects. The value is
    never shown.
Why it matters: traces are committed, uploaded and read by many.
Example: a result holds "Authorization: Bearer eyJ…".
Not a finding: `<secret:1>`, which redaction wrote; what the profile's `redact.rules` allow.
Options: none; `redact` of the profile adds patterns and exceptions.
Needs: nothing.
References: shapes as the providers document their keys; the recorder redacts when it writes, so that a finding there
    means a detector is missing or the trace came from elsewhere.
"""

import re
from collections.abc import Iterator
from typing import Any

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.model.event import AnyEvent, Effect, Message, ToolCall, ToolResult
from goldentrace.model.finding import Finding
from goldentrace.model.pointer import escape
from goldentrace.normalize.redact import Redactor
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1901"
_ALREADY = "redact/already"
_NUMBER = re.compile(r"/\d+(?=/|$)")


@rule(CODE, "secret-in-trace", severity="error")
def secret_in_trace(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per kind of place: tool or role, field, leaf and detector."""
    redactor = Redactor(subject.profile.redact)
    tools = {call.call_id: call.tool_name for call in subject.trace.calls()}
    labels = {a.call_index: o.label for o, a in subject.attempts} | {
        a.result_index: o.label for o, a in subject.attempts
    }
    clean: set[bytes] = set()
    places: dict[tuple[str, str, str, str], list[int]] = {}
    for index, event in enumerate(subject.trace.events):
        for name, data in _texts(event):
            if data in clean:
                continue
            found = list(_secrets(redactor, data))
            if not found:
                clean.add(data)
            who = tools.get(getattr(event, "call_id", ""), getattr(event, "role", ""))
            for pointer, detector in found:
                places.setdefault((who, name, _NUMBER.sub("/*", pointer), detector), []).append(index)
    for (who, name, pointer, detector), indexes in places.items():
        shown = indexes if len(indexes) == 1 else [indexes[0], indexes[-1]]
        what = detector.removeprefix("redact/")
        yield finding(
            CODE, f"{who or 'the trace'}: {name} {pointer or '(the whole value)'} holds a secret ({what})",
            lines=[subject.line(index) for index in shown],
            labels=[labels[index] for index in shown if index in labels],
            tool_name=who if who in set(tools.values()) else None, pointer=pointer, count=len(indexes),
        )  # fmt: skip


def _texts(event: AnyEvent) -> Iterator[tuple[str, bytes]]:
    if isinstance(event, ToolCall):
        yield "args", bytes(event.args) or (event.args_raw or "").encode("utf-8", "surrogatepass")
    elif isinstance(event, ToolResult):
        yield "result", bytes(event.result)
    elif isinstance(event, Message):
        yield "text", (event.text or "").encode("utf-8", "surrogatepass")
    elif isinstance(event, Effect):
        yield "value", bytes(event.value)


def _secrets(redactor: Redactor, data: bytes) -> Iterator[tuple[str, str]]:
    text = data.decode("utf-8", "surrogateescape")
    if not text or not redactor.is_suspect(text):
        return
    try:
        value = decode(data) if data[:1] in b'{["' else text
    except JsonError:
        value = text
    yield from _walk(redactor, value, "", None)


def _walk(redactor: Redactor, value: Any, pointer: str, key: str | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        for _, _, token in redactor.find(value, key):
            if token.rule != _ALREADY:
                yield pointer, token.rule
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(redactor, item, f"{pointer}/{escape(name)}", name)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(redactor, item, f"{pointer}/{number}", key)
