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
from goldentrace.model.profile import Redact
from goldentrace.normalize.redact import KEY_MARKS, Redactor, is_secret_key
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1901"
_ALREADY = "redact/already"
_NUMBER = re.compile(r"/\d+(?=/|$)")
_ENDS = re.compile(r'["\r\n]+')
_SHORT = 200
_SHORTEST = 8
"""No secret is shorter: `"pwd":""` holds none."""
_REMEMBERED = 10_000


@rule(CODE, "secret-in-trace", severity="error")
def secret_in_trace(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per kind of place: tool or role, field, leaf and detector."""
    search = _Search(subject.profile.redact)
    tools = {call.call_id: call.tool_name for call in subject.trace.calls()}
    labels = {a.call_index: o.label for o, a in subject.attempts}
    labels |= {a.result_index: o.label for o, a in subject.attempts if a.result_index is not None}
    places: dict[tuple[str, str, str, str], list[int]] = {}
    for index, name, document in _documents(subject):
        for pointer, detector in search.secrets(document):
            event: Any = subject.trace.events[index]
            who = tools.get(getattr(event, "call_id", ""), getattr(event, "role", ""))
            places.setdefault((who, name, _NUMBER.sub("/*", pointer), detector), []).append(index)
    names = set(tools.values())
    for (who, name, pointer, detector), indexes in places.items():
        shown = indexes if len(indexes) == 1 else [indexes[0], indexes[-1]]
        what = detector.removeprefix("redact/")
        yield finding(
            CODE, f"{who or 'the trace'}: {name} {pointer or '(the whole value)'} holds a secret ({what})",
            lines=[subject.line(index) for index in shown],
            labels=[labels[index] for index in shown if index in labels],
            tool_name=who if who in names else None, pointer=pointer, count=len(indexes),
        )  # fmt: skip


def _documents(subject: Subject) -> Iterator[tuple[int, str, bytes]]:
    """Yield what the events of the trace hold, text or JSON, each once: index of the event, field, document."""
    seen: set[bytes] = set()
    for index, event in enumerate(subject.trace.events):
        name, document = _document(event)
        if len(document) < _SHORTEST or document in seen:
            continue
        if len(document) < _REMEMBERED:
            seen.add(document)
        yield index, name, document


def _document(event: AnyEvent) -> tuple[str, bytes]:
    if isinstance(event, ToolCall):
        return "args", bytes(event.args) or _encoded(event.args_raw)
    if isinstance(event, ToolResult):
        return "result", bytes(event.result)
    if isinstance(event, Message):
        return "text", _encoded(event.text)
    if isinstance(event, Effect):
        return "value", bytes(event.value)
    return "", b""


def _encoded(text: str | None) -> bytes:
    return b"" if text is None else text.encode("utf-8", "surrogatepass")


Marks = tuple[str, ...] | None
"""None: every text is searched, because the profile has rules of its own."""


class _Search:
    """The redactor, asked about as little text as possible: only where a mark stands, and there only about the piece
    between line ends and quotes, which no built-in secret crosses."""

    def __init__(self, settings: Redact) -> None:
        self._redactor = Redactor(settings)
        self._has_own = bool(settings.rules)

    def secrets(self, document: bytes) -> list[tuple[str, str]]:
        """Return the leaf and the detector of each secret in a text or JSON document."""
        if b"\\/" in document:
            document = document.replace(b"\\/", b"/")  # as JSON may write it; a URL does not show then
        marks = None if self._has_own else self._redactor.marks_in(document)
        if marks is not None and not marks:
            return []
        if marks is not None:
            marks = tuple([mark for mark in marks if mark not in KEY_MARKS])
        text = document.decode("utf-8", "replace")
        found: list[tuple[str, str]] = []
        self._walk(_decoded(text) if text[:1] in '{["' else text, "", None, marks, found)
        return found

    def _walk(self, value: Any, pointer: str, key: str | None, marks: Marks, found: list[tuple[str, str]]) -> None:
        kind = type(value)
        if kind is str:
            self._search(value, pointer, key, marks, found)
        elif kind is dict:
            for name, item in value.items():
                if _may_hold(item, name, marks):
                    self._walk(item, f"{pointer}/{escape(name)}", name, marks, found)
        elif kind is list:
            for number, item in enumerate(value):
                if _may_hold(item, key, marks):
                    self._walk(item, f"{pointer}/{number}", key, marks, found)

    def _search(self, text: str, pointer: str, key: str | None, marks: Marks, found: list[tuple[str, str]]) -> None:
        has_telling_key = key is not None and is_secret_key(key)
        if not has_telling_key and _looks_like_json(text):
            value = _decoded(text)
            if value is not text:
                self._walk(value, f"{pointer}#json", None, marks, found)
                return
        for piece in [text] if has_telling_key else _pieces(text, marks):
            for _, _, token in self._redactor.find(piece, key):
                if token.rule != _ALREADY:
                    found.append((pointer, token.rule))


def _may_hold(value: Any, key: str | None, marks: Marks) -> bool:
    """May a secret stand in this value? False is certain."""
    if type(value) is not str:
        return type(value) in (dict, list)
    return (
        marks is None
        or (key is not None and is_secret_key(key))
        or _looks_like_json(value)
        or bool(_held(value, marks))
    )


def _looks_like_json(text: str) -> bool:
    return text[:1] in ("{", "[") and text[-1:] in ("}", "]")


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except JsonError:
        return text


def _held(text: str, marks: tuple[str, ...]) -> tuple[str, ...]:
    low = text.lower()
    return tuple([mark for mark in marks if mark in low])


def _pieces(text: str, marks: Marks) -> list[str]:
    """The parts of a text that may hold a secret."""
    if marks is None:
        return [text]
    held = _held(text, marks)
    if not held or len(text) < _SHORT:
        return [text] if held else []
    return [piece for piece in _ENDS.split(text) if _held(piece, held)]
