"""What a wire format is to the rest: a name, its paths, and how values are written and read in it."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from goldentrace.replay.conversation import ModelRequest, Reply
from goldentrace.replay.script import ProviderError

PartKind: TypeAlias = Literal["open", "text", "arguments", "close", "end"]
MAX_PIECES: Final = 128
"""Deltas per text or arguments: long ones come in longer pieces, so that a large argument costs no thousands of
events."""
MAX_PIECE_CHARS: Final = 7


class RequestRefused(Exception):  # noqa: N818 (the provider refuses; nothing is broken)
    """The provider would refuse the request. error: what it would answer; param: the field that is wrong."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.error = ProviderError(status=status, message=message, code=code)


@dataclass(frozen=True, slots=True)
class StreamPart:
    """One server-sent event. kind: what it carries, so that a stream can be cut at a place; data: its JSON text."""

    kind: PartKind
    data: str
    event: str | None = None

    def encode(self) -> bytes:
        """The bytes on the wire; text beyond ASCII stays UTF-8, as the providers send it."""
        head = "" if self.event is None else f"event: {self.event}\n"
        return f"{head}data: {self.data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Wire:
    """name: as shown; paths: the ends of its request paths; call_prefix, reply_prefix: how its ids begin.

    read_request: (body, headers in lower case, is_strict) -> ModelRequest, raises RequestRefused;
    write_reply: (reply, request, created: Unix time in seconds) -> body;
    stream_reply: (reply, request, created, generator) -> parts;
    write_error: (error, param, request id) -> body;
    stream_error: (error, number of parts sent before) -> the part that ends a stream with it;
    read_reply: (body) -> Reply; read_stream: ((event, data) pairs) -> Reply.
    """

    name: str
    paths: tuple[str, ...]
    call_prefix: str
    reply_prefix: str
    request_id_header: str
    read_request: Callable[[Any, dict[str, str], bool], ModelRequest]
    write_reply: Callable[[Reply, ModelRequest, int], dict[str, Any]]
    stream_reply: Callable[[Reply, ModelRequest, int, random.Random], Iterator[StreamPart]]
    write_error: Callable[[ProviderError, str | None, str], dict[str, Any]]
    stream_error: Callable[[ProviderError, int], StreamPart]
    read_reply: Callable[[Any], Reply]
    read_stream: Callable[[Iterable[tuple[str | None, str]]], Reply]


def dumps(value: Any) -> str:
    """Return JSON as the providers write it: UTF-8 text unescaped; lone surrogates, which UTF-8 lacks, escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text


def split_text(text: str, draw: random.Random) -> list[str]:
    """Return a text in pieces of drawn length, joined the text again: as deltas come, tokens split anywhere."""
    longest = max(MAX_PIECE_CHARS, -(-2 * len(text) // MAX_PIECES))
    pieces: list[str] = []
    position = 0
    while position < len(text):
        size = draw.randint(1, longest)
        pieces.append(text[position : position + size])
        position += size
    return pieces


def split_bytes(parts: Iterable[bytes], draw: random.Random, *, longest: int = 160) -> Iterator[bytes]:
    """Yield the joined bytes in chunks of drawn length that respect nothing: not events, not tokens, not UTF-8
    sequences.

    A chunk that holds a multi-byte character is cut inside it two times of three.
    """
    for part in parts:
        position = 0
        while position < len(part):
            end = min(position + draw.randint(1, longest), len(part))
            inside = next((place for place in range(position + 1, end) if part[place] & 0xC0 == 0x80), None)
            if inside is not None and draw.random() < 2 / 3:
                end = inside
            yield part[position:end]
            position = end


# --- reading requests: what all wires check alike --------------------------------------------------------------------


def need_object(body: Any) -> dict[str, Any]:
    """Return the body as an object. Raises: RequestRefused."""
    if not isinstance(body, dict):
        raise RequestRefused("The request body must be a JSON object.")
    return body


def need_model(body: dict[str, Any]) -> str:
    """Return the model's name. Raises: RequestRefused."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestRefused("You must provide a model parameter.", param="model")
    return model


def need_flag(body: dict[str, Any], key: str) -> bool:
    """Return a boolean that may be absent or null. Raises: RequestRefused."""
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise RequestRefused(f"Invalid type for '{key}': expected a boolean.", param=key)
    return bool(value)


def need_list(body: dict[str, Any], key: str, *, is_needed: bool = False) -> list[Any]:
    """Return a list of objects that may be absent, unless needed. Raises: RequestRefused."""
    value = body.get(key)
    if value is None and not is_needed:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise RequestRefused(f"Invalid type for '{key}': expected an array of objects.", param=key)
    if is_needed and not value:
        raise RequestRefused(f"Invalid '{key}': empty array. Expected an array with minimum length 1.", param=key)
    return value


def need_text(value: Any, param: str) -> str:
    """Return a value that must be a text. Raises: RequestRefused."""
    if not isinstance(value, str):
        raise RequestRefused(f"Invalid type for '{param}': expected a string.", param=param)
    return value


def text_of(content: Any, param: str, text_types: tuple[str, ...]) -> str:
    """Return the text of content that is a text or a list of typed parts.

    Parts of another type (images, files) are named by their type alone: `[image]`. Hidden reasoning is left out.
    Raises: RequestRefused where content is neither.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestRefused(f"Invalid type for '{param}': expected a string or an array of parts.", param=param)
    texts: list[str] = []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            raise RequestRefused(f"Invalid type for '{param}[{index}]': expected a part with a type.", param=param)
        if kind in text_types:
            texts.append(need_text(part.get("text"), f"{param}[{index}].text"))
        elif kind not in HIDDEN_TYPES:
            texts.append(f"[{kind}]")
    return "\n".join(texts)


HIDDEN_TYPES: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "reasoning_summary"})
"""Parts and items that hold hidden reasoning: dropped where they are met."""
