"""What the reader of a trace left out or set aside, put so that a person can mend the writer.

A misspelt event type or field costs no error, since newer writers may know more than this version, but it makes a run
look emptier than it was. Pure text: must not print.
"""

import re
from collections.abc import Iterable
from typing import Final

from goldentrace.model.event import EVENT_TYPES
from goldentrace.model.trace import Note

MAX_NOTES: Final = 10
"""Distinct notes of one trace; a writer that gets this many wrong is mended one by one."""

_UNKNOWN_TYPE: Final = re.compile(r"event type '(?P<name>.*)' is not known and was left out$", re.DOTALL)
_UNKNOWN_FIELDS: Final = re.compile(r"unknown fields kept in extra: (?P<names>.*)$", re.DOTALL)

_TYPE_WORDS: Final = {"function_call": "tool_call", "tool_use": "tool_call", "call": "tool_call",
                      "function_call_output": "tool_result", "tool_response": "tool_result", "result": "tool_result",
                      "start": "trace_start", "end": "trace_end", "turn": "model_turn"}  # fmt: skip
_FIELD_WORDS: Final = {"arguments": "args", "input": "args", "parameters": "args", "params": "args",
                       "name": "tool_name", "tool": "tool_name", "function": "tool_name", "id": "call_id",
                       "tool_call_id": "call_id", "tool_use_id": "call_id", "output": "result",
                       "content": "result", "timestamp": "ts"}  # fmt: skip
"""Words of common interfaces for what the format calls otherwise. Source: the parameter names of the tool calls in the
public references of OpenAI (Chat Completions, Responses), Anthropic (Messages) and the Model Context Protocol."""


def reader_notes(notes: Iterable[Note]) -> list[str]:
    """Return the notes of one trace, equal ones once with their first line and count, each with the name that was
    perhaps meant."""
    found: dict[str, list[int | None]] = {}
    for note in notes:
        found.setdefault(note.text, []).append(note.line)
    told = [_told(text, lines) for text, lines in found.items()]
    if len(told) <= MAX_NOTES:
        return told
    return [*told[:MAX_NOTES], f"{len(told) - MAX_NOTES} more notes of this kind"]


def unknown_types(notes: Iterable[Note]) -> list[str]:
    """Return the event types that were left out because nobody knows them, each once."""
    matches = (_UNKNOWN_TYPE.search(note.text) for note in notes)
    return list(dict.fromkeys(match["name"] for match in matches if match is not None))


def _told(text: str, lines: list[int | None]) -> str:
    place = f"line {lines[0]}" if lines[0] is not None else ""
    count = f"{len(lines)} times" if len(lines) > 1 else ""
    about = ", ".join(part for part in (count, f"first at {place}" if count and place else place) if part)
    hint = _hint(text)
    return text + (f" ({about})" if about else "") + (f": {hint}" if hint else "")


def _hint(text: str) -> str:
    kind = _UNKNOWN_TYPE.search(text)
    if kind is not None:
        near = _nearest(kind["name"], EVENT_TYPES, _TYPE_WORDS)
        return f"did you mean {near}?" if near else f"known types: {', '.join(EVENT_TYPES)}"
    fields = _UNKNOWN_FIELDS.search(text)
    if fields is None:
        return ""
    known = list(dict.fromkeys(name for event in EVENT_TYPES.values() for name in event.__struct_fields__))
    pairs = [(name, _nearest(name, known, _FIELD_WORDS)) for name in fields["names"].split(", ")]
    meant = [f"{name} -> {near}" for name, near in pairs if near]
    return f"did you mean {', '.join(meant)}?" if meant else ""


def _nearest(name: str, known: Iterable[str], words: dict[str, str]) -> str | None:
    import difflib

    plain = {_plain(word): word for word in known}
    meant = words.get(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) or plain.get(_plain(name))
    if meant is not None:
        return meant
    close = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.75)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
