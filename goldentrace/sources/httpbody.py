"""Bodies of logged HTTP messages: JSON, server-sent events, compressed or base64, into JSON values.

Sizes after decompression are bounded. Must not know whose API it is.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.sources.shapes import as_object

MAX_BODY_BYTES: Final = 64 << 20


def read_body(body: Any, headers: Mapping[str, Any] | None = None, *, is_base64: bool = False) -> Any:
    """Return the value of a body: what JSON holds, the list of events of a stream, None where it is neither.

    body: an object or array that was parsed already, text, or bytes; headers: names in any case, values text or lists.
    """
    if isinstance(body, (dict, list)):
        return body
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if not isinstance(data, bytes) or not data:
        return None
    if is_base64:
        try:
            data = base64.b64decode(data, validate=False)
        except (binascii.Error, ValueError):
            return None
    text = _decompressed(data, header(headers, "content-encoding"))
    if text is None:
        return None
    try:
        value = decode(text)
    except JsonError:
        events = sse_events(text.decode("utf-8", "replace"))
        return events or None
    return value if isinstance(value, (dict, list)) else None


def header(headers: Mapping[Any, Any] | None, name: str) -> str:
    """Return the value of a header in lower case, empty where there is none."""
    for key, value in (headers or {}).items():
        if isinstance(key, str) and key.lower() == name:
            first = value[0] if isinstance(value, list) and value else value
            return first.lower() if isinstance(first, str) else ""
    return ""


def sse_events(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that server-sent events carry; an event's name is the `type` of one that has none."""
    events: list[dict[str, Any]] = []
    name = ""
    data: list[str] = []
    for line in (*text.splitlines(), ""):
        key, _, value = line.partition(":")
        if key == "event":
            name = value.strip()
        elif key == "data":
            data.append(value.removeprefix(" "))
        elif not line:
            if data:
                events += _event(name, "\n".join(data))
            name, data = "", []
    return events


def _event(name: str, text: str) -> list[dict[str, Any]]:
    try:
        event = as_object(decode(text))
    except JsonError:
        return []  # `[DONE]`, and what a cut-off stream leaves
    return [{"type": name, **event} if name else event] if event else []


def _decompressed(data: bytes, encoding: str) -> bytes | None:
    """The plain bytes; recorders differ in whether they store what was sent or what it means, so the bytes decide."""
    if data[:2] == b"\x1f\x8b":
        return _inflated(data, 31)
    if encoding == "deflate":
        return _inflated(data, 15) or data
    if encoding == "zstd" and data[:4] == b"\x28\xb5\x2f\xfd":
        return _from_zstd(data)
    return data


def _inflated(data: bytes, window_bits: int) -> bytes | None:
    try:
        reader = zlib.decompressobj(window_bits)
        plain = reader.decompress(data, MAX_BODY_BYTES)
    except zlib.error:
        return None
    return None if reader.unconsumed_tail else plain


def _from_zstd(data: bytes) -> bytes | None:
    try:
        import zstandard
    except ImportError:
        return None
    try:
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_BODY_BYTES)
    except zstandard.ZstdError:
        return None
